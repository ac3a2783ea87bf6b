/*
 * device_accumulator.h - accumulate windows in the memory of the device that predicts them.
 *
 * The device's program adds each batch to the sums (PONS_KERNEL_PATCH_ACCUMULATE), and only
 * finished planes are copied to the host (window_blend.h). It is used if the device has memory of
 * its own and the kernel, is the only device of this process, and the sums fit beside the network.
 * Otherwise the host adds up each batch's logits. The bits are the same.
 */
#ifndef CORE_INFER_DEVICE_ACCUMULATOR_H
#define CORE_INFER_DEVICE_ACCUMULATOR_H

#include "experiment/experiment.h"
#include "replica/replicas.h"
#include "window/window_blend.h"

/* Bytes of device memory for a volume of 'size'; 0: the device cannot accumulate its windows. */
size_t device_accumulator_size(const experiment *e, const int64_t size[3]);
/* True if 'size' bytes beside 'taken' bytes fit nine tenths of the device's memory. */
bool device_accumulator_fits(const device *d, size_t size, double taken);

typedef struct device_accumulator {
    const device *device;     /* NULL: not in use                                                 */
    /*
     * Device memory: weights; with mirroring the flips' weights and sums; then the sums of the
     * volume.
     */
    char *memory;
    size_t size, first;       /* bytes of 'memory'; offset of the volume's sums                   */
    bool memory_logged;       /* a lack of memory has been logged                                 */
    const experiment *experiment; /* of 'program', which adds to 'memory'                         */
    program *program;
} device_accumulator;

/*
 * Allocate memory for a volume of 'size' and switch 's' to it. *accumulates is false if the device
 * cannot accumulate. Called by the replica's thread, for one volume at a time;
 * device_accumulator_close frees it.
 */
pons_status device_accumulator_open(device_accumulator *h, const experiment *e, const replica *r,
                                    const int64_t size[3], blender *s, bool *accumulates,
                                    pons_error *err);
void device_accumulator_close(device_accumulator *h);
/* The function window_blend_sums.read; 'context' is a device_accumulator. */
pons_status device_accumulator_read(void *context, int64_t first, int64_t count, float *to,
                                    pons_error *err);

#endif
