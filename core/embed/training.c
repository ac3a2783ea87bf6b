/*
 * training.c - pons/train.h: pons train without a command line.
 */
#include <pons/train.h>

#include "cli/train/command_train.h"
#include "config/sections.h"
#include "embed/embed_internal.h"

typedef struct training {
    const pons_training *given;
    embed_callbacks callbacks;
} training;

static void take_record(void *context, const pons_record *record)
{
    training *t = context;

    if (t->given->record == NULL)
        return;
    pthread_mutex_lock(&t->callbacks.lock);
    t->given->record(t->given->context, record);
    pthread_mutex_unlock(&t->callbacks.lock);
}

static bool stop_due(void *context)
{
    training *t = context;

    return embed_stop(&t->callbacks);
}

static pons_status train(void *context, pons_error *err)
{
    training *t = context;
    const pons_training *g = t->given;
    const train_flags flags = { .fresh = g->fresh, .resume = g->resume, .folds = OPTION_AUTO,
                                .fold = OPTION_AUTO };
    const train_host host = { take_record, stop_due, t };
    logger log = { .level = LOG_NORMAL, .line = embed_line, .context = &t->callbacks };
    const char *argument[] = { g->file };
    const invocation call = { .argument_count = 1, .argument = argument,
                              .set_count = g->set_count, .set = (const char **)g->set,
                              .log = &log }; /* 'set' is not written */

    return command_train_hosted(&call, &flags, &host, err);
}

static pons_status run_on_thread(training *t, pons_error *err)
{
    worker *thread = NULL;

    if (embed_open_thread(&thread, err) == PONS_OK)
        embed_run(thread, train, t, err);
    worker_close(thread);
    return err->status;
}

pons_status pons_train(const pons_training *given, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    pons_training own;
    training t = { .given = &own };

    if (embed_copy(&own, sizeof own, given, "pons_training", &problem) == PONS_OK) {
        embed_callbacks_open(&t.callbacks, own.stop, own.line, own.context);
        run_on_thread(&t, &problem);
        embed_callbacks_close(&t.callbacks);
    }
    return embed_return(&problem, err);
}
