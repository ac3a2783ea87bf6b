/*
 * trainer_internal.h - what the files of the trainer share.
 */
#ifndef CORE_TRAIN_TRAINER_INTERNAL_H
#define CORE_TRAIN_TRAINER_INTERNAL_H

#include "base/thread/worker.h"
#include "data/loader/loader.h"
#include "cluster/watchdog/watchdog.h"
#include "metric/metric.h"
#include "replica/programs.h"
#include "replica/replicas.h"
#include "train/snapshot.h"
#include "train/trainer.h"

#include <stdatomic.h>

typedef struct trainer trainer;

/* What the writer's thread is to do; left alone until it has done it. */
typedef struct save_order {
    const trainer_settings *settings;
    snapshot snapshot;
    bool whole;              /* the snapshot is new; otherwise marks only                         */
    bool best;
    bool lost;               /* the checkpoint before this one is not in its place any more       */
    int keep;
    int64_t step, before;    /* before: of the checkpoint before this one, -1: none               */
    pons_error kept;         /* why an old checkpoint could not be removed                        */
} save_order;

struct trainer {
    experiment *experiment;
    const trainer_settings *settings;
    replicas replicas;
    storage *storage;        /* of the first replica; the others hold the same                    */
    cache *cache;
    trainer_state state;
    trainer_state kept;      /* of the newest checkpoint, written or on its way; step -1: none    */
    background *writer;
    save_order order;
    pons_error kept_said;    /* what the last order could not remove                              */
    char network[96];        /* model and loss by name, for profilers                             */
    int training_count, validation_count;
    int64_t total;           /* steps of the run                                                  */
    double step_seconds, logged_loss;
    int64_t logged_steps;
    metric_summary *summaries;
    watch *watch;            /* of a process that is alone; a group has its own                   */
    atomic_int reading;      /* replicas that wait for their patches                              */
    struct step_metrics *metrics;   /* of the records of steps                                    */
    struct device_reading *devices; /* of this process's replicas, read in the running step       */
    bool blind;              /* no sensors can be read: that was said                             */
    bool stop;               /* with several processes: all have agreed to stop now               */
    float vote;
    void *vote_pending;
};

/* What was not finite first, and the cases of its micro-batch. */
typedef struct trainer_culprit {
    int place;               /* of the tensor in program order (program_nonfinite)                */
    char tensor[128];        /* "": none; then the cases are all of this process's                */
    char cases[512];
} trainer_culprit;

/* trainer_metrics.c */
/* A step that was attempted. */
typedef struct step_numbers {
    const step_result *result;
    int64_t epoch;
    double lr, seconds, data_seconds;
} step_numbers;

/* Collective. Requires built programs and resident cases. */
pons_status trainer_open_metrics(trainer *t, pons_error *err);
void trainer_close_metrics(struct step_metrics *m);
pons_status trainer_record_step(trainer *t, const step_numbers *s, pons_error *err);

/* trainer_devices.c */
/* Whether the devices' sensors are read in the running step. */
bool trainer_reads_devices(const trainer *t);
/* From the thread of a replica. */
void trainer_read_device(trainer *t, const replica *r);
/* What all of the run's replicas have read goes to the observer; called by all processes. */
pons_status trainer_tell_devices(trainer *t, pons_error *err);

/* trainer_plan.c */
/* Cases and steps; few of them with 'debug'. */
void trainer_count(trainer *t);
int64_t trainer_epochs(const trainer *t, int64_t steps); /* complete after 'steps'                */
/* A validation of the present step that has not been done. */
bool trainer_validation_due(const trainer *t);
/* Where a run has to be saved besides its end. */
bool trainer_checkpoint_due(const trainer *t);

/* trainer_open.c */
pons_status trainer_open(trainer *t, pons_error *err);
void trainer_close(trainer *t, const pons_error *failure);

/* trainer_save.c */
/* The thread that writes; once the network is built. */
pons_status trainer_open_saving(trainer *t, pons_error *err);
/* Begin to write the state as checkpoint, unless the folder holds it; marks; old ones go. */
pons_status trainer_save(trainer *t, pons_error *err);
/* What went wrong with a checkpoint since the last question. */
pons_status trainer_check_saved(trainer *t, pons_error *err);
/* The same as trainer_save when no step follows; returns when it is on disk. */
pons_status trainer_save_last(trainer *t, pons_error *err);
/* From the interrupt's thread: the grace is over, the running step is given up. The exit code. */
pons_status trainer_save_and_end(void *trainer);
/* The same from the watch's thread, when another process has given a step up for a signal. */
void trainer_end_with_others(void *trainer, pons_status status);
/* Waits for the writer. */
void trainer_close_saving(trainer *t);
/* The checkpoint to go on from, or pretrained weights, or nothing. */
pons_status trainer_load(trainer *t, pons_error *err);

/* trainer_validate.c */
/* Validation that falls due at the present step; one that a signal ended is done after resume. */
pons_status trainer_validate(trainer *t, pons_error *err);
/* [train] early_stop: the run is finished before its last step. */
void trainer_note_early_stop(trainer *t);

/* trainer_ranks.c: but for notes nothing happens where there is one process */
/* Whether this process is the one that writes the run's folder. */
bool trainer_writes(const trainer *t);
/* What this process is at, for the watch. */
void trainer_note(const trainer *t, const char *doing);
/* The network is the same everywhere; rank 0's weights and state go to all. */
pons_status trainer_spread(trainer *t, pons_error *err);
/* Between both a step is computed; behind it trainer_stops is the same everywhere. */
pons_status trainer_vote_begin(trainer *t, pons_error *err);
pons_status trainer_vote_end(trainer *t, pons_error *err);
/* This process gives the running step up for a signal; the others learn it. Any thread. */
void trainer_leave_ranks(const trainer *t);
/* A signal asks this training to end between two steps. */
bool trainer_stops(const trainer *t);
/* The earlier one of two, the first of equals; the cases of both where neither has a tensor. */
void trainer_join_culprits(trainer_culprit *c, const trainer_culprit *other);
/* That of all processes; called by all. */
pons_status trainer_share_culprit(trainer *t, trainer_culprit *mine, pons_error *err);

/* trainer.c */
pons_status trainer_record(trainer *t, const char *kind, int64_t epoch, int count,
                           const pons_metric *metric, pons_error *err);
/* After interrupt_enter; when something failed nothing is there that could be saved. */
pons_status trainer_leave(trainer *t, pons_error *err);

#endif
