/*
 * trainer_internal.h - what the files of the trainer share.
 */
#ifndef CORE_TRAIN_TRAINER_INTERNAL_H
#define CORE_TRAIN_TRAINER_INTERNAL_H

#include "base/profile/profile.h"
#include "base/thread/worker.h"
#include "data/loader/loader.h"
#include "cluster/watchdog/watchdog.h"
#include "metric/metric.h"
#include "replica/programs.h"
#include "replica/replicas.h"
#include "train/checkpoint_contents.h"
#include "train/trainer.h"

#include <stdatomic.h>

typedef struct trainer trainer;

/* A job of the writer. The trainer leaves it alone until it is done. */
typedef struct save_order {
    const trainer_settings *settings;
    checkpoint_contents contents;
    bool whole;              /* the contents are new; otherwise marks only                        */
    bool best;
    bool lost;               /* the checkpoint before this one is missing in its place            */
    int keep;
    int64_t step, before;    /* before: that of the checkpoint before this one, -1: none          */
    pons_error kept;         /* the reason why an old checkpoint could not be removed             */
} save_order;

struct trainer {
    experiment *experiment;
    const trainer_settings *settings;
    replicas replicas;
    storage *storage;        /* of the first replica; the others hold the same                    */
    cache *cache;
    trainer_state state;
    trainer_state kept;      /* of the newest checkpoint, written or on its way; step -1: none    */
    worker *writer;
    save_order order;
    pons_error kept_said;    /* the last warning of an old checkpoint that stays                  */
    profile_marker marker;   /* ranges of threads without a device                                */
    struct trainer_profile *profile; /* NULL: without --profile                                   */
    int training_count, validation_count;
    case_window epoch;       /* training cases of an epoch                                        */
    int64_t total;           /* steps of the run                                                  */
    double step_seconds, logged_loss;
    bool told_cost;             /* that validations take longer than the steps between them       */
    int64_t logged_steps;
    int64_t skipped;            /* steps of this process that are not finite                      */
    metric_summary *summaries;
    watchdog *watchdog;      /* of a process that is alone; a group has its own                   */
    atomic_int reading;      /* replicas that wait for their patches                              */
    struct step_metrics *metrics;   /* of the records of steps                                    */
    struct device_reading *devices; /* of this process's replicas, read in the running step       */
    bool sensors_unavailable;              /* no sensors can be read: that was said               */
    bool stop_agreed;        /* with several processes: all of them stop now                      */
    float stop_wishes;       /* sum of the processes that want to stop                            */
    void *stop_pending;      /* that sum, under way                                               */
};

/* The first tensor that was not finite, and the cases of its micro-batch. */
typedef struct nonfinite_source {
    int place;               /* of the tensor in program order (program_nonfinite)                */
    char tensor[128];        /* "": none; then the cases are all of this process's                */
    char cases[512];
} nonfinite_source;

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
bool trainer_sensors_due(const trainer *t);
/* Read the sensors of a replica's device, on the replica's thread. */
void trainer_read_sensors(trainer *t, const replica *r);
/* Give the readings of all the run's replicas to the observer. Collective. */
pons_status trainer_report_sensors(trainer *t, pons_error *err);

/* trainer_profile.c */
/* Watch the kernels of all programs if this thread has a profile. Requires built programs. */
pons_status trainer_open_profile(trainer *t, pons_error *err);
/* Add their times to the profile. */
void trainer_close_profile(trainer *t);

/* trainer_plan.c */
/* Cases and steps; few of them with 'debug'. */
void trainer_plan_counts(trainer *t);
int64_t trainer_epochs(const trainer *t, int64_t steps); /* complete after 'steps'                */
/* [train] validate_loss, where there is a validation. */
bool trainer_has_validation_loss(const trainer *t);
/* True after a step that is to be validated and has not been. */
bool trainer_validation_due(const trainer *t);
/* True after a step that is to be saved, apart from the last one. */
bool trainer_checkpoint_due(const trainer *t);

/* trainer_open.c */
pons_status trainer_open(trainer *t, pons_error *err);
void trainer_close(trainer *t, const pons_error *failure);

/* trainer_save.c */
/* Start the writer. Requires a built network. */
pons_status trainer_open_saving(trainer *t, pons_error *err);
/* Begin to write the state as checkpoint unless the folder holds it, to mark it, and to prune. */
pons_status trainer_save(trainer *t, pons_error *err);
/* The failure of a checkpoint since the last call; PONS_OK without one. */
pons_status trainer_check_saved(trainer *t, pons_error *err);
/* trainer_save when no step follows; returns when the checkpoint is on disk. */
pons_status trainer_save_and_wait(trainer *t, pons_error *err);
/* Give the running step up after the grace. Returns the exit code. Saver thread of signals.h. */
pons_status trainer_end_by_signal(void *trainer);
/* End likewise when another process has given the step up for a signal. Thread of the watchdog. */
void trainer_end_by_peer(void *trainer, pons_status status);
/* Wait for the writer and end it. */
void trainer_close_saving(trainer *t);
/* Read the checkpoint to go on from, or pretrained weights, or nothing. */
pons_status trainer_load(trainer *t, pons_error *err);

/* trainer_validate.c */
/* Validate if it is due. A validation that a signal ended is due again after resume. */
pons_status trainer_validate(trainer *t, pons_error *err);
/* [train] early_stop: the run is finished before its last step. */
void trainer_note_early_stop(trainer *t);

/* trainer_ranks.c: but for notes nothing happens where there is one process */
/* Whether this process is the one that writes the run's folder. */
bool trainer_is_writer(const trainer *t);
/* Tell the watchdog what this process does. */
void trainer_report_activity(const trainer *t, const char *doing);
/* Compare the network of all ranks, then broadcast rank 0's weights and state. */
pons_status trainer_broadcast(trainer *t, pons_error *err);
/* Sum the wishes to stop while a step is computed: trainer_stop_due is then equal on all ranks. */
pons_status trainer_stop_sum_begin(trainer *t, pons_error *err);
pons_status trainer_stop_sum_end(trainer *t, pons_error *err);
/* Tell the other ranks that this one gives the running step up for a signal. Any thread. */
void trainer_announce_give_up(const trainer *t);
/* True when this process wishes to stop, for a signal or by its observer. Any thread. */
bool trainer_stop_wanted(const trainer *t);
/* True when this training is to end between two steps. */
bool trainer_stop_due(const trainer *t);
/* Keep the earlier of two, the first of equals; without a tensor, the cases of both. */
void trainer_merge_sources(nonfinite_source *c, const nonfinite_source *other);
/* Find the earliest of all processes. Collective. */
pons_status trainer_share_source(trainer *t, nonfinite_source *mine, pons_error *err);

/* trainer.c */
/* Tell the observer the place of the run. */
void trainer_tell_progress(const trainer *t, int validating);
pons_status trainer_record(trainer *t, const char *kind, int64_t epoch, int count,
                           const pons_metric *metric, pons_error *err);
/* Release the signals. After a failure there is no state that could be saved. */
pons_status trainer_release_signals(trainer *t, pons_error *err);

#endif
