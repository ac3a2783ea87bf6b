/*
 * memory_estimate.h - estimate the memory of a training before it begins.
 */
#ifndef CORE_BENCH_MEMORY_ESTIMATE_H
#define CORE_BENCH_MEMORY_ESTIMATE_H

#include "replica/programs.h"

typedef struct memory_estimate {
    double arena;       /* tensors of a step, in reused memory                                    */
    double parameters;  /* with states, slots and averages                                        */
    double scratch;     /* packed weights, inputs, gradient sums; a checkpoint in progress        */
    double libraries;   /* the program and loaded libraries, measured                             */
    double cache;       /* preprocessed cases                                                     */
    double loader;      /* micro-batches in advance; a validation case                            */
    double sums;        /* windows accumulated on a device with its own memory                    */
    double peak;        /* sum of all                                                             */
} memory_estimate;

/*
 * Estimate; 'evaluation' may be NULL. It is called after the programs are built and before one has
 * run, so that untouched memory is not counted as resident too. Cases are judged by their headers.
 * 'cropped_share' is the share of a case's voxels that crop_foreground keeps, 1 if it is unknown.
 */
pons_status memory_estimate_make(const experiment *e, const storage *s, const program *training,
                                 const program *evaluation, double cropped_share,
                                 memory_estimate *out, pons_error *err);

#endif
