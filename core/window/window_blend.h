/*
 * window_blend.h - predict the windows of an image in batches and blend them into logits (R28).
 *
 * Batches depend on the image and the settings alone, and are blended in order. So the bits do not
 * depend on the device or the number of devices.
 *
 * Windows are ordered by i, then j, then k, so planes along i are finished in order. Memory holds
 * only the planes that windows are being blended into:
 *
 *     taken  ......|                     logits were handed out; their memory is used again
 *     ready  ...........|                no later window touches them
 *     held         |................|    planes of a window, and a few more (window_settings.spare)
 *
 * A device may accumulate the batches itself as it predicts them (window_blend_use_device). Then
 * only finished planes are copied to the host, each once. The sums have the same bits.
 */
#ifndef CORE_WINDOW_WINDOW_BLEND_H
#define CORE_WINDOW_WINDOW_BLEND_H

#include "window/window.h"

typedef struct blender blender;

/* 'image' is [size[0]][size[1]][size[2]][channels], borrowed until window_blend_close. */
pons_status window_blend_open(const window_settings *settings, const int64_t size[3],
                              const float *image,
                              int channels, int classes, blender **opened, pons_error *err);
void window_blend_close(blender *s);
/* Bytes of an image's planes in memory. */
uint64_t window_blend_bytes(const window_settings *settings, const int64_t size[3], int classes);
int64_t window_blend_batches(const blender *s);
/* The number of floats of a batch's logits. */
int64_t window_blend_batch_size(const blender *s);
/* The number of floats of 'sum' in window_blend_predict, for flips; 0: none. */
int64_t window_blend_flip_size(const blender *s);
/*
 * Predict a batch: logits of its windows, averaged over flips. They are valid until the next call
 * with this predictor or this 'sum'. Thread-safe, with a predictor and a sum for each thread.
 */
pons_status window_blend_predict(const blender *s, int64_t batch, const window_predictor *p,
                                 float *sum, const float **logits, pons_error *err);
/*
 * Blend batch 0, then 1, ...; one thread at a time. 'taken' is the number of planes whose voxels
 * have all been taken. False: the rest of the batch has no room until all ready planes are taken;
 * call it again.
 */
bool window_blend_add(blender *s, int64_t batch, const float *logits, int64_t taken);
/* The number of planes that no later window touches; for the blending thread. */
int64_t window_blend_ready(const blender *s);
/*
 * Take the means of voxels first .. first + count - 1 in the order of [size[0]][size[1]][size[2]],
 * which lie in ready planes: out [count][classes]. Each voxel is taken once. Several threads may
 * take at the same time, beside window_blend_add.
 */
void window_blend_take(blender *s, int64_t first, int64_t count, float *out);
/* True if all means that have been taken are finite. */
bool window_blend_is_finite(const blender *s);

/* ---- accumulation on a device ---------------------------------------------------------------- */

/* The sums on a device: [planes][size[1]][size[2]][classes]. */
typedef struct window_blend_sums {
    /* Copy 'count' floats from index 'first', after all work queued before has ended. */
    pons_status (*read)(void *context, int64_t first, int64_t count, float *to, pons_error *err);
    void *context;
} window_blend_sums;

/*
 * Bytes of the device's sums: the planes that the windows of a batch touch, and those that this
 * batch completes. 0: the device cannot hold them, since offsets would exceed 32 bits.
 */
uint64_t window_blend_device_bytes(const window_settings *settings, const int64_t size[3],
                                   int classes);
/* Bytes besides them for the sums of one window's flips; 0: no mirroring. */
uint64_t window_blend_flip_bytes(const window_settings *settings, int classes);
/*
 * Called before batch 0, and not with 'one_flip': the predicting device accumulates all batches, in
 * order, through predictors with 'place'. window_blend_predict then returns no logits, and
 * window_blend_collect replaces window_blend_add. The device's sums need not be zero.
 */
void window_blend_use_device(blender *s);
/* The weights of a window's voxels (window_importance). */
const float *window_blend_importance(const blender *s);
/*
 * Copy the planes that batch 'batch' has finished from the device. *done is false if there is no
 * room for all of them; call it again when planes have been taken, before the next batch.
 */
pons_status window_blend_collect(blender *s, int64_t batch, int64_t taken,
                                 const window_blend_sums *sums, bool *done, pons_error *err);

#endif
