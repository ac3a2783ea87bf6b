/*
 * gradients.c - the backward pass of a training program, and the nodes that must be in memory.
 *
 * Gradients, contributions to states and the loss lie side by side in an accumulation slot, so each
 * needs a tensor of its own. One that shares its tensor (with a leaf, an output, another gradient)
 * is copied by an additional node.
 */
#include <string.h>

#include "base/arena.h"
#include "graph/ir/build.h"
#include "graph/ir/gradient.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "graph/program/program_internal.h"

/*
 * The value to differentiate: in fp16 a multiple of the loss, so that small gradients do not
 * underflow (R9).
 */
static pons_node *scaled_loss(program *p)
{
    pons_node *value;

    if (p->settings.precision != PRECISION_FP16)
        return p->loss;
    p->graph->scope = SCOPE_LOSS;
    p->gradients.loss_scale = node_scalar(p->graph, "scale");
    value = pons_mul(p->graph, p->loss,
                     pons_reshape(p->graph, p->gradients.loss_scale, p->loss->shape));
    p->graph->scope = SCOPE_CORE;
    return value;
}

/*
 * Add the gradients of all parameters. A parameter without a path from the loss is untrained. The
 * list of untrained parameters has those that are not left_out.
 */
pons_status gradients_differentiate(program *p, pons_error *err)
{
    pons_graph *g = p->graph;
    program_gradients *out = &p->gradients;
    size_t count = (size_t)g->parameter_count;
    pons_node **of = arena_alloc(p->arena, (count + 1) * sizeof *of);
    pons_node **gradient = arena_alloc(p->arena, (count + 1) * sizeof *gradient);

    if (shape_count(p->loss->shape) != 1)
        return pons_fail(err, PONS_PLUGIN, "the loss has %lld elements, expected 1",
                         (long long)shape_count(p->loss->shape));
    out->gradient = gradient;
    out->parameter = arena_alloc(p->arena, (count + 1) * sizeof *out->parameter);
    out->untrained = arena_alloc(p->arena, (count + 1) * sizeof *out->untrained);
    for (const leaf *l = g->parameter; l != NULL; l = l->next)
        of[l->index] = l->node;
    if (graph_gradient(g, scaled_loss(p), (int)count, of, gradient, err) != PONS_OK)
        return PONS_PLUGIN;
    for (int i = 0; i < (int)count; i++) {
        if (gradient[i] == NULL) {
            if (!of[i]->leaf->left_out)
                out->untrained[out->untrained_count++] = of[i]->name;
            continue;
        }
        out->gradient[out->count] = gradient[i];
        out->parameter[out->count++] = storage_find(p->storage, STORAGE_PARAMETER, of[i]->name);
    }
    if (out->count == 0)
        return pons_fail(err, PONS_PLUGIN, "the loss depends on no parameter");
    return PONS_OK;
}

static bool is_leaf(const pons_node *x)
{
    return x->kind >= NODE_INPUT && x->kind <= NODE_CONSTANT;
}

/* A node that copies 'x' into a tensor of its own; simplify has run before. */
static pons_node *copy_node(pons_node *x)
{
    pons_node *part[2] = { x, pons_scalar(x->graph, 1) };
    pons_node *copy = node_new(x->graph, PONS_MAP_MUL, PONS_F32, x->shape, 2, part, NULL);

    copy->backward = x->backward;
    return copy;
}

/* 'x', or a copy of it, as a root whose tensor no other root has. */
static pons_node *claim_root(program *p, pons_node *x, bool *claimed, int claimed_count)
{
    pons_node *owner = node_owner(x);
    bool own = owner->number < claimed_count && !claimed[owner->number] && !is_leaf(owner);

    if (!own)
        return copy_node(x);
    claimed[owner->number] = true;
    return x;
}

pons_status gradients_list_roots(program *p, pons_error *err)
{
    pons_graph *g = p->graph;
    program_gradients *out = &p->gradients;
    int nodes = g->node_count, n = 0, roots;
    bool *claimed = arena_alloc(p->arena, (size_t)nodes * sizeof *claimed);

    out->state_count = p->training ? g->merge_count : 0;
    roots = p->output_count + out->count + out->state_count + 1;
    out->root = arena_alloc(p->arena, (size_t)roots * sizeof *out->root);
    g->section = SECTION_MICRO;
    g->scope = SCOPE_CORE;
    g->origin = NULL;
    for (int i = 0; i < p->output_count; i++) {
        out->root[n++] = p->output[i];
        claimed[node_owner(p->output[i])->number] = true;
    }
    if (p->training)
        out->root[n++] = p->loss = claim_root(p, p->loss, claimed, nodes);
    for (int i = 0; i < out->count; i++)
        out->root[n++] = out->gradient[i] = claim_root(p, out->gradient[i], claimed, nodes);
    out->contribution = arena_alloc(p->arena, (size_t)(out->state_count + 1)
                                              * sizeof *out->contribution);
    out->state = arena_alloc(p->arena, (size_t)(out->state_count + 1) * sizeof *out->state);
    for (int i = 0; i < out->state_count; i++) {
        out->state[i] = storage_find(p->storage, STORAGE_STATE, g->merge[i].state->name);
        out->root[n++] = out->contribution[i] = claim_root(p, g->merge[i].value, claimed, nodes);
    }
    out->root_count = n;
    return PONS_OK;
}
