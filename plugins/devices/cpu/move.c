/*
 * move.c - transpose, flip, crop, pad with zeros, concatenate, copy and arg_max over channels.
 *
 * Each is one or several maps that load and store by strides, so that tiles, types and threads are
 * the map kernel's. Pads that repeat the image, gather and gradients of extremes are left to the
 * core's plain kernels.
 */
#include "cpu.h"

#include <stdlib.h>
#include <string.h>

/* One map: a value, loaded from 'input' and stored to the output. */
typedef struct move_part {
    pons_map map;
    pons_operand load;
    pons_value value[2];
    pons_store store;
    pons_request request;
    pons_kernel kernel;
} move_part;

typedef struct move {
    int count;
    size_t cleared;      /* bytes of the output that are zeroed first                             */
    int threads;
    move_part part[];
} move;

static void dense_strides(pons_shape s, int64_t *stride)
{
    int64_t n = 1;

    for (int i = s.rank - 1; i >= 0; i--) {
        stride[i] = n;
        n *= s.extent[i];
    }
}

static int64_t element_count(pons_shape s)
{
    int64_t n = 1;

    for (int i = 0; i < s.rank; i++)
        n *= s.extent[i];
    return n;
}

/* A map over 'space' from the dense 'input' to the dense output; strides as yet those of dense. */
static void part_begin(move_part *p, const pons_request *r, int input, pons_shape space)
{
    p->map.axis_count = space.rank;
    memcpy(p->map.extent, space.extent, sizeof p->map.extent);
    p->load = (pons_operand){ .type = r->input[input].type };
    p->store.to = (pons_operand){ .type = r->output[0].type };
    dense_strides(r->input[input].shape, p->load.stride);
    dense_strides(r->output[0].shape, p->store.to.stride);
    p->value[0] = (pons_value){ .operation = PONS_VALUE_LOAD };
    p->map.load_count = p->map.value_count = p->map.store_count = 1;
    p->request = (pons_request){ .kind = PONS_KERNEL_MAP, .name = r->name, .input_count = 1,
                                 .output_count = 1, .input = &r->input[input], .output = r->output };
}

static bool make_transpose(const pons_request *r, move *m)
{
    const pons_transpose_attributes *t = r->attributes;
    int64_t stride[PONS_RANK_MAX] = { 0 };

    part_begin(&m->part[0], r, 0, r->output[0].shape);
    dense_strides(r->input[0].shape, stride);
    for (int i = 0; i < r->output[0].shape.rank; i++)
        m->part[0].load.stride[i] = stride[t->order[i]];
    return true;
}

static bool make_flip(const pons_request *r, move *m)
{
    const pons_flip_attributes *f = r->attributes;
    pons_operand *load = &m->part[0].load;

    part_begin(&m->part[0], r, 0, r->output[0].shape);
    for (int i = 0; i < r->output[0].shape.rank; i++)
        if (f->axes >> i & 1) {
            load->offset += (r->output[0].shape.extent[i] - 1) * load->stride[i];
            load->stride[i] = -load->stride[i];
        }
    return true;
}

static bool make_crop(const pons_request *r, move *m)
{
    const pons_crop_attributes *c = r->attributes;
    pons_operand *load = &m->part[0].load;

    part_begin(&m->part[0], r, 0, r->output[0].shape);
    for (int i = 0; i < r->output[0].shape.rank; i++) {
        load->offset += c->start[i] * load->stride[i];
        load->stride[i] *= c->step[i];
    }
    return true;
}

static bool make_pad(const pons_request *r, move *m)
{
    const pons_pad_attributes *p = r->attributes;
    pons_operand *to = &m->part[0].store.to;

    part_begin(&m->part[0], r, 0, r->input[0].shape);
    for (int i = 0; i < r->input[0].shape.rank; i++) {
        int64_t step = p->step[i] > 0 ? p->step[i] : 1;
        if (p->mode != PONS_PAD_ZERO || p->low[i] < 0 || p->high[i] < 0)
            return false;
        to->offset += p->low[i] * to->stride[i];
        to->stride[i] *= step;
    }
    m->cleared = (size_t)element_count(r->output[0].shape) * map_type_size(r->output[0].type);
    return true;
}

static bool make_concatenate(const pons_request *r, move *m)
{
    const pons_axis_attributes *a = r->attributes;
    int64_t begin = 0;

    m->count = r->input_count;
    for (int i = 0; i < r->input_count; i++) {
        move_part *p = &m->part[i];
        part_begin(p, r, i, r->input[i].shape);
        p->store.to.offset = begin * p->store.to.stride[a->axis];
        begin += r->input[i].shape.extent[a->axis];
    }
    return true;
}

static bool make_copy(const pons_request *r, move *m)
{
    part_begin(&m->part[0], r, 0, r->input[0].shape);
    return true;
}

/* Over the last axis, in the channel form. */
static bool make_arg_max(const pons_request *r, move *m)
{
    const pons_axis_attributes *a = r->attributes;
    move_part *p = &m->part[0];
    pons_shape s = r->input[0].shape;
    int64_t stride = 1;

    if (s.rank == 0 || a->axis != s.rank - 1 || s.extent[a->axis] > 64)
        return false;
    part_begin(p, r, 0, s);
    p->map.channels = (int)s.extent[a->axis];
    p->value[1] = (pons_value){ .operation = PONS_VALUE_CHANNEL_ARG_MAX, .narrow = 1,
                                .argument_count = 1 };
    p->map.value_count = 2;
    p->store.value = 1;
    for (int i = s.rank - 1; i >= 0; i--) {
        p->store.to.stride[i] = i == s.rank - 1 ? 0 : stride;
        stride *= i == s.rank - 1 ? 1 : s.extent[i];
    }
    return true;
}

static bool (*const make[PONS_KERNEL_KIND_COUNT])(const pons_request *r, move *m) = {
    [PONS_KERNEL_TRANSPOSE] = make_transpose, [PONS_KERNEL_FLIP] = make_flip,
    [PONS_KERNEL_CROP] = make_crop, [PONS_KERNEL_PAD] = make_pad,
    [PONS_KERNEL_CONCATENATE] = make_concatenate, [PONS_KERNEL_COPY] = make_copy,
    [PONS_KERNEL_ARG_MAX] = make_arg_max,
};

/* ---- the kernel ------------------------------------------------------------------------------ */

#define MOVE_CLEAR_PIECE ((size_t)1 << 18)

typedef struct clearing {
    char *memory;
    size_t size;
} clearing;

static void clear_piece(void *context, int64_t i, int thread)
{
    const clearing *c = context;
    size_t at = (size_t)i * MOVE_CLEAR_PIECE, left = c->size - at;

    memset(c->memory + at, 0, left < MOVE_CLEAR_PIECE ? left : MOVE_CLEAR_PIECE);
}

static pons_status move_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const move *m = kernel->state;
    pons_status status = PONS_OK;

    if (m->cleared > 0) {
        clearing c = { call->output[0], m->cleared };
        cpu_parallel(m->threads, (int64_t)((m->cleared + MOVE_CLEAR_PIECE - 1) / MOVE_CLEAR_PIECE),
                     clear_piece, &c);
    }
    for (int i = 0; i < m->count && status == PONS_OK; i++) {
        pons_call part = { &call->input[i], call->output, call->scratch, call->moment };
        status = m->part[i].kernel.run(&m->part[i].kernel, &part, err);
    }
    return status;
}

static void move_free(pons_kernel *kernel)
{
    move *m = kernel->state;

    for (int i = 0; i < m->count; i++)
        if (m->part[i].kernel.free != NULL)
            m->part[i].kernel.free(&m->part[i].kernel);
    free(m);
}

/* Numbers pass through f32, which holds all of these. */
static bool passes_float(pons_type type)
{
    return type == PONS_F32 || type == PONS_BF16 || type == PONS_F16 || type == PONS_U8;
}

static bool types_fit(const pons_request *r)
{
    for (int i = 0; i < r->input_count; i++)
        if (!passes_float(r->input[i].type))
            return false;
    return r->kind == PONS_KERNEL_ARG_MAX || r->kind == PONS_KERNEL_COPY
        ? r->output[0].type != PONS_F64 : passes_float(r->output[0].type);
}

pons_status move_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                         bool *supported, pons_error *err)
{
    size_t parts = (size_t)(request->input_count > 0 ? request->input_count : 1);
    move *m = calloc(1, sizeof *m + parts * sizeof m->part[0]);
    pons_status status = PONS_OK;

    if (m == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    m->count = 1;
    m->threads = device->threads;
    kernel->state = m;
    if (!types_fit(request) || !make[request->kind](request, m)) {
        move_free(kernel);
        kernel->state = NULL;
        return PONS_OK;
    }
    for (int i = 0; i < m->count && status == PONS_OK; i++) {
        move_part *p = &m->part[i];
        bool made;
        p->map.load = &p->load;
        p->map.value = p->value;
        p->map.store = &p->store;
        p->request.attributes = &p->map;
        status = map_prepare(device, &p->request, &p->kernel, &made, err);
        if (p->kernel.scratch_size > kernel->scratch_size)
            kernel->scratch_size = p->kernel.scratch_size;
    }
    if (status != PONS_OK) {
        move_free(kernel);
        kernel->state = NULL;
        return status;
    }
    *supported = true;
    kernel->run = move_run;
    kernel->free = move_free;
    kernel->implementation = "own";
    return PONS_OK;
}
