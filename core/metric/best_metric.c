/*
 * best_metric.c - parse [train] best into a metric and a class.
 */
#include "metric/best_metric.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/dataset/class_list.h"

/* The metric whose name ends at a point or at the end of 'name'; METRIC_KIND_COUNT: none. */
static metric_kind find_metric(const char *name)
{
    int kind = 0;

    while (kind < METRIC_KIND_COUNT
           && (strncmp(name, metric_facts[kind].name, strlen(metric_facts[kind].name)) != 0
               || strchr(".", name[strlen(metric_facts[kind].name)]) == NULL))
        kind++;
    return (metric_kind)kind;
}

static pons_status refuse_metric(const char *name, pons_error *err)
{
    char names[512];
    size_t used = 0;

    for (int kind = 0; kind < METRIC_KIND_COUNT && used < sizeof names; kind++)
        used += (size_t)snprintf(names + used, sizeof names - used, " %s",
                                 metric_facts[kind].name);
    return pons_fail(err, PONS_CONFIG, "[train] best is '%s', expected a metric, a point, and "
                     "'mean' or a class, as in dice.mean; metrics are%s", name, names);
}

pons_status best_metric_find(const char *name, int class_count, const data_class *classes,
                             best_metric *out, pons_error *err)
{
    metric_kind kind = find_metric(name);

    *out = (best_metric){ kind, -1 };
    if (kind == METRIC_KIND_COUNT)
        return refuse_metric(name, err);
    const char *of = name + strlen(metric_facts[kind].name);
    if (of[0] == '\0' || strcmp(of, ".mean") == 0)
        return PONS_OK;
    if (metric_facts[kind].source == METRIC_OF_CASE)
        return pons_fail(err, PONS_CONFIG, "[train] best is '%s', but %s is a metric of all "
                         "classes of a case, expected %s.mean", name, metric_facts[kind].name,
                         metric_facts[kind].name);
    out->class_index = class_index_of_name(classes, class_count, of + 1);
    if (out->class_index >= 0)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "[train] best is '%s': there is no class '%s', expected "
                     "%s.mean or %s of a class", name, of + 1, metric_facts[kind].name,
                     metric_facts[kind].name);
}

bool best_metric_improves(best_metric m, best_score score, best_score best)
{
    if (!isfinite(score.value) || score.undefined != best.undefined)
        return isfinite(score.value) && score.undefined < best.undefined;
    return metric_badness(m.kind, score.value) < metric_badness(m.kind, best.value);
}
