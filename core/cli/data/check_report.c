/*
 * check_report.c - the findings of a check as tables.
 */
#include "cli/data/check_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
#include "base/text/quote.h"
#include "base/text/text.h"
#include "cli/data/check_geometry.h"
#include "data/dataset/class_list.h"

enum { IDS_PRINTED = 100, CLASSES_PRINTED = 100 };

/* ---- the dataset ----------------------------------------------------------------------------- */

void check_report_print_dataset(const dataset *d)
{
    quote_print(stdout, "%.4000s\n", dataset_layout_text(d));
    printf("%d case%s, %d for training, %d for validation", d->case_count,
           text_plural(d->case_count), d->training_count, d->validation_count);
    for (int i = 0; i < d->validation_count && d->validation_count <= IDS_PRINTED; i++)
        quote_print(stdout, "%s%.4000s", i == 0 ? ": " : " ", d->cases[d->validation[i]].id);
    if (d->unused_count > 0)
        printf("\n%d other case%s", d->unused_count, text_plural(d->unused_count));
    printf("\n%d channel%s", d->channels, text_plural(d->channels));
    for (int i = 0; i < d->channels && d->channel_names != NULL; i++)
        quote_print(stdout, "%s%.4000s", i == 0 ? ": " : " ", d->channel_names[i]);
    printf("\n");
}

/* ---- labels ---------------------------------------------------------------------------------- */

const char *check_report_class(const dataset *d, int64_t id)
{
    bool possible = id >= 0 && id <= LABEL_ID_MAX;
    int class = possible ? class_index_of_id(d->classes, d->class_count, (int)id) : -1;
    bool ignored = possible && d->ignored != NULL
                   && class_index_of_id(d->ignored, 1, (int)id) == 0;

    return class >= 0 ? d->classes[class].name : ignored ? "(ignored)" : "(not listed)";
}

static void print_row(const char *name, const label_total *t, int64_t all, const char *ids)
{
    quote_print(stdout, "%-24.40s %14" PRId64 " %9.4f%% %8" PRId64 "  %.60s%s\n", name, t->voxels,
                all > 0 ? 100 * (double)t->voxels / (double)all : 0, t->cases, ids,
                strlen(ids) > 60 ? "..." : "");
}

static void print_classes(const dataset *d, const dataset_report *r, int64_t all)
{
    printf("\n%-24s %14s %10s %8s  %s\n", "class", "voxels", "share", "cases", "ids");
    for (int c = 0; c < d->class_count; c++)
        print_row(d->classes[c].name, &r->class_total[c], all,
                  class_ids_text(r->memory, &d->classes[c]));
    if (d->ignored != NULL)
        print_row("(ignored)", &r->ignored_total, all, class_ids_text(r->memory, d->ignored));
    for (int i = 0; i < r->id_count; i++) {
        const label_total t = { r->id_voxels[i], r->id_cases[i] };
        if (strcmp(check_report_class(d, r->id[i]), "(not listed)") == 0)
            print_row("(not listed)", &t, all, arena_format(r->memory, "%" PRId64, r->id[i]));
    }
    if (d->region_count > 0)
        printf("\n%-24s %14s %10s %8s  %s\n", "region", "voxels", "share", "cases", "ids");
    for (int c = 0; c < d->region_count; c++)
        print_row(d->regions[c].name, &r->region_total[c], all,
                  class_ids_text(r->memory, &d->regions[c]));
}

static void print_case_classes(const dataset *d, const dataset_report *r)
{
    int count = min_int(d->class_count, CLASSES_PRINTED);

    printf("\n%-24s %8s %10s  %s\n", "class", "cases", "share", "id");
    for (int c = 0; c < count; c++)
        quote_print(stdout, "%-24.40s %8" PRId64 " %9.4f%%  %s\n", d->classes[c].name,
                    r->class_total[c].cases,
                    100 * (double)r->class_total[c].cases / (double)d->case_count,
                    class_ids_text(r->memory, &d->classes[c]));
    if (count < d->class_count)
        printf("and %d others, which --json lists\n", d->class_count - count);
}

static void print_ids(const dataset *d, const dataset_report *r, int64_t all)
{
    printf("\n%6s  %-20s %14s %10s %8s\n", "id", "class", "voxels", "share", "cases");
    for (int i = 0; i < r->id_count; i++)
        quote_print(stdout, "%6" PRId64 "  %-20s %14" PRId64 " %9.4f%% %8" PRId64 "\n", r->id[i],
                    check_report_class(d, r->id[i]), r->id_voxels[i],
                    100.0 * (double)r->id_voxels[i] / (double)all, r->id_cases[i]);
}

static void print_labels(const dataset *d, const dataset_report *r, bool ids)
{
    int64_t all = 0;

    if (d->target == TARGET_OF_CASE)
        print_case_classes(d, r);
    for (int i = 0; i < r->id_count; i++)
        all += r->id_voxels[i];
    if (r->id_count > 0 && d->class_count > 0)
        print_classes(d, r, all);
    if (r->id_count > 0 && (ids || d->class_count == 0))
        print_ids(d, r, all);
}

/* ---- geometry -------------------------------------------------------------------------------- */

enum { GROUPS_SHOWN = 12 };

static void print_spread(const char *name, const double spread[3][3])
{
    printf("%-12s", name);
    for (int axis = 0; axis < 3; axis++)
        printf("  %c %6.4g %6.4g %6.4g", "ijk"[axis], spread[axis][0], spread[axis][1],
               spread[axis][2]);
    printf("\n");
}

static void print_groups(const dataset_report *r)
{
    const geometry_group *group;
    int count = geometry_groups_find(r, &group), rest = 0;

    printf("\n%6s  %-11s  %s\n", "cases", "orientation", "spacing mm");
    for (int i = 0; i < count; i++) {
        if (i < GROUPS_SHOWN)
            printf("%6d  %s\n", group[i].cases, group[i].text);
        else
            rest += group[i].cases;
    }
    if (rest > 0)
        printf("%6d  of %d other groups\n", rest, count - GROUPS_SHOWN);
}

static void print_geometry(const dataset_report *r)
{
    geometry_spread spread;

    geometry_spread_find(r, &spread);
    if (spread.cases == 0)
        return;
    printf("\nleast, median and largest\n");
    print_spread("extent", (const double (*)[3])spread.extent);
    print_spread("spacing mm", (const double (*)[3])spread.spacing);
    print_groups(r);
}

/* ---- problems -------------------------------------------------------------------------------- */

static void print_problems(const dataset_report *r, bool alone)
{
    int warnings = r->problem_count - r->error_count;

    if (r->problem_count > 0 && !alone)
        printf("\n");
    for (int i = 0; i < r->problem_count; i++) {
        const dataset_problem *p = &r->problem[i];
        printf("%s: ", p->warning ? "warning" : "error");
        if (p->case_id != NULL)
            quote_print(stdout, "case '%s': ", p->case_id);
        printf("%s\n", p->text);
    }
    if (!alone)
        printf("\n%d error%s, %d warning%s\n", r->error_count, text_plural(r->error_count),
               warnings, text_plural(warnings));
}

void check_report_print(const dataset *d, const dataset_report *r, log_level level)
{
    if (level > LOG_QUIET) {
        print_labels(d, r, level == LOG_VERBOSE);
        print_geometry(r);
    }
    print_problems(r, level == LOG_QUIET);
}
