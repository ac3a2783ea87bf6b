/*
 * train_internal.h - a run of pons train, and the functions that its files share.
 */
#ifndef CORE_CLI_TRAIN_TRAIN_INTERNAL_H
#define CORE_CLI_TRAIN_TRAIN_INTERNAL_H

#include "base/profile/profile.h"
#include "base/text/text_stream.h"
#include "cli/train/command_train.h"
#include "experiment/processes.h"
#include "report/devices_file.h"
#include "report/live/train_view.h"
#include "report/metrics.h"
#include "report/page/run_reporter.h"
#include "report/run_folder.h"
#include "report/sinks/case_pictures.h"
#include "train/trainer.h"

/* A run, from its file to its end. */
typedef struct train_job {
    const invocation *call;
    const train_flags *flags;
    const train_host *host; /* NULL: the command line                                             */
    bool fold;              /* the run is a fold of a cross-validation                            */
    cache_keep *keep;       /* cases of the folds before; NULL: none                              */
    config *config;
    sections sections;
    run_folder folder;
    char *checkpoint;       /* path of the checkpoint to resume from, or NULL                     */
    bool own;               /* the checkpoint lies in this run's folder                           */
    int other;              /* lock of another run while its checkpoint is read; -1: none         */
    saved_state saved;
    processes processes;
    experiment *experiment;
    metrics *metrics;
    devices_file *devices;
    run_reporter *reporter; /* of every rank; NULL: [log] report = no                             */
    case_pictures *pictures; /* of every rank; NULL: no sink takes any                            */
    train_view *view;       /* NULL: no terminal that is redrawn                                  */
    profile *profile;       /* NULL: without --profile, and of ranks that do not write           */
    text_stream held;       /* log lines until log.txt is open                                    */
    signals *signals;
    bool joined;            /* 'processes' has a group; changed only while signals are held       */
    bool launched;          /* this process was the launcher, and the ranks have run              */
} train_job;

/* ---- train_run.c */

/* 'keep' is for folds that are trained one after the other, else NULL. */
pons_status train_run(const invocation *call, const train_flags *flags_given,
                      const train_host *host, bool fold, cache_keep *keep, pons_error *err);
/* Whether this process reads and writes the folder. */
bool train_writes(const train_job *s);

/* ---- train_checkpoint.c */

/* Lock the folder, and find the checkpoint of the run or that of --resume; there may be none. */
pons_status train_find_checkpoint(train_job *s, pons_error *err);
/* Append a hint to the error of a run that cannot resume as asked. */
pons_status train_add_way_out(const train_job *s, pons_error *err);
/* Read the autotune entries of the run to resume. */
pons_status train_read_choices(train_job *s, pons_error *err);
/* Compare the checkpoint with the dataset and the network. Its run's lock is then released. */
pons_status train_leave_checkpoint(train_job *s, pons_error *err);
/* Warn if resolved.ini is not as its run wrote it. 'outcome' states the consequence. */
void train_compare_resolved(const train_job *s, const char *outcome);
/* Add a hint to the error of a plugin that is not found where the run that goes on had it. */
void train_hint_plugins(const train_job *s, pons_error *err);
/* Release the lock of the other run. */
void train_leave_other(train_job *s);

/* ---- train_folder.c */

/* Hold log lines until log.txt is open. */
pons_status train_hold_lines(train_job *s, pons_error *err);
/* trainer_observer.begin: open the folder once dataset and network are accepted. */
pons_status train_begin_folder(void *context, pons_error *err);

/* ---- train_observer.c */

trainer_observer train_observer_of(train_job *s);

#endif
