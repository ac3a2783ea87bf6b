/*
 * command_data_check.c - pons data check: read every case and list all errors, those of an INI
 * file or of a dataset.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file/file.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "cli/data/check_report.h"
#include "config/list.h"
#include "config/sections.h"
#include "data/dataset/class_list.h"
#include "data/dataset/layout.h"
#include "data/transform/pipeline.h"
#include "experiment/data_settings.h"
#include "metric/best_metric.h"

typedef struct check_flags {
    bool json;
} check_flags;

static const pons_option flags[] = {
    PONS_FLAG(check_flags, json, "no", "Write one JSON object to the standard output."),
    PONS_OPTIONS_END
};

/* ---- the command ---------------------------------------------------------------------------- */

/* Check the options of all transforms. channels 0: not known yet. The caller owns *preprocess. */
static pons_status check_steps(config *c, int channels, pipeline **preprocess, pons_error *err)
{
    pipeline *augment = NULL;

    if (pipeline_open(c, "preprocess", false, channels, preprocess, err) == PONS_OK
        && pipeline_open(c, "augment", true, channels, &augment, err) == PONS_OK)
        pipeline_close(augment);
    return err->status;
}

/* Check the class names in keys of other sections. */
static pons_status check_names(config *c, const sections *s, const dataset *d, pons_error *err)
{
    bool regions = d->region_count > 0;
    const data_class *classes = regions ? d->regions : d->classes;
    int count = regions ? d->region_count : d->class_count;
    best_metric best;

    if (best_metric_find(s->train.best, count, classes, &best, err) == PONS_OK)
        class_list_check_names("[predict] keep_largest", &s->predict.keep_largest, classes, count,
                               err);
    return config_location_add(c, NULL, NULL, err);
}

/* Check [data] and the transforms. Networks are left to other commands. */
static pons_status open_data(config *c, dataset **out, pipeline **preprocess, pons_error *err)
{
    pipeline *unbound = NULL;
    dataset_settings settings;
    sections s;

    if (sections_fill(c, &s, err) != PONS_OK)
        return err->status;
    sections_skip_plugins(c, &s, (const char *const[]){ "preprocess", "augment", NULL });
    check_steps(c, 0, &unbound, err);
    pipeline_close(unbound);
    if (err->status != PONS_OK || config_refuse_unknown(c, err) != PONS_OK)
        return err->status;
    dataset_settings_fill(c, &s, &settings);
    settings.keep_problems = true;
    if (dataset_open(&settings, out, err) != PONS_OK)
        return dataset_blame(c, &s, err);
    if (check_names(c, &s, *out, err) != PONS_OK)
        return err->status;
    return check_steps(c, (*out)->channels, preprocess, err);
}

/* Whether standard output and standard error are one file. */
static bool is_one_stream(void)
{
    struct stat out, err;

    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0
        && out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

/*
 * The error of the command. It is the first problem if the reader of standard error does not see
 * the report, else the number of problems.
 */
static pons_status name_once(const dataset_report *r, pons_error *err)
{
    if (!is_one_stream())
        return err->status;
    *err = (pons_error)PONS_ERROR_INIT;
    return pons_fail(err, PONS_DATA, "the data has %d error%s, listed above", r->error_count,
                     text_plural(r->error_count));
}

static pons_status check_data(const invocation *call, bool json, const dataset *d,
                              const pipeline *preprocess, pons_error *err)
{
    dataset_report *report = NULL;
    pons_status status;

    if (!json && call->log->level > LOG_QUIET)
        check_report_print_dataset(d);
    fflush(stdout);
    status = dataset_check(d, call->log, &report, err);
    if (report == NULL)
        return status;
    dataset_report_add_mixtures(report, d, preprocess);
    dataset_report_add_extents(report, d, preprocess);
    if (json)
        check_report_print_json(d, report, stdout);
    else
        check_report_print(d, report, call->log->level);
    fflush(stdout);
    if (status != PONS_OK && !json)
        name_once(report, err);
    dataset_report_free(report);
    return status;
}

/* Open the INI file, or of a dataset the settings that name its folder or its list alone. */
static pons_status open_settings(const invocation *call, config **out, pons_error *err)
{
    const char *path = call->argument[0];
    arena *memory = NULL;

    if (!folder_is_there(path) && !layout_lists_cases(path))
        return invocation_config(call, path, out, err);
    if ((memory = arena_new()) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    const config_line source = { "data", "source", list_single(memory, path) };
    config_open_lines(path, 1, &source, call->set_count, call->set, out, err);
    arena_free(memory);
    return err->status;
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const check_flags *f = given;
    pipeline *preprocess = NULL;
    dataset *d = NULL;
    config *c;

    if (open_settings(call, &c, err) != PONS_OK)
        return err->status;
    pons_status status = open_data(c, &d, &preprocess, err);
    if (status == PONS_OK)
        status = check_data(call, f->json, d, preprocess, err);
    dataset_close(d);
    pipeline_close(preprocess);
    config_close(c);
    return status;
}

const command command_data_check = {
    "data check", "verify every case and list all problems",
    "FILE.ini | FOLDER | LIST.json | TABLE.csv", flags, sizeof(check_flags), "", 1, 1, run
};
