/*
 * best_metric.c - parse [train] best into a metric and a class.
 */
#include "metric/best_metric.h"

#include <string.h>

#include "config/sections.h"
#include "data/dataset/class_list.h"

/* True if 'name' is this metric's name, a point and more text. */
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
    for (int kind = 0; kind <= METRIC_IOU; kind++) {
        if (!is_metric(name, metric_facts[kind].name))
            continue;
        const char *of = name + strlen(metric_facts[kind].name) + 1;
        *out = (best_metric){ (metric_kind)kind, -1 };
        if (strcmp(of, "mean") == 0)
            return PONS_OK;
        out->class_index = class_index_of_name(classes, class_count, of);
        if (out->class_index >= 0)
            return PONS_OK;
    }
    return refuse_best(name, err);
}
