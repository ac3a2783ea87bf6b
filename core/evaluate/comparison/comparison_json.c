/*
 * comparison_json.c - a comparison as one JSON object, cases in the order of their files.
 */
#include "evaluate/comparison/comparison.h"

#include "base/file/json.h"
#include "evaluate/value_text.h"

static void put_pair(const char *name_a, double a, const char *name_b, double b, FILE *to)
{
    fprintf(to, "\"%s\":", name_a);
    value_put_json(to, a);
    fprintf(to, ",\"%s\":", name_b);
    value_put_json(to, b);
}

static void put_metrics(const comparison *c, int class, FILE *to)
{
    bool first = true;

    fputc('{', to);
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        const paired_metric *m = &c->metric[class * METRIC_KIND_COUNT + kind];

        if (!metric_set_has(c->a->metrics, (metric_kind)kind)
            || (class < c->a->class_count && metric_facts[kind].source == METRIC_OF_CASE))
            continue;
        fprintf(to, "%s\"%s\":{\"cases\":%d,", first ? "" : ",", metric_facts[kind].name, m->cases);
        put_pair("a", m->mean_a, "b", m->mean_b, to);
        fputc(',', to);
        put_pair("difference", m->difference, "p", m->p, to);
        fprintf(to, ",\"better\":%d,\"worse\":%d}", m->better, m->worse);
        first = false;
    }
    fputc('}', to);
}

static void put_values(const comparison *c, int number, FILE *to)
{
    bool first = true;

    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        if (!metric_set_has(c->a->metrics, (metric_kind)kind))
            continue;
        fprintf(to, "%s\"%s\":{", first ? "" : ",", metric_facts[kind].name);
        put_pair("a", c->a->cases[number].mean[kind], "b", c->b->cases[number].mean[kind], to);
        fputc('}', to);
        first = false;
    }
}

void comparison_print_json(const comparison *c, FILE *to)
{
    const evaluation *a = c->a;

    fputs("{\"cases\":[", to);
    for (int i = 0; i < a->case_count; i++) {
        fprintf(to, "%s{\"case\":", i > 0 ? "," : "");
        json_put_text(to, a->cases[i].name);
        fputs(",\"mean\":{", to);
        put_values(c, i, to);
        fputs("}}", to);
    }
    fputs("],\"classes\":{", to);
    for (int class = 0; class < a->class_count; class++) {
        fputs(class > 0 ? "," : "", to);
        json_put_text(to, a->classes[class].name);
        fputc(':', to);
        put_metrics(c, class, to);
    }
    fputs("},\"mean\":", to);
    put_metrics(c, a->class_count, to);
    fputs("}\n", to);
}
