/*
 * loss_silent_failure - a loss for tests that breaks one rule of loss.h without an error message,
 * ends the process or does not return. With PONS_TEST_CRASH in the environment it crashes while it
 * is loaded. Built as optimizer_silent_failure it is an optimizer, as model_silent_failure a model.
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

typedef struct loss_silent_failure {
    int fault;
} loss_silent_failure;
typedef loss_silent_failure optimizer_silent_failure, model_silent_failure;

static const pons_option options[] = {
    PONS_CHOICE(loss_silent_failure, fault, "none", faults, "What is wrong with it."),
    PONS_OPTIONS_END
};

static void leave_badly(void) { _Exit(9); }

/* Crash while the file is loaded, as a damaged file may. */
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
    int fault = ((const loss_silent_failure *)config)->fault;

    if (fault != NOTHING)
        pons_assign(g, p->value, pons_sub(g, p->value, pons_mul(g, p->lr, p->gradient)));
    return answer(fault, g, err);
}

static const pons_slot slots[] = { PONS_SLOTS_END };

static const pons_optimizer_operations operations = { .slots = slots, .update = update };

PONS_OPTIMIZER(optimizer_silent_failure, "1.0", "an optimizer that breaks rules", options,
               operations);

#elif defined MODEL

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    int fault = ((const loss_silent_failure *)config)->fault;

    outputs->count = 1;
    outputs->item[0] = fault == NOTHING ? NULL : inputs->item[0].node;
    return answer(fault, g, err);
}

static const pons_model_operations operations = { .build = build };

PONS_MODEL(model_silent_failure, "1.0", "a model that breaks rules", options, operations);

#else

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    int fault = ((const loss_silent_failure *)config)->fault;

    if (fault != NOTHING)
        *value = fault == SHAPE ? pons_square(g, logits) : pons_mean_all(g, pons_square(g, logits));
    return answer(fault, g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(loss_silent_failure, "1.0", "a loss that breaks rules", options, operations);

#endif
