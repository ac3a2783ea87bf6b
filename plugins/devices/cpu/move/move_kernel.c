/*
 * move_kernel.c - transpose, flip, crop, pad, concatenate, gather and copy in the form of
 * gather_copy.h.
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

/* ---- source of each element ------------------------------------------------------------------ */

/* The identity: position p of 'part' of the output from position p of the dense 'input'. */
static void copy_begin(gather_copy *t, const pons_tensor *input, const pons_tensor *output,
                       pons_shape part)
{
    int64_t step[PONS_RANK_MAX], to_step[PONS_RANK_MAX];

    t->type[0] = input->type;
    t->type[1] = output->type;
    t->axes = part.rank;
    dense_strides(input->shape, step);
    dense_strides(output->shape, to_step);
    for (int i = 0; i < part.rank; i++)
        t->axis[i] = (gather_copy_axis){ .extent = part.extent[i], .to_step = to_step[i],
                                         .step = step[i] };
}

static bool make_transpose(const pons_request *r, gather_copy *t)
{
    const pons_transpose_attributes *a = r->attributes;
    int64_t step[PONS_RANK_MAX];

    copy_begin(t, &r->input[0], &r->output[0], r->output[0].shape);
    dense_strides(r->input[0].shape, step);
    for (int i = 0; i < t->axes; i++)
        t->axis[i].step = step[a->order[i]];
    return true;
}

static bool make_flip(const pons_request *r, gather_copy *t)
{
    const pons_flip_attributes *f = r->attributes;

    copy_begin(t, &r->input[0], &r->output[0], r->output[0].shape);
    for (int i = 0; i < t->axes; i++)
        if (f->axes >> i & 1) {
            t->offset += (t->axis[i].extent - 1) * t->axis[i].step;
            t->axis[i].step = -t->axis[i].step;
        }
    return true;
}

static bool make_crop(const pons_request *r, gather_copy *t)
{
    const pons_crop_attributes *c = r->attributes;

    copy_begin(t, &r->input[0], &r->output[0], r->output[0].shape);
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

static bool make_pad(const pons_request *r, gather_copy *t)
{
    const pons_pad_attributes *p = r->attributes;

    copy_begin(t, &r->input[0], &r->output[0], r->output[0].shape);
    for (int i = 0; i < t->axes; i++) {
        gather_copy_axis *x = &t->axis[i];
        int64_t n = r->input[0].shape.extent[i];
        if (x->extent == n && p->low[i] == 0)
            continue;
        x->table = malloc((size_t)x->extent * sizeof *x->table);
        if (x->table == NULL)
            return false;
        for (int64_t j = 0; j < x->extent; j++) {
            int64_t from = cpu_pad_source(p, i, j, n);
            x->table[j] = from < 0 ? GATHER_COPY_ZERO : from * x->step;
        }
    }
    return true;
}

/* The table is filled from the index at run time. */
static bool make_gather(const pons_request *r, gather_copy *t)
{
    const pons_axis_attributes *a = r->attributes;
    gather_copy_axis *x = &t->axis[a->axis];

    copy_begin(t, &r->input[0], &r->output[0], r->output[0].shape);
    x->run_time_table = true;
    return (x->table = malloc((size_t)x->extent * sizeof *x->table)) != NULL;
}

static bool make_concatenate(const pons_request *r, gather_copy *t)
{
    const pons_axis_attributes *a = r->attributes;
    int64_t begin = 0;

    for (int i = 0; i < r->input_count; i++) {
        copy_begin(&t[i], &r->input[i], &r->output[0], r->input[i].shape);
        t[i].to_offset = begin * t[i].axis[a->axis].to_step;
        begin += r->input[i].shape.extent[a->axis];
    }
    return true;
}

static bool make_copy(const pons_request *r, gather_copy *t)
{
    copy_begin(t, &r->input[0], &r->output[0], r->output[0].shape);
    return true;
}

static bool (*const make[PONS_KERNEL_KIND_COUNT])(const pons_request *r, gather_copy *t) = {
    [PONS_KERNEL_TRANSPOSE] = make_transpose, [PONS_KERNEL_FLIP] = make_flip,
    [PONS_KERNEL_CROP] = make_crop, [PONS_KERNEL_PAD] = make_pad,
    [PONS_KERNEL_CONCATENATE] = make_concatenate, [PONS_KERNEL_GATHER] = make_gather,
    [PONS_KERNEL_COPY] = make_copy,
};

/* ---- the kernel ------------------------------------------------------------------------------ */

/* One copy for each input of a concatenation, else one copy. */
typedef struct move {
    int count;
    int64_t *run_time_table;          /* table of a gather                                        */
    int64_t late_extent;    /* extent of the input along its axis                                 */
    int64_t late_count, late_step;
    gather_copy part[];
} move;

static pons_status move_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const move *m = kernel->state;

    for (int64_t i = 0; i < m->late_count; i++) {
        int64_t from = ((const int32_t *)call->input[1])[i];
        m->run_time_table[i] = from < 0 || from >= m->late_extent ? GATHER_COPY_ZERO
            : from * m->late_step;
    }
    gather_copy_run_several(m->part, m->count, call->input, call->output[0]);
    return PONS_OK;
}

static void move_free(pons_kernel *kernel)
{
    move *m = kernel->state;

    for (int i = 0; i < m->count; i++)
        gather_copy_free(&m->part[i]);
    free(m);
    kernel->state = NULL;
}

static void keep_run_time_table(move *m, const pons_request *r)
{
    const pons_axis_attributes *a = r->attributes;
    const gather_copy_axis *x;

    if (r->kind != PONS_KERNEL_GATHER)
        return;
    x = &m->part[0].axis[a->axis];
    m->run_time_table = x->table;
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
        keep_run_time_table(m, request);
    for (int i = 0; i < parts; i++) {
        m->part[i].lanes = device->lanes;
        m->part[i].threads = device->threads;
        made = made && gather_copy_finish(&m->part[i]);
    }
    if (made)
        gather_copy_align(m->part, parts);
    if (!made) {
        move_free(kernel);
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    }
    *supported = true;
    kernel->run = move_run;
    kernel->free = move_free;
    kernel->implementation = "gather_copy";
    return PONS_OK;
}
