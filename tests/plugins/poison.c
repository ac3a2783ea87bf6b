/*
 * poison.c - gradient descent whose update fails in one step, on all ranks or on one. [optimizer.]
 * what = weight writes infinity or NaN into all weights. slot writes it into the slots, from which
 * it reaches the weights one step later.
 */
#include <pons/optimizer.h>

#include <stdlib.h>

typedef struct poison {
    int64_t at, rank;
    int what, value;
} poison;

static const char *const whats[] = { "weight", "slot", NULL };
static const char *const values[] = { "inf", "nan", NULL };

static const pons_option options[] = {
    PONS_INTEGER(poison, at, "5", 1, 1000000, "The step."),
    PONS_INTEGER(poison, rank, "-1", -1, 1000, "Whose it is; -1: everybody's."),
    PONS_CHOICE(poison, what, "weight", whats, "What goes wrong."),
    PONS_CHOICE(poison, value, "inf", values, "What is written."),
    PONS_OPTIONS_END
};

static const pons_slot slots[] = { { "m", PONS_SLOT_ELEMENT }, PONS_SLOTS_END };

static pons_status update(pons_graph *g, const void *config, const pons_parameter *p,
                          pons_error *err)
{
    const poison *c = config;
    const char *rank = getenv("RANK");
    bool mine = c->rank < 0 || (rank != NULL && atoi(rank) == (int)c->rank);
    pons_node *now = pons_equal(g, p->step, pons_scalar(g, mine ? (double)c->at : -1));
    pons_node *bad = c->value == 0 ? pons_exp(g, pons_scale(g, p->step, 1e6))
                                   : pons_log(g, pons_neg(g, p->step));
    pons_node *m = pons_add(g, pons_scale(g, p->slot[0], 0.5), p->gradient);
    pons_node *next = pons_sub(g, p->value, pons_mul(g, p->lr, m));

    pons_assign(g, p->slot[0], c->what == 1 ? pons_select(g, now, bad, m) : m);
    pons_assign(g, p->value, c->what == 0 ? pons_select(g, now, bad, next) : next);
    return pons_graph_status(g, err);
}

static const pons_optimizer_operations operations = { .slots = slots, .update = update };

PONS_OPTIMIZER(poison, "1.0", "goes wrong in one step", options, operations);
