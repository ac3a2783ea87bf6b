/*
 * run_folder.h - runs/NAME: where it is, that one process at a time writes it, what an earlier one
 * becomes.
 */
#ifndef CORE_REPORT_RUN_FOLDER_H
#define CORE_REPORT_RUN_FOLDER_H

#include "base/log.h"

#include <pons/plugin.h>

typedef struct run_folder {
    char *path;        /* OUTPUT/NAME                                                             */
    char *checkpoints; /* OUTPUT/NAME/checkpoints                                                 */
    int lock;          /* of the folder, -1: not taken                                            */
    FILE *log;         /* log.txt, appended to                                                    */
} run_folder;

/* Only names: nothing is made, opened or changed. */
pons_status run_folder_name(const char *output, const char *name, run_folder *out, pons_error *err);
/* Lock the folder, if there is one; PONS_CONFIG when another process trains in it. */
pons_status run_folder_hold(run_folder *r, pons_error *err);
/*
 * Lock another run's folder for reading, until *lock is closed: others may read it too, and none
 * trains in it; PONS_CONFIG when one does. -1 where there is no such folder. It may be 'own' after
 * all, which is held already.
 */
pons_status run_folder_read(const run_folder *own, const char *path, int *lock, pons_error *err);
/* As run_folder_hold, and make the folder if need be. */
pons_status run_folder_take(run_folder *r, pons_error *err);
/* PONS_FAILURE where the folder that is held does not lie at its path any more. */
pons_status run_folder_check(const run_folder *r, pons_error *err);
/*
 * PONS_FAILURE where the folder has lost a file without which the run is no whole one:
 * resolved.ini, metrics.jsonl or log.txt. A file that was edited or replaced is there, and so is a
 * renamed log.txt, which is still written.
 */
pons_status run_folder_check_files(const run_folder *r, pons_error *err);
/*
 * A file there that must not be begun anew, since no run wrote it or since a checkpoint has come
 * after it; NULL: none.
 */
const char *run_folder_found(const run_folder *r);
/*
 * Give an existing folder the first free of the names NAME.1, NAME.2, ... and say so; it is held no
 * more.
 */
pons_status run_folder_retire(run_folder *r, logger *l, pons_error *err);
/* Open log.txt; what 'l' says goes there too from now on. */
pons_status run_folder_log(run_folder *r, logger *l, pons_error *err);
void run_folder_close(run_folder *r, logger *l);
/* PATH/NAME, malloc'ed; NULL when out of memory. */
char *run_folder_file(const run_folder *r, const char *name);

#endif
