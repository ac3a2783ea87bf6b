/*
 * problem.h - a convolution or one of its gradients, decoded from a request: tensors by role.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_PROBLEM_H
#define PLUGINS_DEVICES_CPU_CONV_PROBLEM_H

#include <pons/device.h>

/* Bits, so that a set of directions is an integer. */
typedef enum conv_direction {
    CONV_FORWARD = 1,
    CONV_INPUT_GRADIENT = 2,
    CONV_WEIGHT_GRADIENT = 4,
    CONV_IMAGE = CONV_FORWARD | CONV_INPUT_GRADIENT, /* the output is an image */
    CONV_ANY = CONV_IMAGE | CONV_WEIGHT_GRADIENT
} conv_direction;

typedef struct conv_image {
    pons_type type;
    int extent[3], channels;
} conv_image;

/* In all directions x is what the convolution reads, w its weight, y what it makes. */
typedef struct conv_problem {
    const pons_request *request;    /* lives as long as the kernel */
    const pons_tensor *x_tensor, *w_tensor, *y_tensor;
    const pons_convolution *attributes;
    conv_direction direction;       /* one of them */
    conv_image x, y;
    pons_type weight_type;
    int cases, groups;
    int kernel[3], stride[3], dilation[3], pad[3]; /* pad: at the low end */
    int taps;                       /* kernel positions */
    bool strided, dilated;
    bool packable;                  /* the weight is an input that may be packed once a step */
} conv_problem;

void conv_problem_init(conv_problem *p, const pons_request *request);

/* Input 0 of the request. */
const conv_image *conv_from(const conv_problem *p);
/* The other image: an input of the weight gradient, the output otherwise. */
const conv_image *conv_to(const conv_problem *p);
/* Whether kernels for any of f32 and bf16 take tensors of the type. */
bool conv_type_supported(pons_type type);
/* Whether x, y and the weight have these types. */
bool conv_has_types(const conv_problem *p, pons_type image, pons_type weight);

#endif
