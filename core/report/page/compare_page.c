/*
 * compare_page.c - pair the cases of runs by name, and write what differs, with pictures.
 */
#include "report/page/compare_page.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/integer.h"
#include "base/text/text.h"
#include "metric/metric.h"
#include "metric/paired_test.h"
#include "report/html/html.h"
#include "report/html/page_frame.h"
#include "report/page/page_internal.h"

enum { SHOWN_MAX = 6 };       /* cases with pictures                                             */

typedef struct comparison_page {
    FILE *to;
    arena *memory;
    int count;
    const report_run *run;
    pons_error *err;
} comparison_page;

/* ---- settings -------------------------------------------------------------------------------- */

static const char *value_in(const report_run *r, const run_setting *like)
{
    return report_run_setting(r, like->section, like->key);
}

static bool differs(const comparison_page *p, const run_setting *s)
{
    const char *first = value_in(&p->run[0], s);

    for (int r = 1; r < p->count; r++)
        if (strcmp(first, value_in(&p->run[r], s)) != 0)
            return true;
    return false;
}

static void put_setting(const comparison_page *p, const run_setting *s)
{
    page_row(p->to, arena_format(p->memory, "[%s] %s", s->section, s->key));
    for (int r = 0; r < p->count; r++)
        page_cell(p->to, value_in(&p->run[r], s));
    page_row(p->to, NULL);
}

/* True for a setting that an earlier run has too. */
static bool was_put(const comparison_page *p, int before, const run_setting *s)
{
    for (int r = 0; r < before; r++)
        if (report_run_find(&p->run[r], s->section, s->key) != NULL)
            return true;
    return false;
}

/* Begin a table with a column for each run behind the first. */
static void begin_table(const comparison_page *p, const char *label, const char *first)
{
    const char **column = arena_alloc(p->memory, (size_t)(p->count + 1) * sizeof *column);

    column[0] = first;
    for (int r = 0; r < p->count; r++)
        column[r + 1] = p->run[r].name;
    page_table_begin(p->to, label, p->count + 1, column);
}

static bool any_differs(const comparison_page *p)
{
    for (int r = 0; r < p->count; r++)
        for (int i = 0; i < p->run[r].setting_count; i++)
            if (differs(p, &p->run[r].setting[i]))
                return true;
    return false;
}

static void put_settings(const comparison_page *p)
{
    page_section(p->to, "settings", "Settings that differ");
    if (!any_differs(p)) {
        fputs("<p>None.</p>\n", p->to);
        page_section(p->to, NULL, NULL);
        return;
    }
    begin_table(p, "Settings that differ", "setting");
    for (int r = 0; r < p->count; r++)
        for (int i = 0; i < p->run[r].setting_count; i++) {
            const run_setting *s = &p->run[r].setting[i];

            if (!was_put(p, r, s) && differs(p, s))
                put_setting(p, s);
        }
    page_table_end(p->to);
    page_section(p->to, NULL, NULL);
}

/* ---- paired cases ---------------------------------------------------------------------------- */

/* Two runs' cases of one metric; 'other' is the number of a case of 'a' in 'b', -1: it lacks it. */
typedef struct case_pairs {
    const case_scores *a, *b;
    int metric_a, metric_b, count;
    int *other;
    metric_kind kind;
} case_pairs;

static int find_name(int count, const char *const *list, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0)
            return i;
    return -1;
}

/* False if the runs have no case or not the metric in common. */
static bool pair_cases(const comparison_page *p, const report_run *a, const report_run *b,
                       case_pairs *out)
{
    *out = (case_pairs){ .a = &a->cases, .b = &b->cases };
    if (a->cases.case_count == 0 || b->cases.case_count == 0)
        return false;
    out->metric_a = report_run_metric(a);
    out->metric_b = find_name(b->cases.metric_count, b->cases.metric,
                              a->cases.metric[out->metric_a]);
    out->kind = metric_kind_find(a->cases.metric[out->metric_a]);
    out->other = arena_alloc(p->memory, (size_t)a->cases.case_count * sizeof *out->other);
    for (int n = 0; n < a->cases.case_count; n++) {
        out->other[n] = find_name(b->cases.case_count, b->cases.name, a->cases.name[n]);
        out->count += out->other[n] >= 0;
    }
    return out->metric_b >= 0 && out->kind < METRIC_KIND_COUNT && out->count > 0;
}

/* The values of a class in a pair; false where one of them is not finite. */
static bool pair_values(const case_pairs *c, int number, int class_a, int class_b, double *x,
                        double *y)
{
    if (c->other[number] < 0)
        return false;
    *x = case_scores_value(c->a, number, class_a, c->metric_a);
    *y = case_scores_value(c->b, c->other[number], class_b, c->metric_b);
    return isfinite(*x) && isfinite(*y);
}

/* A row: means, their difference, cases that are better and worse, and p of the test. */
static void put_test(const comparison_page *p, const case_pairs *c, int class_a, int class_b)
{
    double *difference = arena_alloc(p->memory, (size_t)c->a->case_count * sizeof *difference);
    double sum_a = 0, sum_b = 0, x, y, chance = NAN;
    int count = 0, better = 0, worse = 0;

    for (int n = 0; n < c->a->case_count; n++) {
        if (!pair_values(c, n, class_a, class_b, &x, &y))
            continue;
        sum_a += x;
        sum_b += y;
        better += metric_badness(c->kind, y) < metric_badness(c->kind, x);
        worse += metric_badness(c->kind, y) > metric_badness(c->kind, x);
        difference[count++] = y - x;
    }
    if (count == 0 || wilcoxon_signed_rank(count, difference, &chance, p->err) != PONS_OK)
        return;
    page_row(p->to, c->a->class[class_a]);
    fprintf(p->to, "<td class=\"n\">%d</td>", count);
    page_score(p->to, sum_a / count);
    page_score(p->to, sum_b / count);
    page_score(p->to, (sum_b - sum_a) / count);
    fprintf(p->to, "<td class=\"n\">%d</td><td class=\"n\">%d</td>", better, worse);
    page_number(p->to, chance);
    page_row(p->to, NULL);
}

static void put_tests(const comparison_page *p, const report_run *b)
{
    const char *column[] = { "class", "cases", p->run->name, b->name, "difference", "better",
                             "worse", "p" };
    case_pairs c;

    fputs("<h3>", p->to);
    html_put_text(p->to, b->name);
    fputs("</h3>\n", p->to);
    if (!pair_cases(p, p->run, b, &c)) {
        fputs("<p>It has no validation case and metric in common with the first run.</p>\n", p->to);
        return;
    }
    page_table_begin(p->to, arena_format(p->memory, "Test of %s", b->name), 8, column);
    for (int i = 0; i < c.a->class_count; i++) {
        int class = i == 0 ? c.a->class_count - 1 : i - 1;
        int other = find_name(c.b->class_count, c.b->class, c.a->class[class]);

        if (other >= 0)
            put_test(p, &c, class, other);
    }
    page_table_end(p->to);
}

/* The mean of each case of the first run, in all runs. */
static void put_values(const comparison_page *p)
{
    const case_scores *first = &p->run->cases;
    const int *order = case_scores_sort(p->memory, first, report_run_metric(p->run));
    case_pairs *c = arena_alloc(p->memory, (size_t)p->count * sizeof *c);
    bool *paired = arena_alloc(p->memory, (size_t)p->count * sizeof *paired);

    for (int r = 0; r < p->count; r++)
        paired[r] = pair_cases(p, p->run, &p->run[r], &c[r]);
    begin_table(p, "Means of the cases", "case");
    for (int n = 0; n < first->case_count; n++) {
        page_row(p->to, first->name[order[n]]);
        for (int r = 0; r < p->count; r++) {
            int other = paired[r] ? c[r].other[order[n]] : -1;

            page_score(p->to, other < 0 ? NAN
                       : case_scores_value(c[r].b, other, c[r].b->class_count - 1, c[r].metric_b));
        }
        page_row(p->to, NULL);
    }
    page_table_end(p->to);
}

/* Runs whose files come from different places may have other cases under the same names. */
static void put_other_data(const comparison_page *p)
{
    static const char *const key[] = { "source", "image" };

    for (int r = 1; r < p->count; r++)
        for (size_t i = 0; i < sizeof key / sizeof *key; i++)
            if (strcmp(report_run_setting(&p->run[r], "data", key[i]),
                       report_run_setting(p->run, "data", key[i])) != 0) {
                fputs("<p><strong>The runs have other datasets:</strong> cases are paired by "
                      "their names alone.</p>\n", p->to);
                return;
            }
}

static void put_cases(const comparison_page *p)
{
    const case_scores *first = &p->run->cases;

    page_section(p->to, "cases", "Validation cases");
    if (first->case_count == 0) {
        fputs("<p>The first run has no validation with scores of cases.</p>\n", p->to);
        page_section(p->to, NULL, NULL);
        return;
    }
    fputs("<p>By ", p->to);
    html_put_text(p->to, first->metric[report_run_metric(p->run)]);
    fputs(" of each run's last validation. The difference is that of the run minus the first run; "
          "p is two-sided, of Wilcoxon's signed-rank test over the cases that both have: exact up "
          "to 50 pairs that differ, beyond it normal with the variance of the ties.</p>\n", p->to);
    put_other_data(p);
    for (int r = 1; r < p->count; r++)
        put_tests(p, &p->run[r]);
    put_values(p);
    page_section(p->to, NULL, NULL);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* A case of the first run, and the range of its mean over the runs that show a picture of it. */
typedef struct case_spread {
    int number;
    double spread;
} case_spread;

/* The case of run 'r' that belongs to case 'number' of the first run; -1: it lacks it. */
static int case_in(const case_pairs *c, int number)
{
    return c->a == NULL ? -1 : c->other[number];
}

static double mean_in(const case_pairs *c, int number)
{
    return case_scores_value(c->b, c->other[number], c->b->class_count - 1, c->metric_b);
}

static bool has_picture(const report_run *r, int number)
{
    return access(case_scores_picture(r->memory, r->path, number), F_OK) == 0;
}

/* 0 where fewer than two runs have a value and a picture. */
static double find_spread(const comparison_page *p, const case_pairs *c, int number)
{
    double least = INFINITY, greatest = -INFINITY;

    for (int r = 0; r < p->count; r++) {
        int other = case_in(&c[r], number);
        double mean = other < 0 ? NAN : mean_in(&c[r], number);

        if (!isfinite(mean) || !has_picture(&p->run[r], other))
            continue;
        least = fmin(least, mean);
        greatest = fmax(greatest, mean);
    }
    return greatest > least ? greatest - least : 0;
}

/* Keep the cases with the largest spreads, the largest first; of equal ones the first. */
static int choose_shown(const comparison_page *p, const case_pairs *c, case_spread *shown)
{
    int count = 0;

    for (int n = 0; n < p->run->cases.case_count; n++) {
        case_spread s = { n, find_spread(p, c, n) };
        int at = count;

        while (at > 0 && shown[at - 1].spread < s.spread)
            at--;
        if (s.spread <= 0 || at == SHOWN_MAX)
            continue;
        count = min_int(count + 1, SHOWN_MAX);
        memmove(&shown[at + 1], &shown[at], (size_t)(count - 1 - at) * sizeof *shown);
        shown[at] = s;
    }
    return count;
}

static void put_shown(const comparison_page *p, const case_pairs *c, int number, size_t *used)
{
    fputs("<article class=\"card\">\n<h3>", p->to);
    html_put_text(p->to, p->run->cases.name[number]);
    fputs("</h3>\n<div class=\"pair\">\n", p->to);
    for (int r = 0; r < p->count; r++) {
        int other = case_in(&c[r], number);

        if (other < 0 || !has_picture(&p->run[r], other))
            continue;
        fputs("<figure><figcaption>", p->to);
        html_put_text(p->to, p->run[r].name);
        fprintf(p->to, " <small>%.4f</small></figcaption>\n", mean_in(&c[r], number));
        page_put_picture(p->to, &p->run[r], other, used);
        fputs("</figure>\n", p->to);
    }
    fputs("</div>\n</article>\n", p->to);
}

static void put_pictures(const comparison_page *p)
{
    case_pairs *c = arena_alloc(p->memory, (size_t)p->count * sizeof *c);
    case_spread shown[SHOWN_MAX];
    size_t used = 0;
    int count;

    for (int r = 0; r < p->count; r++)
        if (!pair_cases(p, p->run, &p->run[r], &c[r]))
            c[r].a = NULL;
    count = choose_shown(p, c, shown);
    if (count == 0)
        return;
    page_section(p->to, "pictures", "Cases that differ most");
    fprintf(p->to, "<p>The %d case%s whose means of ", count, text_plural(count));
    html_put_text(p->to, p->run->cases.metric[report_run_metric(p->run)]);
    fputs(" differ most between the runs. Each picture has the slices with most wrong voxels of "
          "its own run.</p>\n", p->to);
    page_put_legend(p->to, p->run);
    for (int n = 0; n < count; n++)
        put_shown(p, c, shown[n].number, &used);
    page_section(p->to, NULL, NULL);
}

/* ---- page ------------------------------------------------------------------------------------ */

static void put_runs(const comparison_page *p)
{
    static const char *const column[] = { "run", "steps", "metric", "best value", "last value",
                                          "seconds of steps" };

    page_section(p->to, "runs", "Runs");
    page_table_begin(p->to, "Runs", 6, column);
    for (int r = 0; r < p->count; r++) {
        const run_history *h = &p->run[r].history;
        const history_series *s;
        int best = report_run_best(&p->run[r], &s);

        page_row(p->to, p->run[r].name);
        fprintf(p->to, "<td class=\"n\">%" PRId64 "</td>", h->steps);
        page_cell(p->to, s != NULL ? s->name : "");
        page_score(p->to, best >= 0 ? s->value[best] : NAN);
        page_score(p->to, s != NULL ? s->value[s->count - 1] : NAN);
        page_number(p->to, history_series_sum(run_history_find(h, "step", "seconds")));
        page_row(p->to, NULL);
    }
    page_table_end(p->to);
    page_section(p->to, NULL, NULL);
}

static void put_page(const comparison_page *p)
{
    page_begin(p->to, arena_format(p->memory, "Comparison of %d runs", p->count));
    fputs("</header>\n<main>\n", p->to);
    put_runs(p);
    put_settings(p);
    page_put_curves(p->to, p->memory, p->count, p->run);
    put_cases(p);
    put_pictures(p);
    page_end(p->to);
}

/* Runs are named by their paths as given, since folds of two runs have equal names. */
static pons_status read_runs(arena *memory, int count, const char *const *path, report_run *out,
                             pons_error *err)
{
    for (int r = 0; r < count && err->status == PONS_OK; r++)
        if (report_run_read(memory, path[r], &out[r], err) == PONS_OK)
            out[r].name = path[r];
    return err->status;
}

pons_status compare_page_write(int count, const char *const *run, const char *path,
                               pons_error *err)
{
    arena *memory = arena_new();
    comparison_page p = { .memory = memory, .count = count, .err = err };
    report_run *read;
    locale_t before;
    safe_file f;

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a report");
    before = text_locale_begin();
    read = arena_alloc(memory, (size_t)count * sizeof *read);
    p.run = read;
    if (read_runs(memory, count, run, read, err) == PONS_OK
        && safe_file_open(&f, path, err) == PONS_OK) {
        f.unsynced = true;
        p.to = f.file;
        put_page(&p);
        if (err->status == PONS_OK)
            safe_file_commit(&f, err);
        else
            safe_file_discard(&f);
    }
    text_locale_end(before);
    arena_free(memory);
    return err->status;
}
