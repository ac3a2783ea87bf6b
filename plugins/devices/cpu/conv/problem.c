/*
 * problem.c - decode a request into the tensors of problem.h.
 */
#include "cpu/conv/problem.h"

static conv_direction direction_of(pons_kernel_kind kind)
{
    switch (kind) {
    case PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT: return CONV_INPUT_GRADIENT;
    case PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT: return CONV_WEIGHT_GRADIENT;
    default: return CONV_FORWARD;
    }
}

static conv_image image_of(const pons_tensor *t)
{
    const int64_t *e = t->shape.extent;

    return (conv_image){ t->type, { (int)e[1], (int)e[2], (int)e[3] }, (int)e[4] };
}

static void find_tensors(conv_problem *p, const pons_request *r)
{
    bool weight = p->direction == CONV_WEIGHT_GRADIENT;
    bool input = p->direction == CONV_INPUT_GRADIENT;

    p->x_tensor = input ? &r->output[0] : &r->input[0];
    p->w_tensor = weight ? &r->output[0] : &r->input[1];
    p->y_tensor = input ? &r->input[0] : weight ? &r->input[1] : &r->output[0];
}

void conv_problem_init(conv_problem *p, const pons_request *request)
{
    const pons_convolution *c = request->attributes;

    *p = (conv_problem){ .request = request, .attributes = c,
                         .direction = direction_of(request->kind), .groups = c->groups,
                         .taps = 1 };
    find_tensors(p, request);
    p->x = image_of(p->x_tensor);
    p->y = image_of(p->y_tensor);
    p->weight_type = p->w_tensor->type;
    p->cases = (int)p->x_tensor->shape.extent[0];
    p->packable = p->direction != CONV_WEIGHT_GRADIENT && (request->packable & 2u) != 0;
    for (int i = 0; i < 3; i++) {
        p->kernel[i] = (int)p->w_tensor->shape.extent[1 + i];
        p->stride[i] = c->stride[i];
        p->dilation[i] = c->dilation[i];
        p->pad[i] = c->pad_low[i];
        p->taps *= p->kernel[i];
        p->strided = p->strided || c->stride[i] > 1;
        p->dilated = p->dilated || c->dilation[i] > 1;
    }
}

const conv_image *conv_from(const conv_problem *p)
{
    return p->direction == CONV_INPUT_GRADIENT ? &p->y : &p->x;
}

const conv_image *conv_to(const conv_problem *p)
{
    return p->direction == CONV_INPUT_GRADIENT ? &p->x : &p->y;
}

bool conv_type_supported(pons_type type)
{
    return type == PONS_F32 || type == PONS_BF16;
}

bool conv_has_types(const conv_problem *p, pons_type image, pons_type weight)
{
    return p->x.type == image && p->y.type == image && p->weight_type == weight;
}
