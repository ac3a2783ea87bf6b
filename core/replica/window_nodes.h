/*
 * window_nodes.h - the end of an evaluation graph whose device adds windows to sums in its own
 * memory (PONS_KERNEL_PATCH_ACCUMULATE).
 *
 * With [window] mirror a batch runs once for each flip. Its logits are first added to sums of their
 * window, and these to those of the volume when all flips are there.
 */
#ifndef CORE_REPLICA_WINDOW_NODES_H
#define CORE_REPLICA_WINDOW_NODES_H

#include "experiment/experiment.h"

/* Inputs of the program, see window_predictor. */
#define HELD_PLACES "places"
#define HELD_FLIPS "flips"
#define HELD_WHOLE "whole"

/* [window] mirror: a batch runs once for each flip. */
static inline bool window_nodes_flip(const experiment *e)
{
    return e->sections.window.mirror.count > 0;
}

/* Whether evaluation programs on this device have these nodes. */
bool window_nodes_wanted(const experiment *e, const device *d);
/* Logits [batch, window, classes] added to what is held; an output of the program. */
pons_node *window_nodes_add(const experiment *e, pons_graph *g, pons_node *logits);
/* Until places are filled in nothing is added. */
void window_nodes_clear(program *p);

/* Memory of the device. */
typedef struct window_memory {
    void *weights, *sums;     /* of a window's voxels; of the volume                              */
    void *shares, *mirrored;  /* of flips: the same two                                           */
} window_memory;

/* 'm' NULL: the program has no memory, which is right while all places are -1. */
void window_nodes_bind(const experiment *e, program *p, const window_memory *m);

#endif
