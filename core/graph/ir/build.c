/*
 * build.c - the graph: its node array, its names and its first failure.
 *
 * Nodes, names and lists live in one arena, which is freed with the graph. Builders (map.c,
 * reduce.c, ...) give nodes their meaning.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/quote.h"
#include "graph/ir/ir_internal.h"
#include "graph/ir/op.h"

pons_graph *graph_new(bool training)
{
    arena *memory = arena_new();
    pons_graph *g = memory != NULL ? arena_alloc(memory, sizeof *g) : NULL;

    if (g == NULL)
        return NULL;
    *g = (pons_graph){ .arena = memory, .training = training, .section = SECTION_MICRO };
    g->op_end = &g->op;
    g->parameter_end = &g->parameter;
    g->state_end = &g->state;
    g->failed = arena_alloc(memory, sizeof *g->failed);
    *g->failed = (pons_node){ .graph = g, .number = -1, .kind = NODE_FAILED, .type = PONS_F32 };
    return g;
}

void graph_free(pons_graph *g)
{
    if (g == NULL)
        return;
    graph_ops_free(g);
    arena_free(g->arena);
}

/* The list with room for one more item of 'size' bytes; it may move inside the graph's arena. */
static void *list_room(pons_graph *g, void *list, int count, int *room, size_t size)
{
    void *larger;

    if (count < *room)
        return list;
    *room = *room > 0 ? 2 * *room : 64;
    larger = arena_alloc(g->arena, size * (size_t)*room);
    if (count > 0)
        memcpy(larger, list, size * (size_t)count);
    return larger;
}

const node_origin *node_origin_new(pons_graph *g, range_kind kind, const char *name)
{
    node_origin *origin = arena_alloc(g->arena, sizeof *origin);

    *origin = (node_origin){ kind, name };
    return origin;
}

pons_node *node_new(pons_graph *g, int kind, pons_type type, pons_shape shape, int input_count,
                    pons_node *const *input, const node_attribute *attribute)
{
    pons_node *x = arena_alloc(g->arena, sizeof *x);

    *x = (pons_node){ .graph = g, .number = g->node_count, .kind = kind, .type = type,
                      .shape = shape, .input_count = input_count, .section = g->section,
                      .scope = g->scope, .origin = g->origin };
    if (input_count > 0) {
        x->input = arena_alloc(g->arena, sizeof *x->input * (size_t)input_count);
        memcpy(x->input, input, sizeof *x->input * (size_t)input_count);
    }
    if (attribute != NULL)
        x->attribute = *attribute;
    g->node = list_room(g, g->node, g->node_count, &g->node_room, sizeof *g->node);
    g->node[g->node_count++] = x;
    return x;
}

/* ---- failures -------------------------------------------------------------------------------- */

pons_status pons_graph_status(const pons_graph *g, pons_error *err)
{
    if (g->error.status == PONS_OK)
        return PONS_OK;
    return pons_fail(err, g->error.status, "%s", g->error.text);
}

pons_node *pons_graph_fail(pons_graph *g, pons_status status, const char *format, ...)
{
    va_list list;
    char text[sizeof g->error.text];

    va_start(list, format);
    quote_format(text, sizeof text, format, list);
    va_end(list);
    pons_fail(&g->error, status, "%s", text);
    return g->failed;
}

pons_node *node_refuse(pons_graph *g, int kind, const char *format, ...)
{
    va_list list;
    char text[1024];

    va_start(list, format);
    quote_format(text, sizeof text, format, list);
    va_end(list);
    return pons_graph_fail(g, PONS_PLUGIN, "'%s': %s", node_kinds[kind].name, text);
}

bool inputs_given(pons_graph *g, int kind, int count, pons_node *const *input)
{
    for (int i = 0; i < count; i++) {
        if (input[i] == NULL)
            node_refuse(g, kind, "operand %d is NULL", i + 1);
        else if (input[i]->graph != g)
            node_refuse(g, kind, "operand %d belongs to another graph", i + 1);
        else if (input[i]->kind != NODE_FAILED)
            continue;
        return false;
    }
    return true;
}

/* ---- questions ------------------------------------------------------------------------------- */

bool pons_graph_training(const pons_graph *g)
{
    return g->training;
}

pons_shape pons_shape_of(const pons_node *x)
{
    return x != NULL ? x->shape : (pons_shape){ .rank = 0 };
}

pons_type pons_type_of(const pons_node *x)
{
    return x != NULL ? x->type : PONS_F32;
}

const char *pons_name(pons_graph *g, const char *format, ...)
{
    va_list list;
    const char *name;

    va_start(list, format);
    name = arena_vformat(g->arena, format, list);
    va_end(list);
    return name;
}

bool node_constant(const pons_node *x, double *value)
{
    while (x->kind == NODE_BROADCAST || x->kind == NODE_RESHAPE)
        x = x->input[0];
    if (x->kind != NODE_CONSTANT)
        return false;
    *value = x->attribute.number;
    return true;
}

/* ---- effects --------------------------------------------------------------------------------- */

void pons_state_merge(pons_graph *g, pons_node *state, pons_node *value, double rate)
{
    pons_node *both[] = { state, value };
    char found[160], expected[160];

    if (!inputs_given(g, NODE_STATE, 2, both))
        return;
    if (state->kind != NODE_STATE) {
        node_refuse(g, NODE_STATE, "a '%s' cannot be merged into", node_kinds[state->kind].name);
        return;
    }
    if (!shape_equal(state->shape, value->shape)) {
        node_refuse(g, NODE_STATE, "contribution to '%s' has shape %s, expected %s", state->name,
                    shape_text(value->shape, found, sizeof found),
                    shape_text(state->shape, expected, sizeof expected));
        return;
    }
    for (int i = 0; i < g->merge_count; i++) {
        if (g->merge[i].state == state) {
            node_refuse(g, NODE_STATE, "'%s' is contributed to twice", state->name);
            return;
        }
    }
    g->merge = list_room(g, g->merge, g->merge_count, &g->merge_room, sizeof *g->merge);
    g->merge[g->merge_count++] = (state_merge){ state, value, rate };
}

void pons_assign(pons_graph *g, pons_node *target, pons_node *value)
{
    pons_node *both[] = { target, value };
    char found[160], expected[160];
    pons_shape shape;

    if (!inputs_given(g, NODE_SLOT, 2, both))
        return;
    if (target->kind != NODE_PARAMETER && target->kind != NODE_STATE && target->kind != NODE_SLOT) {
        pons_graph_fail(g, PONS_PLUGIN,
                        "cannot assign to a '%s', expected a parameter, state or slot",
                        node_kinds[target->kind].name);
        return;
    }
    if (!shape_broadcast(target->shape, value->shape, &shape) ||
        !shape_equal(shape, target->shape)) {
        pons_graph_fail(g, PONS_PLUGIN, "cannot assign %s to '%s' of shape %s",
                        shape_text(value->shape, found, sizeof found),
                        target->name != NULL ? target->name : "slot",
                        shape_text(target->shape, expected, sizeof expected));
        return;
    }
    for (int i = 0; i < g->assign_count; i++) {
        if (g->assign[i].leaf == target) {
            pons_graph_fail(g, PONS_PLUGIN, "'%s' is assigned twice",
                            target->name != NULL ? target->name : "slot");
            return;
        }
    }
    value = node_repeat(g, value, target->shape);
    g->assign = list_room(g, g->assign, g->assign_count, &g->assign_room, sizeof *g->assign);
    g->assign[g->assign_count++] = (node_assign){ target, value };
}

bool graph_stream_add(pons_graph *g, uint64_t hash, const char *name)
{
    for (int i = 0; i < g->stream_count; i++) {
        if (g->stream[i].hash != hash)
            continue;
        if (strcmp(g->stream[i].name, name) == 0)
            pons_graph_fail(g, PONS_PLUGIN, "random stream '%s' is used twice", name);
        else
            pons_graph_fail(g, PONS_PLUGIN, "random streams '%s' and '%s' collide: rename one",
                            g->stream[i].name, name);
        return false;
    }
    g->stream = list_room(g, g->stream, g->stream_count, &g->stream_room, sizeof *g->stream);
    g->stream[g->stream_count].hash = hash;
    g->stream[g->stream_count++].name = name;
    return true;
}
