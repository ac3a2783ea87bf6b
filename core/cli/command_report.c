/*
 * command_report.c - pons report: the page of a run.
 */
#include "base/arena.h"
#include "base/file/file.h"
#include "checkpoint/run_folds.h"
#include "cli/command.h"
#include "report/page/report_page.h"

typedef struct report_flags {
    const char *output;
} report_flags;

static const pons_option flags[] = {
    PONS_TEXT(report_flags, output, "", "The page; RUN/report.html if it is not given."),
    PONS_OPTIONS_END
};

static pons_status check_run(const char *run, pons_error *err)
{
    if (!folder_is_there(run))
        return pons_fail(err, PONS_DATA, "'%s' is no folder, expected the folder of a run, such as "
                         "runs/NAME", run);
    if (run_folds_are_there(run))
        return pons_fail(err, PONS_DATA, "'%s' holds the folds of a cross-validation, expected one "
                         "run\nhint: pons report %s/fold_0", run, run);
    return PONS_OK;
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const report_flags *f = given;
    const char *of = call->argument[0], *path, *progress;
    arena *memory;

    if (check_run(of, err) != PONS_OK)
        return err->status;
    if ((memory = arena_new()) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a report");
    path = f->output != NULL ? f->output : arena_format(memory, "%s/report.html", of);
    progress = arena_format(memory, "%s/progress.png", of);
    if (folder_make_for(path, err) == PONS_OK
        && report_page_write(of, path, progress, err) == PONS_OK)
        log_line(call->log, "'%s'", path);
    arena_free(memory);
    return err->status;
}

const command command_report = {
    "report", "a page of a run: curves, cases, settings", "RUN", flags, sizeof(report_flags),
    "o=output", 1, 1, run
};
