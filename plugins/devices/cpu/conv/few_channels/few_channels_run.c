/*
 * few_channels_run.c - run a narrow convolution: tasks, and which run each of them is.
 *
 * A task is a band of rows in a block of planes. It has the rows that it reads at hand, mostly as
 * padded rows in its thread's scratch, and calls the loops of few_channels_loops.h row by row.
 */
#include "cpu/cpu.h"
#include "cpu/conv/few_channels/few_channels_task.h"

#include "base/integer.h"

typedef struct narrow_call {
    const narrow *n;
    const void *in, *y;
    void *out;
    float *packed, *areas, *sums;
} narrow_call;

static void run_task(void *context, int64_t i, int thread)
{
    const narrow_call *k = context;
    const narrow *n = k->n;
    const int *extent = n->form == PLANAR_SPREAD ? n->x.extent : n->y.extent;
    int task = (int)i;
    narrow_work w;

    w.n = n;
    w.in = k->in;
    w.y = k->y;
    w.out = k->out;
    w.weight = k->packed;
    w.buffer = k->areas + thread * n->area;
    w.taps = 0;
    w.inside = -1;
    w.line = w.buffer + (n->placed ? 0 : n->planes * n->plane);
    w.other = w.line + n->line;
    w.image = task / n->bands / n->blocks;
    w.first = task / n->bands % n->blocks * n->block;
    w.last = min_int(w.first + n->block, extent[0]) - 1;
    w.top = task % n->bands * n->band;
    w.bottom = min_int(w.top + n->band, extent[1]) - 1;
    switch (n->form) {
    case WIDE_FORWARD: n->zipped ? narrow_forward_zipped(&w) : narrow_forward_wide(&w); break;
    case PLANAR_FORWARD: n->placed ? narrow_forward_placed(&w) : narrow_forward_planar(&w); break;
    case PLANAR_SPREAD: n->up ? narrow_spread_up(&w) : narrow_spread(&w); break;
    default: narrow_gradient(&w, k->sums + task * n->sums); break;
    }
}

pons_status narrow_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const narrow *n = kernel->state;
    bool weight = narrow_is_weight(n);
    float *packed = call->scratch, *areas = packed + n->weights;
    narrow_call k = { .n = n, .out = call->output[0], .packed = packed, .areas = areas,
                      .sums = areas + n->threads * n->area };

    (void)err;
    k.in = call->input[weight && n->swapped ? 1 : 0];
    k.y = weight ? call->input[n->swapped ? 0 : 1] : NULL;
    if (!weight)
        narrow_weight_pack(n, call->input[1], packed);
    cpu_parallel(n->threads, n->tasks, run_task, &k);
    if (weight) {
        narrow_weight_add(n, k.sums);
        narrow_weight_write(n, k.sums, call->output[0]);
    }
    return PONS_OK;
}
