/*
 * memory_estimate.h - estimate the memory of a training before it begins.
 */
#ifndef CORE_BENCH_MEMORY_ESTIMATE_H
#define CORE_BENCH_MEMORY_ESTIMATE_H

#include "data/volume/volume.h"
#include "replica/replicas.h"

typedef struct memory_estimate {
    double arena;       /* tensors of a step, in reused memory                                    */
    double parameters;  /* with states, slots and averages                                        */
    double scratch;     /* packed weights, inputs, gradient sums; a checkpoint in progress        */
    double libraries;   /* the program and loaded libraries, measured                             */
    double cache;       /* preprocessed cases                                                     */
    double loader;      /* micro-batches in advance; a validation case                            */
    double sums;        /* windows accumulated on a device with its own memory                    */
    double peak;        /* sum of all                                                             */
} memory_estimate;

/*
 * Estimate; 'evaluation' and 'loss' (programs_build_loss) may be NULL. It is called after the
 * programs are built and before one has run, so that untouched memory is not counted as resident
 * too. Cases are judged by their headers.
 * 'cropped_share' is the share of a case's voxels that crop_foreground keeps, 1 if it is unknown.
 */
pons_status memory_estimate_make(const experiment *e, const storage *s, const program *training,
                                 const program *evaluation, const program *loss,
                                 double cropped_share, memory_estimate *out, pons_error *err);

/* The memory of a prediction of one image. */
typedef struct prediction_estimate {
    int64_t extent[3];  /* voxels after [preprocess], if nothing is cut off                       */
    int64_t windows;    /* of one network, without flips                                          */
    double arena, parameters, scratch, libraries;
    double image;       /* as it is read, and preprocessed                                        */
    double planes;      /* logits of windows in work, and planes that are resampled               */
    double sums;        /* probabilities of several networks                                      */
    double result;      /* decisions; the ids that are written take what the image has left       */
    double peak;        /* sum of all                                                             */
} prediction_estimate;

/*
 * Estimate a prediction by 'networks' networks like the one that 'r' has opened and filled. A
 * device with its own memory is counted like the host.
 */
void memory_estimate_prediction(const replicas *r, int networks, const volume_facts *image,
                                prediction_estimate *out);

#endif
