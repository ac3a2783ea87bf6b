/*
 * cudnn.h - convolutions by cuDNN 9's backend API: descriptors with attributes, a graph of
 * operations, engines that can compute it, and an execution plan for one engine.
 *
 * The library is loaded when the device is opened. None of its headers is needed: the constants of
 * its kinds, attributes and types are declared here, and its API keeps them.
 */
#ifndef PLUGINS_DEVICES_CUDA_CUDNN_CUDNN_H
#define PLUGINS_DEVICES_CUDA_CUDNN_CUDNN_H

#include "cuda/driver/driver.h"

typedef struct cudnn_handle_object *cudnn_handle;
typedef struct cudnn_descriptor_object *cudnn_descriptor;

/* Kinds of descriptors. */
enum {
    DNN_CONVOLUTION = 1, DNN_ENGINE, DNN_CHOICE, DNN_HEURISTIC, DNN_PLAN, DNN_KNOB = 7,
    DNN_FORWARD = 10, DNN_BACKWARD_FILTER, DNN_BACKWARD_DATA,
    DNN_GRAPH = 15, DNN_PACK, DNN_TENSOR, DNN_CARD = 38
};

/* Attributes; each name begins with its descriptor. */
enum {
    DNN_CONVOLUTION_COMPUTE = 100, DNN_CONVOLUTION_MODE, DNN_CONVOLUTION_DILATIONS,
    DNN_CONVOLUTION_STRIDES, DNN_CONVOLUTION_PADS_HIGH, DNN_CONVOLUTION_PADS_LOW,
    DNN_CONVOLUTION_RANK,
    DNN_HEURISTIC_MODE = 200, DNN_HEURISTIC_GRAPH, DNN_HEURISTIC_RESULTS, DNN_HEURISTIC_CARD = 204,
    DNN_CHOICE_ENGINE = 300, DNN_CHOICE_KNOBS = 302,
    DNN_PLAN_HANDLE = 400, DNN_PLAN_CHOICE, DNN_PLAN_WORKSPACE, DNN_PLAN_CARD = 407,
    DNN_KNOB_KIND = 600, DNN_KNOB_VALUE,
    DNN_FORWARD_ALPHA = 700, DNN_FORWARD_BETA, DNN_FORWARD_CONVOLUTION, DNN_FORWARD_W,
    DNN_FORWARD_X, DNN_FORWARD_Y,
    DNN_DATA_ALPHA, DNN_DATA_BETA, DNN_DATA_CONVOLUTION, DNN_DATA_W, DNN_DATA_DX, DNN_DATA_DY,
    DNN_FILTER_ALPHA, DNN_FILTER_BETA, DNN_FILTER_CONVOLUTION, DNN_FILTER_DW, DNN_FILTER_X,
    DNN_FILTER_DY,
    DNN_GRAPH_HANDLE = 800, DNN_GRAPH_OPERATIONS,
    DNN_TENSOR_ALIGNMENT = 900, DNN_TENSOR_TYPE, DNN_TENSOR_EXTENTS, DNN_TENSOR_STRIDES,
    DNN_TENSOR_NUMBER = 906,
    DNN_PACK_NUMBERS = 1000, DNN_PACK_POINTERS, DNN_PACK_WORKSPACE = 1003,
    DNN_ENGINE_NUMBER = 1301, DNN_ENGINE_NOTES = 1303,
    DNN_CARD_JSON = 2702
};

/* Types of attributes. */
enum {
    DNN_TYPE_HANDLE = 0, DNN_TYPE_DATA = 1, DNN_TYPE_INT64 = 3, DNN_TYPE_FLOAT = 4,
    DNN_TYPE_POINTER = 6, DNN_TYPE_CONVOLUTION_MODE = 7, DNN_TYPE_HEURISTIC_MODE = 8,
    DNN_TYPE_KNOB = 9, DNN_TYPE_NOTE = 11, DNN_TYPE_DESCRIPTOR = 15, DNN_TYPE_CHAR = 24
};

enum { DNN_F32 = 0, DNN_F16 = 2, DNN_BF16 = 9 };
enum { DNN_CROSS_CORRELATION = 1 };
enum { DNN_MODE_FALLBACK = 2, DNN_MODE_A = 3 };

/* Numerical notes of an engine: bits of its notes. */
enum {
    DNN_NOTE_TENSOR_CORE = 0, DNN_NOTE_DOWN_CONVERT, DNN_NOTE_REDUCED_SUMS, DNN_NOTE_FFT,
    DNN_NOTE_NONDETERMINISTIC, DNN_NOTE_WINOGRAD
};

/* Statuses; the thousands are a category. */
enum { DNN_NOT_SUPPORTED = 3 };

#define DNN_FUNCTIONS(X)                                                                          \
    X(int, property, "cudnnGetProperty", (int part, int *value))                                  \
    X(void, last_error, "cudnnGetLastErrorString", (char *text, size_t size))                     \
    X(int, create, "cudnnCreate", (cudnn_handle *handle))                                         \
    X(int, destroy, "cudnnDestroy", (cudnn_handle handle))                                        \
    X(int, set_stream, "cudnnSetStream", (cudnn_handle handle, cuda_stream stream))               \
    X(int, descriptor_new, "cudnnBackendCreateDescriptor", (int kind, cudnn_descriptor *out))     \
    X(int, descriptor_free, "cudnnBackendDestroyDescriptor", (cudnn_descriptor d))                \
    X(int, set, "cudnnBackendSetAttribute", (cudnn_descriptor d, int attribute, int type,         \
                                             int64_t count, const void *values))                  \
    X(int, get, "cudnnBackendGetAttribute", (cudnn_descriptor d, int attribute, int type,         \
                                             int64_t room, int64_t *count, void *values))         \
    X(int, finalize, "cudnnBackendFinalize", (cudnn_descriptor d))                                \
    X(int, execute, "cudnnBackendExecute", (cudnn_handle handle, cudnn_descriptor plan,           \
                                            cudnn_descriptor pack))

#define DNN_MEMBER(result, name, symbol, parameters) result(*name) parameters;
typedef struct cudnn_library {
    void *library;             /* NULL: no library, and 'missing' has the reason                  */
    int version;               /* 91900 means 9.19.0; 0: no library                               */
    cudnn_handle handle;
    char missing[160];
    DNN_FUNCTIONS(DNN_MEMBER)
} cudnn_library;
#undef DNN_MEMBER

/* ---- cudnn.c --------------------------------------------------------------------------------- */

/* Load the library. Without it our own kernels compute all convolutions: no failure. */
void cudnn_find(cudnn_library *dnn);
/* Create a handle on the GPU of this thread. If that fails, the library counts as missing. */
void cudnn_start(cudnn_library *dnn, cuda_stream stream);
void cudnn_close(cudnn_library *dnn);
/* "cuDNN 9.19.0", or "no cuDNN (why)". */
void cudnn_describe(const cudnn_library *dnn, char *text, size_t size);

/*
 * Descriptors with one owner. The first failed call leaves its status and its name, and later calls
 * do nothing.
 */
enum { DNN_LIST = 40 };

typedef struct cudnn_list {
    const cudnn_library *dnn;
    int status, count;
    const char *failed;
    cudnn_descriptor item[DNN_LIST];
} cudnn_list;

cudnn_descriptor cudnn_add(cudnn_list *l, int kind);
void cudnn_set(cudnn_list *l, cudnn_descriptor d, int attribute, int type, int64_t count,
               const void *values);
void cudnn_finish(cudnn_list *l, cudnn_descriptor d);
void cudnn_list_free(cudnn_list *l);

/* ---- cudnn_graph.c --------------------------------------------------------------------------- */

enum { DNN_X = 1, DNN_W, DNN_Y }; /* ids of tensors                                               */

/* The convolution of a request. x, w and y have one type, even if the request's w is f32. */
typedef struct cudnn_convolution {
    const pons_request *request;
    pons_tensor x, w, y;
    bool flat;                 /* 2D: without axis D                                              */
} cudnn_convolution;

/* True if cuDNN may compute the request; sets *c. */
bool cudnn_supports(const pons_request *request, cudnn_convolution *c);
/* Pointers of a call in the order x, w, y. The result goes to 'low' unless that is NULL. */
void cudnn_order_pointers(const cudnn_convolution *c, const pons_call *call, void *low,
                          void *pointer[3]);
/* The graph of that one operation. A NULL handle describes a GPU that is not present. */
cudnn_descriptor cudnn_graph(cudnn_list *l, const cudnn_convolution *c, cudnn_handle handle);
/* The variant pack of a run: addresses of x, w, y and the workspace. */
cudnn_descriptor cudnn_variant_pack(cudnn_list *l, void *const pointer[3], void *workspace);

/* ---- cudnn_plan.c ---------------------------------------------------------------------------- */

/* Constraints on engines. */
typedef struct cudnn_constraints {
    int architecture;
    bool deterministic;
    size_t workspace;          /* most bytes of workspace                                         */
    cudnn_descriptor card;     /* GPU; NULL: that of the handle                                   */
    const char *name;          /* only the engine configuration of this name; NULL: any           */
} cudnn_constraints;

typedef struct cudnn_plan {
    cudnn_list list;           /* descriptors of graph and plan                                   */
    cudnn_descriptor plan;     /* NULL: no engine satisfies the constraints                       */
    int64_t engine;
    size_t workspace;
} cudnn_plan;

enum { DNN_NAME_SIZE = 480 };

/* An engine configuration: an engine with values of its knobs. */
typedef struct cudnn_candidate {
    cudnn_descriptor choice, plan;
    int64_t engine;
    size_t workspace;
    /* "engine 31, knobs 2=5 4=1"; set if a name or several candidates are requested */
    char name[DNN_NAME_SIZE];
} cudnn_candidate;

enum { DNN_CANDIDATES = 16 };
typedef struct cudnn_candidates {
    cudnn_list graph;
    int count;
    cudnn_candidate item[DNN_CANDIDATES];
} cudnn_candidates;

/* True if this version of the library is known to be wrong here with all engines. */
bool cudnn_is_known_bad(const cudnn_library *dnn, const cudnn_convolution *c,
                        const cudnn_constraints *w);
/* At most 'most' candidates that satisfy the constraints, in the library's order. */
pons_status cudnn_candidates_make(const cudnn_library *dnn, const cudnn_convolution *c,
                                  const cudnn_constraints *w,
                                  int most, cudnn_candidates *out, pons_error *err);
/* Turn candidate 'i' into a plan and free the others. An 'i' out of range gives no plan. */
void cudnn_candidates_take(cudnn_candidates *all, int i, cudnn_plan *out);
/* The plan of the first candidate. */
pons_status cudnn_plan_make(const cudnn_library *dnn, const cudnn_convolution *c,
                            const cudnn_constraints *w, cudnn_plan *out, pons_error *err);
void cudnn_plan_free(cudnn_plan *p);

#endif
