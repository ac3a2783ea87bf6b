/*
 * command_train.c - pons train: its flags, and the one run or the folds that they ask for.
 */
#include <stdlib.h>

#include "base/broken_pipe.h"
#include "checkpoint/run_folds.h"
#include "cli/train/train_internal.h"
#include "cluster/rendezvous/rank_info.h"

static const char *const none_words[] = { "none", NULL };

static const pons_option flags[] = {
    PONS_FLAG(train_flags, fresh, "no",
              "Start anew; the earlier run's folder becomes NAME.1, NAME.2, ..."),
    PONS_TEXT(train_flags, resume, "",
              "Go on from another run's folder or checkpoint, with its optimizer's state; loss, "
              "schedule, augmentation and learning rate may differ."),
    PONS_INTEGER_OR(train_flags, folds, "none", 2, RUN_FOLDS_MAX, none_words,
                    "Cross-validation: train this number of runs NAME/fold_0, NAME/fold_1, ... one "
                    "after the other, each with [data] validation = fold:K/N."),
    PONS_INTEGER_OR(train_flags, fold, "none", 0, RUN_FOLDS_MAX - 1, none_words,
                    "Train this fold alone; their number is that of --folds, else of [data] "
                    "validation = fold:K/N, else 5."),
    PONS_FLAG(train_flags, profile, "no",
              "Write the time of phases, plugins and kernels into the run's folder: profile.json, "
              "profile.svg (a flame graph) and trace.json (50 steps, for Perfetto). The weights "
              "are the same; kernels run one after another."),
    PONS_OPTIONS_END
};

pons_status command_train_hosted(const invocation *call, const train_flags *given,
                                 const train_host *host, pons_error *err)
{
    return train_run(call, given, host, false, NULL, err);
}

/* ---- folds ----------------------------------------------------------------------------------- */

static const char *look_up_environment(void *context, const char *name)
{
    return getenv(name);
}

/* Ranks of another launcher can join once, so they train one fold. */
static pons_status check_launcher(const fold_range *range, pons_error *err)
{
    rank_info place;

    if (range->end - range->first < 2
        || rank_info_find(look_up_environment, NULL, &place, err) != PONS_OK || place.size < 2)
        return err->status;
    return pons_fail(err, PONS_USAGE, "%d folds in one command, but a launcher has started %d "
                     "ranks (%s), expected --fold K\nhint: pons launch -- train FILE.ini --folds "
                     "%d starts ranks for each fold", range->count, place.size, place.origin,
                     range->count);
}

static pons_status train_fold(const invocation *call, const train_flags *f,
                              const fold_range *range, int fold, cache_keep *keep,
                              pons_error *err)
{
    fold_call one;

    if (train_fold_open(call, range, fold, &one, err) == PONS_OK) {
        train_fold_tell(range, fold, call->log);
        train_run(&one.call, f, NULL, true, keep, err);
    }
    train_fold_close(&one);
    return err->status;
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const train_flags *f = given;
    cache_keep *keep = NULL;
    fold_range range;

    broken_pipe_ignore();
    if (train_folds_find(call, f, &range, err) != PONS_OK
        || check_launcher(&range, err) != PONS_OK) {
        processes_refuse(err);
        return err->status;
    }
    if (range.count == 0)
        return train_run(call, f, NULL, false, NULL, err);
    if (range.end - range.first > 1)
        keep = cache_keep_new();
    for (int fold = range.first; fold < range.end && err->status == PONS_OK; fold++)
        train_fold(call, f, &range, fold, keep, err);
    cache_keep_free(keep);
    return err->status;
}

const command command_train = {
    "train", "train as the file says, or go on where a run stopped", "FILE.ini", flags,
    sizeof(train_flags), "", 1, 1, run
};
