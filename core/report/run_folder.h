/*
 * run_folder.h - the folder of a run, runs/NAME: its lock, its checks, and the retirement of an
 * earlier run.
 */
#ifndef CORE_REPORT_RUN_FOLDER_H
#define CORE_REPORT_RUN_FOLDER_H

#include "base/log.h"

#include <pons/plugin.h>

typedef struct run_folder {
    char *path;        /* OUTPUT/NAME                                                             */
    char *checkpoints; /* OUTPUT/NAME/checkpoints                                                 */
    int lock;          /* descriptor that locks the folder; -1: not locked                        */
    FILE *log;         /* log.txt, open for appending                                             */
} run_folder;

/* Make the paths; nothing is created, opened or changed. */
pons_status run_folder_name(const char *output, const char *name, run_folder *out, pons_error *err);
/* Lock the folder if it exists. PONS_CONFIG: another process is training in it. */
pons_status run_folder_lock(run_folder *r, pons_error *err);
/*
 * Lock another run's folder for reading until *lock is closed; -1: no such folder. Several
 * processes may read it, but none may train in it (PONS_CONFIG). A folder that is 'own' is already
 * locked and not locked again.
 */
pons_status run_folder_lock_shared(const run_folder *own, const char *path, int *lock,
                                   pons_error *err);
/* Lock the folder, which is made if missing. */
pons_status run_folder_make(run_folder *r, pons_error *err);
/* PONS_FAILURE unless the locked folder is at its path. */
pons_status run_folder_check(const run_folder *r, pons_error *err);
/*
 * PONS_FAILURE if resolved.ini, metrics.jsonl or log.txt is missing, without which a run is
 * incomplete. An edited or replaced file counts as present, and so does a renamed log.txt, which
 * is still written.
 */
pons_status run_folder_check_files(const run_folder *r, pons_error *err);
/*
 * The name of a file that must not be overwritten, because no run wrote it or a checkpoint exists;
 * NULL: none.
 */
const char *run_folder_foreign_file(const run_folder *r);
/* Rename an existing folder to the first free of NAME.1, NAME.2, ..., log it, and unlock it. */
pons_status run_folder_retire(run_folder *r, logger *l, pons_error *err);
/* Remove the profile of an earlier run that ended before its first checkpoint. */
pons_status run_folder_forget_profile(const run_folder *r, pons_error *err);
/* Open log.txt and write the log to it too. */
pons_status run_folder_log(run_folder *r, logger *l, pons_error *err);
void run_folder_close(run_folder *r, logger *l);
/* PATH/NAME, malloc'ed; NULL: out of memory. */
char *run_folder_file(const run_folder *r, const char *name);

#endif
