/*
 * trainer_open.c - cases, network and loader of a training, from nothing or from a checkpoint.
 */
#include <config.h>

#include "train/trainer_parts.h"

#include <stdlib.h>
#include <string.h>

static pons_status open_cache(trainer *t, pons_error *err)
{
    experiment *e = t->experiment;
    int count = t->training_count + t->validation_count;
    int *ranks = arena_alloc(e->memory, (size_t)count * sizeof *ranks + 1);
    cache_settings settings;

    cache_settings_fill(&e->sections, &settings);
    memcpy(ranks, e->data->training, (size_t)t->training_count * sizeof *ranks);
    memcpy(ranks + t->training_count, e->data->validation,
           (size_t)t->validation_count * sizeof *ranks);
    return cache_open(e->data, e->preprocess, count, ranks, &settings, e->log, &t->cache, err);
}

static pons_status open_loader(trainer *t, pons_error *err)
{
    const experiment *e = t->experiment;
    loader_settings settings;

    loader_settings_fill(&e->sections, &settings);
    settings.micro_batches = settings.count = e->micro_batches;
    memcpy(settings.extent, e->patch, sizeof settings.extent);
    if (loader_open(t->cache, t->training_count, e->data->training,
                    e->augment != NULL && e->augment->count > 0 ? e->augment : NULL, &settings,
                    &t->loader, err) != PONS_OK)
        return err->status;
    return loader_seek(t->loader, t->state.step, err);
}

static pons_status build(trainer *t, pons_error *err)
{
    experiment *e = t->experiment;
    uint64_t seed = (uint64_t)e->sections.experiment.seed;

    if (storage_new(&e->device, &t->storage, err) != PONS_OK
        || network_build_training(e, t->storage, &t->training, err) != PONS_OK)
        return err->status;
    experiment_note_ops(e, t->training);
    if (t->validation_count > 0
        && network_build_evaluation(e, t->storage, &t->evaluation, err) != PONS_OK)
        return err->status;
    if (storage_initialise(t->storage, seed, err) != PONS_OK)
        return err->status;
    return trainer_load(t, err);
}

static void tell_network(const trainer *t)
{
    const experiment *e = t->experiment;
    program_facts facts;

    program_describe(t->training, &facts);
    log_line(e->log, "%d cases to train on, %d to validate; %lld parameters, %s, %d threads (%s)",
             t->training_count, t->validation_count, (long long)facts.parameter_count,
             precision_name(e->precision), e->device.facts.threads, e->device.facts.name);
    for (int i = 0; i < facts.untrained_count; i++)
        log_line(e->log, "parameter '%s' has no path from the loss and is not trained",
                 program_untrained(t->training, i));
}

pons_status trainer_open(trainer *t, pons_error *err)
{
    trainer_count(t);
    if (t->experiment->sections.train.early_stop > 0 && t->validation_count == 0)
        return pons_fail(err, PONS_CONFIG, "[train] early_stop is %lld, but no case is validated\n"
                         "hint: [data] validation, or early_stop = 0",
                         (long long)t->experiment->sections.train.early_stop);
    if (t->training_count == 0)
        return pons_fail(err, PONS_DATA, "no case is left to train on");
    t->summaries = calloc((size_t)t->experiment->class_count, sizeof *t->summaries);
    if (t->summaries == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (trainer_find_best(t, err) != PONS_OK || open_cache(t, err) != PONS_OK
        || build(t, err) != PONS_OK || open_loader(t, err) != PONS_OK
        || t->settings->observer.begin(t->settings->observer.context, err) != PONS_OK)
        return err->status;
    t->state.total = t->total;
    tell_network(t);
    if (t->settings->resume != NULL)
        log_line(t->experiment->log, "going on after step %lld, from '%s'",
                 (long long)t->state.step, t->settings->resume);
    return PONS_OK;
}

void trainer_close(trainer *t)
{
    if (t->loader != NULL)
        loader_close(t->loader);
    if (t->cache != NULL)
        cache_close(t->cache);
    program_free(t->evaluation);
    program_free(t->training);
    if (t->storage != NULL)
        storage_free(t->storage);
    free(t->summaries);
}
