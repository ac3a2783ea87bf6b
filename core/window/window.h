/*
 * window.h - sliding windows: their positions and weights. window_blend.h predicts and blends
 * them.
 *
 * Constant and gaussian windows are as in MONAI's sliding_window_inference: the window moves by
 * (1 - overlap) of its extent, and the last one is moved back to end at the edge. nnU-Net's windows
 * move by at most that much, in equal steps from edge to edge (Isensee et al. 2021). A volume
 * smaller than the window is padded on both sides. Extents, starts and axes are in the order i, j,
 * k; images are [D, H, W, C].
 */
#ifndef CORE_WINDOW_WINDOW_H
#define CORE_WINDOW_WINDOW_H

#include <pons/plugin.h>

typedef enum window_blend {
    WINDOW_CONSTANT = 0,
    WINDOW_GAUSSIAN,
    WINDOW_NNUNET          /* its gaussian about voxel extent / 2                                 */
} window_blend;
typedef enum window_padding {
    WINDOW_PAD_CONSTANT = 0, /* zeros                                                             */
    WINDOW_PAD_REFLECT, WINDOW_PAD_REPLICATE, WINDOW_PAD_CIRCULAR
} window_padding;

typedef struct window_settings {
    int extent[3];         /* extent of a window                                                  */
    double overlap[3];     /* 0 <= overlap < 1                                                    */
    window_blend blend;
    double sigma_scale;    /* standard deviation of the gaussian, in extents                      */
    window_padding padding;
    int batch;             /* windows predicted together                                          */
    unsigned mirror;       /* bit a: average over flips of axis a (all subsets of the axes)       */
    int64_t extra_bytes;  /* bytes for sums of planes beyond those of one window (window_blend.h) */
    bool one_flip;         /* predict the flip of all axes of 'mirror' alone                      */
} window_settings;

/* The windows along one axis. */
typedef struct window_axis {
    int64_t size, padded, low; /* voxels of the image; with padding; padding in front             */
    int64_t interval;      /* most voxels from one window to the next                             */
    int count;
    bool even;             /* all steps are equal, but for rounding                               */
} window_axis;

/* The windows of an image of 'size' voxels along axis 'a'. */
window_axis window_axis_make(const window_settings *s, int64_t size, int a);
int64_t window_axis_start(const window_axis *a, int extent, int index);

/* The weights of a window's voxels, [extent[0]][extent[1]][extent[2]]. */
void window_importance(const window_settings *s, float *out);

/*
 * A function that predicts 'batch' windows, and its buffers.
 *
 * 'run' reads 'input', [batch][extent][channels], and returns logits [batch][extent][classes],
 * which are valid until the next call. With logits = NULL they stay on the device. Then 'place',
 * unless NULL, holds rows of PONS_KERNEL_PATCH_ACCUMULATE, which say where each window is added to
 * sums on the device.
 *
 * With mirroring, 'flip' holds rows of PONS_KERNEL_PATCH_ACCUMULATE that add each flip to the sums
 * of its window, and 'whole' holds rows of PONS_KERNEL_PATCH that read these sums. All buffers may
 * be filled again when 'run' has returned.
 */
typedef struct window_predictor {
    float *input;
    int32_t *place, *flip, *whole;
    int channels, classes;
    pons_status (*run)(void *context, const float **logits, pons_error *err);
    void *context;
} window_predictor;

#endif
