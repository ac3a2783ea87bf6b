/*
 * froc.h - the free-response ROC curve: the share of targets that are found, against the false
 * positives in an image (Bunch et al. 1977; MONAI's compute_fp_tp_probs_nd, compute_froc_curve_data
 * and compute_froc_score).
 */
#ifndef CORE_DETECTION_FROC_H
#define CORE_DETECTION_FROC_H

#include "detection/map_peaks.h"
#include "detection/target_areas.h"

enum { FROC_POINTS = 6 };
/* The false positives per image at which the score reads the curve: 1/4, 1/2, 1, 2, 4 and 8. */
extern const double froc_at[FROC_POINTS];

/* The detections of all images. */
typedef struct froc_sums {
    int images;
    int64_t targets;              /* those that are not excluded                                  */
    int64_t miss_count, miss_room, hit_count, hit_room;
    float *miss;                  /* [miss_count] detections outside of targets                   */
    float *hit;                   /* [hit_count] the best detection inside each target; 0: none   */
} froc_sums;

/* Add an image. PONS_DEVICE: out of memory. */
pons_status froc_add(froc_sums *s, const target_areas *targets, const peak_list *found,
                     pons_error *err);
void froc_sums_clear(froc_sums *s);

/*
 * The curve, from the lowest threshold to the highest. Thresholds are the distinct probabilities
 * of misses and hits without the smallest, and the last point is (0, 0).
 */
typedef struct froc_curve {
    int64_t count;
    double *false_positives, *sensitivity; /* [count], malloc'ed                                  */
} froc_curve;

/* PONS_DATA: no image has a target. The caller clears the curve, also after an error. */
pons_status froc_curve_make(const froc_sums *s, froc_curve *out, pons_error *err);
/* The sensitivity between two points is interpolated; beyond the last one it stays. */
double froc_curve_sensitivity(const froc_curve *c, double false_positives);
/* The mean of the sensitivities at 'froc_at'. */
double froc_curve_score(const froc_curve *c);
void froc_curve_clear(froc_curve *c);

#endif
