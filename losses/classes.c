/*
 * classes.c - channels and weights of the classes that a loss counts.
 *
 * Channel 0 is best dropped from sums, not from volumes: all work on voxels then is one pass.
 */
#include "classes.h"

int classes_counted(bool include_background, const pons_task *task)
{
    return include_background || task->classes == 1 ? task->classes : task->classes - 1;
}

pons_node *classes_kept(pons_graph *g, bool include_background, const pons_task *task,
                        pons_node *x)
{
    if (classes_counted(include_background, task) == task->classes)
        return x;

    pons_shape s = pons_shape_of(x);
    s.extent[4] -= 1;
    return pons_crop(g, x, (int64_t[]){ 0, 0, 0, 0, 1 }, s.extent, NULL);
}

pons_status classes_check_target(const pons_task *task, pons_error *err)
{
    if (task->target != PONS_TARGET_IMAGE)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "[loss] plugin: found a target of values, expected labels or "
                     "regions\nhint: --set loss.plugin=mse, or l1");
}

pons_status classes_check_background(bool include_background, const pons_task *task,
                                     pons_error *err)
{
    if (include_background || task->target != PONS_TARGET_REGIONS)
        return PONS_OK;
    return pons_option_fail(err, "include_background", "found no, expected yes: regions have "
                            "no background");
}

pons_status classes_check_list(const char *key, const pons_reals *list, int expected,
                               pons_error *err)
{
    if (list->count <= 1 || list->count == expected)
        return PONS_OK;
    if (expected == 1)
        return pons_option_fail(err, key, "found %d numbers, expected 1", list->count);
    return pons_option_fail(err, key, "found %d numbers, expected 1 or %d", list->count, expected);
}

int classes_weighed(const pons_reals *list, bool include_background, const pons_task *task)
{
    int counted = classes_counted(include_background, task);

    return counted > 1 && list->count == task->classes ? task->classes : counted;
}

int classes_first_weight(const pons_reals *list, int counted)
{
    return list->count > counted ? list->count - counted : 0;
}

pons_node *classes_vector(pons_graph *g, const pons_reals *list, int first, int count)
{
    if (list->count == 0)
        return NULL;
    if (list->count == 1)
        return pons_scalar(g, list->item[0]);

    pons_node *index = pons_iota(g, 1, 0, count);
    pons_node *vector = pons_scalar(g, list->item[first]);
    for (int i = 1; i < count; i++)
        vector = pons_select(g, pons_equal(g, index, pons_scalar(g, i)),
                             pons_scalar(g, list->item[first + i]), vector);
    return vector;
}
