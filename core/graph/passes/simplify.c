/*
 * simplify.c - merge equal nodes and remove nodes without effect.
 *
 * Nodes are equal if kind, attributes and arguments are, after their arguments were merged. x * 1,
 * x / 1, x + 0 and x - 0 become x. Nodes stay in the array; readers are redirected to the remaining
 * node.
 */
#include "graph/passes/simplify.h"

#include <string.h>

#include "base/arena.h"
#include "graph/ir/shape.h"

static bool is_constant(const pons_node *x, double number)
{
    return x->kind == NODE_CONSTANT && x->attribute.number == number;
}

/* The argument that equals a neutral operation's result, or NULL. */
static pons_node *neutral_argument(pons_node *x)
{
    pons_node *kept = NULL;

    switch (x->kind) {
    case PONS_MAP_MUL:
        kept = is_constant(x->input[1], 1) ? x->input[0]
             : is_constant(x->input[0], 1) ? x->input[1] : NULL;
        break;
    case PONS_MAP_ADD:
        kept = is_constant(x->input[1], 0) ? x->input[0]
             : is_constant(x->input[0], 0) ? x->input[1] : NULL;
        break;
    case PONS_MAP_DIV:
        kept = is_constant(x->input[1], 1) ? x->input[0] : NULL;
        break;
    case PONS_MAP_SUB:
        kept = is_constant(x->input[1], 0) ? x->input[0] : NULL;
        break;
    case NODE_SUM:
    case NODE_MAXIMUM:
    case NODE_MINIMUM:
    case NODE_BROADCAST:
    case NODE_RESHAPE:
        kept = x->input[0];
        break;
    default:
        break;
    }
    if (kept && (!shape_equal(kept->shape, x->shape) || kept->type != x->type))
        kept = NULL;
    return kept;
}

static bool is_pure(const pons_node *x)
{
    return x->kind != NODE_UNIFORM && x->kind != NODE_NORMAL && x->kind != NODE_FAILED &&
           x->kind != PONS_MAP_STOP_GRADIENT && x->name == NULL &&
           (x->input_count > 0 || x->kind == NODE_CONSTANT || x->kind == NODE_IOTA);
}

static uint64_t node_hash(const pons_node *x)
{
    uint64_t hash = (uint64_t)x->kind * 0x9e3779b97f4a7c15u;

    for (int i = 0; i < x->input_count; i++)
        hash = (hash ^ (uint64_t)x->input[i]->number) * 0x100000001b3u + (hash >> 29);
    for (int i = 0; i < x->shape.rank; i++)
        hash = (hash ^ (uint64_t)x->shape.extent[i]) * 0x100000001b3u + (hash >> 31);
    return hash;
}

static bool node_equal(const pons_node *a, const pons_node *b)
{
    if (a->kind != b->kind || a->type != b->type || a->input_count != b->input_count ||
        a->section != b->section || !shape_equal(a->shape, b->shape))
        return false;
    for (int i = 0; i < a->input_count; i++)
        if (a->input[i] != b->input[i])
            return false;
    return node_is_map(a) || memcmp(&a->attribute, &b->attribute, sizeof(a->attribute)) == 0;
}

/*
 * The node that replaces 'x': an equal one before it, the argument of a neutral operation, or 'x'.
 */
static pons_node *stand_in(pons_node *x, pons_node **table, size_t mask)
{
    pons_node *kept = neutral_argument(x);

    if (kept)
        return kept;
    if (!is_pure(x))
        return x;
    for (size_t slot = node_hash(x) & mask;; slot = (slot + 1) & mask) {
        if (table[slot] == NULL) {
            table[slot] = x;
            return x;
        }
        if (node_equal(table[slot], x))
            return table[slot];
    }
}

void pass_simplify(pons_graph *g)
{
    size_t size = 64;
    arena *scratch = arena_new();
    pons_node **table, **instead;

    while (size < 2 * (size_t)g->node_count)
        size *= 2;
    table = arena_alloc(scratch, sizeof(*table) * size);
    instead = arena_alloc(scratch, sizeof(*instead) * (size_t)(g->node_count + 1));
    for (int i = 0; i < g->node_count; i++) {
        pons_node *x = g->node[i];

        for (int k = 0; k < x->input_count; k++)
            x->input[k] = instead[x->input[k]->number];
        instead[i] = stand_in(x, table, size - 1);
    }
    arena_free(scratch);
}
