/*
 * convolutions.h - one convolution as a request of a device, in any direction.
 */
#ifndef TESTS_CONVOLUTIONS_H
#define TESTS_CONVOLUTIONS_H

#include <pons/device.h>

#include <string.h>

typedef struct sliding {
    pons_kernel_kind kind;
    int cases, extent[3], in, out;       /* extent: of x; in, out: channels of x and y */
    int kernel[3], stride[3], dilation[3], low[3], high[3];
    pons_type type;                      /* of x and y */
} sliding;

/*
 * A request and the tensors that it points to; a copy of 'request' is valid as long as this struct.
 */
typedef struct sliding_request {
    pons_convolution attributes;
    pons_tensor input[2], output[1];
    pons_request request;
} sliding_request;

/* The extent of y along one axis; 0: the kernel does not fit. */
int sliding_extent(const sliding *s, int i);

void sliding_make(const sliding *s, sliding_request *r);

int64_t tensor_count(const pons_tensor *t);

#endif
