/*
 * loss.h - a loss plugin: logits and target in, one number out.
 *
 * 'build' is called once per output of the model with a target of the same extent, and returns
 * through 'value' a node with one element: the loss of this micro-batch.
 */
#ifndef CORE_PONS_LOSS_H
#define CORE_PONS_LOSS_H

#include <pons/model.h>

PONS_C_BEGIN

/* The function from logits to probabilities. AUTO: softmax for several classes, else sigmoid. */
typedef enum pons_activation {
    PONS_ACTIVATION_AUTO = 0,
    PONS_ACTIVATION_SOFTMAX,
    PONS_ACTIVATION_SIGMOID,
    PONS_ACTIVATION_NONE
} pons_activation;

typedef struct pons_target {
    pons_node *node;            /* u8 or f32, see pons_target_kind                                */
    pons_node *valid;           /* u8 [N, D, H, W, 1], 0: leave this voxel out; NULL: all count   */
    pons_activation activation; /* resolved: never AUTO                                           */
    /*
     * A second target of mixed samples: the target is share node + (1 - share) other, share f32
     * [N, 1, 1, 1, 1]. NULL: there is none. pons_target_one_hot mixes them.
     */
    pons_node *other, *share;
} pons_target;

typedef struct pons_loss_operations {
    pons_status (*check)(const void *config, pons_error *err); /* may be NULL; see plugin.h       */
    pons_status (*build)(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err);
} pons_loss_operations;

/* The target f32 [N, D, H, W, classes]: one-hot for labels, else itself; mixed with 'other'. */
pons_node *pons_target_one_hot(pons_graph *g, const pons_task *task, const pons_target *target);
/* The logits after the target's activation. */
pons_node *pons_probabilities(pons_graph *g, pons_node *logits, const pons_target *target);
/*
 * The sum of x over 'axes', the batch among them, where the loss is not the mean of one value per
 * case: a sum that is divided by another (Dice over the batch, a weighted mean), or that the loss
 * itself is. With [loss] sync = yes it is taken over the batches of all replicas, so that the loss
 * is that of one batch which holds them all, the same on each (R10). A mean over cases, which all
 * weigh the same, is a plain mean: the mean over replicas is taken anyway.
 */
pons_node *pons_batch_sum(pons_graph *g, pons_node *x, unsigned axes);

#define PONS_LOSS(NAME, VERSION, SUMMARY, OPTIONS, OPERATIONS)                                    \
    PONS_PLUGIN_DEFINE_(PONS_KIND_LOSS, pons_loss_operations, NAME, VERSION, SUMMARY,             \
                        OPERATIONS, OPTIONS)

PONS_C_END

#endif
