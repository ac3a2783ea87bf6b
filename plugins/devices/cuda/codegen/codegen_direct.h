/*
 * codegen_direct.h - declarations shared by direct convolutions: the roles of tensors, and tiles of
 * channels.
 *
 * x [N, D, H, W, I], w [O, kD, kH, kW, I / groups], y [N, D', H', W', O].
 */
#ifndef PLUGINS_DEVICES_CUDA_CODEGEN_CODEGEN_DIRECT_H
#define PLUGINS_DEVICES_CUDA_CODEGEN_CODEGEN_DIRECT_H

#include "cuda/codegen/codegen.h"

typedef struct direct_plan {
    const pons_request *r;
    const pons_convolution *c;
    pons_shape x, w, y;
    int64_t in, out, most; /* channels of a group; the largest index                              */
    int64_t places;        /* points of the kernel                                                */
} direct_plan;

direct_plan codegen_direct_plan(const pons_request *r);
/* The greatest divisor of n that is at most 'most', or 1. */
int codegen_direct_divisor(int64_t n, int64_t most);
/*
 * Write "load4_bf16(FROM, TO); ...": load 'count' adjacent elements as floats. The first index is a
 * multiple of 'count'.
 */
void codegen_direct_load(text *t, const char *indent, pons_type type, int count, const char *from,
                         const char *to);
/* Write the stores of 'count' adjacent elements. */
void codegen_direct_store(text *t, const char *indent, pons_type type, int count, const char *from,
                          const char *to);

#endif
