/*
 * train_folds.h - the flags of pons train, and the folds of a cross-validation that they name.
 *
 * Fold K of N of the run NAME is a run of its own in OUTPUT/NAME/fold_K, with
 * [data] validation = fold:K/N, or fold = K where validation = nnunet and N is nnU-Net's.
 */
#ifndef CORE_CLI_TRAIN_FOLDS_H
#define CORE_CLI_TRAIN_FOLDS_H

#include "cli/command.h"

typedef struct train_flags {
    bool fresh;
    const char *resume;
    int64_t folds, fold;     /* OPTION_AUTO: not given                                            */
    bool profile;
} train_flags;

/* Folds 'first' to end - 1 of 'count'; count 0: a single run. */
typedef struct fold_range {
    int first, end, count;
} fold_range;

/* The folds that the flags name. PONS_USAGE: --fold is not below their number. */
pons_status train_folds_find(const invocation *call, const train_flags *f, fold_range *out,
                             pons_error *err);

/* Log the number of the fold that begins, if the range has several. */
void train_fold_tell(const fold_range *range, int fold, logger *l);

/* A command line that trains one fold. */
typedef struct fold_call {
    invocation call;
    char *text[4];           /* values of --set, of which the call points to some                 */
    char *number;            /* of --fold                                                         */
} fold_call;

/*
 * Make the command line of 'fold' from that of all: its values as --set, and the word --fold if
 * 'range' has several folds. 'call' is borrowed until train_fold_close, which also follows an
 * error. PONS_CONFIG: OUTPUT/NAME holds a run without folds.
 */
pons_status train_fold_open(const invocation *call, const fold_range *range, int fold,
                            fold_call *out, pons_error *err);
void train_fold_close(fold_call *f);

#endif
