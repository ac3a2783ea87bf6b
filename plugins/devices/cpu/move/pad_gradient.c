/*
 * pad_gradient.c - the gradient of padding by edge or reflection: each source element sums the
 * gradients of its copies.
 */
#include "cpu/pool/separable.h"

typedef struct padding {
    const pons_pad_attributes *pad;
    pons_shape inner;
} padding;

static int source(const void *context, int axis, int64_t i, int64_t *place, double *weight)
{
    const padding *p = context;

    place[0] = cpu_pad_source(p->pad, axis, i, p->inner.extent[axis]);
    weight[0] = 1;
    return place[0] >= 0;
}

pons_status pad_gradient_prepare(cpu_device *device, const pons_request *request,
                                 pons_kernel *kernel, bool *supported, pons_error *err)
{
    padding p = { request->attributes, request->output[0].shape };
    separable_plan plan = { .from = &request->input[0], .to = &request->output[0], .transposed
        = true,
                            .sources_max = 1, .source = source, .context = &p };

    for (int a = 0; a < p.inner.rank; a++)
        if (p.inner.extent[a] == request->input[0].shape.extent[a])
            plan.fixed |= PONS_AXIS(a);
    *supported = true;
    return separable_prepare(device, request, &plan, kernel, err);
}
