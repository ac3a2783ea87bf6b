/*
 * argmax_axes.c - the first largest (smallest) element over any axes: its index along one axis
 * (arg_max), or the gradient, stored at its position.
 *
 * Kept axes and reduced axes are each merged. If the last axis is kept, vectors lie along it;
 * otherwise each position is scanned on its own.
 */
#include "cpu/cpu.h"
#include "cpu/pool/row_loops.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

#define ARGMAX_LANES 256
#define ARGMAX_CLEAR ((size_t)1 << 18)

typedef struct axis {
    int64_t extent, step;
} axis;

typedef struct argmax_axes {
    const map_lanes *lanes;
    const row_loops *rows;
    int threads;
    bool gradient, minimum;
    pons_type type[3];             /* x, gradient of y, output                                    */
    int kept_count, reduced_count; /* axes besides the run                                        */
    axis kept[PONS_RANK_MAX], reduced[PONS_RANK_MAX];
    int64_t run, positions, steps; /* adjacent kept lanes; kept positions; reduced positions      */
    int64_t pieces, of_task;       /* pieces of a run; positions of a task                        */
    int64_t count;                 /* elements of x                                               */
} argmax_axes;

static int64_t axis_offset(const axis *list, int count, int64_t number)
{
    int64_t at = 0;

    for (int a = count - 1; a >= 0; a--) {
        at += number % list[a].extent * list[a].step;
        number /= list[a].extent;
    }
    return at;
}

/* ---- run ------------------------------------------------------------------------------------- */

typedef struct work {
    const argmax_axes *e;
    const pons_call *call;
} work;

/* For n lanes from element 'base' of x: the reduced position of each lane's extreme. */
static void find_extreme(const work *k, int64_t base, int n, int32_t *index)
{
    const argmax_axes *e = k->e;
    float best[ARGMAX_LANES], line[ARGMAX_LANES];

    memset(index, 0, (size_t)n * sizeof *index);
    e->lanes->load[e->type[0]](best, k->call->input[0], base, n);
    for (int64_t s = 1; s < e->steps; s++) {
        e->lanes->load[e->type[0]](line, k->call->input[0],
                                   base + axis_offset(e->reduced, e->reduced_count, s), n);
        (e->minimum ? e->rows->smaller : e->rows->larger)(index, best, line, (int32_t)s, n);
    }
}

/* The extreme of one position whose innermost reduced axis is dense. */
static int32_t scan_extreme(const work *k, int64_t base)
{
    const argmax_axes *e = k->e;
    int64_t width = e->reduced[e->reduced_count - 1].extent, found = 0;
    float best = map_number_load(e->type[0], k->call->input[0], base), line[ARGMAX_LANES];

    for (int64_t row = 0; row < e->steps / width; row++) {
        int64_t at = base + axis_offset(e->reduced, e->reduced_count, row * width);
        for (int64_t j = 0; j < width; j += ARGMAX_LANES) {
            int n = (int)min_i64(width - j, ARGMAX_LANES);
            e->lanes->load[e->type[0]](line, k->call->input[0], at + j, n);
            for (int i = 0; i < n; i++)
                if (e->minimum ? line[i] < best : line[i] > best) {
                    best = line[i];
                    found = row * width + j + i;
                }
        }
    }
    return (int32_t)found;
}

static void write_extreme(const work *k, int64_t base, int64_t y, const int32_t *index, int n)
{
    const argmax_axes *e = k->e;

    for (int i = 0; i < n; i++)
        if (e->gradient)
            map_number_store(e->type[2], k->call->output[0],
                             base + i + axis_offset(e->reduced, e->reduced_count, index[i]),
                             map_number_load(e->type[1], k->call->input[1], y + i));
        else
            map_number_store(e->type[2], k->call->output[0], y + i, (float)index[i]);
}

static void run_task(void *context, int64_t task, int thread)
{
    const work *k = context;
    const argmax_axes *e = k->e;
    int64_t first = task * e->of_task, end = first + e->of_task;
    int32_t index[ARGMAX_LANES];

    for (int64_t i = first; i < end && i < e->positions * e->pieces; i++) {
        int64_t position = i / e->pieces, lane = i % e->pieces * ARGMAX_LANES;
        int64_t base = axis_offset(e->kept, e->kept_count, position) + lane;
        int n = (int)min_i64(e->run - lane, ARGMAX_LANES);
        if (e->run == 1 && e->reduced_count > 0 && e->reduced[e->reduced_count - 1].step == 1)
            index[0] = scan_extreme(k, base);
        else
            find_extreme(k, base, n, index);
        write_extreme(k, base, position * e->run + lane, index, n);
    }
}

static void clear_piece(void *context, int64_t i, int thread)
{
    const work *k = context;
    size_t size = (size_t)k->e->count * map_type_size(k->e->type[2]);
    size_t at = (size_t)i * ARGMAX_CLEAR, left = size - at;

    memset((char *)k->call->output[0] + at, 0, min_size(left, ARGMAX_CLEAR));
}

static pons_status argmax_axes_run(const pons_kernel *kernel, const pons_call *call,
                                   pons_error *err)
{
    const argmax_axes *e = kernel->state;
    work k = { e, call };
    size_t size = (size_t)e->count * map_type_size(e->type[2]);

    if (e->gradient)
        cpu_parallel_for(e->threads, ceil_div_i64((int64_t)size, ARGMAX_CLEAR),
                         clear_piece, &k);
    cpu_parallel_for(e->threads, ceil_div_i64(e->positions * e->pieces, e->of_task), run_task,
                     &k);
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void argmax_axes_free(pons_kernel *kernel)
{
    free(kernel->state);
    kernel->state = NULL;
}

/* Merge the axes, from the innermost outwards; axes of one element are dropped. */
static void plan_axes(argmax_axes *e, pons_shape s, unsigned axes)
{
    axis list[PONS_RANK_MAX];
    bool reduced[PONS_RANK_MAX];
    int count = 0;
    int64_t step = 1;

    for (int i = s.rank - 1; i >= 0; step *= s.extent[i--]) {
        bool is = (axes & PONS_AXIS(i)) != 0;
        if (s.extent[i] == 1)
            continue;
        if (count > 0 && reduced[count - 1] == is) {
            list[count - 1].extent *= s.extent[i];
            continue;
        }
        reduced[count] = is;
        list[count++] = (axis){ s.extent[i], step };
    }
    e->run = count > 0 && !reduced[0] ? list[0].extent : 1;
    e->positions = e->steps = 1;
    for (int i = count - 1; i >= (count > 0 && !reduced[0]); i--) {
        if (reduced[i]) {
            e->reduced[e->reduced_count++] = list[i];
            e->steps *= list[i].extent;
        } else {
            e->kept[e->kept_count++] = list[i];
            e->positions *= list[i].extent;
        }
    }
    e->count = step;
}

pons_status argmax_axes_prepare(cpu_device *device, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err)
{
    bool gradient = request->kind == PONS_KERNEL_REDUCE_MINMAX_GRADIENT;
    const pons_minmax_attributes *a = gradient ? request->attributes : NULL;
    const pons_axis_attributes *one = request->attributes;
    argmax_axes *e = calloc(1, sizeof *e);
    int64_t work;

    if (e == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    *e = (argmax_axes){ .lanes = device->lanes, .rows = device->rows, .threads = device->threads,
                        .gradient = gradient, .minimum = gradient && a->minimum,
                        .type = { request->input[0].type, gradient ? request->input[1].type
                            : PONS_F32,
                                  request->output[0].type } };
    plan_axes(e, request->input[0].shape, gradient ? a->axes : PONS_AXIS(one->axis));
    e->pieces = ceil_div_i64(e->run, ARGMAX_LANES);
    work = e->steps * min_i64(e->run, ARGMAX_LANES);
    e->of_task = work < 16384 ? 16384 / work : 1;
    *supported = true;
    kernel->state = e;
    kernel->run = argmax_axes_run;
    kernel->free = argmax_axes_free;
    kernel->implementation = "argmax";
    return PONS_OK;
}
