/*
 * map_nodes.c - the values of a map as nodes with one element at each point.
 *
 * In the channel form a per-channel value becomes one node for each channel, and a reduction over
 * channels a chain of nodes. A select by a comparison becomes one node together with the compared
 * values.
 */
#include "cpu/map/map_internal.h"

#include <string.h>

static bool map_comparison(int operation)
{
    return operation >= PONS_MAP_EQUAL && operation <= PONS_MAP_GREATER_EQUAL;
}

int map_node_of(const map_plan *plan, int value, int channel)
{
    return plan->node_of[value * plan->rows + (plan->copies[value] > 1 ? channel : 0)];
}

static bool same_node(const map_node *a, const map_node *b)
{
    return a->operation == b->operation && a->comparison == b->comparison
        && memcmp(a->argument, b->argument, sizeof a->argument) == 0
        && memcmp(&a->number, &b->number, sizeof a->number) == 0;
}

/* An equal node, or -1. */
static int node_find(const map_plan *plan, const map_node *node)
{
    if (node->argument_count > 0 || node->operation == PONS_VALUE_CONSTANT)
        for (int n = plan->node_count - 1; n >= 0; n--)
            if (same_node(&plan->node[n], node))
                return n;
    return -1;
}

static int node_new(map_plan *plan, map_node node)
{
    int same = node_find(plan, &node);

    for (int i = 0; i < node.argument_count; i++)
        if (node.argument[i] < 0)
            return -1;
    if (same >= 0)
        return same;
    if (plan->node_count == plan->node_room) {
        int room = 2 * plan->node_room + 32;
        map_node *more = map_allocate(plan, (size_t)room, sizeof *more);
        if (more == NULL)
            return -1;
        if (plan->node_count > 0)
            memcpy(more, plan->node, (size_t)plan->node_count * sizeof *more);
        plan->node = more;
        plan->node_room = room;
    }
    plan->node[plan->node_count] = node;
    return plan->node_count++;
}

static int node_constant(map_plan *plan, float number)
{
    return node_new(plan, (map_node){ .operation = PONS_VALUE_CONSTANT, .number = number });
}

static int node_two(map_plan *plan, int operation, int a, int b)
{
    return node_new(plan, (map_node){ .operation = (uint16_t)operation, .argument_count = 2,
                                      .argument = { a, b } });
}

static int node_select(map_plan *plan, int comparison, int p, int q, int then, int other)
{
    return node_new(plan, (map_node){ .operation = MAP_NODE_SELECT,
                                      .comparison = (uint16_t)comparison, .argument_count = 4,
                                      .argument = { p, q, then, other } });
}

/* True if the node is x > q ? g : q or, with 'other', x > q ? q : g. */
static bool selects_greater(const map_node *node, bool other)
{
    return node->operation == MAP_NODE_SELECT && node->comparison == PONS_MAP_GREATER
        && node->argument[1] == node->argument[other ? 2 : 3];
}

/*
 * The gradient of leaky and parametric ReLU: a sum of two selects with one comparison, of which the
 * second is scaled. It becomes one node, which needs no memory for intermediate values.
 */
static int leaky_relu_gradient_node(map_plan *plan, const int *argument)
{
    for (int k = 0; k < 2; k++) {
        const map_node *above = &plan->node[argument[k]], *product = &plan->node[argument[1 - k]];
        int x = above->argument[0], q = above->argument[1], g = above->argument[2];
        if (product->operation != PONS_MAP_MUL || !selects_greater(above, false))
            continue;
        for (int m = 0; m < 2; m++) {
            const map_node *below = &plan->node[product->argument[1 - m]];
            if (selects_greater(below, true) && below->argument[0] == x && below->argument[1] == q
                && below->argument[3] == g)
                return node_new(plan, (map_node){ .operation = MAP_NODE_LEAKY_RELU_GRADIENT,
                    .argument_count = 4, .argument = { x, q, g, product->argument[m] } });
        }
    }
    return -1;
}

static int operation_node(map_plan *plan, int value, int channel)
{
    const pons_value *v = &plan->map->value[value];
    map_node node = { .operation = v->operation, .argument_count = v->argument_count,
                      .value = value, .channel = channel };

    for (int i = 0; i < v->argument_count; i++)
        node.argument[i] = map_node_of(plan, v->argument[i], channel);
    if (v->operation == PONS_MAP_SELECT) {
        const map_node *condition = &plan->node[node.argument[0]];
        if (map_comparison(condition->operation))
            return node_select(plan, condition->operation, condition->argument[0],
                               condition->argument[1], node.argument[1], node.argument[2]);
        return node_select(plan, PONS_MAP_NOT_EQUAL, node.argument[0], node_constant(plan, 0),
                           node.argument[1], node.argument[2]);
    }
    if (v->operation == PONS_MAP_ADD && node.argument[0] >= 0 && node.argument[1] >= 0) {
        int gradient = leaky_relu_gradient_node(plan, node.argument);
        if (gradient >= 0)
            return gradient;
    }
    return node_new(plan, node);
}

/* A reduction over the channels, from the first to the last. */
static int channel_node(map_plan *plan, int value)
{
    static const int operations[] = { PONS_MAP_ADD, MAP_NODE_MAX_NAN, MAP_NODE_MIN_NAN };
    const pons_value *v = &plan->map->value[value];
    int best = map_node_of(plan, v->argument[0], 0), index;

    if (v->operation != PONS_VALUE_CHANNEL_ARG_MAX) {
        for (int r = 1; r < plan->rows && best >= 0; r++)
            best = node_two(plan, operations[v->operation - PONS_VALUE_CHANNEL_SUM], best,
                            map_node_of(plan, v->argument[0], r));
        return best;
    }
    index = node_constant(plan, 0);
    for (int r = 1; r < plan->rows && best >= 0 && index >= 0; r++) {
        int x = map_node_of(plan, v->argument[0], r), number = node_constant(plan, (float)r);
        index = node_select(plan, PONS_MAP_GREATER, x, best, number, index);
        best = node_select(plan, PONS_MAP_GREATER, x, best, x, best);
    }
    return index;
}

/* Number of distinct channels of a value. */
static int copies_of(const map_plan *plan, int value)
{
    const pons_value *v = &plan->map->value[value];
    int copies = 1;

    if (plan->rows == 1 || v->operation == PONS_VALUE_CONSTANT
        || (v->operation >= PONS_VALUE_CHANNEL_SUM && v->operation < PONS_VALUE_COUNT))
        return 1;
    if (v->operation == PONS_VALUE_LOAD)
        return plan->load[v->operand].rows;
    if (v->operation >= PONS_MAP_OPERATION_COUNT)
        return v->per_point ? 1 : plan->rows;
    for (int i = 0; i < v->argument_count; i++)
        copies = plan->copies[v->argument[i]] > copies ? plan->copies[v->argument[i]] : copies;
    return copies;
}

/* True if the iota depends on the channel alone. */
static bool iota_is_channel(const map_plan *plan, const pons_value *v)
{
    int64_t divisor = v->divisor > 0 ? v->divisor : 1;

    return v->modulus > 0 && divisor <= plan->rows && v->modulus <= plan->rows
        && plan->rows % (divisor * v->modulus) == 0;
}

static int channel_copy(map_plan *plan, int value, int channel)
{
    const pons_value *v = &plan->map->value[value];
    map_node node = { .operation = v->operation, .value = value, .channel = channel };

    if (v->operation < PONS_MAP_OPERATION_COUNT)
        return operation_node(plan, value, channel);
    if (v->operation == PONS_VALUE_CONSTANT)
        return node_constant(plan, (float)v->number);
    if (v->operation == PONS_VALUE_IOTA && iota_is_channel(plan, v))
        return node_constant(plan, (float)(channel / (v->divisor > 0 ? v->divisor : 1)
                                           % v->modulus));
    return node_new(plan, node);
}

bool map_nodes_make(map_plan *plan)
{
    const pons_map *m = plan->map;
    size_t room = (size_t)m->value_count * (size_t)plan->rows;

    plan->node_of = map_allocate(plan, room, sizeof(int));
    plan->copies = map_allocate(plan, (size_t)m->value_count, sizeof(int));
    if (plan->node_of == NULL || plan->copies == NULL)
        return false;
    for (int v = 0; v < m->value_count; v++) {
        const pons_value *x = &m->value[v];
        int *node = &plan->node_of[v * plan->rows];
        plan->copies[v] = copies_of(plan, v);
        for (int r = 0; r < plan->copies[v]; r++) {
            node[r] = x->operation == PONS_MAP_STOP_GRADIENT
                    ? map_node_of(plan, x->argument[0], r)
                    : x->operation >= PONS_VALUE_CHANNEL_SUM ? channel_node(plan, v)
                    : channel_copy(plan, v, r);
            if (node[r] < 0)
                return false;
        }
    }
    return true;
}
