/*
 * class_weights.c - the inverse frequencies of the classes, as an option of the loss.
 */
#include "experiment/class_weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/integer.h"
#include "config/list.h"
#include "data/case/case_read.h"
#include "data/dataset/class_list.h"

enum { CASES_MAX = 50, WEIGHTS_PRINTED = 32 };

/* The weights of the loss in the options of its plugin; NULL: it has none. */
static pons_reals *find_weights(const experiment *e)
{
    const pons_option *o = e->loss.plugin->descriptor->options;

    for (; o != NULL && o->name != NULL; o++)
        if (strcmp(o->name, "weight") == 0 && o->type == PONS_OPTION_REALS)
            return (pons_reals *)((char *)e->loss.options + o->offset);
    return NULL;
}

static pons_status check(const experiment *e, const pons_reals *weights, pons_error *err)
{
    const char *origin = config_origin(e->config, "loss", "class_weights");

    if (weights == NULL)
        return pons_fail(err, PONS_CONFIG, "%s: [loss] class_weights is auto, but the loss '%s' "
                         "takes no weights of classes, expected one such as dice_ce or "
                         "cross_entropy", origin, e->loss.plugin->descriptor->name);
    if (weights->count > 0)
        return pons_fail(err, PONS_CONFIG, "%s: [loss] class_weights is auto and weight is given, "
                         "expected one of them", origin);
    if (e->regions || e->class_count < 2)
        return pons_fail(err, PONS_CONFIG, "%s: [loss] class_weights is auto with %s, expected "
                         "classes that exclude each other", origin,
                         e->regions ? "regions" : "a single class");
    return PONS_OK;
}

/* count [CLASS_COUNT_MAX] */
static void count_voxels(const pons_case *one, int64_t *count)
{
    const uint8_t *label = one->label.voxels, *valid = one->valid.voxels;
    int64_t voxels = label != NULL ? pons_volume_count(&one->label) : 0;

    for (int64_t v = 0; v < voxels; v++)
        if (valid == NULL || valid[v] != 0)
            count[label[v]]++;
}

/* Cases from all parts of the list. */
static pons_status count_cases(const experiment *e, int64_t *count, pons_error *err)
{
    const dataset *d = e->data;
    int cases = min_int(d->training_count, CASES_MAX);

    for (int i = 0; i < cases; i++) {
        int at = (int)((int64_t)i * d->training_count / cases);
        pons_case one;
        if (case_read(d, d->training[at], &one, err) != PONS_OK)
            return err->status;
        count_voxels(&one, count);
        case_clear(&one);
    }
    return PONS_OK;
}

/* count [class_count] */
static pons_status count_images(const experiment *e, int64_t *count, pons_error *err)
{
    const dataset *d = e->data;

    for (int i = 0; i < d->training_count; i++)
        if (d->cases[d->training[i]].class_index >= 0)
            count[d->cases[d->training[i]].class_index]++;
    return PONS_OK;
}

/* A rare class counts more. Digits as in resolved.ini, which repeats the run. */
static void weigh(const int64_t *count, int classes, double *weight)
{
    double rarest = INFINITY, sum = 0;

    for (int c = 0; c < classes; c++)
        rarest = count[c] > 0 ? fmin(rarest, (double)count[c]) : rarest;
    for (int c = 0; c < classes; c++) {
        weight[c] = count[c] > 0 ? rarest / (double)count[c] : 1;
        sum += weight[c];
    }
    for (int c = 0; c < classes; c++) {
        char digits[32];
        snprintf(digits, sizeof digits, "%.6g", weight[c] * classes / sum);
        weight[c] = strtod(digits, NULL);
    }
}

static void note_weights(experiment *e, const pons_reals *weights)
{
    int count = weights->count;
    const char **item = arena_alloc(e->memory, (size_t)count * sizeof *item), *list;

    for (int c = 0; c < count; c++)
        item[c] = arena_format(e->memory, "%.6g", weights->item[c]);
    list = list_join(e->memory, count, item);
    config_resolve(e->config, "loss", "weight", list, "class_weights = auto");
    config_resolve(e->config, "loss", "class_weights", "none", "the numbers are in weight");
    if (count > WEIGHTS_PRINTED)
        list = arena_format(e->memory, "%s and %d others, in resolved.ini",
                            list_join(e->memory, WEIGHTS_PRINTED, item), count - WEIGHTS_PRINTED);
    log_line(e->log, "weights of the classes in the loss: %s", list);
}

pons_status class_weights_resolve(experiment *e, pons_error *err)
{
    pons_reals *weights = find_weights(e);
    int64_t *count;
    double *weight;

    if (e->sections.loss.class_weights == 0)
        return PONS_OK;
    if (check(e, weights, err) != PONS_OK)
        return err->status;
    size_t counted = (size_t)max_int(e->class_count, CLASS_COUNT_MAX);
    count = arena_alloc(e->memory, counted * sizeof *count);
    weight = arena_alloc(e->memory, (size_t)e->class_count * sizeof *weight);
    memset(count, 0, counted * sizeof *count);
    if ((e->task.whole ? count_images : count_cases)(e, count, err) != PONS_OK)
        return err->status;
    weigh(count, e->class_count, weight);
    *weights = (pons_reals){ e->class_count, weight };
    note_weights(e, weights);
    return PONS_OK;
}
