/*
 * intensity_statistics.h - intensities of one channel in the foreground of many cases.
 *
 * Every case with foreground counts alike, whatever the size of its foreground. nnU-Net draws the
 * same number of voxels from each case; these statistics are what its draws approach.
 */
#ifndef CORE_PLAN_INTENSITY_STATISTICS_H
#define CORE_PLAN_INTENSITY_STATISTICS_H

#include <pons/plugin.h>

/* The intensities of one case. Each value stands for an equal share of the voxels. */
typedef struct intensity_sample {
    int64_t voxels;           /* of the foreground; 0: the case has none                          */
    int64_t count;            /* values kept                                                      */
    float *value;             /* [count] ascending, malloc'ed                                     */
    double mean, variance;    /* of all voxels; the variance is biased                            */
    float min, max;
} intensity_sample;

typedef struct intensity_statistics {
    double mean, std;         /* std is biased                                                    */
    double min, low, median, high, max; /* low and high: percentiles 0.5 and 99.5                 */
} intensity_statistics;

/*
 * Keep at most 'limit' of the 'voxels' values: all, or quantiles at equal distances. The values are
 * sorted in place. PONS_DEVICE: out of memory.
 */
pons_status intensity_sample_make(float *values, int64_t voxels, int64_t limit,
                                  intensity_sample *out, pons_error *err);
void intensity_sample_clear(intensity_sample *s);

/*
 * Join samples sample[0], sample[stride] and so on of 'count' cases. Zeros if no case has
 * foreground.
 */
pons_status intensity_statistics_make(const intensity_sample *sample, int count, int stride,
                                      intensity_statistics *out, pons_error *err);

#endif
