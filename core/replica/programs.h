/*
 * programs.h - the graphs of an experiment, compiled: the training step and predicting windows.
 */
#ifndef CORE_REPLICA_PROGRAMS_H
#define CORE_REPLICA_PROGRAMS_H

#include "experiment/experiment.h"
#include "window/window.h"

/* The replica that a program is made for: its device, and what joins it to others, or NULL. */
typedef struct program_seat {
    const device *device;
    const program_collective *collective;
    bool cuts;               /* it cuts the patches out of cases that it holds (patch_nodes.h)    */
} program_seat;

/*
 * Inputs 'image' f32 [N, D, H, W, channels], 'target' u8 [N, D, H, W, 1 | regions], or what tells
 * the device how to cut them (batch_layout.h); no outputs.
 */
pons_status programs_build_training(const experiment *e, const program_seat *place, storage *s,
                                    program **out, pons_error *err);
/* The graph of that before any pass; the caller frees it. */
pons_status programs_graph_training(const experiment *e, bool cuts, pons_graph **out,
                                    pons_node **loss, pons_error *err);
/*
 * Input 'image' [batch, window, channels]; output 0: logits of the first head. Where the device is
 * to add windows to sums that it holds (window_nodes.h) also what that wants. With 'drops' the
 * network's dropout acts; PONS_CONFIG: it has none.
 */
pons_status programs_build_evaluation(const experiment *e, const device *d, storage *s, bool drops,
                                      program **out, pons_error *err);

/*
 * Inputs as of a training whose patches the host extracts; output 0: the loss of the network's
 * first output, as an evaluation has it. Samples are not mixed, and nothing is summed over
 * replicas.
 */
pons_status programs_build_loss(const experiment *e, const device *d, storage *s, program **out,
                                pons_error *err);

/* The shape of a batch of windows, [batch, D, H, W, channels]. */
pons_shape programs_window_shape(const experiment *e);
/*
 * The graph of an evaluation before any pass, on images of 'shape'; the caller frees it. *logits is
 * the first output of the network.
 */
pons_status programs_graph_evaluation(const experiment *e, pons_shape shape, pons_graph **out,
                                      pons_node **logits, pons_error *err);

/* An evaluation program as what predicts windows. */
pons_status programs_predictor(const experiment *e, program *p, window_predictor *out,
                               pons_error *err);

#endif
