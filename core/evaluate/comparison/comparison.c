/*
 * comparison.c - compare two evaluations case by case.
 */
#include "evaluate/comparison/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/text/quote.h"
#include "base/text/text.h"
#include "evaluate/value_text.h"
#include "metric/paired_test.h"

/* The value of a class in a case, or the mean over classes if class is class_count. */
static double value_of(const evaluation *e, int number, int class, int kind)
{
    const evaluated_case *c = &e->cases[number];

    return class < e->class_count ? c->score[class].value[kind] : c->mean[kind];
}

/* y - x; equal infinite values differ by nothing. */
static double difference_of(double x, double y)
{
    return x == y ? 0 : y - x;
}

/* ---- differences ----------------------------------------------------------------------------- */

static pons_status compare_metric(const comparison *c, int class, int kind, double *difference,
                                  paired_metric *out, pons_error *err)
{
    double sum_a = 0, sum_b = 0;

    *out = (paired_metric){ .cases = 0, .p = NAN };
    for (int i = 0; i < c->a->case_count; i++) {
        double x = value_of(c->a, i, class, kind), y = value_of(c->b, i, class, kind);
        double loss = metric_badness((metric_kind)kind, y) - metric_badness((metric_kind)kind, x);

        if (isnan(x) || isnan(y))
            continue;
        sum_a += x;
        sum_b += y;
        out->better += loss < 0;
        out->worse += loss > 0;
        difference[out->cases++] = difference_of(x, y);
    }
    out->mean_a = out->cases > 0 ? sum_a / out->cases : NAN;
    out->mean_b = out->cases > 0 ? sum_b / out->cases : NAN;
    /* Infinite means are equal whatever their finite cases are. */
    out->difference = !isfinite(out->mean_a) && out->better + out->worse > 0
                      ? out->mean_b - out->mean_a : difference_of(out->mean_a, out->mean_b);
    return out->cases > 0 ? wilcoxon_signed_rank(out->cases, difference, &out->p, err) : PONS_OK;
}

pons_status comparison_make(const evaluation *a, const evaluation *b, comparison *out,
                            pons_error *err)
{
    int rows = a->class_count + 1;
    double *difference = arena_alloc(a->memory, (size_t)a->case_count * sizeof *difference + 1);

    *out = (comparison){ a, b, arena_alloc(a->memory, (size_t)rows * METRIC_KIND_COUNT
                                           * sizeof *out->metric) };
    for (int class = 0; class < rows; class++)
        for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
            if (metric_set_has(a->metrics, (metric_kind)kind)
                && compare_metric(out, class, kind, difference,
                                  &out->metric[class * METRIC_KIND_COUNT + kind], err) != PONS_OK)
                return err->status;
    return PONS_OK;
}

/* ---- table ----------------------------------------------------------------------------------- */

enum { NAME_WIDTH_MAX = 40, VALUE_WIDTH = 10 };

static void print_value(FILE *to, double value)
{
    fputs("  ", to);
    value_print(to, VALUE_WIDTH, value);
}

static int name_width(int width, const char *name)
{
    return max_int(width, min_int((int)strlen(name), NAME_WIDTH_MAX));
}

static const char *class_name(const comparison *c, int class)
{
    return class < c->a->class_count ? c->a->classes[class].name : "(mean)";
}

/* Classes of a case for which 'e' alone has no value, so that its mean is of fewer classes. */
static int missing_classes(const evaluation *e, const evaluation *other, int number, int kind)
{
    int count = 0;

    for (int class = 0; class < e->class_count; class++)
        count += isnan(value_of(e, number, class, kind))
                 && !isnan(value_of(other, number, class, kind));
    return count;
}

/* End a row of means in cases 'first' .. 'end' - 1; the means of fewer classes are marked. */
static void end_means(const comparison *c, int first, int end, int kind, FILE *to)
{
    const evaluation *side[2] = { c->a, c->b };

    for (int n = 0; n < 2 && metric_facts[kind].source != METRIC_OF_CASE; n++) {
        int most = 0, cases = 0, classes = c->a->class_count;
        for (int i = first; i < end; i++) {
            int missing = missing_classes(side[n], side[1 - n], i, kind);
            cases += missing > 0;
            most = max_int(most, missing);
        }
        if (cases > 0 && end - first == 1)
            fprintf(to, "  %c of %d of %d classes", "AB"[n], classes - most, classes);
        else if (cases > 0)
            fprintf(to, "  %c of fewer classes in %d case%s", "AB"[n], cases, text_plural(cases));
    }
    fputc('\n', to);
}

static void print_metrics(const comparison *c, int class, int width, FILE *to)
{
    for (int n = 0; n < METRIC_KIND_COUNT; n++) {
        metric_kind kind = c->a->column[n];
        const paired_metric *m = &c->metric[class * METRIC_KIND_COUNT + (int)kind];
        bool shown = class == c->a->class_count || metric_facts[kind].source != METRIC_OF_CASE;

        if (!metric_set_has(c->a->metrics, kind) || !shown)
            continue;
        quote_print(to, "%-*.4000s", width, class_name(c, class));
        fprintf(to, "  %-17s  %5d", metric_facts[kind].name, m->cases);
        print_value(to, m->mean_a);
        print_value(to, m->mean_b);
        print_value(to, m->difference);
        fprintf(to, "  %6d  %5d", m->better, m->worse);
        if (isnan(m->p))
            fprintf(to, "  %8s", "-");
        else
            fprintf(to, "  %8.2g", m->p);
        if (class == c->a->class_count)
            end_means(c, 0, c->a->case_count, (int)kind, to);
        else
            fputc('\n', to);
    }
}

/* A case and by how much B is worse than A in it; -infinity: not defined. */
typedef struct ranked_case {
    double loss;
    int number;
} ranked_case;

static int compare_losses(const void *a, const void *b)
{
    const ranked_case *x = a, *y = b;

    if (x->loss != y->loss)
        return x->loss > y->loss ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static const ranked_case *rank_cases(const comparison *c)
{
    const evaluation *a = c->a;
    ranked_case *list = arena_alloc(a->memory, (size_t)a->case_count * sizeof *list + 1);

    for (int i = 0; i < a->case_count; i++) {
        double loss = metric_badness(a->order, value_of(c->b, i, a->class_count, (int)a->order))
                      - metric_badness(a->order, value_of(a, i, a->class_count, (int)a->order));
        list[i] = (ranked_case){ isnan(loss) ? -INFINITY : loss, i };
    }
    qsort(list, (size_t)a->case_count, sizeof *list, compare_losses);
    return list;
}

static void print_cases(const comparison *c, FILE *to)
{
    const evaluation *a = c->a;
    const ranked_case *order = rank_cases(c);
    int width = (int)strlen("case");

    for (int i = 0; i < a->case_count; i++)
        width = name_width(width, a->cases[i].name);
    fprintf(to, "\n%-*s  %-17s  %5s  %*s  %*s  %*s\n", width, "case", "metric", "", VALUE_WIDTH,
            "A", VALUE_WIDTH, "B", VALUE_WIDTH, "B - A");
    for (int i = 0; i < a->case_count; i++) {
        double x = value_of(a, order[i].number, a->class_count, (int)a->order);
        double y = value_of(c->b, order[i].number, a->class_count, (int)a->order);

        quote_print(to, "%-*.4000s", width, a->cases[order[i].number].name);
        fprintf(to, "  %-17s  %5s", metric_facts[a->order].name, "");
        print_value(to, x);
        print_value(to, y);
        print_value(to, difference_of(x, y));
        end_means(c, order[i].number, order[i].number + 1, (int)a->order, to);
    }
}

void comparison_print_table(const comparison *c, FILE *to)
{
    int width = (int)strlen("(mean)"), count = c->a->class_count;
    bool means = count > 1 || metric_set_from(c->a->metrics, METRIC_OF_CASE) != 0;

    for (int class = 0; class < count; class++)
        width = name_width(width, class_name(c, class));
    fprintf(to, "%-*s  %-17s  %5s  %*s  %*s  %*s  %6s  %5s  %8s\n", width, "class", "metric",
            "cases", VALUE_WIDTH, "A", VALUE_WIDTH, "B", VALUE_WIDTH, "B - A", "better", "worse",
            "p");
    for (int class = 0; class < count + means; class++)
        print_metrics(c, class, width, to);
    print_cases(c, to);
}
