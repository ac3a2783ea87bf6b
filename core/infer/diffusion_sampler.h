/*
 * diffusion_sampler.h - make a channel of an image from the others, by the steps of a diffusion.
 */
#ifndef CORE_INFER_DIFFUSION_SAMPLER_H
#define CORE_INFER_DIFFUSION_SAMPLER_H

#include "replica/replicas.h"

typedef struct diffusion_request {
    const replicas *network;  /* with evaluation programs; they divide the windows of each step   */
    int64_t extent[3];
    const float *image;       /* [extent][channels], preprocessed; channel 'target' is not read   */
    int target;
    const char *name;         /* of the case: a part of the key of its noise                      */
    bool (*stop)(void *context); /* called before batches of windows; may be NULL                 */
    void (*progress)(void *context, double share); /* called after each step; may be NULL         */
    void *context;
} diffusion_request;

/*
 * out [extent]. Every step predicts the noise of the whole image by sliding windows. The noise at
 * the start, and that of eta, depend on [experiment] seed, name and target alone. PONS_DATA: the
 * network's noise is not finite; PONS_INTERRUPTED: 'stop' returned true.
 */
pons_status diffusion_sample(const diffusion_request *q, float *out, pons_error *err);

#endif
