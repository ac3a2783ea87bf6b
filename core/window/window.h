/*
 * window.h - sliding-window prediction: which windows, and how they are weighted
 * (window_blend.h joins them).
 *
 * Everything is as in MONAI's sliding_window_inference: the window moves by (1 - overlap) of its
 * extent, the last one is moved back to end at the edge, a volume smaller than the window is padded
 * on both sides. Extents, starts and axes are in the order i, j, k; images are [D, H, W, C].
 */
#ifndef CORE_WINDOW_WINDOW_H
#define CORE_WINDOW_WINDOW_H

#include <pons/plugin.h>

typedef enum window_blend { WINDOW_CONSTANT = 0, WINDOW_GAUSSIAN } window_blend;
typedef enum window_padding {
    WINDOW_PAD_CONSTANT = 0, /* zeros                                                             */
    WINDOW_PAD_REFLECT, WINDOW_PAD_REPLICATE, WINDOW_PAD_CIRCULAR
} window_padding;

typedef struct window_settings {
    int extent[3];         /* of the window                                                       */
    double overlap[3];     /* 0 <= overlap < 1                                                    */
    window_blend blend;
    double sigma_scale;    /* of the gaussian, in extents                                         */
    window_padding padding;
    int batch;             /* windows that are predicted together                                 */
    unsigned mirror;       /* bit a: average over flips of axis a (all subsets of the axes)       */
    int64_t spare;         /* bytes for sums of planes beyond those of a window (window_blend.h)  */
} window_settings;

/* Along one axis: how much padding lies in front, and where windows start in the padded volume. */
typedef struct window_axis {
    int64_t size, padded, low; /* of the image; with padding; padding in front                    */
    int64_t interval;
    int count;
} window_axis;

window_axis window_axis_make(int64_t size, int extent, double overlap);
int64_t window_axis_start(const window_axis *a, int extent, int index);

/* Weights of a window's voxels, [extent[0]][extent[1]][extent[2]]. */
void window_importance(const window_settings *s, float *out);

/* What predicts 'batch' windows: reads 'input', [batch][extent][channels], and returns logits
 * [batch][extent][classes] that stay until the next call; with logits = NULL they stay where they
 * are. Then 'place', unless NULL, says where each window is added to sums that the device holds:
 * rows of PONS_KERNEL_PATCH_ACCUMULATE. Of flips those are the sums of 'whole', rows of
 * PONS_KERNEL_PATCH, to which each flip's logits were added as 'flip' says. All of these may be
 * filled in again when 'run' has returned. */
typedef struct window_predictor {
    float *input;
    int32_t *place, *flip, *whole;
    int channels, classes;
    pons_status (*run)(void *context, const float **logits, pons_error *err);
    void *context;
} window_predictor;

#endif
