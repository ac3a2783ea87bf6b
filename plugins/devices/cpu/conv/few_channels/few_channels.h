/*
 * few_channels.h - convolutions with at most four channels on one side, in all three directions.
 *
 * A matrix unit wants 16 or 32 channels and computes with zeros where there are 1 to 4; these
 * kernels put the vector along the many channels, or along W where there are few on both sides.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_H
#define PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_H

#include "cpu/conv/few_channels/few_channels_loops.h"

/* What one kind of processor has. */
typedef struct narrow_lanes {
    const narrow_wide *wide;
    const narrow_planar *planar;
    const narrow_layout *layout;
    const narrow_pairs *pairs; /* NULL: bf16 is computed in float */
} narrow_lanes;

const narrow_lanes *narrow_lanes_row(int row); /* rows as those of map_lanes_row */

const narrow_lanes *narrow_lanes_dots(void); /* the last row, and pairs: where wide_dots_run() */

/* As pons_device_operations.prepare; declines what has more channels on both sides, is grouped or
 * dilated. */
pons_status narrow_prepare(const narrow_lanes *lanes, int threads, const pons_request *request,
                           pons_kernel *kernel, bool *supported, pons_error *err);

#endif
