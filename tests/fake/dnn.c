/*
 * dnn.c - a libcudnn: descriptors as the real one keeps them, engines that differ as the real ones
 * do, and the core's reference kernels on the stream.
 *
 * A call is refused, with a line in cudnnGetLastErrorString, if it brings one of these: an
 * attribute that the kind does not have, that has another type or count, is missing or is set too
 * late; tensors that make no convolution; a plan without its handle; memory that is not the GPU's
 * or not aligned.
 *
 * FAKE_CUDNN   words that choose a fault: version=N (91900); start: no handle is made;
 *              run=N: the N-th plan does not run; refuses-E: plans of engine E are refused;
 *              takes-E=N: a plan of engine E takes N ms more, on the clock of events alone;
 *              knob-E=N: the same for the engine's second choice of knobs
 */
#include "fake.h"

#include "../plugins/devices/cuda/cudnn/cudnn.h"
#include "graph/ir/shape.h"
#include "graph/reference/reference_internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OK = 0, NOT_INITIALIZED = 1001, BAD = 2000, MISALIGNED = 2003, NOT_FINISHED = 2004,
    DUPLICATED = 2009, WRONG_TYPE = 2010, WRONG_KIND = 2012, NOT_SUPPORTED = 3000,
    FAILED = 5000
};
enum { ATTRIBUTES = 10, VALUES = 64, RANKS = 8, RANK = 5 };

#pragma GCC visibility push(default)
int cudnnGetProperty(int part, int *value);
void cudnnGetLastErrorString(char *text, size_t size);
int cudnnCreate(cudnn_handle *handle);
int cudnnDestroy(cudnn_handle handle);
int cudnnSetStream(cudnn_handle handle, cuda_stream stream);
int cudnnBackendCreateDescriptor(int kind, cudnn_descriptor *out);
int cudnnBackendDestroyDescriptor(cudnn_descriptor d);
int cudnnBackendSetAttribute(cudnn_descriptor d, int name, int type, int64_t count,
                             const void *values);
int cudnnBackendGetAttribute(cudnn_descriptor d, int name, int type, int64_t room, int64_t *count,
                             void *values);
int cudnnBackendFinalize(cudnn_descriptor d);
int cudnnBackendExecute(cudnn_handle handle, cudnn_descriptor plan, cudnn_descriptor pack);
#pragma GCC visibility pop

/* ---- faults ---------------------------------------------------------------------------------- */

static _Thread_local char last_error[200];

static int refuse(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int refuse(int status, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(last_error, sizeof last_error, format, list);
    va_end(list);
    return status;
}

void cudnnGetLastErrorString(char *text, size_t size) { snprintf(text, size, "%s", last_error); }

/* The number of "word=N", 0 for the word alone, -1 without the word. */
static int fault(const char *word)
{
    const char *text = getenv("FAKE_CUDNN"), *at = text != NULL ? strstr(text, word) : NULL;
    size_t size = strlen(word);

    while (at != NULL && strchr("= ,", at[size]) == NULL) /* the word of another engine */
        at = strstr(at + size, word);
    return at == NULL ? -1 : at[size] == '=' ? atoi(at + size + 1) : 0;
}

int cudnnGetProperty(int part, int *value)
{
    int version = fault("version") > 0 ? fault("version") : 91900;

    *value = part == 0 ? version / 10000 : part == 1 ? version / 100 % 100 : version % 100;
    return OK;
}

/* ---- handles --------------------------------------------------------------------------------- */

struct cudnn_handle_object {
    struct CUstream_st *stream;
};

int cudnnCreate(cudnn_handle *handle)
{
    if (fault("start") == 0)
        return refuse(NOT_INITIALIZED, "the card does not answer");
    if (!fake_has_context())
        return refuse(NOT_INITIALIZED, "no context");
    *handle = calloc(1, sizeof **handle);
    return *handle != NULL ? OK : NOT_INITIALIZED;
}

int cudnnDestroy(cudnn_handle handle)
{
    free(handle);
    return OK;
}

int cudnnSetStream(cudnn_handle handle, cuda_stream stream)
{
    handle->stream = (struct CUstream_st *)stream;
    return fake_has_context() ? OK : refuse(BAD, "no context");
}

/* ---- attributes ------------------------------------------------------------------------------ */

typedef enum attribute_use { OPTIONAL = 0, NEEDED, READ } attribute_use;

typedef struct rule {
    int kind, name, type, least, most;
    attribute_use use;
} rule;

#define OPERATION(KIND, ALPHA, BETA, CONVOLUTION, W, X, Y)                                        \
    { KIND, ALPHA, DNN_TYPE_FLOAT, 1, 1, NEEDED }, { KIND, BETA, DNN_TYPE_FLOAT, 1, 1, NEEDED },  \
    { KIND, CONVOLUTION, DNN_TYPE_DESCRIPTOR, 1, 1, NEEDED },                                     \
    { KIND, W, DNN_TYPE_DESCRIPTOR, 1, 1, NEEDED },                                               \
    { KIND, X, DNN_TYPE_DESCRIPTOR, 1, 1, NEEDED },                                               \
    { KIND, Y, DNN_TYPE_DESCRIPTOR, 1, 1, NEEDED }

static const rule rules[] = {
    { DNN_TENSOR, DNN_TENSOR_NUMBER, DNN_TYPE_INT64, 1, 1, NEEDED },
    { DNN_TENSOR, DNN_TENSOR_TYPE, DNN_TYPE_DATA, 1, 1, NEEDED },
    { DNN_TENSOR, DNN_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, 1, NEEDED },
    { DNN_TENSOR, DNN_TENSOR_EXTENTS, DNN_TYPE_INT64, 1, RANKS, NEEDED },
    { DNN_TENSOR, DNN_TENSOR_STRIDES, DNN_TYPE_INT64, 1, RANKS, NEEDED },
    { DNN_CONVOLUTION, DNN_CONVOLUTION_COMPUTE, DNN_TYPE_DATA, 1, 1, NEEDED },
    { DNN_CONVOLUTION, DNN_CONVOLUTION_MODE, DNN_TYPE_CONVOLUTION_MODE, 1, 1, NEEDED },
    { DNN_CONVOLUTION, DNN_CONVOLUTION_RANK, DNN_TYPE_INT64, 1, 1, NEEDED },
    { DNN_CONVOLUTION, DNN_CONVOLUTION_DILATIONS, DNN_TYPE_INT64, 1, RANKS, NEEDED },
    { DNN_CONVOLUTION, DNN_CONVOLUTION_STRIDES, DNN_TYPE_INT64, 1, RANKS, NEEDED },
    { DNN_CONVOLUTION, DNN_CONVOLUTION_PADS_LOW, DNN_TYPE_INT64, 1, RANKS, NEEDED },
    { DNN_CONVOLUTION, DNN_CONVOLUTION_PADS_HIGH, DNN_TYPE_INT64, 1, RANKS, NEEDED },
    OPERATION(DNN_FORWARD, DNN_FORWARD_ALPHA, DNN_FORWARD_BETA, DNN_FORWARD_CONVOLUTION,
              DNN_FORWARD_W, DNN_FORWARD_X, DNN_FORWARD_Y),
    OPERATION(DNN_BACKWARD_DATA, DNN_DATA_ALPHA, DNN_DATA_BETA, DNN_DATA_CONVOLUTION, DNN_DATA_W,
              DNN_DATA_DX, DNN_DATA_DY),
    OPERATION(DNN_BACKWARD_FILTER, DNN_FILTER_ALPHA, DNN_FILTER_BETA, DNN_FILTER_CONVOLUTION,
              DNN_FILTER_DW, DNN_FILTER_X, DNN_FILTER_DY),
    { DNN_GRAPH, DNN_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, 1, NEEDED },
    { DNN_GRAPH, DNN_GRAPH_OPERATIONS, DNN_TYPE_DESCRIPTOR, 1, VALUES, NEEDED },
    { DNN_HEURISTIC, DNN_HEURISTIC_GRAPH, DNN_TYPE_DESCRIPTOR, 1, 1, NEEDED },
    { DNN_HEURISTIC, DNN_HEURISTIC_MODE, DNN_TYPE_HEURISTIC_MODE, 1, 1, NEEDED },
    { DNN_HEURISTIC, DNN_HEURISTIC_RESULTS, DNN_TYPE_DESCRIPTOR, 0, VALUES, READ },
    { DNN_CHOICE, DNN_CHOICE_ENGINE, DNN_TYPE_DESCRIPTOR, 1, 1, READ },
    { DNN_CHOICE, DNN_CHOICE_KNOBS, DNN_TYPE_DESCRIPTOR, 0, VALUES, READ },
    { DNN_KNOB, DNN_KNOB_KIND, DNN_TYPE_KNOB, 1, 1, READ },
    { DNN_KNOB, DNN_KNOB_VALUE, DNN_TYPE_INT64, 1, 1, READ },
    { DNN_ENGINE, DNN_ENGINE_NUMBER, DNN_TYPE_INT64, 1, 1, READ },
    { DNN_ENGINE, DNN_ENGINE_NOTES, DNN_TYPE_NOTE, 0, VALUES, READ },
    { DNN_PLAN, DNN_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, 1, NEEDED },
    { DNN_PLAN, DNN_PLAN_CHOICE, DNN_TYPE_DESCRIPTOR, 1, 1, NEEDED },
    { DNN_PLAN, DNN_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, 1, READ },
    { DNN_PACK, DNN_PACK_NUMBERS, DNN_TYPE_INT64, 0, VALUES, NEEDED },
    { DNN_PACK, DNN_PACK_POINTERS, DNN_TYPE_POINTER, 0, VALUES, NEEDED },
    { DNN_PACK, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, 1, NEEDED },
};
enum { RULES = sizeof rules / sizeof *rules };

typedef struct attribute {
    int name;
    int64_t count;
    void *values;
} attribute;

struct cudnn_descriptor_object {
    int kind, count, users;    /* users: its maker, and descriptors that name it                  */
    bool finished;
    attribute attribute[ATTRIBUTES];
    int engine;                /* of an engine, a choice and a plan                               */
    cudnn_descriptor graph;    /* of a choice and a plan                                          */
};

static const rule *find_rule(int kind, int name)
{
    for (int i = 0; i < RULES; i++)
        if (rules[i].kind == kind && rules[i].name == name)
            return &rules[i];
    return NULL;
}

static size_t size_of(int type)
{
    return type == DNN_TYPE_INT64 || type == DNN_TYPE_DESCRIPTOR || type == DNN_TYPE_POINTER
        || type == DNN_TYPE_HANDLE ? 8 : 4;
}

static const attribute *find(const struct cudnn_descriptor_object *d, int name)
{
    for (int i = 0; i < d->count; i++)
        if (d->attribute[i].name == name)
            return &d->attribute[i];
    return NULL;
}

static const int64_t *integers(cudnn_descriptor d, int name) { return find(d, name)->values; }

static int64_t integer(cudnn_descriptor d, int name) { return integers(d, name)[0]; }

static int number(cudnn_descriptor d, int name) { return *(const int *)find(d, name)->values; }

static cudnn_descriptor part(cudnn_descriptor d, int name)
{
    return *(const cudnn_descriptor *)find(d, name)->values;
}

int cudnnBackendCreateDescriptor(int kind, cudnn_descriptor *out)
{
    bool known = false;

    for (int i = 0; i < RULES; i++)
        known = known || rules[i].kind == kind;
    if (!known)
        return refuse(NOT_SUPPORTED, "descriptor of kind %d", kind);
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        abort();
    (*out)->kind = kind;
    (*out)->users = 1;
    return OK;
}

static void drop(cudnn_descriptor d)
{
    if (d == NULL || --d->users > 0)
        return;
    for (int i = 0; i < d->count; i++) {
        const rule *r = find_rule(d->kind, d->attribute[i].name);
        cudnn_descriptor *named = d->attribute[i].values;
        for (int64_t k = 0; r->type == DNN_TYPE_DESCRIPTOR && k < d->attribute[i].count; k++)
            drop(named[k]);
        free(d->attribute[i].values);
    }
    drop(d->graph);
    free(d);
}

int cudnnBackendDestroyDescriptor(cudnn_descriptor d)
{
    drop(d);
    return OK;
}

static int check_set(cudnn_descriptor d, int name, int type, int64_t count, const void *values)
{
    const rule *r = find_rule(d->kind, name);
    const cudnn_descriptor *named = values;

    if (d->finished)
        return refuse(BAD, "attribute %d of a finished descriptor of kind %d", name, d->kind);
    if (r == NULL || r->use == READ || find(d, name) != NULL)
        return refuse(BAD, "attribute %d of a descriptor of kind %d", name, d->kind);
    if (type != r->type)
        return refuse(WRONG_TYPE, "attribute %d is of type %d, found %d", name, r->type, type);
    if (count < r->least || count > r->most || values == NULL)
        return refuse(BAD, "attribute %d with %lld values", name, (long long)count);
    for (int64_t i = 0; type == DNN_TYPE_DESCRIPTOR && i < count; i++)
        if (named[i] == NULL || !named[i]->finished)
            return refuse(NOT_FINISHED, "attribute %d names an unfinished descriptor", name);
    return OK;
}

int cudnnBackendSetAttribute(cudnn_descriptor d, int name, int type, int64_t count,
                             const void *values)
{
    size_t size = (size_t)count * size_of(type);
    int status = check_set(d, name, type, count, values);
    attribute *a;

    if (status != OK)
        return status;
    a = &d->attribute[d->count++];
    *a = (attribute){ name, count, malloc(size + 1) };
    if (a->values == NULL)
        abort();
    memcpy(a->values, values, size);
    for (int64_t i = 0; type == DNN_TYPE_DESCRIPTOR && i < count; i++)
        ((cudnn_descriptor *)a->values)[i]->users++;
    return OK;
}

/* ---- engines --------------------------------------------------------------------------------- */

/* Engines in the order of heuristic mode A. */
typedef struct engine {
    int number, note;          /* note -1: none                                                   */
    int64_t workspace;
    bool broken;               /* plans of this engine cannot be made                             */
    int knob;                  /* value of its knob; 0: no knob                                   */
} engine;

static const engine engines[] = {
    { 31, DNN_NOTE_DOWN_CONVERT, 0, false, 0 },
    { 32, DNN_NOTE_REDUCED_SUMS, 0, false, 0 },
    { 36, DNN_NOTE_FFT, 0, false, 0 },
    { 37, DNN_NOTE_WINOGRAD, 0, false, 0 },
    { 33, -1, (int64_t)1 << 40, false, 0 },
    { 34, -1, 0, true, 0 },
    { 35, DNN_NOTE_NONDETERMINISTIC, 512, false, 0 },
    { 5, DNN_NOTE_TENSOR_CORE, 131, false, 0 },
    { 58, 33, 1000, false, 1 }, /* a note that no version has defined                             */
    { 58, 33, 30000, false, 2 },
    { 30, -1, 0, false, 0 },   /* the only engine that supports all products                      */
};
enum { ENGINES = sizeof engines / sizeof *engines, TILE = 2 /* the type of the knob */ };

static int executed[ENGINES];

FAKE_PUBLIC int fake_dnn_executed(int number);
int fake_dnn_executed(int number)
{
    int count = 0;

    for (int i = 0; i < ENGINES; i++)
        if (engines[i].number == number)
            count += __atomic_load_n(&executed[i], __ATOMIC_RELAXED);
    return count;
}

/* The value of "WORD-E" in FAKE_CUDNN, in the form of 'fault'. */
static int fault_of(const char *word, const engine *e)
{
    char text[32];

    snprintf(text, sizeof text, "%s-%d", word, e->number);
    return fault(text);
}

static bool is_fallback(const engine *e) { return e == &engines[ENGINES - 1]; }

/* ---- finish ---------------------------------------------------------------------------------- */

static int number_size(int type) { return type == DNN_F32 ? 4 : 2; }

static int finish_tensor(cudnn_descriptor d)
{
    const attribute *extents = find(d, DNN_TENSOR_EXTENTS), *strides = find(d, DNN_TENSOR_STRIDES);
    int type = number(d, DNN_TENSOR_TYPE);

    if (extents->count != strides->count)
        return refuse(BAD, "%lld extents and %lld strides", (long long)extents->count,
                      (long long)strides->count);
    for (int64_t i = 0; i < extents->count; i++)
        if (((int64_t *)extents->values)[i] <= 0 || ((int64_t *)strides->values)[i] <= 0)
            return refuse(BAD, "an extent or stride that is not above 0");
    if (type != DNN_F32 && type != DNN_F16 && type != DNN_BF16)
        return refuse(NOT_SUPPORTED, "type %d", type);
    return integer(d, DNN_TENSOR_ALIGNMENT) % number_size(type) == 0
         ? OK : refuse(BAD, "alignment %lld", (long long)integer(d, DNN_TENSOR_ALIGNMENT));
}

static int finish_convolution(cudnn_descriptor d)
{
    static const int lists[] = { DNN_CONVOLUTION_DILATIONS, DNN_CONVOLUTION_STRIDES,
                                 DNN_CONVOLUTION_PADS_LOW, DNN_CONVOLUTION_PADS_HIGH };

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (find(d, lists[i])->count != integer(d, DNN_CONVOLUTION_RANK))
            return refuse(BAD, "attribute %d has %lld values in %lld dimensions", lists[i],
                          (long long)find(d, lists[i])->count,
                          (long long)integer(d, DNN_CONVOLUTION_RANK));
    return OK;
}

/* The core's request for an operation, with its tensors and attributes. */
typedef struct product {
    pons_kernel_kind kind;
    cudnn_descriptor convolution, x, w, y;
} product;

static bool read_product(cudnn_descriptor o, product *p)
{
    switch (o->kind) {
    case DNN_FORWARD:
        *p = (product){ PONS_KERNEL_CONVOLUTION, part(o, DNN_FORWARD_CONVOLUTION),
                        part(o, DNN_FORWARD_X), part(o, DNN_FORWARD_W), part(o, DNN_FORWARD_Y) };
        return true;
    case DNN_BACKWARD_DATA:
        *p = (product){ PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT, part(o, DNN_DATA_CONVOLUTION),
                        part(o, DNN_DATA_DX), part(o, DNN_DATA_W), part(o, DNN_DATA_DY) };
        return true;
    case DNN_BACKWARD_FILTER:
        *p = (product){ PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT,
                        part(o, DNN_FILTER_CONVOLUTION), part(o, DNN_FILTER_X),
                        part(o, DNN_FILTER_DW), part(o, DNN_FILTER_DY) };
        return true;
    }
    return false;
}

static int64_t extent(cudnn_descriptor tensor, int axis)
{
    return integers(tensor, DNN_TENSOR_EXTENTS)[axis];
}

/* The tensor is contiguous with channels innermost. */
static bool is_channels_last(cudnn_descriptor t)
{
    const int64_t *stride = integers(t, DNN_TENSOR_STRIDES);
    int64_t rank = find(t, DNN_TENSOR_EXTENTS)->count, step = extent(t, 1);

    for (int64_t a = rank - 1; a >= 2; a--) {
        if (stride[a] != step)
            return false;
        step *= extent(t, (int)a);
    }
    return stride[1] == 1 && stride[0] == step;
}

static int check_extents(const product *p, int rank)
{
    for (int a = 0; a < rank; a++) {
        int64_t step = integers(p->convolution, DNN_CONVOLUTION_STRIDES)[a];
        int64_t reach = (extent(p->w, 2 + a) - 1)
                      * integers(p->convolution, DNN_CONVOLUTION_DILATIONS)[a] + 1;
        int64_t padded = extent(p->x, 2 + a)
                       + integers(p->convolution, DNN_CONVOLUTION_PADS_LOW)[a]
                       + integers(p->convolution, DNN_CONVOLUTION_PADS_HIGH)[a];
        if (step < 1 || extent(p->y, 2 + a) != (padded - reach) / step + 1)
            return refuse(BAD, "extents %lld and %lld along axis %d make no convolution",
                          (long long)extent(p->x, 2 + a), (long long)extent(p->y, 2 + a), a);
    }
    return OK;
}

static int finish_operation(cudnn_descriptor d)
{
    product p;
    int64_t rank;

    if (!read_product(d, &p) || p.convolution->kind != DNN_CONVOLUTION || p.x->kind != DNN_TENSOR
        || p.w->kind != DNN_TENSOR || p.y->kind != DNN_TENSOR)
        return refuse(WRONG_KIND, "a part of an operation is of another kind");
    rank = integer(p.convolution, DNN_CONVOLUTION_RANK);
    if (find(p.x, DNN_TENSOR_EXTENTS)->count != rank + 2
        || find(p.w, DNN_TENSOR_EXTENTS)->count != rank + 2
        || find(p.y, DNN_TENSOR_EXTENTS)->count != rank + 2)
        return refuse(BAD, "tensors of another rank than the convolution's");
    if (extent(p.x, 0) != extent(p.y, 0) || extent(p.y, 1) != extent(p.w, 0)
        || extent(p.x, 1) % extent(p.w, 1) != 0)
        return refuse(BAD, "channels make no convolution");
    return check_extents(&p, (int)rank);
}

static int finish_graph(cudnn_descriptor d)
{
    product p;

    if (find(d, DNN_GRAPH_OPERATIONS)->count != 1
        || !read_product(part(d, DNN_GRAPH_OPERATIONS), &p))
        return refuse(NOT_SUPPORTED, "a graph of something else than one convolution");
    if (integer(p.x, DNN_TENSOR_NUMBER) == integer(p.w, DNN_TENSOR_NUMBER)
        || integer(p.x, DNN_TENSOR_NUMBER) == integer(p.y, DNN_TENSOR_NUMBER)
        || integer(p.w, DNN_TENSOR_NUMBER) == integer(p.y, DNN_TENSOR_NUMBER))
        return refuse(DUPLICATED, "two tensors of one number");
    return OK;
}

static int finish_plan(cudnn_descriptor d)
{
    cudnn_descriptor choice = part(d, DNN_PLAN_CHOICE);

    if (choice->kind != DNN_CHOICE)
        return refuse(WRONG_KIND, "a plan of something else than an engine's choice");
    if (engines[choice->engine].broken)
        return refuse(NOT_SUPPORTED, "engine %d", engines[choice->engine].number);
    d->engine = choice->engine;
    d->graph = choice->graph;
    d->graph->users++;
    return OK;
}

static int finish_pack(cudnn_descriptor d)
{
    return find(d, DNN_PACK_NUMBERS)->count == find(d, DNN_PACK_POINTERS)->count
         ? OK : refuse(BAD, "other numbers of pointers than of tensors");
}

int cudnnBackendFinalize(cudnn_descriptor d)
{
    static const struct { int kind; int (*finish)(cudnn_descriptor d); } kinds[] = {
        { DNN_TENSOR, finish_tensor }, { DNN_CONVOLUTION, finish_convolution },
        { DNN_FORWARD, finish_operation }, { DNN_BACKWARD_DATA, finish_operation },
        { DNN_BACKWARD_FILTER, finish_operation }, { DNN_GRAPH, finish_graph },
        { DNN_PLAN, finish_plan }, { DNN_PACK, finish_pack },
    };
    int status = OK;

    if (d->finished || d->kind == DNN_CHOICE || d->kind == DNN_ENGINE)
        return refuse(BAD, "a descriptor of kind %d is not finished here", d->kind);
    for (int i = 0; i < RULES; i++)
        if (rules[i].kind == d->kind && rules[i].use == NEEDED && find(d, rules[i].name) == NULL)
            return refuse(BAD, "attribute %d is missing", rules[i].name);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].kind == d->kind)
            status = kinds[i].finish(d);
    d->finished = status == OK;
    return status;
}

/* ---- get ------------------------------------------------------------------------------------- */

/* The operands have one type, in the layout that all engines support. */
static bool has_engines(cudnn_descriptor graph)
{
    product p;

    return read_product(part(graph, DNN_GRAPH_OPERATIONS), &p)
        && number(p.x, DNN_TENSOR_TYPE) == number(p.w, DNN_TENSOR_TYPE)
        && number(p.x, DNN_TENSOR_TYPE) == number(p.y, DNN_TENSOR_TYPE)
        && number(p.convolution, DNN_CONVOLUTION_COMPUTE) == DNN_F32
        && number(p.convolution, DNN_CONVOLUTION_MODE) == DNN_CROSS_CORRELATION
        && is_channels_last(p.x) && is_channels_last(p.w) && is_channels_last(p.y);
}

static int get_results(cudnn_descriptor d, int64_t room, int64_t *count, cudnn_descriptor *out)
{
    cudnn_descriptor graph = part(d, DNN_HEURISTIC_GRAPH);
    bool fallback = number(d, DNN_HEURISTIC_MODE) == DNN_MODE_FALLBACK;

    *count = 0;
    for (int i = 0; i < ENGINES && has_engines(graph); i++) {
        if (fallback != is_fallback(&engines[i]))
            continue;
        if (*count < room) {
            if (out[*count]->kind != DNN_CHOICE || out[*count]->finished)
                return refuse(BAD, "results go to new choices");
            *out[*count] = (struct cudnn_descriptor_object){ .kind = DNN_CHOICE, .users = 1,
                                                             .finished = true, .engine = i,
                                                             .graph = graph };
            graph->users++;
        }
        ++*count;
    }
    return OK;
}

int cudnnBackendGetAttribute(cudnn_descriptor d, int name, int type, int64_t room, int64_t *count,
                             void *values)
{
    const rule *r = find_rule(d->kind, name);
    cudnn_descriptor *out = values;

    if (!d->finished)
        return refuse(NOT_FINISHED, "a descriptor of kind %d", d->kind);
    if (r == NULL || r->use != READ)
        return refuse(BAD, "attribute %d of a descriptor of kind %d", name, d->kind);
    if (type != r->type)
        return refuse(WRONG_TYPE, "attribute %d is of type %d, found %d", name, r->type, type);
    *count = 1;
    switch (name) {
    case DNN_HEURISTIC_RESULTS: return get_results(d, room, count, out);
    case DNN_CHOICE_ENGINE:
        if (room < 1 || out[0]->kind != DNN_ENGINE || out[0]->finished)
            return refuse(BAD, "an engine goes to a new descriptor");
        out[0]->finished = true;
        out[0]->engine = d->engine;
        return OK;
    case DNN_CHOICE_KNOBS:
        *count = engines[d->engine].knob > 0;
        if (*count > 0 && room > 0 && (out[0]->kind != DNN_KNOB || out[0]->finished))
            return refuse(BAD, "a knob goes to a new descriptor");
        if (*count > 0 && room > 0) {
            out[0]->finished = true;
            out[0]->engine = d->engine;
        }
        return OK;
    case DNN_KNOB_KIND: *(int *)values = TILE; return OK;
    case DNN_KNOB_VALUE: *(int64_t *)values = engines[d->engine].knob; return OK;
    case DNN_ENGINE_NUMBER: *(int64_t *)values = engines[d->engine].number; return OK;
    case DNN_PLAN_WORKSPACE: *(int64_t *)values = engines[d->engine].workspace; return OK;
    default: /* DNN_ENGINE_NOTES */
        *count = engines[d->engine].note >= 0;
        if (*count > 0 && room > 0)
            *(int *)values = engines[d->engine].note;
        return OK;
    }
}

/* ---- run ------------------------------------------------------------------------------------- */

typedef struct operand {
    pons_tensor tensor;
    void *at;
} operand;

typedef struct task {
    pons_kernel_kind kind;
    const engine *engine;
    pons_convolution convolution;
    operand x, w, y;
    void *workspace;
    unsigned turn;
} task;

static pons_type storage_of(int type)
{
    return type == DNN_F32 ? PONS_F32 : type == DNN_F16 ? PONS_F16 : PONS_BF16;
}

/* A descriptor as a tensor in the core's order of axes. */
static pons_tensor tensor_of(cudnn_descriptor d)
{
    int64_t rank = find(d, DNN_TENSOR_EXTENTS)->count;
    pons_tensor t = { storage_of(number(d, DNN_TENSOR_TYPE)),
                      { RANK, { extent(d, 0), 1, 1, 1, extent(d, 1) } } };

    for (int a = 0; a < rank - 2; a++)
        t.shape.extent[4 - (rank - 2) + a] = extent(d, 2 + a);
    return t;
}

static pons_convolution convolution_of(const product *p)
{
    pons_convolution c = PONS_CONVOLUTION_INIT;
    int rank = (int)integer(p->convolution, DNN_CONVOLUTION_RANK);

    for (int a = 0; a < rank; a++) {
        c.stride[3 - rank + a] = (int)integers(p->convolution, DNN_CONVOLUTION_STRIDES)[a];
        c.dilation[3 - rank + a] = (int)integers(p->convolution, DNN_CONVOLUTION_DILATIONS)[a];
        c.pad_low[3 - rank + a] = (int)integers(p->convolution, DNN_CONVOLUTION_PADS_LOW)[a];
        c.pad_high[3 - rank + a] = (int)integers(p->convolution, DNN_CONVOLUTION_PADS_HIGH)[a];
    }
    c.groups = (int)(extent(p->x, 1) / extent(p->w, 1));
    return c;
}

static size_t bytes_of(pons_tensor t)
{
    return (size_t)shape_count(t.shape) * type_size(t.type);
}

/* Round an operand as the engine does: tensor cores to 10 bits, others to 7. */
static float round_operand(float value, pons_type type, const engine *e)
{
    uint32_t bits;
    int cut = e->note == DNN_NOTE_TENSOR_CORE ? 13 : e->note == DNN_NOTE_DOWN_CONVERT ? 16 : 0;

    if (type != PONS_F32 || cut == 0 || value != value)
        return value;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + (UINT32_C(1) << (cut - 1))) >> cut << cut;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float *load(const operand *o, const engine *e)
{
    int64_t count = shape_count(o->tensor.shape);
    float *out = malloc((size_t)count * sizeof *out);

    if (out == NULL)
        abort();
    for (int64_t i = 0; i < count; i++)
        out[i] = round_operand((float)number_load(o->tensor.type, o->at, i), o->tensor.type, e);
    return out;
}

static void store(const operand *o, const double *value, const task *k)
{
    double factor = 1;

    if (k->engine->note == DNN_NOTE_NONDETERMINISTIC)
        factor += k->turn % 2 == 0 ? 0x1p-22 : -0x1p-22;
    if (k->engine->note == DNN_NOTE_REDUCED_SUMS)
        factor += 1e-2;
    for (int64_t i = 0; i < shape_count(o->tensor.shape); i++)
        number_store(o->tensor.type, o->at, i, value[i] * factor);
}

static void run(void *context)
{
    task *k = context;
    bool forward = k->kind == PONS_KERNEL_CONVOLUTION;
    bool input = k->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT;
    const operand *a = input ? &k->y : &k->x, *b = forward || input ? &k->w : &k->y;
    const operand *out = forward ? &k->y : input ? &k->x : &k->w;
    const pons_tensor in[2] = { a->tensor, b->tensor };
    float *value[2] = { load(a, k->engine), load(b, k->engine) };
    double *sum = calloc((size_t)shape_count(out->tensor.shape), sizeof *sum);
    int spend;
    pons_request request = { .kind = k->kind, .input_count = 2, .output_count = 1, .input = in,
                             .output = &out->tensor, .attributes = &k->convolution };

    if (sum == NULL)
        abort();
    if (k->workspace != NULL)
        memset(k->workspace, 0xa5, (size_t)k->engine->workspace);
    reference_float.plain[k->kind](&request, (const void *const *)value, sum);
    store(out, sum, k);
    spend = fault_of(k->engine->knob > 1 ? "knob" : "takes", k->engine);
    if (spend > 0)
        fake_stream_spend(1e-3 * spend);
    free(value[0]);
    free(value[1]);
    free(sum);
    free(k);
}

/* Resolve memory that a stream may touch: it belongs to the GPU, and no other stream uses it. */
static int take(struct CUstream_st *stream, void **at, size_t size, bool writes)
{
    if (size == 0)
        return OK;
    if (!fake_on_device(*at, size))
        return refuse(FAILED, "%zu bytes at %p are not the card's", size, *at);
    fake_stream_touch(stream, *at, size, writes);
    *at = fake_reach(*at);
    return OK;
}

static int take_operand(struct CUstream_st *stream, operand *o, bool writes)
{
    return take(stream, &o->at, bytes_of(o->tensor), writes);
}

static int give(struct CUstream_st *stream, const void *what)
{
    task *k = malloc(sizeof *k);
    int status;

    if (k == NULL)
        abort();
    memcpy(k, what, sizeof *k);
    if ((status = take(stream, &k->workspace, (size_t)k->engine->workspace, true)) != OK
        || (status = take_operand(stream, &k->x,
                                  k->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT)) != OK
        || (status = take_operand(stream, &k->w,
                                  k->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)) != OK
        || (status = take_operand(stream, &k->y, k->kind == PONS_KERNEL_CONVOLUTION)) != OK) {
        free(k);
        return status;
    }
    fake_stream_push(stream, run, k);
    return OK;
}

/* Find a tensor of the graph at the address that a variant pack gives. */
static int find_operand(cudnn_descriptor pack, cudnn_descriptor tensor, operand *out)
{
    const attribute *numbers = find(pack, DNN_PACK_NUMBERS);
    void *const *pointers = find(pack, DNN_PACK_POINTERS)->values;
    int64_t wanted = integer(tensor, DNN_TENSOR_NUMBER);

    for (int64_t i = 0; i < numbers->count; i++) {
        if (((int64_t *)numbers->values)[i] != wanted)
            continue;
        *out = (operand){ tensor_of(tensor), pointers[i] };
        return (uintptr_t)out->at % (uint64_t)integer(tensor, DNN_TENSOR_ALIGNMENT) == 0
             ? OK : refuse(MISALIGNED, "tensor %lld", (long long)wanted);
    }
    return refuse(BAD, "no memory for tensor %lld", (long long)wanted);
}

static int check_run(cudnn_handle handle, cudnn_descriptor plan, cudnn_descriptor pack)
{
    static int runs;

    if (!fake_has_context() || handle == NULL || handle->stream == NULL)
        return refuse(BAD, "no context or no stream");
    if (plan->kind != DNN_PLAN || pack->kind != DNN_PACK)
        return refuse(WRONG_KIND, "something else than a plan and its memory");
    if (!plan->finished || !pack->finished)
        return refuse(NOT_FINISHED, "a plan or its memory");
    if (__atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED) == fault("run"))
        return refuse(FAILED, "a kernel of the library ended");
    return OK;
}

int cudnnBackendExecute(cudnn_handle handle, cudnn_descriptor plan, cudnn_descriptor pack)
{
    static unsigned turn;
    task k = { .turn = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) };
    int status = check_run(handle, plan, pack);
    product p;

    if (status != OK)
        return status;
    read_product(part(plan->graph, DNN_GRAPH_OPERATIONS), &p);
    k.engine = &engines[plan->engine];
    if (fault_of("refuses", k.engine) >= 0)
        return refuse(FAILED, "engine %d does not run", k.engine->number);
    k.kind = p.kind;
    k.convolution = convolution_of(&p);
    if (k.engine->workspace > 0)
        k.workspace = *(void *const *)find(pack, DNN_PACK_WORKSPACE)->values;
    if ((uintptr_t)k.workspace % FAKE_WORKSPACE_ALIGNMENT != 0)
        return refuse(MISALIGNED, "workspace %p", k.workspace);
    if ((status = find_operand(pack, p.x, &k.x)) != OK
        || (status = find_operand(pack, p.w, &k.w)) != OK
        || (status = find_operand(pack, p.y, &k.y)) != OK)
        return status;
    __atomic_fetch_add(&executed[plan->engine], 1, __ATOMIC_RELAXED);
    status = stream_give(handle->stream, give, &k, sizeof k);
    return status == OK || status >= BAD ? status : FAILED;
}
