/*
 * trainer_open.c - cases, network and loader of a training, from nothing or from a checkpoint.
 */
#include "train/trainer_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/group/group.h"
#include "data/check/dataset_check.h"
#include "evaluate/validation_loss.h"
#include "experiment/agreement.h"
#include "experiment/data_settings.h"
#include "experiment/processes.h"
#include "graph/program/explain.h"
#include "infer/classifier.h"
#include "replica/device_cases.h"

static void note_reading(void *context)
{
    trainer_report_activity(context, "data");
}

/* A validation of differently oriented images does not measure the training. */
static void warn_validation(const experiment *e, const case_geometry *training,
                            const case_geometry *validation)
{
    if (case_geometry_is_turned(training, validation))
        log_warning(e->log, "images for validation have orientation %s, those for training have "
                    "%s; step 'orient' in [preprocess] turns them alike",
                    case_geometry_orientations(e->memory, validation),
                    case_geometry_orientations(e->memory, training));
}

/* Padding beyond all cases costs time and memory, and the network learns nothing from it. */
static void warn_large_patch(const experiment *e, const case_geometry *g)
{
    double inside = 1;

    if (pipeline_cropping_step(e->augment) != NULL)
        return;
    for (int a = 0; a < 3; a++)
        inside *= fmin(1, (double)g->largest[a] / e->patch[a]);
    if (inside < 0.5)
        log_warning(e->log, "at least %.0f %% of each patch is padding: [patch] extent is %d x %d "
                    "x %d voxels, the cases have at most %lld x %lld x %lld", 100 * (1 - inside),
                    e->patch[0], e->patch[1], e->patch[2], (long long)g->largest[0],
                    (long long)g->largest[1], (long long)g->largest[2]);
}

/* Store the geometry of the training images, which predictions are compared with. */
static pons_status note_geometry(trainer *t, pons_error *err)
{
    experiment *e = t->experiment;
    const case_geometry *g = cache_geometry(t->cache);

    if (pipeline_moves_alike(e->preprocess))
        warn_validation(e, g, cache_validation_geometry(t->cache));
    warn_large_patch(e, g);
    if (case_geometry_orientation_count(g) > 1)
        log_warning(e->log, "images of different orientations are trained on together: %s; step "
                    "'orient' in [preprocess] turns them alike",
                    case_geometry_orientations(e->memory, g));
    if (case_geometry_spacing_varies(g) && !dataset_spacing_is_fixed(e->preprocess)
        && !dataset_resizes_whole(e->data->target, e->preprocess))
        log_warning(e->log, "images of different spacings are trained on together: %s mm; %s",
                    case_geometry_spacings(e->memory, g), dataset_spacing_remedy(e->preprocess));
    e->geometry = case_geometry_text(e->memory, g);
    return e->geometry != NULL ? PONS_OK : pons_fail(err, PONS_DEVICE, "out of memory");
}

/* The epoch with which the run begins or goes on, on all processes. */
static pons_status find_first_epoch(const trainer *t, int64_t *epoch, pons_error *err)
{
    int64_t step = t->settings->resume != NULL ? t->settings->saved->step : 0;

    if (t->experiment->group != NULL
        && group_broadcast(t->experiment->group, &step, sizeof step, 0, err) != PONS_OK)
        return err->status;
    *epoch = trainer_epochs(t, step);
    return PONS_OK;
}

/* The micro-batches of the processes of this machine, which are ranks in a row. */
static void find_lanes(const experiment *e, cache_settings *out)
{
    bool joined = e->group != NULL;
    int local = joined ? e->processes->place.local_size : 1;
    int before = joined ? e->processes->place.local_rank : 0;

    out->lane = (e->first - before * e->device_count) * e->accumulate;
    out->lane_count = local * e->device_count * e->accumulate;
}

/* The network classifies whole images, so an image of another extent ends the run at its start. */
static pons_status check_validation_image(void *context, int rank, const pons_volume *image,
                                          pons_error *err)
{
    const trainer *t = context;
    const data_case *c = &t->experiment->data->cases[rank];

    return classifier_check(t->experiment, c->id, c->image[0], image, err);
}

static pons_status read_cases(trainer *t, pons_error *err)
{
    experiment *e = t->experiment;
    int count = t->training_count + t->validation_count;
    int *ranks = arena_alloc(e->memory, (size_t)count * sizeof *ranks + 1);
    cache_settings settings;
    cache_peers peers;

    cache_settings_fill(&e->sections, &settings);
    settings.window = t->epoch;
    find_lanes(e, &settings);
    if (settings.mode == CACHE_SMART && find_first_epoch(t, &settings.epoch, err) != PONS_OK)
        return err->status;
    processes_cache_peers(e->group, &peers);
    if (e->sections.data.loader_threads == OPTION_AUTO
        && settings.threads > experiment_processors(e))
        settings.threads = experiment_processors(e);
    settings.peers = &peers;
    settings.keep = t->settings->keep;
    settings.progress = note_reading;
    settings.check = e->task.whole ? check_validation_image : NULL;
    settings.context = t;
    memcpy(ranks, e->data->training, (size_t)t->training_count * sizeof *ranks);
    memcpy(ranks + t->training_count, e->data->validation,
           (size_t)t->validation_count * sizeof *ranks);
    trainer_report_activity(t, "data");
    if (cache_open(e->data, e->preprocess, count, ranks, &settings, e->log, &t->cache, err)
            == PONS_OK
        && agreement_on_cases(e->group, e->data, t->cache, count, ranks, err) == PONS_OK
        && note_geometry(t, err) == PONS_OK)
        case_list_make(e->memory, e->data, t->cache, &e->cases, err);
    trainer_report_activity(t, "start"); /* to prepare a network takes as long as it takes */
    return err->status;
}

/* The network is built before cases are read: a device may compile its kernels meanwhile. */
static pons_status build_network(trainer *t, pons_error *err)
{
    unsigned programs = REPLICAS_TRAINING | (t->validation_count > 0 ? REPLICAS_EVALUATION : 0)
                        | (trainer_has_validation_loss(t) ? REPLICAS_LOSS : 0);

    if (replicas_open(t->experiment, programs, &t->replicas, err) != PONS_OK)
        return err->status;
    t->storage = t->replicas.item[0].storage;
    if (t->experiment->op == NULL)
        experiment_note_ops(t->experiment, t->replicas.item[0].training);
    return PONS_OK;
}

/* Build the network for patches of the host if the devices have no room for the cases. */
static pons_status place_cases(trainer *t, pons_error *err)
{
    bool moved;

    if (device_cases_choose(&t->replicas, t->experiment, t->cache, t->training_count, &moved, err)
            != PONS_OK || !moved)
        return err->status;
    replicas_close(&t->replicas);
    return build_network(t, err);
}

/* Patches of the training, from the step to go on with, and of the validation. */
static pons_status open_loaders(trainer *t, pons_error *err)
{
    if (replicas_open_loaders(&t->replicas, t->cache, &t->epoch, t->state.step, err) != PONS_OK
        || !trainer_has_validation_loss(t))
        return err->status;
    return validation_loss_open(&t->replicas, t->cache, t->validation_count,
                                t->experiment->data->validation, err);
}

/* Weights and state, the same in all replicas. */
static pons_status load_weights(trainer *t, pons_error *err)
{
    if (trainer_load(t, err) != PONS_OK || trainer_broadcast(t, err) != PONS_OK)
        return err->status;
    replicas_copy_first(&t->replicas);
    return PONS_OK;
}

static void log_network(const trainer *t)
{
    const experiment *e = t->experiment;
    const program *training = t->replicas.item[0].training;
    program_facts facts;
    char replicas[64] = "", joint[PONS_NAME_SIZE + 16] = "";

    program_describe(training, &facts);
    dataset_log(e->data, e->log);
    if (e->group == NULL && e->comm != NULL)
        snprintf(joint, sizeof joint, ", joined by %s", e->comm->descriptor->name);
    log_line(e->log, "mode %s: %s%s", experiment_mode(e),
             e->sections.distribute.mode == MODE_AUTO ? experiment_mode_reason(e)
                                                      : "as the file says", joint);
    if (e->chosen != NULL)
        log_line(e->log, "devices %s: %s", e->chosen, experiment_devices_reason(e));
    const char *epoch = experiment_epoch_text(e, &t->epoch);
    if (epoch != NULL)
        log_line(e->log, "%s", epoch);
    if (e->replicas > 1)
        snprintf(replicas, sizeof replicas, "%d replicas of ", e->replicas);
    log_line(e->log, "%d case%s to train on, %d to validate; %lld parameters, %s, %s%d "
             "thread%s (%s)", t->training_count, t->training_count == 1 ? "" : "s",
             t->validation_count, (long long)facts.parameter_count, precision_name(e->precision),
             replicas, e->device.facts.threads, e->device.facts.threads == 1 ? "" : "s",
             e->device.facts.name);
    for (int i = 0; i < facts.untrained_count; i++)
        log_line(e->log, "parameter '%s' has no path from the loss and is not trained",
                 program_untrained(training, i));
}

/* A schedule such as poly reaches its last rate at the last step, so a longer run changes it. */
static void log_resumption(const trainer *t)
{
    int64_t before = t->settings->saved->total;

    log_line(t->experiment->log, "going on after step %lld, from '%s'", (long long)t->state.step,
             t->settings->resume);
    if (before > 0 && before != t->total)
        log_line(t->experiment->log, "the schedule ends at step %lld, was %lld",
                 (long long)t->total, (long long)before);
}

pons_status trainer_open(trainer *t, pons_error *err)
{
    trainer_plan_counts(t);
    if (t->experiment->sections.train.early_stop > 0 && t->validation_count == 0)
        return pons_fail(err, PONS_CONFIG, "[train] early_stop is %lld, but no case is validated\n"
                         "hint: --set train.early_stop=0, or cases by [data] validation",
                         (long long)t->experiment->sections.train.early_stop);
    if (t->training_count == 0)
        return pons_fail(err, PONS_DATA, "no case is left to train on");
    t->summaries = calloc((size_t)t->experiment->class_count + 1, sizeof *t->summaries);
    t->devices = calloc((size_t)t->experiment->device_count, sizeof *t->devices);
    if (t->summaries == NULL || t->devices == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (build_network(t, err) != PONS_OK || read_cases(t, err) != PONS_OK
        || place_cases(t, err) != PONS_OK || trainer_open_profile(t, err) != PONS_OK
        || trainer_open_metrics(t, err) != PONS_OK
        || load_weights(t, err) != PONS_OK || trainer_open_saving(t, err) != PONS_OK
        || open_loaders(t, err) != PONS_OK
        || t->settings->observer.begin(t->settings->observer.context, err) != PONS_OK)
        return err->status;
    t->state.total = t->total;
    log_network(t);
    if (t->settings->resume != NULL)
        log_resumption(t);
    return PONS_OK;
}

void trainer_close(trainer *t, const pons_error *failure)
{
    trainer_close_saving(t);
    trainer_close_profile(t);
    if (t->watchdog != NULL)
        watchdog_announce_exit_alone(t->watchdog, failure);
    replicas_close(&t->replicas);
    if (t->cache != NULL)
        cache_close(t->cache);
    free(t->summaries);
    free(t->devices);
    trainer_close_metrics(t->metrics);
}
