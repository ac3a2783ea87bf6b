/*
 * classes.h - the classes that a loss counts, and their weights.
 */
#ifndef LOSSES_CLASSES_H
#define LOSSES_CLASSES_H

#include <pons/loss.h>

/* The number of classes that count: all, or all but the first. A single class always counts. */
int classes_counted(bool include_background, const pons_task *task);
/* The channels of x [N, .., .., .., C] that count. */
pons_node *classes_kept(pons_graph *g, bool include_background, const pons_task *task,
                        pons_node *x);
/* Refuse a target of values, which has no classes (PONS_CONFIG). */
pons_status classes_check_target(const pons_task *task, pons_error *err);
/* Refuse include_background = no of regions (PONS_CONFIG). */
pons_status classes_check_background(bool include_background, const pons_task *task,
                                     pons_error *err);
/*
 * The number of weights that a list has to have: one for each class that counts, or for all classes
 * if several count.
 */
int classes_weighed(const pons_reals *list, bool include_background, const pons_task *task);
/* The index of the first weight that is read: a list of all classes has the background's too. */
int classes_first_weight(const pons_reals *list, int counted);
/* Refuse a list of option 'key' with other than 0, 1 or 'expected' numbers (PONS_CONFIG). */
pons_status classes_check_list(const char *key, const pons_reals *list, int expected,
                               pons_error *err);
/* Numbers first .. first + count - 1 as [count]; a scalar if one is given, NULL if none. */
pons_node *classes_vector(pons_graph *g, const pons_reals *list, int first, int count);

#endif
