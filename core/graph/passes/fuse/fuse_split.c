/*
 * fuse_split.c - let the reductions of one kernel keep the same axes.
 *
 * A kernel whose reductions keep the same axes before the channels reads its operands once.
 * Otherwise it reads them once for each set of kept axes. So a sum over cases beside a sum per case
 * becomes a sum per case and a small sum over cases.
 */
#include "graph/ir/build.h"
#include "graph/ir/shape.h"
#include "graph/passes/fuse/fuse.h"

#define SHARE 64 /* a partial result has at most 1/64 of the points                               */

/* The axes of the squeezed argument that the reduction keeps, without the last one. */
static unsigned kept_axes(const pons_node *x)
{
    pons_shape s = x->input[0]->shape;
    unsigned axes = x->kind == NODE_MOMENTS ? x->attribute.moments.axes : x->attribute.axes;
    unsigned kept = 0, last = 0;
    int axis = 0;

    for (int i = 0; i < s.rank; i++) {
        if (s.extent[i] == 1)
            continue;
        last = 1u << axis;
        kept |= (axes & PONS_AXIS(i)) ? 0 : last;
        axis++;
    }
    return s.rank > 0 && s.extent[s.rank - 1] > 1 ? kept & ~last : kept;
}

/* The union of the axes that the reductions of 'u' keep. True: they differ. */
static bool kept_together(const fuse_unit *u, unsigned *kept)
{
    bool different = false;
    int count = 0;
    unsigned first = 0;

    *kept = 0;
    for (int i = 0; u->map && i < u->output_count; i++) {
        if (!fuse_is_reduction(u->output[i]) || fuse_unit_is_inner(u, u->output[i]))
            continue;
        if (count++ == 0)
            first = kept_axes(u->output[i]);
        different = different || kept_axes(u->output[i]) != first;
        *kept |= kept_axes(u->output[i]);
    }
    return different;
}

/*
 * Reduce 'x' to the axes 'kept' of the squeezed argument first. False: the partial result is too
 * large.
 */
static bool split_reduction(pons_graph *g, pons_node *x, unsigned kept)
{
    node_attribute attribute = { .axes = x->attribute.axes };
    pons_shape s = x->input[0]->shape;
    pons_node *part;
    int axis = 0;

    for (int i = 0; i < s.rank; i++) {
        bool named = (attribute.axes & PONS_AXIS(i)) != 0;

        if (s.extent[i] > 1 && (kept >> axis & 1))
            attribute.axes &= ~PONS_AXIS(i);
        axis += s.extent[i] > 1;
        if (named && (attribute.axes & PONS_AXIS(i)))
            s.extent[i] = 1;
    }
    if (shape_count(s) * SHARE > shape_count(x->input[0]->shape))
        return false;
    g->section = x->section;
    g->scope = x->scope;
    g->origin = x->origin;
    part = node_new(g, x->kind, x->type, s, 1, x->input, &attribute);
    part->backward = x->backward;
    x->input[0] = part;
    return true;
}

bool fuse_split(fusion *f)
{
    node_section section = f->g->section;
    node_scope scope = f->g->scope;
    bool changed = false;

    for (int i = 0; i < f->unit_count; i++) {
        fuse_unit *u = f->unit[i];
        unsigned kept;

        if (!kept_together(u, &kept))
            continue;
        for (int k = 0; k < u->output_count; k++) {
            pons_node *x = u->output[k];

            if (fuse_is_reduction(x) && x->kind != NODE_MOMENTS && !fuse_unit_is_inner(u, x) &&
                kept_axes(x) != kept)
                changed = split_reduction(f->g, x, kept) || changed;
        }
    }
    f->g->section = section;
    f->g->scope = scope;
    return changed;
}
