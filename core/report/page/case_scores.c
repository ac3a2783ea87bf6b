/*
 * case_scores.c - write, read and sort the scores of validation cases.
 */
#include "report/page/case_scores.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/csv_text.h"
#include "base/file/file.h"
#include "base/file/table_file.h"
#include "base/text/text.h"
#include "metric/metric.h"

enum { FIRST_METRIC = 2 };     /* columns case and class are before it, step follows              */

double case_scores_value(const case_scores *s, int number, int class, int metric)
{
    return s->value[((int64_t)number * s->class_count + class) * s->metric_count + metric];
}

pons_status case_scores_make_folder(arena *memory, const char *run, pons_error *err)
{
    return folder_make_last(arena_format(memory, "%s/validation", run), err);
}

static char *table_path(arena *memory, const char *run)
{
    return arena_format(memory, "%s/validation/cases.csv", run);
}

const char *case_scores_picture(arena *memory, const char *run, int number)
{
    return arena_format(memory, "%s/validation/case_%04d.png", run, number + 1);
}

/* ---- write ----------------------------------------------------------------------------------- */

static void put_decision(FILE *to, const case_scores *s, int number)
{
    if (s->label == NULL)
        return;
    fputc(',', to);
    csv_put_text(to, s->label[number]);
    fputc(',', to);
    csv_put_text(to, s->decision[number]);
}

static void put_table(FILE *to, const case_scores *s)
{
    fputs("case,class", to);
    for (int m = 0; m < s->metric_count; m++)
        fprintf(to, ",%s", s->metric[m]);
    fprintf(to, ",step%s\n", s->label != NULL ? ",label,decision" : "");
    for (int n = 0; n < s->case_count; n++)
        for (int c = 0; c < s->class_count; c++) {
            csv_put_text(to, s->name[n]);
            fputc(',', to);
            csv_put_text(to, s->class[c]);
            for (int m = 0; m < s->metric_count; m++) {
                fputc(',', to);
                csv_put_number(to, case_scores_value(s, n, c, m));
            }
            fprintf(to, ",%" PRId64, s->step);
            put_decision(to, s, n);
            fputc('\n', to);
        }
}

pons_status case_scores_write(const char *run, const case_scores *s, pons_error *err)
{
    arena *memory = arena_new();
    safe_file f;

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (case_scores_make_folder(memory, run, err) == PONS_OK
        && safe_file_open(&f, table_path(memory, run), err) == PONS_OK) {
        f.unsynced = true;
        put_table(f.file, s);
        safe_file_commit(&f, err);
    }
    arena_free(memory);
    return err->status;
}

/* ---- read ------------------------------------------------------------------------------------ */

static double read_value(const char *cell)
{
    double value;

    if (strcmp(cell, "inf") == 0 || strcmp(cell, "-inf") == 0)
        return cell[0] == '-' ? -INFINITY : INFINITY;
    return text_real(cell, &value) ? value : NAN;
}

/* Rows up to the first case's mean have its classes. */
static int count_classes(const table_file *t)
{
    int count = 0;

    while (count < t->row_count && strcmp(t->row[count].cell[1], CASE_SCORES_MEAN) != 0)
        count++;
    return count + 1;
}

/* The last column named 'step'; 0: there is none. */
static int step_column(const table_file *t)
{
    int found = 0;

    for (int c = FIRST_METRIC; c < t->column_count; c++)
        found = strcmp(t->column[c], "step") == 0 ? c : found;
    return found;
}

static void fill_decisions(arena *memory, const table_file *t, int column, case_scores *out)
{
    const char **label = arena_alloc(memory, (size_t)t->row_count * sizeof *label);
    const char **decision = arena_alloc(memory, (size_t)t->row_count * sizeof *decision);

    for (int row = 0; row < t->row_count; row++) {
        label[row] = t->row[row].cell[column];
        decision[row] = t->row[row].cell[column + 1];
    }
    out->label = label;
    out->decision = decision;
}

static pons_status fill_scores(arena *memory, const table_file *t, case_scores *out,
                               pons_error *err)
{
    int classes = count_classes(t), step = step_column(t), metrics = step - FIRST_METRIC;
    const char **name, **class;
    double *value;

    if (metrics < 1 || t->row_count % classes != 0
        || !text_integer(t->row[0].cell[step], &out->step))
        return pons_fail(err, PONS_DATA, "'%s' is no table of validation cases: %d rows of %d "
                         "columns", t->path, t->row_count, t->column_count);
    out->case_count = t->row_count / classes;
    out->class_count = classes;
    out->metric_count = metrics;
    name = arena_alloc(memory, (size_t)out->case_count * sizeof *name);
    class = arena_alloc(memory, (size_t)classes * sizeof *class);
    value = arena_alloc(memory, (size_t)t->row_count * (size_t)metrics * sizeof *value);
    for (int row = 0; row < t->row_count; row++) {
        name[row / classes] = t->row[row].cell[0];
        class[row % classes] = t->row[row].cell[1];
        for (int m = 0; m < metrics; m++)
            value[row * metrics + m] = read_value(t->row[row].cell[FIRST_METRIC + m]);
    }
    if (t->column_count == step + 3)
        fill_decisions(memory, t, step + 1, out);
    out->name = name;
    out->class = class;
    out->metric = t->column + FIRST_METRIC;
    out->value = value;
    return PONS_OK;
}

pons_status case_scores_read(arena *memory, const char *run, case_scores *out, pons_error *err)
{
    const char *path = table_path(memory, run);
    table_file t;

    *out = (case_scores){ .case_count = 0 };
    if (access(path, F_OK) != 0)
        return PONS_OK;
    if (table_file_read(memory, path, &t, err) != PONS_OK || t.row_count == 0)
        return err->status;
    return fill_scores(memory, &t, out, err);
}

/* ---- order ----------------------------------------------------------------------------------- */

typedef struct ranked_case {
    int number;
    double badness;           /* NaN: undefined                                                   */
} ranked_case;

static int compare_cases(const void *a, const void *b)
{
    const ranked_case *x = a, *y = b;

    if (isnan(x->badness) != isnan(y->badness))
        return isnan(x->badness) ? 1 : -1;
    if (x->badness > y->badness || x->badness < y->badness)
        return x->badness > y->badness ? -1 : 1;
    return x->number - y->number;
}

const int *case_scores_sort(arena *memory, const case_scores *s, int metric)
{
    metric_kind kind = metric_kind_find(s->metric[metric]);
    ranked_case *ranked = arena_alloc(memory, (size_t)s->case_count * sizeof *ranked);
    int *order = arena_alloc(memory, (size_t)s->case_count * sizeof *order);

    for (int n = 0; n < s->case_count; n++) {
        double value = case_scores_value(s, n, s->class_count - 1, metric);

        ranked[n] = (ranked_case){ n, kind < METRIC_KIND_COUNT ? metric_badness(kind, value)
                                                               : -value };
    }
    qsort(ranked, (size_t)s->case_count, sizeof *ranked, compare_cases);
    for (int n = 0; n < s->case_count; n++)
        order[n] = ranked[n].number;
    return order;
}
