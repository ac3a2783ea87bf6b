/*
 * few_channels.h - convolutions with at most four channels on one side, in all three directions.
 *
 * A matrix engine pads 1 to 4 channels to 16 or 32. These kernels put the vector along the many
 * channels, or along W where both sides have few.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_H
#define PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_H

#include "cpu/conv/few_channels/loops.h"
#include "cpu/conv/solver.h"

/* The loops of one instruction set. */
typedef struct few_channels_loops {
    const few_channels_vector *vector_loops;
    const few_channels_planar *planar;
    const few_channels_layout *layout;
    const few_channels_bf16x2 *bf16x2; /* NULL: bf16 is computed in float */
} few_channels_loops;

/* Supports neither more channels on both sides nor groups and dilations. */
extern const conv_operations few_channels_operations;

#endif
