/*
 * evaluate_nodes.c - see evaluate_nodes.h.
 */
#include "support/graph/evaluate_nodes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "graph/ir/shape.h"
#include "graph/program/memory.h"
#include "graph/reference/reference.h"
#include "graph/reference/reference_internal.h"
#include "graph/storage/staging.h"

/* The alignment of programs for kernels of a GPU; host kernels get no more than they need. */
enum { CANARY = 0xa5, HOST_ALIGNMENT = 64, ALIGNMENT = MEMORY_ALIGNMENT };

/*
 * Memory whose last page is protected. 'data' ends right before that page if it needs no alignment,
 * else less than one alignment before. Kernels of a device with its own memory get a copy of the
 * pages between the guards, which travels in both directions.
 */
typedef struct guarded_pages {
    char *pages, *data;
    size_t size, mapped;
    const device *device;     /* NULL: kernels get 'data' itself                                  */
    char *there;
} guarded_pages;

typedef struct cell {
    pons_tensor tensor;
    guarded_pages memory;
    pons_request request;
    pons_kernel kernel;
    guarded_pages scratch;
    guarded_pages packed[2];
    bool own;                 /* the kernel belongs to the device under test                      */
    void *input[PONS_KERNEL_INPUTS_MAX], *output[2];
} cell;

struct evaluation {
    pons_graph *g;
    device device, fallback;
    arena *memory;
    guarded_pages step_key;
    int requests[PONS_KERNEL_KIND_COUNT], declined[PONS_KERNEL_KIND_COUNT];
    cell *cell;
};

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static guarded_pages guarded_new(const device *d, size_t size, bool anywhere)
{
    size_t page = page_size();
    pons_error err = PONS_ERROR_INIT;
    size_t unit = !d->facts.host_memory ? ALIGNMENT : anywhere ? 1 : HOST_ALIGNMENT;
    size_t rounded = (size + unit - 1) / unit * unit;
    guarded_pages m = { .size = size, .mapped = (rounded + page - 1) / page * page + 2 * page };

    m.pages = mmap(NULL, m.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m.pages == MAP_FAILED)
        abort();
    memset(m.pages, CANARY, m.mapped);
    m.data = m.pages + m.mapped - page - rounded;
    memset(m.data, 0, size);
    if (mprotect(m.pages, page, PROT_NONE) != 0 ||
        mprotect(m.pages + m.mapped - page, page, PROT_NONE) != 0)
        abort();
    if (!d->facts.host_memory) {
        m.device = d;
        m.there = d->operations->memory.allocate(d->handle, m.mapped - 2 * page, &err);
        if (m.there == NULL)
            abort();
    }
    return m;
}

/* The address that kernels of the device use. */
static void *guarded_there(const guarded_pages *m)
{
    return m->device != NULL ? m->there + (m->data - m->pages - page_size()) : m->data;
}

static pons_status guarded_send(const guarded_pages *m, pons_error *err)
{
    return m->device == NULL ? PONS_OK
         : staging_write(m->device, m->there, m->pages + page_size(), m->mapped - 2 * page_size(),
                         err);
}

static pons_status guarded_fetch(const guarded_pages *m, pons_error *err)
{
    return m->device == NULL ? PONS_OK
         : staging_read(m->device, m->pages + page_size(), m->there, m->mapped - 2 * page_size(),
                        err);
}

static bool guarded_intact(const guarded_pages *m)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const char *end = m->pages + m->mapped - page;

    for (const char *c = m->pages + page; c < m->data; c++)
        if (*c != (char)CANARY)
            return false;
    for (const char *c = m->data + m->size; c < end; c++)
        if (*c != (char)CANARY)
            return false;
    return true;
}

static void guarded_free(guarded_pages *m)
{
    if (m->device != NULL)
        m->device->operations->memory.release(m->device->handle, m->there,
                                              m->mapped - 2 * page_size());
    if (m->pages != NULL)
        munmap(m->pages, m->mapped);
}

/* ---- map requests ---------------------------------------------------------------------------- */

/* The whole of 'x', repeated over 'space'. */
static pons_operand operand_over(int tensor, const pons_tensor *x, pons_shape space)
{
    pons_operand o = { .tensor = tensor, .type = x->type };
    int64_t stride = 1;

    for (int i = 1; i <= x->shape.rank; i++) {
        if (x->shape.extent[x->shape.rank - i] > 1)
            o.stride[space.rank - i] = stride;
        stride *= x->shape.extent[x->shape.rank - i];
    }
    return o;
}

static pons_map *map_over(evaluation *e, pons_shape space, int input_count,
                          const pons_tensor *input)
{
    pons_map *m = arena_alloc(e->memory, sizeof *m);
    pons_operand *load = arena_alloc(e->memory, sizeof *load * 3);
    pons_value *value = arena_alloc(e->memory, sizeof *value * 4);

    m->axis_count = space.rank;
    memcpy(m->extent, space.extent, sizeof m->extent);
    m->load_count = m->value_count = input_count;
    m->load = load;
    m->value = value;
    for (int i = 0; i < input_count; i++) {
        load[i] = operand_over(i, &input[i], space);
        value[i] = (pons_value){ .operation = PONS_VALUE_LOAD, .operand = i };
    }
    return m;
}

static pons_shape at_least_one_axis(pons_shape s)
{
    return s.rank > 0 ? s : (pons_shape){ 1, { 1 } };
}

/* The map's value for a leaf or an operation; false: the last load is the result. */
static bool value_of(const pons_node *x, pons_value *v)
{
    static const struct { int kind; uint16_t operation; } leaves[] = {
        { NODE_CONSTANT, PONS_VALUE_CONSTANT }, { NODE_IOTA, PONS_VALUE_IOTA },
        { NODE_UNIFORM, PONS_VALUE_UNIFORM }, { NODE_NORMAL, PONS_VALUE_NORMAL },
    };

    *v = (pons_value){ .argument_count = (uint8_t)x->input_count, .argument = { 0, 1, 2 },
                       .number = x->attribute.number, .stream = x->attribute.stream.hash,
                       .divisor = 1, .modulus = shape_count(x->shape) };
    if (x->kind < PONS_MAP_OPERATION_COUNT) {
        v->operation = (uint16_t)x->kind;
        return true;
    }
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
        if (leaves[i].kind == x->kind) {
            v->operation = leaves[i].operation;
            return true;
        }
    }
    return false;
}

static void pointwise_request(evaluation *e, const pons_node *x, cell *c)
{
    pons_shape space = at_least_one_axis(x->shape);
    pons_map *m = map_over(e, space, x->input_count, c->request.input);
    pons_store *store = arena_alloc(e->memory, sizeof *store);

    if (value_of(x, (pons_value *)&m->value[m->value_count]))
        m->value_count++;
    *store = (pons_store){ m->value_count - 1, operand_over(0, &c->tensor, space) };
    m->store_count = 1;
    m->store = store;
    c->request.kind = PONS_KERNEL_MAP;
    c->request.attributes = m;
}

static void reduction_request(evaluation *e, const pons_node *x, cell *c)
{
    static const pons_reduction_kind kinds[NODE_KIND_COUNT] = {
        [NODE_SUM] = PONS_REDUCE_SUM, [NODE_MAXIMUM] = PONS_REDUCE_MAX,
        [NODE_MINIMUM] = PONS_REDUCE_MIN, [NODE_MOMENTS] = PONS_REDUCE_MOMENTS,
    };
    pons_map *m = map_over(e, x->input[0]->shape, 1, c->request.input);
    pons_reduction *d = arena_alloc(e->memory, sizeof *d);

    *d = (pons_reduction){ .kind = kinds[x->kind], .value = 0,
                           .groups = x->kind == NODE_MOMENTS ? x->attribute.moments.groups : 0 };
    d->to[0] = d->to[1] = operand_over(0, &c->tensor, x->input[0]->shape);
    d->to[1].tensor = 1;
    m->reduction_count = 1;
    m->reduction = d;
    c->request.kind = PONS_KERNEL_MAP;
    c->request.attributes = m;
    if (x->kind == NODE_MOMENTS)
        c->request.output_count = 2;
}

/* ---- one node -------------------------------------------------------------------------------- */

static const pons_kernel_kind plain_kinds[NODE_KIND_COUNT] = {
    [NODE_CONVOLUTION] = PONS_KERNEL_CONVOLUTION,
    [NODE_CONVOLUTION_INPUT_GRADIENT] = PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT,
    [NODE_CONVOLUTION_WEIGHT_GRADIENT] = PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT,
    [NODE_MATMUL] = PONS_KERNEL_MATMUL, [NODE_POOL] = PONS_KERNEL_POOL,
    [NODE_POOL_GRADIENT] = PONS_KERNEL_POOL_GRADIENT, [NODE_RESIZE] = PONS_KERNEL_RESIZE,
    [NODE_RESIZE_GRADIENT] = PONS_KERNEL_RESIZE_GRADIENT, [NODE_TRANSPOSE] = PONS_KERNEL_TRANSPOSE,
    [NODE_FLIP] = PONS_KERNEL_FLIP, [NODE_CROP] = PONS_KERNEL_CROP, [NODE_PAD] = PONS_KERNEL_PAD,
    [NODE_PAD_GRADIENT] = PONS_KERNEL_PAD_GRADIENT, [NODE_CONCATENATE] = PONS_KERNEL_CONCATENATE,
    [NODE_GATHER] = PONS_KERNEL_GATHER, [NODE_ARG_MAX] = PONS_KERNEL_ARG_MAX,
    [NODE_REDUCE_MINMAX_GRADIENT] = PONS_KERNEL_REDUCE_MINMAX_GRADIENT,
    [NODE_ALL_REDUCE] = PONS_KERNEL_ALL_REDUCE, [NODE_OP] = PONS_KERNEL_OP,
    [NODE_PATCH] = PONS_KERNEL_PATCH, [NODE_PATCH_NORMAL] = PONS_KERNEL_PATCH_NORMAL,
    [NODE_PATCH_ACCUMULATE] = PONS_KERNEL_PATCH_ACCUMULATE,
};

static bool node_computes(const pons_node *x)
{
    static const bool leaf[NODE_KIND_COUNT] = {
        [NODE_INPUT] = true, [NODE_RESIDENT] = true, [NODE_PARAMETER] = true, [NODE_STATE] = true,
        [NODE_SLOT] = true, [NODE_GRADIENT] = true, [NODE_SCALAR] = true,
    };

    return !leaf[x->kind] && x->kind != NODE_SECOND && x->kind != NODE_RESHAPE;
}

static const pons_node *memory_owner(const pons_node *x)
{
    return x->kind == NODE_RESHAPE || x->kind == NODE_PATCH_ACCUMULATE ? memory_owner(x->input[0])
        : x;
}

static char *data_of(const evaluation *e, const pons_node *x)
{
    return e->cell[memory_owner(x)->number].memory.data;
}

/*
 * The address of x for the kernel of 'c': device memory for a kernel of the device, else host
 * memory.
 */
static void *there_of(const evaluation *e, const cell *c, const pons_node *x)
{
    return c->own ? guarded_there(&e->cell[memory_owner(x)->number].memory) : data_of(e, x);
}

/* Find the node of the second result: the variance of a node that computes the mean. */
static const pons_node *second_of(const evaluation *e, const pons_node *x)
{
    for (int n = x->number + 1; n < e->g->node_count; n++)
        if (e->g->node[n]->kind == NODE_SECOND && e->g->node[n]->input[0] == x)
            return e->g->node[n];
    abort();
}

static void make_request(evaluation *e, const pons_node *x, cell *c)
{
    pons_tensor *tensor = arena_alloc(e->memory, sizeof *tensor * (size_t)(x->input_count + 2));

    for (int i = 0; i < x->input_count; i++) {
        tensor[i] = (pons_tensor){ e->cell[x->input[i]->number].tensor.type, x->input[i]->shape };
    }
    tensor[x->input_count] = tensor[x->input_count + 1] = c->tensor;
    c->request = (pons_request){ .name = node_kinds[x->kind].name, .input_count = x->input_count,
                                 .output_count = 1, .input = tensor,
                                 .output = tensor + x->input_count };
    if (plain_kinds[x->kind] != 0) {
        c->request.kind = plain_kinds[x->kind];
        c->request.attributes = &x->attribute;
        c->request.packable = node_kinds[x->kind].class == CLASS_CONVOLUTION ? 2 : 0;
    } else if (node_kinds[x->kind].class == CLASS_REDUCE)
        reduction_request(e, x, c);
    else
        pointwise_request(e, x, c);
}

static pons_status prepare_node(evaluation *e, const pons_node *x, pons_error *err)
{
    cell *c = &e->cell[x->number];
    bool supported = false;
    pons_status status;

    make_request(e, x, c);
    e->requests[c->request.kind]++;
    status = e->device.operations->prepare(e->device.handle, &c->request, &c->kernel, &supported,
                                           err);
    c->own = supported;
    if (status == PONS_OK && !supported) {
        e->declined[c->request.kind]++;
        status = e->fallback.operations->prepare(e->fallback.handle, &c->request, &c->kernel,
                                                 &supported, err);
    }
    if (status != PONS_OK)
        return status;
    if (!supported)
        return pons_fail(err, PONS_DEVICE, "no kernel for '%s'", c->request.name);
    c->scratch = guarded_new(&e->device, c->kernel.scratch_size, false);
    for (int i = 0; i < 2; i++)
        if (c->kernel.pack_size[i] > 0)
            c->packed[i] = guarded_new(&e->device, c->kernel.pack_size[i], false);
    for (int i = 0; i < x->input_count; i++)
        c->input[i] = there_of(e, c, x->input[i]);
    c->output[0] = there_of(e, c, x);
    return PONS_OK;
}

/* Copy inputs, outputs and scratch memory of x's kernel to the device, or back. */
static pons_status move_all(const evaluation *e, const pons_node *x,
                            pons_status (*move)(const guarded_pages *m, pons_error *err),
                            pons_error *err)
{
    const cell *c = &e->cell[x->number];
    pons_status status = c->own ? move(&c->memory, err) : PONS_OK;

    for (int i = 0; i < x->input_count && c->own && status == PONS_OK; i++)
        status = move(&e->cell[memory_owner(x->input[i])->number].memory, err);
    if (c->own && status == PONS_OK && x->kind == NODE_MOMENTS)
        status = move(&e->cell[second_of(e, x)->number].memory, err);
    return c->own && status == PONS_OK ? move(&c->scratch, err) : status;
}

/* Run the kernel, and synchronize where the device is asynchronous. */
static pons_status run_kernel(const evaluation *e, const pons_kernel *k, const pons_call *call,
                              pons_error *err)
{
    pons_status status = k->run(k, call, err);

    if (status == PONS_OK && e->device.operations->streams.synchronize != NULL)
        status = e->device.operations->streams.synchronize(e->device.handle, err);
    return status;
}

/* The address of 'm' for the kernel of 'c'. */
static void *memory_for(const cell *c, const guarded_pages *m)
{
    return c->own ? guarded_there(m) : m->data;
}

static pons_status run_node(evaluation *e, const pons_node *x, pons_error *err)
{
    cell *c = &e->cell[x->number];
    void *input[PONS_KERNEL_INPUTS_MAX];
    pons_call call = { input, c->output, memory_for(c, &c->scratch), memory_for(c, &e->step_key) };
    pons_status status = move_all(e, x, guarded_send, err);

    memcpy(input, c->input, sizeof input);
    if (x->kind == NODE_MOMENTS)
        c->output[1] = there_of(e, c, second_of(e, x));
    for (int i = 0; i < 2 && status == PONS_OK; i++) {
        if (c->kernel.pack_size[i] == 0)
            continue;
        status = c->kernel.pack(&c->kernel, i, c->input[i], c->packed[i].data, err);
        input[i] = c->packed[i].data;
    }
    if (status == PONS_OK)
        status = run_kernel(e, &c->kernel, &call, err);
    if (status == PONS_OK)
        status = move_all(e, x, guarded_fetch, err);
    if (status == PONS_OK && (!guarded_intact(&e->cell[memory_owner(x)->number].memory)
                              || !guarded_intact(&c->scratch)))
        status = pons_fail(err, PONS_FAILURE, "'%s' wrote beside its output", c->request.name);
    return status;
}

/* ---- a graph --------------------------------------------------------------------------------- */

static pons_type kept_as(const pons_node *x, const device *d, pons_type storage)
{
    if (x->type != PONS_F32)
        return x->type;
    if (storage == PONS_F32 || x->kind == NODE_CONVOLUTION_WEIGHT_GRADIENT)
        return d->wide ? PONS_F64 : PONS_F32;
    return storage;
}

evaluation *evaluation_new(pons_graph *g, const device *d, pons_type storage, pons_error *err)
{
    arena *memory = arena_new();
    evaluation *e = arena_alloc(memory, sizeof *e);

    *e = (evaluation){ .g = g, .device = *d, .memory = memory };
    device_reference(&e->fallback, d->wide);
    e->step_key = guarded_new(&e->device, sizeof(pons_step_key), false);
    e->cell = arena_alloc(memory, sizeof *e->cell * (size_t)g->node_count);
    for (int n = 0; n < g->node_count; n++) {
        const pons_node *x = g->node[n];
        cell *c = &e->cell[n];

        c->tensor = (pons_tensor){ kept_as(memory_owner(x), d, storage), x->shape };
        if (memory_owner(x) == x)
            c->memory = guarded_new(&e->device,
                                    (size_t)shape_count(x->shape) * type_size(c->tensor.type),
                                    true);
    }
    for (int n = 0; n < g->node_count; n++) {
        if (node_computes(g->node[n]) && prepare_node(e, g->node[n], err) != PONS_OK) {
            evaluation_free(e);
            return NULL;
        }
    }
    return e;
}

void evaluation_free(evaluation *e)
{
    for (int n = 0; e != NULL && n < e->g->node_count; n++) {
        cell *c = &e->cell[n];

        if (c->kernel.free != NULL)
            c->kernel.free(&c->kernel);
        guarded_free(&c->memory);
        guarded_free(&c->scratch);
        guarded_free(&c->packed[0]);
        guarded_free(&c->packed[1]);
    }
    if (e == NULL)
        return;
    guarded_free(&e->step_key);
    arena_free(e->memory);
}

double evaluation_get(const evaluation *e, const pons_node *x, int64_t index)
{
    return number_load(e->cell[x->number].tensor.type, data_of(e, x), index);
}

void evaluation_set(evaluation *e, const pons_node *x, int64_t index, double value)
{
    number_store(e->cell[x->number].tensor.type, data_of(e, x), index, value);
}

static pons_status set_step_key(const evaluation *e, const pons_step_key *step_key, pons_error *err)
{
    memcpy(e->step_key.data, step_key, sizeof *step_key);
    return guarded_send(&e->step_key, err);
}

pons_status evaluation_run(evaluation *e, const pons_step_key *step_key, pons_error *err)
{
    if (set_step_key(e, step_key, err) != PONS_OK)
        return err->status;
    for (int n = 0; n < e->g->node_count; n++)
        if (node_computes(e->g->node[n]) && run_node(e, e->g->node[n], err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

/* Mark x and all nodes that it depends on. */
static void mark_needed(const pons_node *x, bool *needed)
{
    for (int i = 0; i < x->input_count && !needed[x->number]; i++)
        mark_needed(x->input[i], needed);
    needed[x->number] = true;
}

double evaluation_seconds(evaluation *e, const pons_node *x, int rounds,
                          const pons_step_key *step_key,
                          pons_error *err)
{
    bool *needed = arena_alloc(e->memory, (size_t)e->g->node_count);
    cell *c = &e->cell[x->number];
    pons_call call = { c->input, c->output, memory_for(c, &c->scratch), memory_for(c,
                                                                                   &e->step_key) };
    double best = 0;

    if (set_step_key(e, step_key, err) != PONS_OK)
        return 0;
    mark_needed(x, needed);
    for (int n = 0; n < e->g->node_count; n++)
        if (needed[n] && node_computes(e->g->node[n])
            && run_node(e, e->g->node[n], err) != PONS_OK)
            return 0;
    for (int i = 0; i < 2; i++)
        if (c->kernel.pack_size[i] > 0)
            c->input[i] = c->packed[i].data;
    for (int round = 0; round < rounds; round++) {
        double start = seconds_now();

        if (run_kernel(e, &c->kernel, &call, err) != PONS_OK)
            return 0;
        start = seconds_now() - start;
        best = round == 0 || start < best ? start : best;
    }
    return best;
}

const char *evaluation_implementation(const evaluation *e, const pons_node *x)
{
    return e->cell[x->number].kernel.implementation;
}

void evaluation_count(const evaluation *e, int *requests, int *declined)
{
    for (int kind = 0; kind < PONS_KERNEL_KIND_COUNT; kind++) {
        requests[kind] += e->requests[kind];
        declined[kind] += e->declined[kind];
    }
}
