/*
 * best_metric.c - a metric and a class from the text that names them.
 */
#include "metric/best_metric.h"

#include <string.h>

#include "config/sections.h"
#include "data/dataset/class_list.h"

/* Whether 'name' is a metric's, with the point and what follows. */
static bool is_metric(const char *name, const char *metric)
{
    size_t size = strlen(metric);

    return strncmp(name, metric, size) == 0 && name[size] == '.';
}

static pons_status refuse_best(const char *name, pons_error *err)
{
    size_t size = strcspn(name, ".");

    if (sections_lack_value("train", "best", name, size))
        return pons_fail(err, PONS_CONFIG, "[train] best is '%s': '%.*s' is not in this build",
                         name, (int)size, name);
    return pons_fail(err, PONS_CONFIG, "[train] best is '%s', expected dice.mean, iou.mean, or "
                     "dice or iou of a class", name);
}

pons_status best_metric_find(const char *name, int class_count, const data_class *classes,
                             best_metric *out, pons_error *err)
{
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        if (!is_metric(name, metric_names[kind]))
            continue;
        const char *of = name + strlen(metric_names[kind]) + 1;
        *out = (best_metric){ (metric_kind)kind, -1 };
        if (strcmp(of, "mean") == 0)
            return PONS_OK;
        out->class_index = class_list_named(classes, class_count, of);
        if (out->class_index >= 0)
            return PONS_OK;
    }
    return refuse_best(name, err);
}
