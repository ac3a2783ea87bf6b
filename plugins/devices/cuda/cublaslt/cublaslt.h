/*
 * cublaslt.h - matrix products by cuBLASLt: an operation, how its three matrices lie in memory,
 * and the algorithms that the library proposes for them.
 *
 * The library is found when the first product is prepared: it is half a gigabyte, which takes 60 ms
 * to open, and few networks multiply matrices. It comes with the toolkit of NVRTC, whose version
 * the device tells. None of its headers is needed: the numbers of its attributes and types, which
 * its interface keeps, stand here.
 */
#ifndef PLUGINS_DEVICES_CUDA_CUBLASLT_CUBLASLT_H
#define PLUGINS_DEVICES_CUDA_CUBLASLT_CUBLASLT_H

#include "cuda/driver/driver.h"

typedef struct blas_handle_object *blas_handle;
typedef struct blas_operation_object *blas_operation;
typedef struct blas_layout_object *blas_layout;
typedef struct blas_preference_object *blas_preference;

enum { BLAS_F32 = 0, BLAS_F16 = 2, BLAS_BF16 = 14 };
enum { BLAS_SUMS_F32 = 68, BLAS_SUMS_TF32 = 77 };

/* Attributes: of an operation (int32_t), a layout (int32_t; int64_t), and a preference (uint64_t;
 * the others uint32_t). */
enum { BLAS_TRANSPOSE_FIRST = 3, BLAS_TRANSPOSE_SECOND = 4 };
enum { BLAS_BATCH = 5, BLAS_BATCH_STRIDE = 6 };
enum {
    BLAS_WORKSPACE = 1, BLAS_REDUCTIONS = 3, BLAS_ALIGNMENT_FIRST = 5, BLAS_ALIGNMENT_SECOND,
    BLAS_ALIGNMENT_ADDED, BLAS_ALIGNMENT_RESULT
};

/* Bits of BLAS_REDUCTIONS: how parts of long sums meet; one sum without parts is always allowed. */
enum { BLAS_REDUCTION_IN_PLACE = 1, BLAS_REDUCTION_AS_FLOAT = 2, BLAS_REDUCTION_AS_RESULT = 4 };

/* Statuses. */
enum { BLAS_NOT_SUPPORTED = 15 };

typedef struct blas_algorithm {
    uint64_t opaque[8];
} blas_algorithm;

typedef struct blas_choice {
    blas_algorithm algorithm;
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
} blas_choice;

#define BLAS_FUNCTIONS(X)                                                                         \
    X(const char *, status_text, "cublasLtGetStatusString", (int status))                         \
    X(size_t, version, "cublasLtGetVersion", (void))                                              \
    X(int, create, "cublasLtCreate", (blas_handle *handle))                                       \
    X(int, destroy, "cublasLtDestroy", (blas_handle handle))                                      \
    X(int, operation_new, "cublasLtMatmulDescCreate", (blas_operation *out, int sums, int scale)) \
    X(int, operation_set, "cublasLtMatmulDescSetAttribute",                                       \
      (blas_operation o, int attribute, const void *value, size_t size))                          \
    X(int, operation_free, "cublasLtMatmulDescDestroy", (blas_operation o))                       \
    X(int, layout_new, "cublasLtMatrixLayoutCreate", (blas_layout *out, int type, uint64_t rows,  \
                                                      uint64_t columns, int64_t stride))          \
    X(int, layout_set, "cublasLtMatrixLayoutSetAttribute",                                        \
      (blas_layout l, int attribute, const void *value, size_t size))                             \
    X(int, layout_free, "cublasLtMatrixLayoutDestroy", (blas_layout l))                           \
    X(int, preference_new, "cublasLtMatmulPreferenceCreate", (blas_preference *out))              \
    X(int, preference_set, "cublasLtMatmulPreferenceSetAttribute",                                \
      (blas_preference p, int attribute, const void *value, size_t size))                         \
    X(int, preference_free, "cublasLtMatmulPreferenceDestroy", (blas_preference p))               \
    X(int, choose, "cublasLtMatmulAlgoGetHeuristic",                                              \
      (blas_handle handle, blas_operation o, blas_layout first, blas_layout second,               \
       blas_layout added, blas_layout result, blas_preference p, int wanted, blas_choice *out,    \
       int *found))                                                                               \
    X(int, multiply, "cublasLtMatmul",                                                            \
      (blas_handle handle, blas_operation o, const void *alpha, const void *first,                \
       blas_layout first_layout, const void *second, blas_layout second_layout,                   \
       const void *beta, const void *added, blas_layout added_layout, void *result,               \
       blas_layout result_layout, const blas_algorithm *algorithm, void *workspace, size_t size,  \
       cuda_stream stream))

#define BLAS_MEMBER(result, name, symbol, parameters) result(*name) parameters;
typedef struct cuda_blas {
    void *library;             /* NULL: not looked for yet, or there is none                      */
    bool sought;
    blas_handle handle;
    char missing[1024];        /* why there is none                                               */
    BLAS_FUNCTIONS(BLAS_MEMBER)
} cuda_blas;
#undef BLAS_MEMBER

/*
 * ---- cublaslt.c
 * ----------------------------------------------------------------------------------
 */

/*
 * Whether the library is there and works on the card of this thread; the first call looks for it:
 * one of that CUDA if it can be, which is what both driver and card go with.
 * Without it all products are our own: no failure.
 */
bool blas_is_there(cuda_blas *blas, int cuda);
/* "cuBLASLt 13.0.2", or "no cuBLASLt (why)"; looks for it, too. */
void blas_describe(cuda_blas *blas, int cuda, char *text, size_t size);
void blas_close(cuda_blas *blas);

/* The product of a request as the library is told it. */
typedef struct blas_product {
    blas_operation operation;
    blas_layout layout[3];     /* of the first factor, the second and the result                  */
} blas_product;

/* Whether the library is asked at all. */
bool blas_takes(const pons_request *request);
/* 0 or the library's status; 'out' is to be freed in both cases. */
int blas_product_new(const cuda_blas *blas, const pons_request *request, blas_product *out);
void blas_product_free(const cuda_blas *blas, blas_product *p);
/* The library's first 'most' choices with a workspace of at most so many bytes; *count of them. */
int blas_product_choose(const cuda_blas *blas, const blas_product *p, size_t workspace, int most,
                        blas_choice *out, int *count);
/* Put it on a stream. operand: the two factors and the result, as a request has them. */
int blas_product_run(const cuda_blas *blas, const blas_product *p, const blas_choice *by,
                     void *const operand[3], void *workspace, cuda_stream stream);

#endif
