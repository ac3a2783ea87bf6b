/*
 * experiment_axes.c - a model's options per axis, as typed (i j k), in the order in which a 2D
 * network sees its axes (R26). One number that stands for all axes is 1 along the flat one.
 */
#include "experiment/experiment.h"

#include <string.h>

static bool turn_one(int value[3], int flat)
{
    static const int rest[3][2] = { { 1, 2 }, { 0, 2 }, { 0, 1 } };
    int a = value[rest[flat][0]], b = value[rest[flat][1]];
    bool even = a == value[flat] && b == value[flat];

    if (value[flat] != 1 && !even)
        return false;
    memcpy(value, (int[3]){ 1, a, b }, 3 * sizeof *value);
    return true;
}

static pons_status refuse(const pons_option *o, int axis, int found, pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "[model] %s has %d along %c, expected 1: the patch is flat "
                     "there", o->name, found, "ijk"[axis]);
}

static pons_status turn_list(experiment *e, const pons_option *o, pons_triples *list,
                             pons_error *err)
{
    int (*copy)[3] = arena_alloc(e->memory, (size_t)list->count * sizeof *copy + 1);

    memcpy(copy, list->item, (size_t)list->count * sizeof *copy);
    for (int i = 0; i < list->count; i++) {
        if (!turn_one(copy[i], e->task.flat_axis))
            return refuse(o, e->task.flat_axis, copy[i][e->task.flat_axis], err);
    }
    list->item = (const int (*)[3])copy;
    return PONS_OK;
}

pons_status model_axes_turn(experiment *e, pons_error *err)
{
    int flat = e->task.flat_axis;

    if (!e->task.flat)
        return PONS_OK;
    for (const pons_option *o = e->model.plugin->descriptor->options; o->name != NULL; o++) {
        char *at = (char *)e->model.options + o->offset;
        if (o->type == PONS_OPTION_AXES && !turn_one((int *)at, flat))
            return refuse(o, flat, ((int *)at)[flat], err);
        if (o->type == PONS_OPTION_TRIPLES
            && turn_list(e, o, (pons_triples *)at, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}
