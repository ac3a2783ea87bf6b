/*
 * window_blend.h - the windows of one image: cut, predicted in batches, blended into logits (R28).
 *
 * Which windows make a batch depends on the image and the settings alone, and batches are blended
 * in their order: so the bits do not tell who predicted them, nor how many did at a time.
 *
 * Windows go in order of i, then j, then k. So planes along i are finished one after the other, and
 * only those that windows are being blended into are held, not the image:
 *
 *     taken  ......|                     logits have been handed out, the place is used again
 *     ready  ...........|                no later window touches them
 *     held         |................|    of a window, and a few more (window_settings.spare)
 *
 * Or a device holds the sums and adds each batch to them as it predicts it (stitch_hold): then no
 * logits come here, but planes, once each, when they are ready. The sums are the same to the bit.
 */
#ifndef CORE_WINDOW_WINDOW_BLEND_H
#define CORE_WINDOW_WINDOW_BLEND_H

#include "window/window.h"

typedef struct stitch stitch;

/* image: [size[0]][size[1]][size[2]][channels], borrowed until stitch_close. */
pons_status stitch_open(const window_settings *settings, const int64_t size[3], const float *image,
                        int channels, int classes, stitch **opened, pons_error *err);
void stitch_close(stitch *s);
/* Bytes that are held of an image's logits and of the weights beside them. */
uint64_t stitch_bytes(const window_settings *settings, const int64_t size[3], int classes);
int64_t stitch_batches(const stitch *s);
/* Numbers of a batch's logits. */
int64_t stitch_size(const stitch *s);
/* Numbers that stitch_predict wants in 'sum' for flips; 0: none. */
int64_t stitch_room(const stitch *s);
/*
 * Logits of a batch's windows, averaged over flips; they stay until the next call with this
 * predictor or this sum. Any threads at the same time, each with a predictor and a sum of its own.
 */
pons_status stitch_predict(const stitch *s, int64_t batch, const window_predictor *p, float *sum,
                           const float **logits, pons_error *err);
/*
 * Batch 0, then 1, ...; one thread at a time. taken: planes whose voxels have all been taken.
 * false: the rest of the batch has no room before all that are ready are taken; call it again then.
 */
bool stitch_blend(stitch *s, int64_t batch, const float *logits, int64_t taken);
/* Planes 0, 1, ... that no later window touches; of the thread that blends. */
int64_t stitch_ready(const stitch *s);
/*
 * Means of voxels first .. first + count - 1 of the image, which lie in planes that are ready and
 * not yet taken: out [count][classes], in the order of [size[0]][size[1]][size[2]]. Each voxel
 * once, also by several threads at the same time and beside stitch_blend.
 */
void stitch_take(stitch *s, int64_t first, int64_t count, float *out);
/* Whether all means that have been taken are finite numbers. */
bool stitch_is_finite(const stitch *s);

/* ---- sums that a device holds ---------------------------------------------------------------- */

/* Where they are: [planes][size[1]][size[2]][classes]. */
typedef struct stitch_sums {
    /* 'count' numbers from number 'first' on, when all that was run before has ended. */
    pons_status (*read)(void *context, int64_t first, int64_t count, float *to, pons_error *err);
    void *context;
} stitch_sums;

/*
 * Bytes that a device has to hold: the planes that the windows of one batch touch, and those before
 * them that this batch leaves. 0: it cannot, places would not fit 32 bits.
 */
uint64_t stitch_held_bytes(const window_settings *settings, const int64_t size[3], int classes);
/* Bytes beside them for the sums of a window's flips; 0: there are none. */
uint64_t stitch_flip_bytes(const window_settings *settings, int classes);
/*
 * Before batch 0: all batches are added by the device that predicts them, in order, by predictors
 * with 'place'. stitch_predict returns no logits then, and stitch_collect comes after each batch
 * instead of stitch_blend. The sums that are there need not be zeros.
 */
void stitch_hold(stitch *s);
/* The weights of a window's voxels, as window_importance has them. */
const float *stitch_importance(const stitch *s);
/*
 * Fetch the planes that batch 'batch' has made ready; '*done' is false where there is no room for
 * all of them before others are taken: call it again then, before the next batch.
 */
pons_status stitch_collect(stitch *s, int64_t batch, int64_t taken, const stitch_sums *sums,
                           bool *done, pons_error *err);

#endif
