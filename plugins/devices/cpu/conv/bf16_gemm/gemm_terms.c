/*
 * gemm_terms.c - sort the kernel positions of a convolution into the terms of gemm_terms.h.
 */
#include "cpu/conv/bf16_gemm/gemm_terms.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

static bool same_view(const gemm_view *a, const gemm_view *b)
{
    return a->start == b->start && memcmp(a->extent, b->extent, sizeof a->extent) == 0;
}

/* Kernel position 'tap' as seen by a target: its source and where that is read. */
static gemm_term term_of(const gemm_terms *t, const gemm_grid *g, int tap)
{
    gemm_term term = { t->gradient ? 0 : g->tap[tap].phase,
                       t->gradient ? -g->tap[tap].shift : g->tap[tap].shift, { 0 } };

    for (int i = 0; i < GEMM_JOINED; i++)
        term.tap[i] = i == 0 ? tap : -1;
    return term;
}

static int compare(const void *left, const void *right)
{
    const gemm_term *a = left, *b = right;

    if (a->source != b->source)
        return a->source - b->source;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->tap[0] - b->tap[0];
}

/* Terms from 'first' on are sorted; those that lie within the reach of an earlier one join it. */
static void join(gemm_terms *t, int first)
{
    int end = first;

    for (int i = first; i < t->term_count; i++) {
        gemm_term *last = t->term + end - 1, next = t->term[i];
        int64_t behind = end > first ? next.offset - last->offset : 0;
        if (end > first && next.source == last->source && behind < t->joined &&
            last->tap[behind] < 0)
            last->tap[behind] = next.tap[0];
        else
            t->term[end++] = next;
    }
    t->term_count = end;
}

static void add_target(gemm_terms *t, const gemm_grid *g, gemm_view view)
{
    gemm_target *target = t->target + t->target_count++;

    *target = (gemm_target){ .view = view, .first = t->term_count };
    for (int tap = 0; tap < g->taps; tap++)
        if (!t->gradient || same_view(&g->phase[g->tap[tap].phase], &view))
            t->term[t->term_count++] = term_of(t, g, tap);
    qsort(t->term + target->first, (size_t)(t->term_count - target->first), sizeof *t->term,
          compare);
    join(t, target->first);
    target->count = t->term_count - target->first;
}

static void add_phases(gemm_terms *t, const gemm_grid *g, const conv_problem *p)
{
    int at[3];

    for (at[0] = 0; at[0] < p->stride[0]; at[0]++)
        for (at[1] = 0; at[1] < p->stride[1]; at[1]++)
            for (at[2] = 0; at[2] < p->stride[2]; at[2]++) {
                gemm_view view = gemm_view_of(p->x_tensor, p->stride, at);
                if (view.extent[0] > 0 && view.extent[1] > 0 && view.extent[2] > 0)
                    add_target(t, g, view);
            }
}

/* Positions joined until a step is full; otherwise a position fills whole steps. */
static void plan_points(gemm_terms *t)
{
    int size = t->ins * (int)sizeof(uint16_t);

    t->joined = GEMM_STEP % size == 0 && GEMM_STEP / size <= GEMM_JOINED ? GEMM_STEP / size : 1;
    t->point = t->joined > 1 ? size : round_up_int(size, GEMM_STEP);
    t->steps = t->joined > 1 ? 1 : t->point / GEMM_STEP;
}

pons_status gemm_terms_init(gemm_terms *t, const gemm_grid *g, const conv_problem *p,
                            pons_error *err)
{
    bool gradient = p->direction == CONV_INPUT_GRADIENT;
    int phases = gradient ? p->stride[0] * p->stride[1] * p->stride[2] : 1;

    *t = (gemm_terms){ .gradient = gradient, .ins = conv_from(p)->channels,
                       .outs = conv_to(p)->channels, .source_count = gradient ? 1 : g->phases,
                       .source = gradient ? &g->output : g->phase };
    t->target = calloc((size_t)phases, sizeof *t->target);
    t->term = calloc((size_t)g->taps, sizeof *t->term);
    if (t->target == NULL || t->term == NULL) {
        gemm_terms_clear(t);
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    }
    plan_points(t);
    if (gradient)
        add_phases(t, g, p);
    else
        add_target(t, g, g->output);
    t->low = gradient ? g->high : g->low;
    t->high = (gradient ? g->low : g->high) + t->joined - 1;
    return PONS_OK;
}

void gemm_terms_clear(gemm_terms *t)
{
    free(t->target);
    free(t->term);
    t->target = NULL;
    t->term = NULL;
}
