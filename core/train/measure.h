/*
 * measure.h - the time of optimizer steps, without data and with it; no run folder is touched.
 */
#ifndef CORE_TRAIN_MEASURE_H
#define CORE_TRAIN_MEASURE_H

#include "train/network.h"

#define MEASURE_STEPS_MAX 1000

typedef struct measured {
    int count;
    double step[MEASURE_STEPS_MAX];    /* seconds of each step, without data                      */
    double section[4];                 /* of these on average: begin, micro, reduce, update       */
    double with_data;                  /* seconds of a step with the loader, median; NaN: none    */
} measured;

double measure_median(int count, const double *value);
/*
 * 'steps' steps after 'warm_up' ones. reference: also where a kernel is the plain one, which is
 * PONS_DEVICE otherwise. data: also with the cases of the file.
 */
pons_status measure_steps(const experiment *e, int warm_up, int steps, bool reference, bool data,
                          measured *out, pons_error *err);

#endif
