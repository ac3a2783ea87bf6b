/*
 * kernels_body.h - the kernels of one precision. The including file defines REAL, NAME and the
 * names of its table.
 */
#include <math.h>

#include "base/random.h"
#include "graph/reference/reference_internal.h"

#define RUN 256 /* lanes */

#include "graph/reference/convolution_body.h"
#include "graph/reference/map_body.h"
#include "graph/reference/move_body.h"
#include "graph/reference/window_body.h"

const reference_kernels TABLE = {
    .real_size = sizeof(REAL),
    .real_type = REAL_TYPE,
    .map = NAME(map),
    .map_scratch = NAME(map_scratch),
    .plain = {
        [PONS_KERNEL_CONVOLUTION] = NAME(convolution),
        [PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT] = NAME(convolution_input_gradient),
        [PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT] = NAME(convolution_weight_gradient),
        [PONS_KERNEL_MATMUL] = NAME(matmul),
        [PONS_KERNEL_POOL] = NAME(pool),
        [PONS_KERNEL_POOL_GRADIENT] = NAME(pool_gradient),
        [PONS_KERNEL_RESIZE] = NAME(resize),
        [PONS_KERNEL_RESIZE_GRADIENT] = NAME(resize_gradient),
        [PONS_KERNEL_TRANSPOSE] = NAME(transpose),
        [PONS_KERNEL_FLIP] = NAME(flip),
        [PONS_KERNEL_CROP] = NAME(crop),
        [PONS_KERNEL_PAD] = NAME(pad),
        [PONS_KERNEL_PAD_GRADIENT] = NAME(pad_gradient),
        [PONS_KERNEL_CONCATENATE] = NAME(concatenate),
        [PONS_KERNEL_GATHER] = NAME(gather),
        [PONS_KERNEL_ARG_MAX] = NAME(arg_max),
        [PONS_KERNEL_REDUCE_MINMAX_GRADIENT] = NAME(extreme_gradient),
        [PONS_KERNEL_COPY] = NAME(copy),
        [PONS_KERNEL_ALL_REDUCE] = NAME(copy), /* a single replica */
    },
};
