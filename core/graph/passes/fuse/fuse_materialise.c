/*
 * fuse_materialise.c - decide which nodes are materialised in memory, and which crops are read in
 * place.
 *
 * Materialised are outputs, arguments of convolutions and of other kernels that are no maps, and
 * operands that repeat along an axis. In channel form (at most 64 channels) reductions over the
 * channels are part of the expression. The expression computes each value per channel or per point
 * before the channels. An expression is materialised where its channel form does not fit its
 * reader's.
 */
#include "graph/passes/fuse/fuse.h"

#include <assert.h>

static void materialise_owner(fusion *f, pons_node *x)
{
    pons_node *owner = node_owner(x);

    if (fuse_is_value(f, owner))
        f->materialised[owner->number] = true;
}

/*
 * The channel form that the expression 'x', seen as 'shape', requires of its reader of shape 'at'.
 * -1: 'x' cannot be part of its reader.
 */
static int channels_for(const fusion *f, const pons_node *x, pons_shape shape, pons_shape at,
                        bool *per_point)
{
    int own = f->channels[x->number];
    int64_t last = at.rank > 0 ? at.extent[at.rank - 1] : 1;

    if (fuse_same_space(shape, at)) {
        *per_point = own > 0 && f->per_point[x->number];
        return own;
    }
    *per_point = false;
    if (!fuse_is_per_point_beside(shape, at) || f->random[x->number])
        return -1;
    if (own > 0 && (!f->per_point[x->number] || own != (int)last))
        return -1;
    return (int)last;
}

/* Make the expression 'input', seen as 'shape', part of 'x'. False: it has to be materialised. */
static bool read_inside(fusion *f, const pons_node *x, const pons_node *input, pons_shape shape)
{
    bool per_point;
    int channels = channels_for(f, input, shape, x->shape, &per_point);
    int own = f->channels[x->number];
    bool random = f->random[x->number] || f->random[input->number];

    if (channels < 0)
        return false;
    if (own > 0 && channels > 0 && (own != channels || f->per_point[x->number] != per_point))
        return false;
    per_point = channels > 0 ? per_point : f->per_point[x->number];
    if (random && per_point)
        return false;
    f->random[x->number] = random;
    if (channels == 0)
        return true;
    f->channels[x->number] = channels;
    f->per_point[x->number] = per_point;
    return true;
}

/* Whether the channel reduction 'x' can have its argument inside, which it reads per channel. */
static bool reduce_inside(fusion *f, const pons_node *x, const pons_node *input)
{
    int own = f->channels[input->number];
    int channels = (int)input->shape.extent[input->shape.rank - 1];

    return own == 0 || (own == channels && !f->per_point[input->number]);
}

static void visit_expression(fusion *f, pons_node *x)
{
    f->channels[x->number] = 0;
    f->per_point[x->number] = false;
    f->random[x->number] = x->kind == NODE_UNIFORM || x->kind == NODE_NORMAL;
    if (fuse_is_inner(f, x)) {
        pons_node *owner = node_owner(x->input[0]);

        if (fuse_source_of(f, x->input[0]) == FUSE_INSIDE &&
            (!fuse_same_space(owner->shape, x->input[0]->shape) || !reduce_inside(f, x, owner)))
            materialise_owner(f, owner);
        f->channels[x->number] = (int)x->input[0]->shape.extent[x->input[0]->shape.rank - 1];
        f->per_point[x->number] = true;
        return;
    }
    for (int i = 0; i < x->input_count; i++) {
        pons_node *owner = node_owner(x->input[i]);

        if (fuse_source_of(f, x->input[i]) == FUSE_INSIDE &&
            (!fuse_same_space(owner->shape, x->input[i]->shape) ||
             !read_inside(f, x, owner, x->input[i]->shape)))
            materialise_owner(f, owner);
    }
}

static void visit_other(fusion *f, pons_node *x)
{
    if (x->kind == NODE_SECOND || x->kind == NODE_RESHAPE)
        return;
    if (fuse_is_reduction(x)) {
        pons_node *owner = node_owner(x->input[0]);

        assert(x->input_count == 1);
        if (!fuse_same_space(owner->shape, x->input[0]->shape))
            materialise_owner(f, owner);
        return;
    }
    for (int i = 0; i < x->input_count; i++)
        materialise_owner(f, x->input[i]);
}

void fuse_materialise(fusion *f)
{
    for (int i = 0; i < f->root_count; i++)
        materialise_owner(f, f->root[i]);
    for (int i = 0; i < f->g->node_count; i++) {
        pons_node *x = f->g->node[i];

        if (!f->live[i] || x->kind == PONS_MAP_STOP_GRADIENT)
            continue;
        if (f->off && fuse_is_value(f, x) && x->kind != NODE_CONSTANT && x->kind != NODE_IOTA)
            f->materialised[i] = true;
        if (fuse_is_value(f, x))
            visit_expression(f, x);
        else
            visit_other(f, x);
    }
}

/* Mark the crops that only expressions and reductions read: they are read in place. */
void fuse_mark_views(fusion *f)
{
    for (int i = 0; i < f->g->node_count; i++)
        f->view[i] = f->live[i] && f->g->node[i]->kind == NODE_CROP;
    for (int i = 0; i < f->root_count; i++)
        f->view[node_owner(f->root[i])->number] = false;
    for (int i = 0; i < f->g->node_count; i++) {
        const pons_node *x = f->g->node[i];

        for (int k = 0; f->live[i] && k < x->input_count; k++)
            if (!fuse_is_value(f, x) && !fuse_is_reduction(x))
                f->view[node_owner(x->input[k])->number] = false;
    }
}
