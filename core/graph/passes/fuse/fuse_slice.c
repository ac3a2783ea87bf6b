/*
 * fuse_slice.c - concatenations without a copy (R18).
 *
 * The unit that computes a part of a concatenation writes it into the memory of the whole. Each
 * part gets a node of its own for that, an expression that changes nothing. A part that is no
 * expression is copied by a map.
 */
#include "graph/ir/build.h"
#include "graph/ir/shape.h"
#include "graph/passes/fuse/fuse.h"

/* Whether 'x' is such a node: it passes its argument on. */
static bool is_part(const pons_node *x)
{
    return x->kind == NODE_BROADCAST && shape_equal(x->shape, x->input[0]->shape);
}

bool fuse_in_parts(const fusion *f, const pons_node *x)
{
    return x->kind == NODE_CONCATENATE && x->input_count > 0 &&
           f->part_of[x->input[0]->number] == x;
}

static bool worth_parts(const pons_node *x)
{
    bool computed = false;

    for (int i = 0; i < x->input_count; i++) {
        const pons_node *owner = node_owner(x->input[i]);

        if (owner->type != x->type)
            return false;
        computed = computed || (fuse_is_expression(owner) && owner->kind != NODE_CONSTANT);
    }
    return computed;
}

bool fuse_slices(fusion *f)
{
    pons_graph *g = f->g;
    int count = g->node_count;
    node_section section = g->section;
    node_scope scope = g->scope;

    for (int i = 0; i < count; i++) {
        pons_node *x = g->node[i];

        if (x->kind != NODE_CONCATENATE || !worth_parts(x))
            continue;
        g->section = x->section;
        g->scope = x->scope;
        g->origin = x->origin;
        for (int k = 0; k < x->input_count; k++) {
            bool backward = x->backward;
            pons_node *part = node_new(g, NODE_BROADCAST, x->type, x->input[k]->shape, 1,
                                       &x->input[k], NULL);

            part->backward = backward;
            part->copy_of = x->copy_of;
            x->input[k] = part;
        }
    }
    g->section = section;
    g->scope = scope;
    return g->node_count > count;
}

/* Mark concatenations whose arguments are all parts of their own. */
void fuse_mark_parts(fusion *f)
{
    for (int i = 0; i < f->g->node_count; i++) {
        pons_node *x = f->g->node[i];
        bool parts = f->live[i] && x->kind == NODE_CONCATENATE;

        for (int k = 0; k < x->input_count && parts; k++)
            parts = is_part(x->input[k]);
        for (int k = 0; k < x->input_count && parts; k++)
            f->part_of[x->input[k]->number] = x;
    }
}

int64_t fuse_part_offset(const pons_node *whole, const pons_node *part)
{
    int axis = whole->attribute.axis;
    int64_t offset = 0;

    for (int i = 0; i < whole->input_count && whole->input[i] != part; i++)
        offset += whole->input[i]->shape.extent[axis];
    return offset * shape_stride(whole->shape, axis);
}
