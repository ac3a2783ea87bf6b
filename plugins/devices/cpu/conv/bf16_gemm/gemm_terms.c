/*
 * gemm_terms.c - sort the kernel positions of a convolution into the terms of gemm_terms.h.
 */
#include "cpu/conv/bf16_gemm/gemm_terms.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

static bool same_view(const wide_view *a, const wide_view *b)
{
    return a->start == b->start && memcmp(a->extent, b->extent, sizeof a->extent) == 0;
}

/* Kernel position 'tap' as seen by a target: its source and where that is read. */
static wide_term term_of(const wide_terms *t, const wide_grid *g, int tap)
{
    wide_term term = { t->gradient ? 0 : g->tap[tap].phase,
                       t->gradient ? -g->tap[tap].shift : g->tap[tap].shift, { 0 } };

    for (int i = 0; i < WIDE_JOINED; i++)
        term.tap[i] = i == 0 ? tap : -1;
    return term;
}

static int compare(const void *left, const void *right)
{
    const wide_term *a = left, *b = right;

    if (a->source != b->source)
        return a->source - b->source;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->tap[0] - b->tap[0];
}

/* Terms from 'first' on are sorted; those that lie within the reach of an earlier one join it. */
static void join(wide_terms *t, int first)
{
    int end = first;

    for (int i = first; i < t->term_count; i++) {
        wide_term *last = t->term + end - 1, next = t->term[i];
        int64_t behind = end > first ? next.offset - last->offset : 0;
        if (end > first && next.source == last->source && behind < t->joined &&
            last->tap[behind] < 0)
            last->tap[behind] = next.tap[0];
        else
            t->term[end++] = next;
    }
    t->term_count = end;
}

static void add_target(wide_terms *t, const wide_grid *g, wide_view view)
{
    wide_target *target = t->target + t->target_count++;

    *target = (wide_target){ .view = view, .first = t->term_count };
    for (int tap = 0; tap < g->taps; tap++)
        if (!t->gradient || same_view(&g->phase[g->tap[tap].phase], &view))
            t->term[t->term_count++] = term_of(t, g, tap);
    qsort(t->term + target->first, (size_t)(t->term_count - target->first), sizeof *t->term,
          compare);
    join(t, target->first);
    target->count = t->term_count - target->first;
}

static void add_phases(wide_terms *t, const wide_grid *g, const pons_tensor *x,
                       const pons_convolution *c)
{
    int at[3];

    for (at[0] = 0; at[0] < c->stride[0]; at[0]++)
        for (at[1] = 0; at[1] < c->stride[1]; at[1]++)
            for (at[2] = 0; at[2] < c->stride[2]; at[2]++) {
                wide_view view = wide_view_of(x, c->stride, at);
                if (view.extent[0] > 0 && view.extent[1] > 0 && view.extent[2] > 0)
                    add_target(t, g, view);
            }
}

/* Positions joined until a step is full; otherwise a position fills whole steps. */
static void plan_points(wide_terms *t)
{
    int size = t->ins * (int)sizeof(uint16_t);

    t->joined = WIDE_STEP % size == 0 && WIDE_STEP / size <= WIDE_JOINED ? WIDE_STEP / size : 1;
    t->point = t->joined > 1 ? size : round_up_int(size, WIDE_STEP);
    t->steps = t->joined > 1 ? 1 : t->point / WIDE_STEP;
}

pons_status wide_terms_init(wide_terms *t, const wide_grid *g, const pons_tensor *x,
                            const pons_tensor *w, const pons_convolution *c, bool gradient,
                            pons_error *err)
{
    const int64_t *e = w->shape.extent;
    int phases = gradient ? c->stride[0] * c->stride[1] * c->stride[2] : 1;

    *t = (wide_terms){ .gradient = gradient, .ins = (int)e[gradient ? 0 : 4],
                       .outs = (int)e[gradient ? 4 : 0], .source_count = gradient ? 1 : g->phases,
                       .source = gradient ? &g->output : g->phase };
    t->target = calloc((size_t)phases, sizeof *t->target);
    t->term = calloc((size_t)g->taps, sizeof *t->term);
    if (t->target == NULL || t->term == NULL) {
        wide_terms_clear(t);
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    }
    plan_points(t);
    if (gradient)
        add_phases(t, g, x, c);
    else
        add_target(t, g, g->output);
    t->low = gradient ? g->high : g->low;
    t->high = (gradient ? g->low : g->high) + t->joined - 1;
    return PONS_OK;
}

void wide_terms_clear(wide_terms *t)
{
    free(t->target);
    free(t->term);
    t->target = NULL;
    t->term = NULL;
}
