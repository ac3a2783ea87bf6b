/*
 * cublaslt.h - matrix products by cuBLASLt: an operation, the layouts of its three matrices, and
 * the algorithms that the library proposes.
 *
 * The library is loaded when the first product is prepared, because it is large and few networks
 * multiply matrices. It comes with the toolkit of NVRTC, whose version the caller passes. None of
 * its headers is needed: the constants of its attributes and types are declared here, and its API
 * keeps them.
 */
#ifndef PLUGINS_DEVICES_CUDA_CUBLASLT_CUBLASLT_H
#define PLUGINS_DEVICES_CUDA_CUBLASLT_CUBLASLT_H

#include "cuda/driver/driver.h"

typedef struct cublaslt_handle_object *cublaslt_handle;
typedef struct cublaslt_operation_object *cublaslt_operation;
typedef struct cublaslt_layout_object *cublaslt_layout;
typedef struct cublaslt_preference_object *cublaslt_preference;

enum { BLAS_F32 = 0, BLAS_F16 = 2, BLAS_BF16 = 14 };
enum { BLAS_SUMS_F32 = 68, BLAS_SUMS_TF32 = 77 };

/*
 * Attributes of an operation (int32_t), of a layout (int32_t; int64_t) and of a preference
 * (uint64_t; the others uint32_t).
 */
enum { BLAS_TRANSPOSE_FIRST = 3, BLAS_TRANSPOSE_SECOND = 4 };
enum { BLAS_BATCH = 5, BLAS_BATCH_STRIDE = 6 };
enum {
    BLAS_WORKSPACE = 1, BLAS_REDUCTIONS = 3, BLAS_ALIGNMENT_FIRST = 5, BLAS_ALIGNMENT_SECOND,
    BLAS_ALIGNMENT_ADDED, BLAS_ALIGNMENT_RESULT
};

/* Bits of BLAS_REDUCTIONS: how split sums are added; a sum without parts is always allowed. */
enum { BLAS_REDUCTION_IN_PLACE = 1, BLAS_REDUCTION_AS_FLOAT = 2, BLAS_REDUCTION_AS_RESULT = 4 };

/* Statuses. */
enum { BLAS_NOT_SUPPORTED = 15 };

typedef struct cublaslt_algorithm {
    uint64_t opaque[8];
} cublaslt_algorithm;

typedef struct cublaslt_choice {
    cublaslt_algorithm algorithm;
    size_t workspace;
    int status;
    float waves;
    int reserved[4];
} cublaslt_choice;

#define BLAS_FUNCTIONS(X)                                                                         \
    X(const char *, status_text, "cublasLtGetStatusString", (int status))                         \
    X(size_t, version, "cublasLtGetVersion", (void))                                              \
    X(int, create, "cublasLtCreate", (cublaslt_handle *handle))                                   \
    X(int, destroy, "cublasLtDestroy", (cublaslt_handle handle))                                  \
    X(int, operation_new, "cublasLtMatmulDescCreate", (cublaslt_operation *out, int sums,         \
                                                       int scale))                                \
    X(int, operation_set, "cublasLtMatmulDescSetAttribute",                                       \
      (cublaslt_operation o, int attribute, const void *value, size_t size))                      \
    X(int, operation_free, "cublasLtMatmulDescDestroy", (cublaslt_operation o))                   \
    X(int, layout_new, "cublasLtMatrixLayoutCreate", (cublaslt_layout *out, int type,             \
                                                      uint64_t rows,                              \
                                                      uint64_t columns, int64_t stride))          \
    X(int, layout_set, "cublasLtMatrixLayoutSetAttribute",                                        \
      (cublaslt_layout l, int attribute, const void *value, size_t size))                         \
    X(int, layout_free, "cublasLtMatrixLayoutDestroy", (cublaslt_layout l))                       \
    X(int, preference_new, "cublasLtMatmulPreferenceCreate", (cublaslt_preference *out))          \
    X(int, preference_set, "cublasLtMatmulPreferenceSetAttribute",                                \
      (cublaslt_preference p, int attribute, const void *value, size_t size))                     \
    X(int, preference_free, "cublasLtMatmulPreferenceDestroy", (cublaslt_preference p))           \
    X(int, choose, "cublasLtMatmulAlgoGetHeuristic",                                              \
      (cublaslt_handle handle, cublaslt_operation o, cublaslt_layout first,                       \
       cublaslt_layout second,                                                                    \
       cublaslt_layout added, cublaslt_layout result, cublaslt_preference p, int wanted,          \
           cublaslt_choice *out,                                                                  \
       int *found))                                                                               \
    X(int, multiply, "cublasLtMatmul",                                                            \
      (cublaslt_handle handle, cublaslt_operation o, const void *alpha, const void *first,        \
       cublaslt_layout first_layout, const void *second, cublaslt_layout second_layout,           \
       const void *beta, const void *added, cublaslt_layout added_layout, void *result,           \
       cublaslt_layout result_layout, const cublaslt_algorithm *algorithm, void *workspace,       \
           size_t size,                                                                           \
       cuda_stream stream))

#define BLAS_MEMBER(result, name, symbol, parameters) result(*name) parameters;
typedef struct cublaslt_library {
    void *library;             /* NULL: not loaded yet, or not found                              */
    bool searched;
    cublaslt_handle handle;
    char missing[1024];        /* reason why the library is missing                               */
    BLAS_FUNCTIONS(BLAS_MEMBER)
} cublaslt_library;
#undef BLAS_MEMBER

/* ---- cublaslt.c ------------------------------------------------------------------------------ */

/*
 * True if the library works on the GPU of this thread. The first call loads it, preferably of CUDA
 * version 'cuda', which both driver and GPU support. Without it our own kernels compute all
 * products: no failure.
 */
bool cublaslt_is_available(cublaslt_library *blas, int cuda);
/* Write "cuBLASLt 13.0.2", or "no cuBLASLt (why)"; loads the library, too. */
void cublaslt_describe(cublaslt_library *blas, int cuda, char *text, size_t size);
void cublaslt_close(cublaslt_library *blas);

/* A product in the library's terms. */
typedef struct cublaslt_product {
    cublaslt_operation operation;
    cublaslt_layout layout[3];     /* layouts of the first factor, the second and the result      */
} cublaslt_product;

/* True if the library may compute the request. */
bool cublaslt_supports(const pons_request *request);
/* Returns 0 or the library's status; 'out' must be freed in both cases. */
int cublaslt_product_new(const cublaslt_library *blas, const pons_request *request,
                         cublaslt_product *out);
void cublaslt_product_free(const cublaslt_library *blas, cublaslt_product *p);
/*
 * The library's first 'most' algorithms with a workspace of at most 'workspace' bytes; *count of
 * them.
 */
int cublaslt_product_choose(const cublaslt_library *blas, const cublaslt_product *p,
                            size_t workspace, int most, cublaslt_choice *out, int *count);
/*
 * Queue the product on a stream. 'operand' has both factors and the result in the order of the
 * request.
 */
int cublaslt_product_run(const cublaslt_library *blas, const cublaslt_product *p,
                         const cublaslt_choice *by,
                         void *const operand[3], void *workspace, cuda_stream stream);

#endif
