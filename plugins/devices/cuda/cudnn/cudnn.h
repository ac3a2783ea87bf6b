/*
 * cudnn.h - convolutions by cuDNN 9's backend interface: descriptors whose attributes are set one
 * by one, a graph of operations, engines that can compute it, and a plan for one of them.
 *
 * The library is found when the device is opened, and none of its headers is needed: the numbers of
 * its kinds, attributes and types, which its interface keeps, stand here.
 */
#ifndef PLUGINS_DEVICES_CUDA_CUDNN_CUDNN_H
#define PLUGINS_DEVICES_CUDA_CUDNN_CUDNN_H

#include "cuda/driver/driver.h"

typedef struct dnn_handle_object *dnn_handle;
typedef struct dnn_descriptor_object *dnn_descriptor;

/* Kinds of descriptors. */
enum {
    DNN_CONVOLUTION = 1, DNN_ENGINE, DNN_CHOICE, DNN_HEURISTIC, DNN_PLAN, DNN_KNOB = 7,
    DNN_FORWARD = 10, DNN_BACKWARD_FILTER, DNN_BACKWARD_DATA,
    DNN_GRAPH = 15, DNN_PACK, DNN_TENSOR, DNN_CARD = 38
};

/* Attributes, of the kind in their name. */
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

/* What an engine does to numbers; bits of dnn_engine.notes. */
enum {
    DNN_NOTE_TENSOR_CORE = 0, DNN_NOTE_DOWN_CONVERT, DNN_NOTE_REDUCED_SUMS, DNN_NOTE_FFT,
    DNN_NOTE_NONDETERMINISTIC, DNN_NOTE_WINOGRAD
};

/* Statuses: the thousands are a category. */
enum { DNN_NOT_SUPPORTED = 3 };

#define DNN_FUNCTIONS(X)                                                                          \
    X(int, property, "cudnnGetProperty", (int part, int *value))                                  \
    X(void, last_error, "cudnnGetLastErrorString", (char *text, size_t size))                     \
    X(int, create, "cudnnCreate", (dnn_handle *handle))                                           \
    X(int, destroy, "cudnnDestroy", (dnn_handle handle))                                          \
    X(int, set_stream, "cudnnSetStream", (dnn_handle handle, cuda_stream stream))                 \
    X(int, descriptor_new, "cudnnBackendCreateDescriptor", (int kind, dnn_descriptor *out))       \
    X(int, descriptor_free, "cudnnBackendDestroyDescriptor", (dnn_descriptor d))                  \
    X(int, set, "cudnnBackendSetAttribute", (dnn_descriptor d, int attribute, int type,           \
                                             int64_t count, const void *values))                  \
    X(int, get, "cudnnBackendGetAttribute", (dnn_descriptor d, int attribute, int type,           \
                                             int64_t room, int64_t *count, void *values))         \
    X(int, finalize, "cudnnBackendFinalize", (dnn_descriptor d))                                  \
    X(int, execute, "cudnnBackendExecute", (dnn_handle handle, dnn_descriptor plan,               \
                                            dnn_descriptor pack))

#define DNN_MEMBER(result, name, symbol, parameters) result(*name) parameters;
typedef struct cuda_dnn {
    void *library;             /* NULL: there is none, and 'missing' says why                     */
    int version;               /* 91900: 9.19.0; 0: there is none                                 */
    dnn_handle handle;
    char missing[160];
    DNN_FUNCTIONS(DNN_MEMBER)
} cuda_dnn;
#undef DNN_MEMBER

/*
 * ---- cudnn.c -----------------------------------------------------------------------------------
 */

/* Find the library. Without it all convolutions are our own: no failure. */
void dnn_find(cuda_dnn *dnn);
/* Begin to use it on the card of this thread; what does not work is as if it was not there. */
void dnn_start(cuda_dnn *dnn, cuda_stream stream);
void dnn_close(cuda_dnn *dnn);
/* "cuDNN 9.19.0", or "no cuDNN (why)". */
void dnn_describe(const cuda_dnn *dnn, char *text, size_t size);

/*
 * Descriptors that belong together. The first call that does not succeed leaves its status and its
 * name, and those after it do nothing.
 */
enum { DNN_LIST = 40 };

typedef struct dnn_list {
    const cuda_dnn *dnn;
    int status, count;
    const char *failed;
    dnn_descriptor item[DNN_LIST];
} dnn_list;

dnn_descriptor dnn_add(dnn_list *l, int kind);
void dnn_set(dnn_list *l, dnn_descriptor d, int attribute, int type, int64_t count,
             const void *values);
void dnn_finish(dnn_list *l, dnn_descriptor d);
void dnn_list_free(dnn_list *l);

/*
 * ---- cudnn_graph.c -----------------------------------------------------------------------------
 */

enum { DNN_X = 1, DNN_W, DNN_Y }; /* the numbers of tensors                                       */

/* The operation of a request; all three are of one type, also where the request's w is float. */
typedef struct dnn_convolution {
    const pons_request *request;
    pons_tensor x, w, y;
    bool flat;                 /* 2D: D is not there                                              */
} dnn_convolution;

/* Whether cuDNN is asked at all, and what for. */
bool dnn_takes(const pons_request *request, dnn_convolution *c);
/* Pointers of a call in the order x, w, y; the result goes to 'low' unless that is NULL. */
void dnn_order(const dnn_convolution *c, const pons_call *call, void *low, void *pointer[3]);
/* The graph of that one operation. handle: NULL: for a card that is not here. */
dnn_descriptor dnn_graph(dnn_list *l, const dnn_convolution *c, dnn_handle handle);
/* Where x, w and y of a run are. */
dnn_descriptor dnn_pack(dnn_list *l, void *const pointer[3], void *workspace);

/*
 * ---- cudnn_plan.c ------------------------------------------------------------------------------
 */

/* What decides between engines. */
typedef struct dnn_wishes {
    int architecture;
    bool deterministic;
    size_t workspace;          /* at most                                                         */
    dnn_descriptor card;       /* NULL: the handle's                                              */
    const char *name;          /* only the engine's choice of this name; NULL: any                */
} dnn_wishes;

typedef struct dnn_plan {
    dnn_list list;             /* graph and plan                                                  */
    dnn_descriptor plan;       /* NULL: no engine fits                                            */
    int64_t engine;
    size_t workspace;
} dnn_plan;

enum { DNN_NAME_SIZE = 480 };

/* What computes a convolution: an engine with what it leaves to be chosen, its knobs. */
typedef struct dnn_candidate {
    dnn_descriptor choice, plan;
    int64_t engine;
    size_t workspace;
    char name[DNN_NAME_SIZE]; /* "engine 31, knobs 2=5 4=1"; where one is asked for, or several */
} dnn_candidate;

enum { DNN_CANDIDATES = 16 };
typedef struct dnn_candidates {
    dnn_list graph;
    int count;
    dnn_candidate item[DNN_CANDIDATES];
} dnn_candidates;

/* Whether this version of the library is known to be wrong or slow there, with all engines. */
bool dnn_is_doubtful(const cuda_dnn *dnn, const dnn_convolution *c, const dnn_wishes *w);
/* At most the first 'most' that fit, in the library's own order. */
pons_status dnn_candidates_make(const cuda_dnn *dnn, const dnn_convolution *c, const dnn_wishes *w,
                                int most, dnn_candidates *out, pons_error *err);
/* Number 'i' becomes a plan, and none stays here; without it there is no plan. */
void dnn_candidates_take(dnn_candidates *all, int i, dnn_plan *out);
/* The first of them. */
pons_status dnn_plan_make(const cuda_dnn *dnn, const dnn_convolution *c, const dnn_wishes *w,
                          dnn_plan *out, pons_error *err);
void dnn_plan_free(dnn_plan *p);

#endif
