/*
 * target.c - accessors for models and losses: inputs by name, divisors, the target as one-hot
 * channels, probabilities, sums over the batch.
 */
#include <string.h>

#include <pons/loss.h>
#include <pons/model.h>

#include "graph/ir/ir_internal.h"

pons_node *pons_input_named(pons_graph *g, const pons_inputs *inputs, const char *name)
{
    for (int i = 0; i < inputs->count; i++)
        if (strcmp(inputs->item[i].name, name) == 0)
            return inputs->item[i].node;
    return pons_graph_fail(g, PONS_CONFIG, "the task has no input '%s', which the model reads",
                           name);
}

pons_status pons_strides_divisor(const pons_triples *strides, int divisor[3], pons_error *err)
{
    int product[3] = { 1, 1, 1 };

    for (int axis = 0; axis < 3; axis++)
        for (int i = 0; i < strides->count; i++)
            if (__builtin_mul_overflow(product[axis], strides->item[i][axis], &product[axis]))
                return pons_fail(err, PONS_CONFIG, "the strides along %c have a product beyond %d",
                                 "ijk"[axis], INT32_MAX);
    memcpy(divisor, product, sizeof product);
    return PONS_OK;
}

static pons_node *one_hot(pons_graph *g, const pons_task *task, pons_node *t)
{
    if (!inputs_given(g, NODE_INPUT, 1, &t))
        return g->failed;
    if (task->target != PONS_TARGET_LABELS || task->classes == 1)
        return pons_cast(g, t, PONS_F32);
    return pons_equal(g, t, pons_iota(g, t->shape.rank, t->shape.rank - 1, task->classes));
}

pons_node *pons_target_one_hot(pons_graph *g, const pons_task *task, const pons_target *target)
{
    pons_node *own = one_hot(g, task, target->node), *other;

    if (target->other == NULL)
        return own;
    other = one_hot(g, task, target->other);
    return pons_add(g, other, pons_mul(g, target->share, pons_sub(g, own, other)));
}

pons_node *pons_probabilities(pons_graph *g, pons_node *logits, const pons_target *target)
{
    if (node_failed(logits) || target->activation == PONS_ACTIVATION_NONE)
        return logits;
    if (target->activation == PONS_ACTIVATION_SIGMOID)
        return pons_sigmoid(g, logits);
    return pons_softmax(g, logits, logits->shape.rank - 1);
}

pons_node *pons_batch_sum(pons_graph *g, pons_node *x, unsigned axes)
{
    pons_node *sum = pons_sum(g, x, axes);

    return !node_failed(sum) && g->join_loss ? pons_all_reduce(g, sum) : sum;
}
