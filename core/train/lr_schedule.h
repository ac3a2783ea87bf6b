/*
 * lr_schedule.h - the learning rate of a step: base rate, warm-up, and a schedule plugin's factor.
 */
#ifndef CORE_TRAIN_LR_SCHEDULE_H
#define CORE_TRAIN_LR_SCHEDULE_H

#include <pons/schedule.h>

typedef struct schedule {
    double lr;                /* base rate                                                        */
    int64_t warmup, total;    /* in the unit: steps or epochs                                     */
    double multiplier;        /* factor at the first step of the warm-up                          */
    const pons_schedule_operations *operations;
    const void *options;
} schedule;

/* t = 0, 1, ...: number of the step (or epoch) that is about to begin. */
double lr_schedule_rate(const schedule *s, int64_t t);

#endif
