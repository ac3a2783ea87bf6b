/*
 * stitch.h - the windows of one image: cut, predicted in batches, blended into logits (R28).
 *
 * Which windows make a batch depends on the image and the settings alone, and batches are blended
 * in their order: so the bits do not tell who predicted them, nor how many did at a time.
 */
#ifndef CORE_TRAIN_STITCH_H
#define CORE_TRAIN_STITCH_H

#include "train/window.h"

typedef struct stitch stitch;

/*
 * image: [size[0]][size[1]][size[2]][channels]; out: [...][classes], zeros at the beginning. Both
 * are borrowed until stitch_close.
 */
pons_status stitch_open(const window_settings *settings, const int64_t size[3], const float *image,
                        int channels, int classes, float *out, stitch **opened, pons_error *err);
void stitch_close(stitch *s);
int64_t stitch_batches(const stitch *s);
/* Numbers of a batch's logits. */
int64_t stitch_size(const stitch *s);
/* Numbers that stitch_predict wants in 'sum'; 0: none. */
int64_t stitch_room(const stitch *s);
/*
 * Logits of a batch's windows, averaged over flips; they stay until the next call with this
 * predictor or this sum. Any threads at the same time, each with a predictor and a sum of its own.
 */
pons_status stitch_predict(const stitch *s, int64_t batch, const window_predictor *p, float *sum,
                           const float **logits, pons_error *err);
/* Batch 0, then 1, ...; one thread at a time. */
void stitch_blend(stitch *s, int64_t batch, const float *logits);
/* After the last one: sums become means. */
void stitch_finish(stitch *s);

#endif
