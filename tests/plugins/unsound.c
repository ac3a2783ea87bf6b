/*
 * unsound.c - a loss with a NaN value, or with a non-finite gradient alone, on all ranks or on one.
 */
#include <pons/loss.h>

#include <stdlib.h>

typedef struct unsound {
    int64_t rank;
    int what;
} unsound;

static const char *const whats[] = { "value", "gradient", "both", NULL };

static const pons_option options[] = {
    PONS_INTEGER(unsound, rank, "-1", -1, 1000, "Whose it is; -1: everybody's."),
    PONS_CHOICE(unsound, what, "value", whats, "What is not a number."),
    PONS_OPTIONS_END
};

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const unsound *c = config;
    const char *rank = getenv("RANK");
    bool mine = c->rank < 0 || (rank != NULL && atoi(rank) == (int)c->rank);
    pons_node *sum = pons_sum_all(g, pons_square(g, logits));
    pons_node *nan = pons_log(g, mine ? pons_add_scalar(g, pons_neg(g, sum), -1) : sum);
    pons_node *zero = pons_sub(g, sum, pons_stop_gradient(g, sum)); /* value 0, slope 1 */

    (void)task, (void)target;
    *value = sum;
    if (c->what != 1) /* a value without a gradient */
        *value = pons_add(g, *value, pons_stop_gradient(g, nan));
    if (c->what != 0) /* the root of 0 is 0, its slope infinite */
        *value = pons_add(g, *value, pons_sqrt(g, mine ? zero : pons_add_scalar(g, zero, 1)));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(unsound, "1.0", "not a number", options, operations);
