/*
 * class_coverage.h - which classes, or regions, some case contains.
 *
 * Threads add the targets of the cases they read. Once every class was seen, adding costs nothing.
 */
#ifndef CORE_DATA_DATASET_CLASS_COVERAGE_H
#define CORE_DATA_DATASET_CLASS_COVERAGE_H

#include "data/dataset/class_list.h"

#include <pthread.h>

typedef struct class_seen {
    pthread_mutex_t lock;
    const dataset *data;
    int missing;               /* classes not seen yet                                            */
    bool seen[CLASS_COUNT_MAX];
} class_seen;

void class_seen_init(class_seen *s, const dataset *d);
void class_seen_clear(class_seen *s);
/* 'target' is [voxels, dataset_target_channels]; NULL: the case has no label. Any thread. */
void class_seen_add(class_seen *s, const uint8_t *target, int64_t voxels);
/* What another process has seen: its 'seen'. */
void class_seen_join(class_seen *s, const bool seen[CLASS_COUNT_MAX]);
/* A warning for each class that was not seen. */
void class_seen_warn(const class_seen *s, logger *l);

#endif
