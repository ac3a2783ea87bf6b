/*
 * class_list.h - 'labels' and 'regions': names for ids of the label files.
 */
#ifndef CORE_DATA_DATASET_CLASS_LIST_H
#define CORE_DATA_DATASET_CLASS_LIST_H

#include "data/dataset/dataset.h"

#define CLASS_COUNT_MAX 256 /* class numbers are u8 */

/*
 * Parse items like "kidney:1,3". 'key' is "labels" (an id belongs to one class) or another name
 * (ids may be shared) and starts messages.
 */
pons_status class_list_parse(arena *memory, const char *key, const pons_texts *items,
                             const data_class **classes, int *count, pons_error *err);
/* What holds for every list, wherever it came from: names and, unless 'shared', ids occur once. */
pons_status class_list_check(const char *key, bool shared, const data_class *classes, int count,
                             pons_status kind, pons_error *err);
/* Number an id was given in; -1: in none. */
int class_list_find(const data_class *classes, int count, int id);
/* Number of the class of that name; -1: there is none. */
int class_list_named(const data_class *classes, int count, const char *name);
/* PONS_CONFIG for the first of 'names' that no class has; 'key' begins the message. */
pons_status class_list_check_names(const char *key, const pons_texts *names,
                                   const data_class *classes, int count, pons_error *err);
/* What is said of a class, or region, that no case contains. */
const char *class_list_missing(arena *memory, const dataset *d, int number);

#endif
