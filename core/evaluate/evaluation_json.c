/*
 * evaluation_json.c - an evaluation as one JSON object, cases in the order of their files.
 */
#include "evaluate/evaluation.h"

#include <inttypes.h>

#include "base/file/json.h"
#include "evaluate/value_text.h"

/* Write a comma before every entry but the first. */
static void put_comma(FILE *to, bool *first)
{
    fputs(*first ? "" : ",", to);
    *first = false;
}

static void put_class(const evaluation *e, const class_score *s, FILE *to)
{
    bool first = true;

    fputc('{', to);
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        if (!metric_set_has(e->metrics, (metric_kind)kind)
            || metric_facts[kind].source == METRIC_OF_CASE)
            continue;
        put_comma(to, &first);
        fprintf(to, "\"%s\":", metric_facts[kind].name);
        value_put_json(to, s->value[kind]);
    }
    put_comma(to, &first);
    fprintf(to, "\"voxels\":{\"prediction\":%" PRId64 ",\"label\":%" PRId64 "}}",
            s->count.prediction, s->count.label);
}

static void put_means(const evaluation *e, const double mean[METRIC_KIND_COUNT], FILE *to)
{
    bool first = true;

    fputc('{', to);
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        if (!metric_set_has(e->metrics, (metric_kind)kind))
            continue;
        put_comma(to, &first);
        fprintf(to, "\"%s\":", metric_facts[kind].name);
        value_put_json(to, mean[kind]);
    }
    fputc('}', to);
}

static void put_case(const evaluation *e, const evaluated_case *c, FILE *to)
{
    fputs("{\"case\":", to);
    json_put_text(to, c->name);
    fputs(",\"classes\":{", to);
    for (int i = 0; i < e->class_count; i++) {
        fputs(i > 0 ? "," : "", to);
        json_put_text(to, e->classes[i].name);
        fputc(':', to);
        put_class(e, &c->score[i], to);
    }
    fputs("},\"mean\":", to);
    put_means(e, c->mean, to);
    fputs(",\"unlisted\":{", to);
    for (int i = 0; i < c->unlisted_count; i++)
        fprintf(to, "%s\"%d\":%" PRId64, i > 0 ? "," : "", c->unlisted[i].id,
                c->unlisted[i].voxels);
    fputs("}}", to);
}

static void put_interval(const mean_interval *i, FILE *to)
{
    fputc('[', to);
    value_put_json(to, i->low);
    fputc(',', to);
    value_put_json(to, i->high);
    fputc(']', to);
}

static void put_summary(const evaluation *e, int class, const mean_interval *interval, FILE *to)
{
    metric_summary s;
    bool first = true;

    evaluation_summarise(e, class, &s);
    fputc('{', to);
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        if (!metric_set_has(e->metrics, (metric_kind)kind)
            || metric_facts[kind].source == METRIC_OF_CASE)
            continue;
        put_comma(to, &first);
        fprintf(to, "\"%s\":{\"mean\":", metric_facts[kind].name);
        value_put_json(to, metric_summary_mean(&s, (metric_kind)kind));
        if (interval != NULL) {
            fputs(",\"interval\":", to);
            put_interval(&interval[class * METRIC_KIND_COUNT + kind], to);
        }
        fprintf(to, ",\"defined\":%" PRId64, s.defined[kind]);
        if (metric_facts[kind].source != METRIC_OF_IMAGE)
            fprintf(to, ",\"empty\":%" PRId64 ",\"missed\":%" PRId64 ",\"false_alarms\":%" PRId64,
                    s.empty, s.missed, s.false_alarms);
        fputc('}', to);
    }
    fputc('}', to);
}

/* The intervals of the means over classes. */
static void put_mean_intervals(const evaluation *e, const mean_interval *interval, FILE *to)
{
    bool first = true;

    fputs(",\"mean_interval\":{", to);
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        if (!metric_set_has(e->metrics, (metric_kind)kind))
            continue;
        put_comma(to, &first);
        fprintf(to, "\"%s\":", metric_facts[kind].name);
        put_interval(&interval[e->class_count * METRIC_KIND_COUNT + kind], to);
    }
    fputc('}', to);
}

/* The name of a row of means: a class, or "(mean)" for the mean over classes. */
static const char *row_name(const evaluation *e, int class)
{
    return class < e->class_count ? e->classes[class].name : "(mean)";
}

static void put_fold(const evaluation *e, const evaluated_fold *f, FILE *to)
{
    fprintf(to, "{\"fold\":%d,\"cases\":[", f->number);
    for (int i = f->first; i < f->end; i++) {
        fputs(i > f->first ? "," : "", to);
        json_put_text(to, e->cases[i].name);
    }
    fputs("],\"mean\":{", to);
    for (int class = 0; class <= e->class_count; class++) {
        double mean[METRIC_KIND_COUNT];

        for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
            mean[kind] = evaluation_fold_mean(e, f, class, (metric_kind)kind);
        fputs(class > 0 ? "," : "", to);
        json_put_text(to, row_name(e, class));
        fputc(':', to);
        put_means(e, mean, to);
    }
    fputs("}}", to);
}

static void put_spread(const evaluation *e, int class, FILE *to)
{
    bool first = true;

    fputc('{', to);
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        fold_spread s;

        if (!metric_set_has(e->metrics, (metric_kind)kind))
            continue;
        s = evaluation_fold_spread(e, class, (metric_kind)kind);
        put_comma(to, &first);
        fprintf(to, "\"%s\":{\"mean\":", metric_facts[kind].name);
        value_put_json(to, s.mean);
        fputs(",\"sd\":", to);
        value_put_json(to, s.deviation);
        fputc('}', to);
    }
    fputc('}', to);
}

/* Write the folds of a cross-validation, and their spread. */
static void put_folds(const evaluation *e, FILE *to)
{
    fputs(",\"folds\":[", to);
    for (int n = 0; n < e->fold_count; n++) {
        fputs(n > 0 ? "," : "", to);
        put_fold(e, &e->folds[n], to);
    }
    fputs("],\"over_folds\":{", to);
    for (int class = 0; class <= e->class_count; class++) {
        fputs(class > 0 ? "," : "", to);
        json_put_text(to, row_name(e, class));
        fputc(':', to);
        put_spread(e, class, to);
    }
    fputc('}', to);
}

void evaluation_print_json(const evaluation *e, const mean_interval *interval, FILE *to)
{
    double mean[METRIC_KIND_COUNT];

    fputs("{\"cases\":[", to);
    for (int i = 0; i < e->case_count; i++) {
        fputs(i > 0 ? "," : "", to);
        put_case(e, &e->cases[i], to);
    }
    fputs("],\"summary\":{", to);
    for (int i = 0; i < e->class_count; i++) {
        fputs(i > 0 ? "," : "", to);
        json_put_text(to, e->classes[i].name);
        fputc(':', to);
        put_summary(e, i, interval, to);
    }
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        mean[kind] = evaluation_mean(e, (metric_kind)kind);
    fputs("},\"mean\":", to);
    put_means(e, mean, to);
    if (interval != NULL)
        put_mean_intervals(e, interval, to);
    if (e->fold_count > 0)
        put_folds(e, to);
    fputs(",\"definition\":{\"nsd_mm\":", to);
    json_put_number(to, e->tolerance);
    fputs(",\"background\":false,\"grid\":\"file\"}}\n", to);
}
