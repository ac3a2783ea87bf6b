/*
 * run_folds.h - the folds of a cross-validation: the runs NAME/fold_0, NAME/fold_1, ... of one
 * folder.
 */
#ifndef CORE_CHECKPOINT_RUN_FOLDS_H
#define CORE_CHECKPOINT_RUN_FOLDS_H

#include "base/log.h"
#include <pons/plugin.h>

enum { RUN_FOLDS_MAX = 64 };

typedef enum run_fold_state {
    RUN_FOLD_MISSING = 0,     /* no folder, or no checkpoint in it                                */
    RUN_FOLD_STARTED,         /* its training has steps left                                      */
    RUN_FOLD_FINISHED
} run_fold_state;

typedef struct run_folds {
    int count;                /* N of fold:K/N; 0: the folder holds no fold with a checkpoint     */
    run_fold_state state[RUN_FOLDS_MAX];
} run_folds;

/* Whether the folder holds folds and no run of its own. */
bool run_folds_are_there(const char *path);
/*
 * Read the state of each fold. One warning names those that are not finished. PONS_CONFIG: none is
 * finished, a run fold_K is not fold K, or two folds differ in their number. A damaged checkpoint
 * is PONS_DATA, unless 'any' allows another one.
 */
pons_status run_folds_finished(const char *path, bool any, logger *l, run_folds *out,
                               pons_error *err);
/*
 * The fold that [data] 'validation' and 'fold' ask for, and the number of folds. False:
 * 'validation' has no folds. Either may be NULL.
 */
bool run_folds_read_rule(const char *validation, const char *fold, int *number, int *count);
/* PATH/fold_K, malloc'ed; NULL: out of memory. */
char *run_folds_path(const char *path, int fold);

#endif
