/*
 * convolutions.c - see convolutions.h.
 */
#include "support/graph/convolutions.h"

int sliding_extent(const sliding *s, int i)
{
    int room = s->extent[i] + s->low[i] + s->high[i] - s->dilation[i] * (s->kernel[i] - 1) - 1;

    return room < 0 ? 0 : room / s->stride[i] + 1;
}

void sliding_make(const sliding *s, sliding_request *r)
{
    bool weight = s->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT;
    bool input = s->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT;
    pons_tensor x = { s->type, { 5, { s->cases, 0, 0, 0, s->in } } };
    pons_tensor y = { s->type, { 5, { s->cases, 0, 0, 0, s->out } } };
    pons_tensor w = { weight ? PONS_F32 : s->type, { 5, { s->out, 0, 0, 0, s->in } } };

    *r = (sliding_request){ .attributes = PONS_CONVOLUTION_INIT };
    for (int i = 0; i < 3; i++) {
        x.shape.extent[1 + i] = s->extent[i];
        y.shape.extent[1 + i] = sliding_extent(s, i);
        w.shape.extent[1 + i] = s->kernel[i];
        r->attributes.stride[i] = s->stride[i];
        r->attributes.dilation[i] = s->dilation[i];
        r->attributes.pad_low[i] = s->low[i];
        r->attributes.pad_high[i] = s->high[i];
    }
    r->input[0] = input ? y : x;
    r->input[1] = weight ? y : w;
    r->output[0] = weight ? w : input ? x : y;
    r->request = (pons_request){ .kind = s->kind, .name = "sample", .input_count = 2,
                                 .output_count = 1, .input = r->input, .output = r->output,
                                 .attributes = &r->attributes };
}

int64_t tensor_count(const pons_tensor *t)
{
    int64_t count = 1;

    for (int i = 0; i < t->shape.rank; i++)
        count *= t->shape.extent[i];
    return count;
}
