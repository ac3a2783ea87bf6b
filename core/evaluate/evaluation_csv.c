/*
 * evaluation_csv.c - an evaluation as a table for other programs (RFC 4180): a row for each case
 * and class, and one with class '(mean)' for each case. The last column of a cross-validation is
 * the fold.
 */
#include "evaluate/evaluation.h"

#include <inttypes.h>

#include "base/file/csv_text.h"
#include "base/file/file.h"

static void put_header(const evaluation *e, FILE *to)
{
    fputs("case,class", to);
    for (int n = 0; n < METRIC_KIND_COUNT; n++)
        if (metric_set_has(e->metrics, e->column[n]))
            fprintf(to, ",%s", metric_facts[e->column[n]].name);
    fprintf(to, ",prediction_voxels,label_voxels%s\n", e->fold_count > 0 ? ",fold" : "");
}

/* Write the names and values of a row. The field of an undefined value is empty. */
static void put_values(const evaluation *e, const char *name, const char *class,
                       const double value[METRIC_KIND_COUNT], FILE *to)
{
    csv_put_text(to, name);
    fputc(',', to);
    csv_put_text(to, class);
    for (int n = 0; n < METRIC_KIND_COUNT; n++) {
        if (!metric_set_has(e->metrics, e->column[n]))
            continue;
        fputc(',', to);
        csv_put_number(to, value[e->column[n]]);
    }
}

/* End a row of case 'number'. */
static void put_end(const evaluation *e, int number, FILE *to)
{
    if (e->fold_count > 0)
        fprintf(to, ",%d", evaluation_fold_of(e, number));
    fputc('\n', to);
}

static void put_case(const evaluation *e, int number, FILE *to)
{
    const evaluated_case *c = &e->cases[number];

    for (int class = 0; class < e->class_count; class++) {
        const class_score *s = &c->score[class];

        put_values(e, c->name, e->classes[class].name, s->value, to);
        fprintf(to, ",%" PRId64 ",%" PRId64, s->count.prediction, s->count.label);
        put_end(e, number, to);
    }
    put_values(e, c->name, "(mean)", c->mean, to);
    fputs(",,", to);
    put_end(e, number, to);
}

pons_status evaluation_write_csv(const evaluation *e, const char *path, pons_error *err)
{
    safe_file f;

    if (safe_file_open(&f, path, err) != PONS_OK)
        return err->status;
    put_header(e, f.file);
    for (int i = 0; i < e->case_count; i++)
        put_case(e, i, f.file);
    return safe_file_commit(&f, err);
}
