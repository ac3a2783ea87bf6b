/*
 * patch.c - nodes that cut patches out of cases in resident memory, and that add patches to sums in
 * resident memory.
 */
#include "graph/ir/patch.h"

#include "base/arena.h"
#include "graph/ir/ir_internal.h"

pons_node *node_resident(pons_graph *g, const char *name)
{
    return node_resident_tensor(g, name, PONS_U8, (pons_shape){ 1, { 1 } });
}

pons_node *node_resident_tensor(pons_graph *g, const char *name, pons_type type, pons_shape shape)
{
    pons_node *x = node_new(g, NODE_RESIDENT, type, shape, 0, NULL, NULL);

    x->name = arena_string(g->arena, name);
    return x;
}

/* Whether 'x' is i32 and has a row of 'columns' numbers for each of the N patches. */
static bool has_rows(const pons_node *x, pons_shape shape, int64_t columns)
{
    return x->type == PONS_I32 && x->shape.rank == 2 && shape.rank == 5
           && x->shape.extent[0] == shape.extent[0] && x->shape.extent[1] == columns;
}

pons_node *node_patch(pons_graph *g, pons_node *resident, pons_node *rows, pons_type type,
                      pons_shape shape)
{
    const int64_t *e = shape.extent;
    pons_node *in[] = { resident, rows };

    if (!inputs_given(g, NODE_PATCH, 2, in) || !shape_valid(g, NODE_PATCH, shape))
        return g->failed;
    if (resident->type != PONS_U8 || (type != PONS_F32 && type != PONS_U8)
        || !has_rows(rows, shape, PONS_PATCH_COORDINATES + e[1] + e[2] + e[3]))
        return node_refuse(g, NODE_PATCH, "cases and places do not fit the patches");
    return node_new(g, NODE_PATCH, type, shape, 2, in, NULL);
}

pons_node *node_patch_normal(pons_graph *g, pons_node *key, pons_shape shape)
{
    if (!inputs_given(g, NODE_PATCH_NORMAL, 1, &key) || !shape_valid(g, NODE_PATCH_NORMAL, shape))
        return g->failed;
    if (!has_rows(key, shape, PONS_PATCH_KEY_SIZE))
        return node_refuse(g, NODE_PATCH_NORMAL, "keys do not fit the patches");
    return node_new(g, NODE_PATCH_NORMAL, PONS_F32, shape, 1, &key, NULL);
}

pons_node *node_patch_accumulate(pons_graph *g, pons_node *resident, pons_node *rows,
                                 pons_node *weight, pons_node *x)
{
    pons_node *in[] = { resident, rows, weight, x };
    const int64_t *e;
    bool fits;

    if (!inputs_given(g, NODE_PATCH_ACCUMULATE, 4, in))
        return g->failed;
    e = x->shape.extent;
    fits = resident->type == PONS_U8 && x->type == PONS_F32 && x->shape.rank == 5
        && has_rows(rows, x->shape, PONS_PATCH_COORDINATES + 2 * (e[1] + e[2] + e[3]))
        && weight->type == PONS_F32
        && shape_equal(weight->shape, (pons_shape){ 3, { e[1], e[2], e[3] } });
    if (!fits)
        return node_refuse(g, NODE_PATCH_ACCUMULATE,
                           "sums, places and weights do not fit the patches");
    return node_new(g, NODE_PATCH_ACCUMULATE, PONS_U8, resident->shape, 4, in, NULL);
}
