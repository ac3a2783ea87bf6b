/*
 * class_coverage.h - the set of classes, or regions, that occur in at least one case.
 *
 * Threads add the target of each case they read. Once every class has occurred, adding costs
 * nothing.
 */
#ifndef CORE_DATA_CASE_CLASS_COVERAGE_H
#define CORE_DATA_CASE_CLASS_COVERAGE_H

#include "data/dataset/class_list.h"

#include <pthread.h>

typedef struct class_coverage {
    pthread_mutex_t lock;
    const dataset *data;
    int count;                 /* classes of voxels, or regions                                   */
    int missing;               /* those of them that have not occurred                            */
    bool seen[CLASS_COUNT_MAX];
} class_coverage;

void class_coverage_init(class_coverage *s, const dataset *d);
void class_coverage_clear(class_coverage *s);
/* Add a target [voxels, dataset_target_channels]; NULL: the case has no label. Thread-safe. */
void class_coverage_add(class_coverage *s, const uint8_t *target, int64_t voxels);
/* Add the 'seen' of another process. */
void class_coverage_join(class_coverage *s, const bool seen[CLASS_COUNT_MAX]);
/* Log a warning for each class that has not occurred. */
void class_coverage_warn(const class_coverage *s, logger *l);

#endif
