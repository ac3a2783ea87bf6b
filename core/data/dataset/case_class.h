/*
 * case_class.h - the class of each case, where a case has one for its whole image.
 */
#ifndef CORE_DATA_DATASET_CASE_CLASS_H
#define CORE_DATA_DATASET_CASE_CLASS_H

#include "data/dataset/layout.h"

/*
 * Set the classes of 'd': those of 'labels', else the words of the training cases, in order of
 * numbers if all are numbers, else of bytes. Then set the class of each case: by name, or by id if
 * no word is the name of a class and it is no folder's name. A word that is no class is a problem
 * of 'found'.
 */
pons_status case_class_resolve(const dataset_settings *s, layout_result *found, dataset *d,
                               pons_error *err);

#endif
