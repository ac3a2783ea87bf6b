/*
 * fuse_place.c - which nodes reach memory: sinks, and crops that are read in place.
 *
 * Sinks are the nodes that must be in memory: outputs, arguments of convolutions and of other kinds
 * of kernels, operands that are repeated along an axis. In channel form (at most 64 channels)
 * reductions over the channels are part of the expression; it computes each value either for each
 * channel or, narrow, once for each point before the channels. What does not agree on the channels
 * with its reader comes from memory.
 */
#include "graph/passes/fuse/fuse.h"

#include <assert.h>

static void need_memory(fusion *f, pons_node *x)
{
    pons_node *owner = plan_owner(x);

    if (fuse_is_value(f, owner))
        f->sink[owner->number] = true;
}

/*
 * The channel form that the expression 'x', seen as 'shape', asks of its reader of shape 'at';
 * -1: it cannot be inside.
 */
static int channels_for(const fusion *f, const pons_node *x, pons_shape shape, pons_shape at,
                        bool *narrow)
{
    int own = f->channels[x->number];
    int64_t last = at.rank > 0 ? at.extent[at.rank - 1] : 1;

    if (fuse_same_space(shape, at)) {
        *narrow = own > 0 && f->narrow[x->number];
        return own;
    }
    *narrow = false;
    if (!fuse_is_narrow_beside(shape, at) || f->random[x->number])
        return -1;
    if (own > 0 && (!f->narrow[x->number] || own != (int)last))
        return -1;
    return (int)last;
}

/* Make the expression 'input', seen as 'shape', part of x; false: it has to come from memory. */
static bool read_inside(fusion *f, const pons_node *x, const pons_node *input, pons_shape shape)
{
    bool narrow;
    int channels = channels_for(f, input, shape, x->shape, &narrow);
    int own = f->channels[x->number];
    bool random = f->random[x->number] || f->random[input->number];

    if (channels < 0)
        return false;
    if (own > 0 && channels > 0 && (own != channels || f->narrow[x->number] != narrow))
        return false;
    narrow = channels > 0 ? narrow : f->narrow[x->number];
    if (random && narrow)
        return false;
    f->random[x->number] = random;
    if (channels == 0)
        return true;
    f->channels[x->number] = channels;
    f->narrow[x->number] = narrow;
    return true;
}

/* The channel reduction x reads its argument wide. */
static bool reduce_inside(fusion *f, const pons_node *x, const pons_node *input)
{
    int own = f->channels[input->number];
    int channels = (int)input->shape.extent[input->shape.rank - 1];

    return own == 0 || (own == channels && !f->narrow[input->number]);
}

static void place_expression(fusion *f, pons_node *x)
{
    f->channels[x->number] = 0;
    f->narrow[x->number] = false;
    f->random[x->number] = x->kind == NODE_UNIFORM || x->kind == NODE_NORMAL;
    if (fuse_is_inner(f, x)) {
        pons_node *owner = plan_owner(x->input[0]);

        if (fuse_source_of(f, x->input[0]) == FUSE_INSIDE &&
            (!fuse_same_space(owner->shape, x->input[0]->shape) || !reduce_inside(f, x, owner)))
            need_memory(f, owner);
        f->channels[x->number] = (int)x->input[0]->shape.extent[x->input[0]->shape.rank - 1];
        f->narrow[x->number] = true;
        return;
    }
    for (int i = 0; i < x->input_count; i++) {
        pons_node *owner = plan_owner(x->input[i]);

        if (fuse_source_of(f, x->input[i]) == FUSE_INSIDE &&
            (!fuse_same_space(owner->shape, x->input[i]->shape) ||
             !read_inside(f, x, owner, x->input[i]->shape)))
            need_memory(f, owner);
    }
}

static void place_other(fusion *f, pons_node *x)
{
    if (x->kind == NODE_SECOND || x->kind == NODE_RESHAPE)
        return;
    if (fuse_is_reduction(x)) {
        pons_node *owner = plan_owner(x->input[0]);

        assert(x->input_count == 1);
        if (!fuse_same_space(owner->shape, x->input[0]->shape))
            need_memory(f, owner);
        return;
    }
    for (int i = 0; i < x->input_count; i++)
        need_memory(f, x->input[i]);
}

/* Sinks that follow from the graph alone; 'f->sink' may hold more already. */
void fuse_place(fusion *f)
{
    for (int i = 0; i < f->root_count; i++)
        need_memory(f, f->root[i]);
    for (int i = 0; i < f->g->node_count; i++) {
        pons_node *x = f->g->node[i];

        if (!f->live[i] || x->kind == PONS_MAP_STOP_GRADIENT)
            continue;
        if (f->off && fuse_is_value(f, x) && x->kind != NODE_CONSTANT && x->kind != NODE_IOTA)
            f->sink[i] = true;
        if (fuse_is_value(f, x))
            place_expression(f, x);
        else
            place_other(f, x);
    }
}

/* A crop that only expressions and reductions read is read in place. */
void fuse_mark_views(fusion *f)
{
    for (int i = 0; i < f->g->node_count; i++)
        f->view[i] = f->live[i] && f->g->node[i]->kind == NODE_CROP;
    for (int i = 0; i < f->root_count; i++)
        f->view[plan_owner(f->root[i])->number] = false;
    for (int i = 0; i < f->g->node_count; i++) {
        const pons_node *x = f->g->node[i];

        for (int k = 0; f->live[i] && k < x->input_count; k++)
            if (!fuse_is_value(f, x) && !fuse_is_reduction(x))
                f->view[plan_owner(x->input[k])->number] = false;
    }
}
