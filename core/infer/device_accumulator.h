/*
 * device_accumulator.h - the sums of windows in the memory of the device that predicts them, where
 * that is not host memory: its program adds each batch (PONS_KERNEL_PATCH_ACCUMULATE), and only
 * planes that are ready come to the host (window_blend.h).
 *
 * That is so where one device of this process predicts all windows of a volume, the device has a
 * kernel for it, and the sums have room in the device's memory beside the network. Elsewhere each
 * batch's logits come to the host, which adds them up: the same bits.
 */
#ifndef CORE_INFER_DEVICE_ACCUMULATOR_H
#define CORE_INFER_DEVICE_ACCUMULATOR_H

#include "experiment/experiment.h"
#include "replica/replicas.h"
#include "window/window_blend.h"

/* Bytes of the device that a volume of 'size' wants; 0: its windows cannot be added up there. */
size_t held_sums_size(const experiment *e, const int64_t size[3]);
/* Whether they fit, beside what else is 'taken', in nine tenths of the device's memory. */
bool held_sums_fit(const device *d, size_t size, double taken);

typedef struct held_sums {
    const device *device;     /* NULL: nothing is held                                            */
    char *memory;             /* of the device: weights, of flips their shares and sums, then     */
                              /* the sums of the volume                                           */
    size_t size, first;       /* of it, bytes; where those begin                                  */
    bool told;                /* that there was no room                                           */
} held_sums;

/*
 * Memory for the sums of a volume of 'size' whose windows the replica predicts, by the replica's
 * thread, and 's' is told that they are there; '*held' says whether there is any. Of one volume at
 * a time: held_sums_drop gives it back.
 */
pons_status held_sums_take(held_sums *h, const experiment *e, const replica *r,
                           const int64_t size[3], stitch *s, bool *held, pons_error *err);
void held_sums_drop(held_sums *h);
/* As stitch_sums.read; the context is a held_sums. */
pons_status held_sums_read(void *context, int64_t first, int64_t count, float *to,
                           pons_error *err);

#endif
