/*
 * leaf.c - nodes without operands: inputs, parameters, states, slots, constants, random numbers.
 */
#include "graph/ir/leaf.h"

#include <string.h>

#include "base/arena.h"
#include "base/random.h"
#include "graph/ir/ir_internal.h"

static pons_node *named_node(pons_graph *g, int kind, pons_type type, pons_shape shape,
                             const char *name, const node_attribute *attribute)
{
    pons_node *x;

    if (!shape_valid(g, kind, shape))
        return g->failed;
    x = node_new(g, kind, type, shape, 0, NULL, attribute);
    x->name = arena_string(g->arena, name);
    return x;
}

pons_node *node_input(pons_graph *g, const char *name, pons_type type, pons_shape shape)
{
    return named_node(g, NODE_INPUT, type, shape, name, NULL);
}

pons_node *node_scalar(pons_graph *g, const char *name)
{
    return named_node(g, NODE_SCALAR, PONS_F32, (pons_shape){ .rank = 0 }, name, NULL);
}

/* ---- parameters and states ------------------------------------------------------------------- */

static leaf *find_leaf(leaf *first, const char *name)
{
    while (first != NULL && strcmp(first->name, name) != 0)
        first = first->next;
    return first;
}

/* The leaf that has the name of 'wanted', or NULL. *clash tells whether it is a different one. */
static leaf *known_leaf(pons_graph *g, int kind, const leaf *wanted, bool *clash)
{
    leaf *same = find_leaf(wanted->trained ? g->parameter : g->state, wanted->name);
    char found[160], expected[160];

    *clash = true;
    if (find_leaf(wanted->trained ? g->state : g->parameter, wanted->name) != NULL)
        node_refuse(g, kind, "'%s' is both a parameter and a state", wanted->name);
    else if (same != NULL && !shape_equal(same->shape, wanted->shape))
        node_refuse(g, kind, "'%s' has shape %s, asked for again with %s", wanted->name,
                    shape_text(same->shape, expected, sizeof expected),
                    shape_text(wanted->shape, found, sizeof found));
    else
        *clash = false;
    return same;
}

static pons_node *leaf_node(pons_graph *g, int kind, leaf wanted, leaf ***end, int *count)
{
    bool clash;
    leaf *l;

    if (wanted.name == NULL || wanted.name[0] == 0)
        return node_refuse(g, kind, "needs a name");
    if (!shape_valid(g, kind, wanted.shape))
        return g->failed;
    l = known_leaf(g, kind, &wanted, &clash);
    if (clash)
        return g->failed;
    if (l != NULL)
        return l->node;
    l = arena_alloc(g->arena, sizeof *l);
    *l = wanted;
    l->name = arena_string(g->arena, wanted.name);
    l->index = (*count)++;
    l->node = named_node(g, kind, PONS_F32, l->shape, l->name, NULL);
    l->node->leaf = l;
    **end = l;
    *end = &l->next;
    return l->node;
}

pons_node *pons_parameter_leaf(pons_graph *g, const char *name, pons_role role, pons_shape shape,
                               pons_init init)
{
    leaf wanted = { .name = name, .role = role, .shape = shape, .init = init, .trained = true };

    return leaf_node(g, NODE_PARAMETER, wanted, &g->parameter_end, &g->parameter_count);
}

pons_node *pons_state_leaf(pons_graph *g, const char *name, pons_shape shape, double initial)
{
    leaf wanted = { .name = name, .shape = shape, .init = { PONS_INIT_CONSTANT, initial } };

    return leaf_node(g, NODE_STATE, wanted, &g->state_end, &g->state_count);
}

/* A leaf of the update section that belongs to the parameter or state 'of'. */
static pons_node *node_beside(pons_graph *g, int kind, pons_node *of, pons_shape shape,
                              const node_attribute *attribute)
{
    pons_node *x;

    if (!inputs_given(g, kind, 1, &of))
        return g->failed;
    x = node_new(g, kind, PONS_F32, shape, 1, &of, attribute);
    x->name = of->name;
    return x;
}

pons_node *node_slot(pons_graph *g, pons_node *parameter, int index, pons_slot_kind kind)
{
    node_attribute a = { .slot = { index, kind } };
    pons_shape shape = parameter->shape;

    if (kind == PONS_SLOT_TENSOR)
        shape.rank = 0;
    return node_beside(g, NODE_SLOT, parameter, shape, &a);
}

pons_node *node_accumulated_gradient(pons_graph *g, pons_node *parameter)
{
    return node_beside(g, NODE_GRADIENT, parameter, parameter->shape, NULL);
}

void graph_leave_out(pons_graph *g, const pons_node *output)
{
    bool *needed = arena_alloc(g->arena, (size_t)g->node_count * sizeof *needed);

    if (node_failed(output))
        return;
    needed[output->number] = true;
    for (int i = output->number; i >= 0; i--)
        for (int k = 0; needed[i] && k < g->node[i]->input_count; k++)
            needed[g->node[i]->input[k]->number] = true;
    for (leaf *l = g->parameter; l != NULL; l = l->next)
        l->left_out = l->left_out || needed[l->node->number];
}

/* ---- numbers --------------------------------------------------------------------------------- */

pons_node *pons_scalar(pons_graph *g, double value)
{
    node_attribute a = { .number = value };

    return node_new(g, NODE_CONSTANT, PONS_F32, (pons_shape){ .rank = 0 }, 0, NULL, &a);
}

pons_node *pons_iota(pons_graph *g, int rank, int axis, int64_t n)
{
    node_attribute a = { .axis = axis };
    pons_shape shape = { .rank = rank };

    if (rank < 1 || rank > PONS_RANK_MAX || axis < 0 || axis >= rank)
        return node_refuse(g, NODE_IOTA, "axis %d of %d", axis, rank);
    for (int i = 0; i < rank; i++)
        shape.extent[i] = i == axis ? n : 1;
    if (!shape_valid(g, NODE_IOTA, shape))
        return g->failed;
    return node_new(g, NODE_IOTA, PONS_F32, shape, 0, NULL, &a);
}

static pons_node *random_node(pons_graph *g, int kind, const char *stream, pons_shape shape)
{
    node_attribute a;

    if (stream == NULL || stream[0] == 0)
        return node_refuse(g, kind, "needs the name of a stream");
    a.stream.name = arena_string(g->arena, stream);
    a.stream.hash = random_stream_hash(stream);
    if (!shape_valid(g, kind, shape) || !graph_stream_add(g, a.stream.hash, a.stream.name))
        return g->failed;
    return named_node(g, kind, PONS_F32, shape, stream, &a);
}

pons_node *pons_random_uniform(pons_graph *g, const char *stream, pons_shape shape)
{
    return random_node(g, NODE_UNIFORM, stream, shape);
}

pons_node *pons_random_normal(pons_graph *g, const char *stream, pons_shape shape)
{
    return random_node(g, NODE_NORMAL, stream, shape);
}
