/*
 * silent - a loss for tests that breaks one rule of loss.h without a word, ends the process or does
 * not return; with PONS_TEST_CRASH in the environment it cannot be loaded. Built as 'idle' it is an
 * optimizer, as 'blank' a model.
 */
#include <pons/loss.h>
#include <pons/model.h>
#include <pons/optimizer.h>

#include <stdlib.h>
#include <unistd.h>

enum { NONE, STATUS, CODE, NOTHING, SHAPE, CRASH, LEAVE, LEAVE_BADLY,
       STAY, LATE };

static const char *const faults[] = { "none", "status", "code", "nothing", "shape", "crash",
                                      "leave", "leave-badly", "stay", "late", NULL };

typedef struct silent {
    int fault;
} silent;
typedef silent idle, blank;

static const pons_option options[] = {
    PONS_CHOICE(silent, fault, none, faults, "What is wrong with it."),
    PONS_OPTIONS_END
};

static void leave_badly(void) { _Exit(9); }

/* As a damaged file may, while it is loaded. */
__attribute__((constructor)) static void crash_early(void)
{
    if (getenv("PONS_TEST_CRASH") != NULL)
        abort();
}

static pons_status answer(int fault, pons_graph *g, pons_error *err)
{
    if (fault == CRASH)
        abort();
    if (fault == LEAVE)
        exit(0);
    while (fault == STAY)
        pause();
    if (fault == LATE)
        sleep(2);
    if (fault == LEAVE_BADLY)
        atexit(leave_badly);
    return fault == STATUS ? PONS_PLUGIN : fault == CODE ? 99 : pons_graph_status(g, err);
}

#if defined OPTIMIZER

static pons_status update(pons_graph *g, const void *config, const pons_parameter *p,
                          pons_error *err)
{
    int fault = ((const silent *)config)->fault;

    if (fault != NOTHING)
        pons_assign(g, p->value, pons_sub(g, p->value, pons_mul(g, p->lr, p->gradient)));
    return answer(fault, g, err);
}

static const pons_slot slots[] = { PONS_SLOTS_END };

PONS_OPTIMIZER(idle, "1.0", "an optimizer that breaks rules", options, slots, update)

#elif defined MODEL

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    int fault = ((const silent *)config)->fault;

    outputs->count = 1;
    outputs->item[0] = fault == NOTHING ? NULL : inputs->item[0].node;
    return answer(fault, g, err);
}

PONS_MODEL(blank, "1.0", "a model that breaks rules", options, build, NULL)

#else

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    int fault = ((const silent *)config)->fault;

    if (fault != NOTHING)
        *value = fault == SHAPE ? pons_square(g, logits) : pons_mean_all(g, pons_square(g, logits));
    return answer(fault, g, err);
}

PONS_LOSS(silent, "1.0", "a loss that breaks rules", options, build)

#endif
