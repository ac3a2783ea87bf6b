/*
 * class_list.h - 'labels' and 'regions': each entry names one or several label ids.
 *
 * A label id is the integer in a label file. A class index is the position of an entry in its
 * list.
 */
#ifndef CORE_DATA_DATASET_CLASS_LIST_H
#define CORE_DATA_DATASET_CLASS_LIST_H

#include "data/dataset/dataset.h"

#define CLASS_COUNT_MAX 256        /* classes of voxels, whose indices are u8 */
#define CASE_CLASS_COUNT_MAX 65536 /* classes of whole images */

/*
 * Parse items like "kidney:1,3-5". 'key' begins error messages. With key "labels" an id belongs to
 * one class; with another key classes may share ids. One entry of "labels" may have 'rest', every
 * other id, or '*', every other id above 0; its ids are then listed too. There are at most 'most'.
 */
pons_status class_list_parse(arena *memory, const char *key, const pons_texts *items, int most,
                             const data_class **classes, int *count, pons_error *err);
/*
 * Read the classes of a table with the columns 'original' (label id), 'new' (class index) and,
 * optionally, 'name'. PONS_DATA names the line that is wrong.
 */
pons_status class_list_read_table(arena *memory, const char *path, const data_class **classes,
                                  int *count, pons_error *err);
/* Replace the ids of classes so that id A counts as id B for each item "A:B". */
pons_status class_list_map(arena *memory, const pons_texts *items, const data_class **classes,
                           int count, pons_error *err);
/* The ids of a class as 'labels' has them: "1,3-5". */
const char *class_ids_text(arena *memory, const data_class *c);
/*
 * The checks of a list of classes of voxels: names occur once, and label ids occur once unless
 * 'shared'.
 */
pons_status class_list_check(const char *key, bool shared, const data_class *classes, int count,
                             pons_status kind, pons_error *err);
/*
 * Take the entry 'ignore' out of a list of 'labels': the ids of voxels that no loss and no metric
 * counts. *ignored is NULL without such an entry.
 */
pons_status class_list_take_ignored(arena *memory, const data_class **classes, int *count,
                                    const data_class **ignored, pons_error *err);
/* The index of the class that holds a label id; -1: none. */
int class_index_of_id(const data_class *classes, int count, int id);
/* The index of the class of a name; -1: none. */
int class_index_of_name(const data_class *classes, int count, const char *name);
/* PONS_CONFIG for the first of 'names' that no class has; 'key' begins the message. */
pons_status class_list_check_names(const char *key, const pons_texts *names,
                                   const data_class *classes, int count, pons_error *err);
/* The warning that no case contains class (or region) 'number'. */
const char *class_list_missing_text(arena *memory, const dataset *d, int number);

#endif
