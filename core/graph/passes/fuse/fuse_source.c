/*
 * fuse_source.c - classify nodes for the fuse pass, and tell where readers find them.
 *
 * A unit computes expressions and reductions over few channels itself, unless they are
 * materialised. All other nodes are read from memory.
 */
#include "graph/passes/fuse/fuse.h"

#include "graph/ir/shape.h"

#define CHANNELS_MAX 64

bool fuse_is_expression(const pons_node *x)
{
    return node_is_map(x) || x->kind == NODE_BROADCAST || x->kind == NODE_UNIFORM ||
           x->kind == NODE_NORMAL || x->kind == NODE_IOTA || x->kind == NODE_CONSTANT;
}

bool fuse_is_reduction(const pons_node *x)
{
    return x->kind == NODE_SUM || x->kind == NODE_MAXIMUM || x->kind == NODE_MINIMUM ||
           x->kind == NODE_MOMENTS;
}

bool fuse_same_space(pons_shape a, pons_shape b)
{
    return shape_equal(shape_squeeze(a), shape_squeeze(b));
}

/* Whether 'x' reduces the last axis alone, with few enough channels for the channel form. */
static bool is_channel_reduction(const pons_node *x)
{
    pons_shape s = x->input_count > 0 ? x->input[0]->shape : x->shape;
    int64_t channels = s.rank > 0 ? s.extent[s.rank - 1] : 1;

    if (s.rank == 0 || channels < 2 || channels > CHANNELS_MAX)
        return false;
    if (x->kind == NODE_ARG_MAX)
        return x->attribute.axis == s.rank - 1;
    return (x->kind == NODE_SUM || x->kind == NODE_MAXIMUM || x->kind == NODE_MINIMUM) &&
           x->attribute.axes == PONS_AXIS(s.rank - 1);
}

bool fuse_is_inner(const fusion *f, const pons_node *x)
{
    return !f->off && is_channel_reduction(x);
}

bool fuse_is_value(const fusion *f, const pons_node *x)
{
    return fuse_is_expression(x) || fuse_is_inner(f, x);
}

fuse_source fuse_form_of(const fusion *f, const pons_node *owner)
{
    if (f->view[owner->number])
        return FUSE_VIEW;
    return fuse_in_parts(f, owner) ? FUSE_PARTS : FUSE_DENSE;
}

fuse_source fuse_source_of(const fusion *f, const pons_node *x)
{
    const pons_node *owner = node_owner((pons_node *)x);

    if (x->kind == NODE_IOTA || f->uniform[owner->number])
        return FUSE_COMPUTED;
    if (fuse_is_value(f, owner) && !f->materialised[owner->number])
        return FUSE_INSIDE;
    return fuse_form_of(f, owner);
}

bool fuse_is_per_point_beside(pons_shape x, pons_shape at)
{
    int64_t channels = at.rank > 0 ? at.extent[at.rank - 1] : 1;

    if (channels < 2 || channels > CHANNELS_MAX || x.rank > at.rank || x.rank == 0 ||
        x.extent[x.rank - 1] != 1)
        return false;
    for (int i = 0; i < at.rank - 1; i++) {
        int own = i - (at.rank - x.rank);
        if ((own >= 0 ? x.extent[own] : 1) != at.extent[i])
            return false;
    }
    return true;
}
