/*
 * command_data_check.c - pons data check: read every case and list all errors.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/quote.h"
#include "base/text/text.h"
#include "cli/command.h"
#include "config/sections.h"
#include "data/dataset/class_list.h"
#include "data/transform/pipeline.h"
#include "experiment/data_settings.h"
#include "metric/best_metric.h"

/* ---- the dataset ---------------------------------------------------------------------------- */

static void print_dataset(const dataset *d)
{
    quote_print(stdout, "%.4000s\n", dataset_layout_text(d));
    if (d->recognised != NULL)
        quote_print(stdout, "recognised: %s\n", d->recognised);
    printf("%d case%s, %d for training, %d for validation", d->case_count,
           text_plural(d->case_count), d->training_count, d->validation_count);
    for (int i = 0; i < d->validation_count; i++)
        quote_print(stdout, "%s%.4000s", i == 0 ? ": " : " ", d->cases[d->validation[i]].id);
    if (d->unused_count > 0)
        printf("\n%d other case%s", d->unused_count, text_plural(d->unused_count));
    printf("\n%d channel%s", d->channels, text_plural(d->channels));
    for (int i = 0; i < d->channels && d->channel_names != NULL; i++)
        quote_print(stdout, "%s%.4000s", i == 0 ? ": " : " ", d->channel_names[i]);
    printf("\n");
    for (int i = 0; i < d->region_count; i++) {
        quote_print(stdout, "%s%s:", i == 0 ? "regions " : " ", d->regions[i].name);
        for (int k = 0; k < d->regions[i].id_count; k++)
            printf("%s%d", k == 0 ? "" : ",", d->regions[i].id[k]);
    }
    printf(d->region_count > 0 ? "\n" : "");
}

/* The name of an id that is of no class. */
static const char *unlisted_name(const dataset *d, int64_t id)
{
    bool ignored = d->ignored != NULL && id >= 0 && id <= LABEL_ID_MAX
                   && class_index_of_id(d->ignored, 1, (int)id) == 0;

    return ignored ? "(ignored)" : "(not listed)";
}

static void print_histogram(const dataset *d, const dataset_report *r)
{
    int64_t total = 0;

    for (int i = 0; i < r->id_count; i++)
        total += r->id_voxels[i];
    if (r->id_count > 0)
        printf("\n%6s  %-20s %14s %10s %8s\n", "id", "class", "voxels", "share", "cases");
    for (int i = 0; i < r->id_count; i++) {
        int c = r->id[i] < 0 || r->id[i] > LABEL_ID_MAX
                    ? -1 : class_index_of_id(d->classes, d->class_count, (int)r->id[i]);
        quote_print(stdout, "%6" PRId64 "  %-20s %14" PRId64 " %9.4f%% %8" PRId64 "\n", r->id[i],
               c < 0 ? unlisted_name(d, r->id[i]) : d->classes[c].name, r->id_voxels[i],
               100.0 * (double)r->id_voxels[i] / (double)total, r->id_cases[i]);
    }
}

/* ---- the spread of geometry ----------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double extent_of(const dataset_facts *f, int axis)
{
    return f->extent[axis];
}

static double spacing_of(const dataset_facts *f, int axis)
{
    return f->spacing[axis];
}

/* Print a row with the least, median and largest value along each axis. */
static void print_spread(const char *name, const dataset_report *r, double *column,
                         double (*number)(const dataset_facts *, int))
{
    printf("%-12s", name);
    for (int axis = 0; axis < 3; axis++) {
        int count = 0;
        for (int i = 0; i < r->facts_count; i++) {
            if (r->facts[i].voxels > 0 && r->facts[i].extent[0] > 0)
                column[count++] = number(&r->facts[i], axis);
        }
        if (count == 0)
            break;
        qsort(column, (size_t)count, sizeof *column, compare_numbers);
        printf("  %c %6g %6g %6g", "ijk"[axis], column[0], column[count / 2], column[count - 1]);
    }
    printf("\n");
}

static pons_status print_geometry(const dataset_report *r, pons_error *err)
{
    double *column = malloc((size_t)r->facts_count * sizeof *column);

    if (column == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    printf("\nleast, median and largest\n");
    print_spread("extent", r, column, extent_of);
    print_spread("spacing mm", r, column, spacing_of);
    free(column);
    return PONS_OK;
}

/* ---- orientations and spacings --------------------------------------------------------------- */

enum { GROUPS_SHOWN = 12 };

/* The cases of one orientation and one spacing, rounded to three digits. */
typedef struct geometry_group {
    char text[64];
    int cases;
} geometry_group;

static int compare_texts(const void *a, const void *b)
{
    return strcmp(((const geometry_group *)a)->text, ((const geometry_group *)b)->text);
}

/* The largest group comes first. */
static int compare_groups(const void *a, const void *b)
{
    const geometry_group *left = a, *right = b;

    return left->cases != right->cases ? right->cases - left->cases : compare_texts(a, b);
}

/* Make a group of each readable case, then merge equal groups. Return their number. */
static int find_groups(const dataset_report *r, geometry_group *group)
{
    int cases = 0, count = 0;

    for (int i = 0; i < r->facts_count; i++) {
        const dataset_facts *f = &r->facts[i];
        if (f->orientation[0] == '\0')
            continue;
        snprintf(group[cases].text, sizeof group->text, "%-11s  %.3g x %.3g x %.3g",
                 f->orientation, f->spacing[0], f->spacing[1], f->spacing[2]);
        group[cases++].cases = 1;
    }
    qsort(group, (size_t)cases, sizeof *group, compare_texts);
    for (int i = 0; i < cases; i++) {
        if (count > 0 && compare_texts(&group[count - 1], &group[i]) == 0)
            group[count - 1].cases++;
        else
            group[count++] = group[i];
    }
    qsort(group, (size_t)count, sizeof *group, compare_groups);
    return count;
}

static pons_status print_groups(const dataset_report *r, pons_error *err)
{
    geometry_group *group = calloc((size_t)r->facts_count + 1, sizeof *group);
    int count, rest = 0;

    if (group == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    count = find_groups(r, group);
    printf(count > 0 ? "\n%6s  %-11s  %s\n" : "", "cases", "orientation", "spacing mm");
    for (int i = 0; i < count; i++) {
        if (i < GROUPS_SHOWN)
            printf("%6d  %s\n", group[i].cases, group[i].text);
        else
            rest += group[i].cases;
    }
    if (rest > 0)
        printf("%6d  of %d other groups\n", rest, count - GROUPS_SHOWN);
    free(group);
    return PONS_OK;
}

static void print_problems(const dataset_report *r)
{
    int warnings = r->problem_count - r->error_count;

    if (r->problem_count > 0)
        printf("\n");
    for (int i = 0; i < r->problem_count; i++) {
        const dataset_problem *p = &r->problem[i];
        printf("%s: ", p->warning ? "warning" : "error");
        if (p->case_id != NULL)
            quote_print(stdout, "case '%s': ", p->case_id);
        printf("%s\n", p->text);
    }
    printf("\n%d error%s, %d warning%s\n", r->error_count, text_plural(r->error_count), warnings,
           text_plural(warnings));
}

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

static pons_status check_data(const dataset *d, const pipeline *preprocess,
                              pons_error *err)
{
    dataset_report *report = NULL;
    pons_status status, printed;

    print_dataset(d);
    fflush(stdout);
    status = dataset_check(d, &report, err);
    if (report == NULL)
        return status;
    print_histogram(d, report);
    dataset_report_add_mixtures(report, preprocess, d->channels);
    printed = print_geometry(report, err);
    if (printed == PONS_OK)
        printed = print_groups(report, err);
    print_problems(report);
    fflush(stdout);
    if (status != PONS_OK)
        name_once(report, err);
    dataset_report_free(report);
    return status != PONS_OK ? status : printed;
}

static pons_status run(const invocation *call, const void *flags, pons_error *err)
{
    pipeline *preprocess = NULL;
    dataset *d = NULL;
    config *c;

    if (invocation_config(call, call->argument[0], &c, err) != PONS_OK)
        return err->status;
    pons_status status = open_data(c, &d, &preprocess, err);
    if (status == PONS_OK)
        status = check_data(d, preprocess, err);
    dataset_close(d);
    pipeline_close(preprocess);
    config_close(c);
    return status;
}

const command command_data_check = {
    "data check", "verify every case and list all problems", "FILE.ini", NULL, 0, "", 1, 1, run
};
