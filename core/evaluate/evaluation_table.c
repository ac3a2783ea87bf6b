/*
 * evaluation_table.c - an evaluation as one table of cases by classes, the worst case first.
 */
#include "evaluate/evaluation.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/text/quote.h"
#include "evaluate/value_text.h"

enum {
    NAME_WIDTH_MAX = 40,
    CLASSES_MAX = 12,           /* more classes are shortened                                     */
    CLASSES_SHOWN = 5           /* worst ones, and best ones                                      */
};

/* The widths of the columns of names. */
typedef struct table {
    const evaluation *evaluation;
    const mean_interval *interval; /* [class_count + 1][METRIC_KIND_COUNT]; NULL: not shown       */
    FILE *to;
    int case_width, class_width;
    bool brief;                 /* classes are shown by their means alone, the worst and best     */
} table;

static void print_names(const table *t, const char *name, const char *class)
{
    quote_print(t->to, "%-*.4000s", t->case_width, name);
    quote_print(t->to, "  %-*.4000s", t->class_width, class);
}

static void print_header(const table *t)
{
    print_names(t, "case", "class");
    for (int n = 0; n < METRIC_KIND_COUNT; n++) {
        metric_kind kind = t->evaluation->column[n];

        if (metric_set_has(t->evaluation->metrics, kind))
            fprintf(t->to, "  %8s", metric_facts[kind].name);
    }
    fputc('\n', t->to);
}

/* Print a value of each metric, in columns as wide as their names. */
static void print_values(const table *t, const double value[METRIC_KIND_COUNT])
{
    for (int n = 0; n < METRIC_KIND_COUNT; n++) {
        metric_kind kind = t->evaluation->column[n];
        int width = max_int(8, (int)strlen(metric_facts[kind].name));

        if (!metric_set_has(t->evaluation->metrics, kind))
            continue;
        fputs("  ", t->to);
        value_print(t->to, width, value[kind]);
    }
}

/* The place of a case or a class in an order, the worst first. */
typedef struct ranked_item {
    double badness;           /* of its mean; -infinity: undefined                                */
    int number;
} ranked_item;

static int compare_ranks(const void *a, const void *b)
{
    const ranked_item *x = a, *y = b;

    if (x->badness != y->badness)
        return x->badness > y->badness ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static ranked_item rank_item(const evaluation *e, double mean, int number)
{
    double badness = metric_badness(e->order, mean);

    return (ranked_item){ isnan(badness) ? -INFINITY : badness, number };
}

static const ranked_item *rank_cases(const evaluation *e)
{
    ranked_item *list = arena_alloc(e->memory, (size_t)e->case_count * sizeof *list + 1);

    for (int i = 0; i < e->case_count; i++)
        list[i] = rank_item(e, e->cases[i].mean[e->order], i);
    qsort(list, (size_t)e->case_count, sizeof *list, compare_ranks);
    return list;
}

static const ranked_item *rank_classes(const evaluation *e)
{
    ranked_item *list = arena_alloc(e->memory, (size_t)e->class_count * sizeof *list + 1);

    for (int c = 0; c < e->class_count; c++) {
        metric_summary s;

        evaluation_summarise(e, c, &s);
        list[c] = rank_item(e, metric_summary_mean(&s, e->order), c);
    }
    qsort(list, (size_t)e->class_count, sizeof *list, compare_ranks);
    return list;
}

/* Whether rows of means over classes say more than the rows of classes. */
static bool means_are_shown(const evaluation *e)
{
    return e->class_count > 1 || metric_set_from(e->metrics, METRIC_OF_CASE) != 0;
}

static void print_case(const table *t, const evaluated_case *c)
{
    const evaluation *e = t->evaluation;

    for (int class = 0; class < e->class_count && !t->brief; class++) {
        print_names(t, c->name, e->classes[class].name);
        print_values(t, c->score[class].value);
        fputc('\n', t->to);
    }
    if (!means_are_shown(e))
        return;
    print_names(t, c->name, "(mean)");
    print_values(t, c->mean);
    fputc('\n', t->to);
}

/* Print the ends of the intervals of a class's means, or of the means over classes. */
static void print_interval(const table *t, int row, const char *class)
{
    double end[2][METRIC_KIND_COUNT];

    if (t->interval == NULL)
        return;
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        const mean_interval *found = &t->interval[row * METRIC_KIND_COUNT + kind];
        end[0][kind] = found->low;
        end[1][kind] = found->high;
    }
    for (int n = 0; n < 2; n++) {
        print_names(t, n == 0 ? "95 % from" : "95 % to", class);
        print_values(t, end[n]);
        fputc('\n', t->to);
    }
}

static void print_class_means(const table *t, int class)
{
    const evaluation *e = t->evaluation;
    double mean[METRIC_KIND_COUNT];
    metric_summary s;

    evaluation_summarise(e, class, &s);
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        mean[kind] = metric_summary_mean(&s, (metric_kind)kind);
    print_names(t, "mean", e->classes[class].name);
    print_values(t, mean);
    if ((e->metrics & ~metric_set_from(e->metrics, METRIC_OF_IMAGE)) != 0)
        fprintf(t->to, "   defined %" PRId64 ", empty %" PRId64 ", missed %" PRId64
                ", false alarms %" PRId64, e->case_count - s.empty - s.false_alarms, s.empty,
                s.missed, s.false_alarms);
    fputc('\n', t->to);
    if (!t->brief)
        print_interval(t, class, e->classes[class].name);
}

/* Print the classes with the worst and the best means. */
static void print_extreme_classes(const table *t)
{
    const evaluation *e = t->evaluation;
    const ranked_item *order = rank_classes(e);
    int defined = 0;

    while (defined < e->class_count && order[defined].badness > -INFINITY)
        defined++;
    defined = max_int(defined, 2 * CLASSES_SHOWN);
    for (int n = 0; n < CLASSES_SHOWN; n++)
        print_class_means(t, order[n].number);
    fputs("...\n", t->to);
    for (int n = defined - CLASSES_SHOWN; n < defined; n++)
        print_class_means(t, order[n].number);
}

static void print_means(const table *t)
{
    const evaluation *e = t->evaluation;
    double mean[METRIC_KIND_COUNT];

    if (t->brief)
        print_extreme_classes(t);
    for (int class = 0; class < e->class_count && !t->brief; class++)
        print_class_means(t, class);
    if (!means_are_shown(e))
        return;
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        mean[kind] = evaluation_mean(e, (metric_kind)kind);
    print_names(t, "mean", "(mean)");
    print_values(t, mean);
    fputc('\n', t->to);
    print_interval(t, e->class_count, "(mean)");
}

/* Explain the counts behind the means, where there is one above 0. */
static void print_legend(const table *t)
{
    const evaluation *e = t->evaluation;
    metric_summary s;

    for (int class = 0; class < e->class_count; class++) {
        evaluation_summarise(e, class, &s);
        if (s.empty + s.missed + s.false_alarms == 0)
            continue;
        fputs("of the cases of a class: empty ones have it in neither file, missed ones in the "
              "label alone, false alarms in the prediction alone\n", t->to);
        return;
    }
}

static void print_row(const table *t, const char *name, const char *class,
                      const double value[METRIC_KIND_COUNT])
{
    print_names(t, name, class);
    print_values(t, value);
    fputc('\n', t->to);
}

/* Print the means of a class, or of all classes, for each fold, then their mean and deviation. */
static void print_folds(const table *t, int class)
{
    const evaluation *e = t->evaluation;
    const char *row = class < e->class_count ? e->classes[class].name : "(mean)";
    double value[2][METRIC_KIND_COUNT];
    char name[32];

    for (int n = 0; n < e->fold_count; n++) {
        for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
            value[0][kind] = evaluation_fold_mean(e, &e->folds[n], class, (metric_kind)kind);
        snprintf(name, sizeof name, "fold %d", e->folds[n].number);
        print_row(t, name, row, value[0]);
    }
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        fold_spread s = evaluation_fold_spread(e, class, (metric_kind)kind);
        value[0][kind] = s.mean;
        value[1][kind] = s.deviation;
    }
    print_row(t, "folds mean", row, value[0]);
    print_row(t, "folds sd", row, value[1]);
}

/* Print the ids that no class lists, with the voxels of all cases. */
static void print_unlisted(const evaluation *e, FILE *to)
{
    enum { SHOWN_MAX = 8 };
    int64_t *voxels = arena_alloc(e->memory, (LABEL_ID_MAX + 1) * sizeof *voxels);
    int count = 0;

    for (int i = 0; i < e->case_count; i++) {
        const evaluated_case *c = &e->cases[i];
        for (int n = 0; n < c->unlisted_count; n++)
            voxels[c->unlisted[n].id] += c->unlisted[n].voxels;
    }
    for (int id = 0; id <= LABEL_ID_MAX; id++) {
        if (voxels[id] > 0 && count++ < SHOWN_MAX)
            fprintf(to, "%sid %d (%" PRId64 " voxel%s)",
                    count == 1 ? "not counted, since --labels does not list it: " : ", ", id,
                    voxels[id], voxels[id] == 1 ? "" : "s");
    }
    if (count > SHOWN_MAX)
        fprintf(to, " and %d more ids", count - SHOWN_MAX);
    fputs(count > 0 ? "\n" : "", to);
}

static int name_width(int width, const char *name)
{
    return max_int(width, min_int((int)strlen(name), NAME_WIDTH_MAX));
}

void evaluation_print_table(const evaluation *e, const mean_interval *interval, bool all, FILE *to)
{
    table t = { e, interval, to, (int)strlen(interval != NULL ? "95 % from" : "mean"),
                (int)strlen("(mean)"), !all && e->class_count > CLASSES_MAX };
    const ranked_item *order = rank_cases(e);

    for (int i = 0; i < e->case_count; i++)
        t.case_width = name_width(t.case_width, e->cases[i].name);
    if (e->fold_count > 0)
        t.case_width = name_width(t.case_width, "folds mean");
    for (int c = 0; c < e->class_count; c++)
        t.class_width = name_width(t.class_width, e->classes[c].name);
    print_header(&t);
    for (int i = 0; i < e->case_count; i++)
        print_case(&t, &e->cases[order[i].number]);
    print_means(&t);
    int first = t.brief ? e->class_count : 0;
    for (int class = first; e->fold_count > 0 && class <= e->class_count; class++)
        if (class < e->class_count || means_are_shown(e))
            print_folds(&t, class);
    if (t.brief)
        fprintf(to, "the worst and best %d of %d classes by %s; --all prints each, --csv FILE "
                "writes them\n", CLASSES_SHOWN, e->class_count, metric_facts[e->order].name);
    if ((e->metrics & ~metric_set_from(e->metrics, METRIC_OF_IMAGE)) != 0)
        print_legend(&t);
    print_unlisted(e, to);
}
