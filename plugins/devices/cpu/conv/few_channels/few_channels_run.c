/*
 * few_channels_run.c - run a convolution with few channels.
 *
 * A task is a band of rows in a block of planes. It buffers the rows that it reads, mostly as
 * padded rows in its thread's scratch, and calls the loops of loops.h row by row.
 */
#include "cpu/cpu.h"
#include "cpu/conv/few_channels/few_channels_internal.h"

#include "base/integer.h"

typedef struct few_channels_call {
    const few_channels_plan *n;
    const void *in, *y;
    void *out;
    float *packed, *areas, *sums;
} few_channels_call;

static void run_task(void *context, int64_t i, int thread)
{
    const few_channels_call *k = context;
    const few_channels_plan *n = k->n;
    const int *extent = n->form == PLANAR_INPUT ? n->x.extent : n->y.extent;
    int task = (int)i;
    few_channels_task w;

    w.n = n;
    w.in = k->in;
    w.y = k->y;
    w.out = k->out;
    w.weight = k->packed;
    w.buffer = k->areas + thread * n->area;
    w.taps = 0;
    w.inside = -1;
    w.line = w.buffer + (n->in_place ? 0 : n->planes * n->plane);
    w.other = w.line + n->line;
    w.image = task / n->bands / n->blocks;
    w.first = task / n->bands % n->blocks * n->block;
    w.last = min_int(w.first + n->block, extent[0]) - 1;
    w.top = task % n->bands * n->band;
    w.bottom = min_int(w.top + n->band, extent[1]) - 1;
    switch (n->form) {
    case VECTOR_FORWARD: n->interleaved ? few_channels_forward_interleaved(&w)
        : few_channels_forward_vector(&w); break;
    case PLANAR_FORWARD: n->in_place ? few_channels_forward_in_place(&w)
        : few_channels_forward_planar(&w); break;
    case PLANAR_INPUT: n->upsample2 ? few_channels_input_gradient_upsample2(&w)
        : few_channels_input_gradient(&w); break;
    default: few_channels_weight_gradient(&w, k->sums + task * n->sums); break;
    }
}

pons_status few_channels_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const few_channels_plan *n = kernel->state;
    bool weight = few_channels_is_weight(n);
    float *packed = call->scratch, *areas = packed + n->weights;
    few_channels_call k = { .n = n, .out = call->output[0], .packed = packed, .areas = areas,
                            .sums = areas + n->threads * n->area };

    (void)err;
    k.in = call->input[weight && n->swapped ? 1 : 0];
    k.y = weight ? call->input[n->swapped ? 0 : 1] : NULL;
    if (!weight)
        few_channels_weight_pack(n, call->input[1], packed);
    cpu_parallel_for(n->threads, n->tasks, run_task, &k);
    if (weight) {
        few_channels_weight_add(n, k.sums);
        few_channels_weight_write(n, k.sums, call->output[0]);
    }
    return PONS_OK;
}
