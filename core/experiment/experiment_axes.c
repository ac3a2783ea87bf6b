/*
 * experiment_axes.c - reorder the options per axis of a 2D network's model (R26).
 *
 * Options are typed in the order i j k; the network has the flat axis first. A single number for
 * all axes becomes 1 on the flat axis.
 */
#include "experiment/experiment.h"

#include <string.h>

static bool reorder_axes(int value[3], int flat)
{
    static const int rest[3][2] = { { 1, 2 }, { 0, 2 }, { 0, 1 } };
    int a = value[rest[flat][0]], b = value[rest[flat][1]];
    bool even = a == value[flat] && b == value[flat];

    if (value[flat] != 1 && !even)
        return false;
    memcpy(value, (int[3]){ 1, a, b }, 3 * sizeof *value);
    return true;
}

static pons_status refuse_axis(const pons_option *o, int axis, int found, pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "[model] %s has %d along %c, expected 1: the patch is flat "
                     "there", o->name, found, "ijk"[axis]);
}

static pons_status reorder_list(experiment *e, const pons_option *o, pons_triples *list,
                                pons_error *err)
{
    int (*copy)[3] = arena_alloc(e->memory, (size_t)list->count * sizeof *copy + 1);

    memcpy(copy, list->item, (size_t)list->count * sizeof *copy);
    for (int i = 0; i < list->count; i++) {
        if (!reorder_axes(copy[i], e->task.flat_axis))
            return refuse_axis(o, e->task.flat_axis, copy[i][e->task.flat_axis], err);
    }
    list->item = (const int (*)[3])copy;
    return PONS_OK;
}

pons_status experiment_reorder_axes(experiment *e, pons_error *err)
{
    int flat = e->task.flat_axis;

    if (!e->task.flat)
        return PONS_OK;
    for (const pons_option *o = e->model.plugin->descriptor->options; o->name != NULL; o++) {
        char *at = (char *)e->model.options + o->offset;
        if (o->type == PONS_OPTION_AXES && !reorder_axes((int *)at, flat))
            return refuse_axis(o, flat, ((int *)at)[flat], err);
        if (o->type == PONS_OPTION_TRIPLES
            && reorder_list(e, o, (pons_triples *)at, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}
