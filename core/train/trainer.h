/*
 * trainer.h - the training of an experiment: steps, validations, checkpoints, the way it ends.
 */
#ifndef CORE_TRAIN_TRAINER_H
#define CORE_TRAIN_TRAINER_H

#include "experiment/experiment.h"
#include "train/signals.h"
#include "checkpoint/saved_state.h"
#include "evaluate/validation.h"
#include "metric/class_ranking.h"
#include "metric/metric.h"

#include <pons/device.h>
#include <pons/sink.h>

/* The sensors of a replica's device, read during a step. */
typedef struct device_reading {
    double time;                /* seconds of the calendar, since 1970                            */
    int64_t step;               /* steps that are done then                                       */
    int replica;
    pons_device_sensors state;
    pons_error error;           /* why they say nothing, or PONS_OK                               */
} device_reading;

/* A validation that is done, case by case. */
typedef struct validated_cases {
    const experiment *experiment;
    int64_t step;
    int count;
    const int *ranks;           /* [count] cases of the dataset                                   */
    int first_class;            /* classes before it have no part in means                        */
    metric_set metrics;         /* those of the record                                            */
    const class_score *score;   /* [count][class_count]; NULL: a classification                   */
    const class_ranking *images; /* of a classification, else NULL                                */
    cache *cache;
} validated_cases;

/* The place of a training in its run. */
typedef struct trainer_progress {
    int64_t step, total;
    int validating;             /* cases of the validation under way; 0: none                     */
    double best;
    int64_t best_step;          /* of the best validation; 0: none                                */
} trainer_progress;

/*
 * The keeper of a run's records. Calls come from the trainer's thread. 'sync' comes from the writer
 * of checkpoints, also during a 'record': records that were kept before it began are then on disk.
 * It fails if the run's folder has been replaced.
 */
typedef struct trainer_observer {
    void *context;
    /* Comes before the first step: cases are read, the network is built, nothing is written. */
    pons_status (*begin)(void *context, pons_error *err);
    pons_status (*record)(void *context, const pons_record *record, pons_error *err);
    pons_status (*sync)(void *context, pons_error *err);
    /* Fails if the run's folder, or a file that it needs, is missing. On the thread of 'sync'. */
    pons_status (*check)(void *context, pons_error *err);
    pons_status (*devices)(void *context, int count, const device_reading *reading,
                           pons_error *err);
    /* A validation case: called by several threads, for cases of this process. */
    void (*predicted)(void *context, const scored_case *c);
    /* The call precedes the record of the validation, on every rank. */
    pons_status (*validated)(void *context, const validated_cases *v, pons_error *err);
    /*
     * Called between steps and between batches of a validation, by any device: true ends the
     * training as a signal does, and stays true. Of a single process. NULL: signals alone end it.
     */
    bool (*stop)(void *context);
    /*
     * Comes before each record, and during a validation before each batch of windows, then by any
     * device's thread. NULL: nobody looks.
     */
    void (*progress)(void *context, const trainer_progress *p);
} trainer_observer;

enum { TRAINER_DEBUG_STEPS = 4 };

typedef struct trainer_settings {
    const char *checkpoints;    /* the folder                                                     */
    /*
     * A verified checkpoint to go on from. NULL: none, or another rank than 0, which receives the
     * contents from rank 0.
     */
    const char *resume;
    const trainer_state *saved; /* of that checkpoint                                             */
    bool own;                   /* it lies in 'checkpoints'                                       */
    trainer_observer observer;
    signals *signals;           /* may be NULL                                                    */
    bool unwatched;             /* no watchdog ends a single process that makes no progress       */
    bool debug;                 /* few cases, few steps                                           */
    cache_keep *keep;           /* cases of an earlier training; NULL: none                       */
} trainer_settings;

/* Steps of the whole run as the file says it. */
int64_t trainer_total_steps(const experiment *e);
double trainer_rate(const experiment *e, int64_t step);
/* Whether the run of 'settings->saved' has nothing left to do, its checkpoints' marks included. */
bool trainer_finished(experiment *e, const trainer_settings *settings);

/* PONS_INTERRUPTED after a signal, with a checkpoint written. */
pons_status trainer_run(experiment *e, const trainer_settings *settings, pons_error *err);

#endif
