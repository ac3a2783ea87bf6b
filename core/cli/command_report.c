/*
 * command_report.c - pons report: the page of a run, a comparison of several, or their curves as a
 * table.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file/file.h"
#include "base/text/text.h"
#include "checkpoint/run_folds.h"
#include "cli/command.h"
#include "report/history/curves_table.h"
#include "report/page/compare_page.h"
#include "report/page/report_page.h"
#include "report/sinks_send.h"

typedef struct report_flags {
    const char *output;
    bool send;
} report_flags;

static const pons_option flags[] = {
    PONS_TEXT(report_flags, output, "",
              "The page; if it is not given RUN/report.html, or comparison.html of several runs. "
              "A name that ends in .csv is a table of the curves in place of the page: a row for "
              "each record, a column for each value."),
    PONS_FLAG(report_flags, send, "no",
              "Write no page, but send numbers that a sink such as mlflow could not send."),
    PONS_OPTIONS_END
};

static pons_status check_run(const char *run, pons_error *err)
{
    if (!folder_is_there(run))
        return pons_fail(err, PONS_DATA, "'%s' is no folder, expected the folder of a run, such as "
                         "runs/NAME", run);
    if (run_folds_are_there(run))
        return pons_fail(err, PONS_DATA, "'%s' holds the folds of a cross-validation, expected one "
                         "run\nhint: pons report %s/fold_0 is the page of one, pons evaluate "
                         "--run %s the scores of all", run, run, run);
    return PONS_OK;
}

/* A run beside itself differs in nothing. */
static pons_status check_others(const invocation *call, int number, pons_error *err)
{
    struct stat one, other;

    for (int i = 0; i < number; i++)
        if (stat(call->argument[i], &one) == 0 && stat(call->argument[number], &other) == 0
            && one.st_dev == other.st_dev && one.st_ino == other.st_ino)
            return pons_fail(err, PONS_USAGE, "'%s' and '%s' are one run, expected different "
                             "runs", call->argument[i], call->argument[number]);
    return PONS_OK;
}

static pons_status check_runs(const invocation *call, pons_error *err)
{
    if (call->argument_count > COMPARE_RUNS_MAX)
        return pons_fail(err, PONS_USAGE, "found %d runs, expected at most %d",
                         call->argument_count, COMPARE_RUNS_MAX);
    for (int i = 0; i < call->argument_count; i++)
        if (check_run(call->argument[i], err) != PONS_OK
            || check_others(call, i, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

/* Add what helps where a folder cannot be written. */
static void add_output_hint(const char *folder, pons_error *err)
{
    size_t used = strlen(err->text);

    if (access(folder, W_OK) != 0)
        snprintf(err->text + used, sizeof err->text - used,
                 "\nhint: -o FILE writes the page to another place");
}

static pons_status write_output(const invocation *call, arena *memory, const char *output,
                                pons_error *err)
{
    const char *run = call->argument[0], *path = output;
    bool one = call->argument_count == 1;

    if (path == NULL)
        path = one ? arena_format(memory, "%s/report.html", run) : "comparison.html";
    if (folder_make_for(path, err) != PONS_OK)
        return err->status;
    if (text_ends_with(path, ".csv"))
        curves_table_write(call->argument_count, call->argument, path, err);
    else if (one)
        report_page_write(run, output, err);
    else
        compare_page_write(call->argument_count, call->argument, path, err);
    if (err->status == PONS_OK)
        log_line(call->log, "'%s'", path);
    else if (output == NULL)
        add_output_hint(one ? run : ".", err);
    return err->status;
}

static pons_status send_runs(const invocation *call, pons_error *err)
{
    for (int i = 0; i < call->argument_count && err->status == PONS_OK; i++)
        sinks_send(call->argument[i], call->log, err);
    return err->status;
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const report_flags *f = given;
    arena *memory;

    if (check_runs(call, err) != PONS_OK)
        return err->status;
    if (f->send)
        return send_runs(call, err);
    if ((memory = arena_new()) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a report");
    write_output(call, memory, f->output, err);
    arena_free(memory);
    return err->status;
}

const command command_report = {
    "report", "curves, cases and settings of a run, or several runs compared", "RUN...",
    flags, sizeof(report_flags), "o=output", 1, -1, run
};
