/*
 * move_kernel.c - transpose, flip, crop, pad, concatenate, gather and copy as takes
 * (gather_copy.h).
 */
#include "cpu/cpu.h"
#include "cpu/move/gather_copy.h"

#include <stdlib.h>
#include <string.h>

static void dense_strides(pons_shape s, int64_t *stride)
{
    int64_t n = 1;

    for (int i = s.rank - 1; i >= 0; i--) {
        stride[i] = n;
        n *= s.extent[i];
    }
}

/* ---- what comes from where ------------------------------------------------------------------- */

/* Every position of the output, or of 'part' of it, from the same one of the dense 'input'. */
static void take_begin(take *t, const pons_tensor *input, const pons_tensor *output,
                       pons_shape part)
{
    int64_t step[PONS_RANK_MAX], to_step[PONS_RANK_MAX];

    t->type[0] = input->type;
    t->type[1] = output->type;
    t->axes = part.rank;
    dense_strides(input->shape, step);
    dense_strides(output->shape, to_step);
    for (int i = 0; i < part.rank; i++)
        t->axis[i] = (take_axis){ .extent = part.extent[i], .to_step = to_step[i],
                                  .step = step[i] };
}

static bool make_transpose(const pons_request *r, take *t)
{
    const pons_transpose_attributes *a = r->attributes;
    int64_t step[PONS_RANK_MAX];

    take_begin(t, &r->input[0], &r->output[0], r->output[0].shape);
    dense_strides(r->input[0].shape, step);
    for (int i = 0; i < t->axes; i++)
        t->axis[i].step = step[a->order[i]];
    return true;
}

static bool make_flip(const pons_request *r, take *t)
{
    const pons_flip_attributes *f = r->attributes;

    take_begin(t, &r->input[0], &r->output[0], r->output[0].shape);
    for (int i = 0; i < t->axes; i++)
        if (f->axes >> i & 1) {
            t->offset += (t->axis[i].extent - 1) * t->axis[i].step;
            t->axis[i].step = -t->axis[i].step;
        }
    return true;
}

static bool make_crop(const pons_request *r, take *t)
{
    const pons_crop_attributes *c = r->attributes;

    take_begin(t, &r->input[0], &r->output[0], r->output[0].shape);
    for (int i = 0; i < t->axes; i++) {
        t->offset += c->start[i] * t->axis[i].step;
        t->axis[i].step *= c->step[i];
    }
    return true;
}

int64_t cpu_pad_source(const pons_pad_attributes *p, int axis, int64_t i, int64_t n)
{
    int64_t at = i - p->low[axis], step = p->step[axis] > 0 ? p->step[axis] : 1;

    if (p->mode == PONS_PAD_EDGE)
        return at < 0 ? 0 : at >= n ? n - 1 : at;
    if (p->mode == PONS_PAD_REFLECT)
        return at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
    return at < 0 || at % step != 0 || at / step >= n ? -1 : at / step;
}

static bool make_pad(const pons_request *r, take *t)
{
    const pons_pad_attributes *p = r->attributes;

    take_begin(t, &r->input[0], &r->output[0], r->output[0].shape);
    for (int i = 0; i < t->axes; i++) {
        take_axis *x = &t->axis[i];
        int64_t n = r->input[0].shape.extent[i];
        if (x->extent == n && p->low[i] == 0)
            continue;
        x->table = malloc((size_t)x->extent * sizeof *x->table);
        if (x->table == NULL)
            return false;
        for (int64_t j = 0; j < x->extent; j++) {
            int64_t from = cpu_pad_source(p, i, j, n);
            x->table[j] = from < 0 ? TAKE_NOTHING : from * x->step;
        }
    }
    return true;
}

/* The table is filled from the index when the kernel runs. */
static bool make_gather(const pons_request *r, take *t)
{
    const pons_axis_attributes *a = r->attributes;
    take_axis *x = &t->axis[a->axis];

    take_begin(t, &r->input[0], &r->output[0], r->output[0].shape);
    x->late = true;
    return (x->table = malloc((size_t)x->extent * sizeof *x->table)) != NULL;
}

static bool make_concatenate(const pons_request *r, take *t)
{
    const pons_axis_attributes *a = r->attributes;
    int64_t begin = 0;

    for (int i = 0; i < r->input_count; i++) {
        take_begin(&t[i], &r->input[i], &r->output[0], r->input[i].shape);
        t[i].to_offset = begin * t[i].axis[a->axis].to_step;
        begin += r->input[i].shape.extent[a->axis];
    }
    return true;
}

static bool make_copy(const pons_request *r, take *t)
{
    take_begin(t, &r->input[0], &r->output[0], r->output[0].shape);
    return true;
}

static bool (*const make[PONS_KERNEL_KIND_COUNT])(const pons_request *r, take *t) = {
    [PONS_KERNEL_TRANSPOSE] = make_transpose, [PONS_KERNEL_FLIP] = make_flip,
    [PONS_KERNEL_CROP] = make_crop, [PONS_KERNEL_PAD] = make_pad,
    [PONS_KERNEL_CONCATENATE] = make_concatenate, [PONS_KERNEL_GATHER] = make_gather,
    [PONS_KERNEL_COPY] = make_copy,
};

/* ---- the kernel ------------------------------------------------------------------------------ */

/* One take for each input; of a gather, one. */
typedef struct move {
    int count;
    int64_t *late;          /* the gather's table                                                 */
    int64_t late_extent;    /* of the input, along that axis                                      */
    int64_t late_count, late_step;
    take part[];
} move;

static pons_status move_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const move *m = kernel->state;

    for (int64_t i = 0; i < m->late_count; i++) {
        int64_t from = ((const int32_t *)call->input[1])[i];
        m->late[i] = from < 0 || from >= m->late_extent ? TAKE_NOTHING : from * m->late_step;
    }
    take_run_several(m->part, m->count, call->input, call->output[0]);
    return PONS_OK;
}

static void move_free(pons_kernel *kernel)
{
    move *m = kernel->state;

    for (int i = 0; i < m->count; i++)
        take_free(&m->part[i]);
    free(m);
    kernel->state = NULL;
}

static void keep_late(move *m, const pons_request *r)
{
    const pons_axis_attributes *a = r->attributes;
    const take_axis *x;

    if (r->kind != PONS_KERNEL_GATHER)
        return;
    x = &m->part[0].axis[a->axis];
    m->late = x->table;
    m->late_count = x->extent;
    m->late_step = x->step;
    m->late_extent = r->input[0].shape.extent[a->axis];
}

pons_status move_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                         bool *supported, pons_error *err)
{
    int parts = request->kind == PONS_KERNEL_CONCATENATE ? request->input_count : 1;
    move *m = calloc(1, sizeof *m + (size_t)parts * sizeof m->part[0]);
    bool made;

    if (m == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    m->count = parts;
    kernel->state = m;
    made = make[request->kind](request, m->part);
    if (made)
        keep_late(m, request);
    for (int i = 0; i < parts; i++) {
        m->part[i].lanes = device->lanes;
        m->part[i].threads = device->threads;
        made = made && take_finish(&m->part[i]);
    }
    if (made)
        take_align(m->part, parts);
    if (!made) {
        move_free(kernel);
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    }
    *supported = true;
    kernel->run = move_run;
    kernel->free = move_free;
    kernel->implementation = "own";
    return PONS_OK;
}
