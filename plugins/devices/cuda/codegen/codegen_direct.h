/*
 * codegen_direct.h - what direct convolutions share: which tensor is which, and tiles of channels.
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
    int64_t places;        /* of the kernel                                                       */
} direct_plan;

direct_plan direct_plan_of(const pons_request *r);
/* The greatest divisor of n that is at most 'most', which may be below 1. */
int direct_divisor(int64_t n, int64_t most);
/*
 * "load4_bf16(FROM, TO); ...": 'count' numbers that lie beside each other become floats. They begin
 * at a multiple of 'count' numbers of a tensor.
 */
void direct_load(text *t, const char *indent, pons_type type, int count, const char *from,
                 const char *to);
/* The same for floats that become numbers of a tensor. */
void direct_store(text *t, const char *indent, pons_type type, int count, const char *from,
                  const char *to);

#endif
