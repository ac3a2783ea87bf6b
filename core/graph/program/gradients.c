/*
 * gradients.c - the backward pass of a training program, and the nodes that must reach memory.
 *
 * Gradients, contributions to states and the loss land side by side in the fold buffer, so each
 * needs a tensor of its own: one that stands for something else (a leaf, an output, another
 * gradient) is copied by one more node.
 */
#include <string.h>

#include "base/arena.h"
#include "graph/ir/build.h"
#include "graph/ir/gradient.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "graph/passes/fuse/fuse.h"
#include "graph/program/program_internal.h"

/* What gradients are of: in fp16 a multiple of the loss, so that small ones are not lost (R9). */
static pons_node *scaled_loss(program *p)
{
    pons_node *value;

    if (p->settings.precision != PRECISION_FP16)
        return p->loss;
    p->graph->scope = SCOPE_LOSS;
    p->scale = node_scalar(p->graph, "scale");
    value = pons_mul(p->graph, p->loss, pons_reshape(p->graph, p->scale, p->loss->shape));
    p->graph->scope = SCOPE_CORE;
    return value;
}

/* Gradients of all parameters; those without a path from the loss are listed as untrained. */
pons_status program_differentiate(program *p, pons_error *err)
{
    pons_graph *g = p->graph;
    size_t count = (size_t)g->parameter_count;
    pons_node **of = arena_alloc(p->arena, (count + 1) * sizeof *of);
    pons_node **gradient = arena_alloc(p->arena, (count + 1) * sizeof *gradient);

    if (shape_count(p->loss->shape) != 1)
        return pons_fail(err, PONS_PLUGIN, "the loss has %lld elements, expected 1",
                         (long long)shape_count(p->loss->shape));
    p->gradient = gradient;
    p->trained = arena_alloc(p->arena, (count + 1) * sizeof *p->trained);
    p->untrained = arena_alloc(p->arena, (count + 1) * sizeof *p->untrained);
    for (const leaf *l = g->parameter; l != NULL; l = l->next)
        of[l->index] = l->node;
    if (graph_gradient(g, scaled_loss(p), (int)count, of, gradient, err) != PONS_OK)
        return PONS_PLUGIN;
    for (int i = 0; i < (int)count; i++) {
        if (gradient[i] == NULL) {
            p->untrained[p->untrained_count++] = of[i]->name;
            continue;
        }
        p->gradient[p->gradient_count] = gradient[i];
        p->trained[p->gradient_count++] = storage_find(p->storage, STORAGE_PARAMETER, of[i]->name);
    }
    if (p->gradient_count == 0)
        return pons_fail(err, PONS_PLUGIN, "the loss depends on no parameter");
    return PONS_OK;
}

static bool is_leaf(const pons_node *x)
{
    return x->kind >= NODE_INPUT && x->kind <= NODE_CONSTANT;
}

/* The same numbers in a tensor of their own; simplify has run. */
static pons_node *copy_node(pons_node *x)
{
    pons_node *part[2] = { x, pons_scalar(x->graph, 1) };
    pons_node *copy = node_new(x->graph, PONS_MAP_MUL, PONS_F32, x->shape, 2, part, NULL);

    copy->backward = x->backward;
    return copy;
}

/* 'x' as a root whose tensor nobody else has claimed. */
static pons_node *claim(program *p, pons_node *x, bool *claimed, int claimed_count)
{
    pons_node *owner = plan_owner(x);
    bool own = owner->number < claimed_count && !claimed[owner->number] && !is_leaf(owner);

    if (!own)
        return copy_node(x);
    claimed[owner->number] = true;
    return x;
}

pons_status program_list_roots(program *p, pons_error *err)
{
    pons_graph *g = p->graph;
    int nodes = g->node_count, n = 0;
    bool *claimed = arena_alloc(p->arena, (size_t)nodes * sizeof *claimed);

    p->merge_count = p->training ? g->merge_count : 0;
    p->root = arena_alloc(p->arena, (size_t)(p->output_count + p->gradient_count + p->merge_count
                                             + 1) * sizeof *p->root);
    g->section = SECTION_MICRO;
    g->scope = SCOPE_CORE;
    for (int i = 0; i < p->output_count; i++) {
        p->root[n++] = p->output[i];
        claimed[plan_owner(p->output[i])->number] = true;
    }
    if (p->training)
        p->root[n++] = p->loss = claim(p, p->loss, claimed, nodes);
    for (int i = 0; i < p->gradient_count; i++)
        p->root[n++] = p->gradient[i] = claim(p, p->gradient[i], claimed, nodes);
    p->contribution = arena_alloc(p->arena, (size_t)(p->merge_count + 1) * sizeof *p->contribution);
    p->merged = arena_alloc(p->arena, (size_t)(p->merge_count + 1) * sizeof *p->merged);
    for (int i = 0; i < p->merge_count; i++) {
        p->merged[i] = storage_find(p->storage, STORAGE_STATE, g->merge[i].state->name);
        p->root[n++] = p->contribution[i] = claim(p, g->merge[i].value, claimed, nodes);
    }
    p->root_count = n;
    return PONS_OK;
}
