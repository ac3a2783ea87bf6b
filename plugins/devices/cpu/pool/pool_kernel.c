/*
 * pool_kernel.c - pooling of [N, D, H, W, C]: means, their gradient and maxima by separable.h; the
 * gradient of a maximum is pool_gradient.c.
 */
#include "cpu/pool/separable.h"
#include "cpu/pool/pool_internal.h"

#include "base/integer.h"

typedef struct pooling {
    const pons_pool *p;
    pons_shape x;
} pooling;

int64_t pool_span(const pons_pool *p, int axis, int64_t n, int64_t i, int64_t *begin,
                    int64_t *end)
{
    int64_t first = i * p->stride[axis] - p->pad_low[axis], last = first + p->kernel[axis];

    if (last > n + p->pad_high[axis])
        last = n + p->pad_high[axis];
    *begin = max_i64(first, 0);
    *end = min_i64(last, n);
    return last - first;
}

static int pool_window(const void *context, int axis, int64_t i, int64_t *place, double *weight)
{
    const pooling *k = context;
    int64_t begin, end;
    int64_t size = pool_span(k->p, axis - 1, k->x.extent[axis], i, &begin, &end);
    int count = 0;

    for (int64_t at = begin; at < end; at++) {
        place[count] = at;
        weight[count++] = 1 / (double)size;
    }
    return count;
}

pons_status pool_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                         bool *supported, pons_error *err)
{
    const pons_pool *p = request->attributes;
    bool gradient = request->kind == PONS_KERNEL_POOL_GRADIENT;
    const pons_tensor *x = gradient ? &request->output[0] : &request->input[0];
    pooling k = { p, x->shape };
    separable_plan plan = { .from = &request->input[gradient], .to = &request->output[0],
                            .input = gradient, .largest = p->mode == PONS_POOL_MAX, .transposed
                                = gradient,
                            .fixed = PONS_AXIS(0) | PONS_AXIS(4), .sources_max = 1, .source
                                = pool_window,
                            .context = &k };

    *supported = true;
    if (gradient && p->mode == PONS_POOL_MAX)
        return pool_gradient_prepare(device, request, kernel, err);
    for (int i = 0; i < 3; i++)
        plan.sources_max = max_i64(plan.sources_max, p->kernel[i]);
    return separable_prepare(device, request, &plan, kernel, err);
}
