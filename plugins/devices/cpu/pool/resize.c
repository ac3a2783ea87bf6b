/*
 * resize.c - resizing [N, D, H, W, C]: the nearest modes copy elements (gather_copy.h); the linear
 * modes and all gradients are weighted sums (separable.h).
 */
#include "cpu/pool/separable.h"
#include "cpu/move/gather_copy.h"

#include <math.h>
#include <stdlib.h>

typedef struct resizing {
    pons_resize_mode mode;
    pons_shape original, resized;
} resizing;

/* The position of a linear mode between the sources of element i of m. */
static double linear_source(pons_resize_mode mode, int64_t i, int64_t n, int64_t m)
{
    double at = ((double)i + 0.5) * (double)n / (double)m - 0.5;

    if (mode == PONS_RESIZE_LINEAR_ALIGNED)
        return m > 1 ? (double)(i * (n - 1)) / (double)(m - 1) : 0;
    return at < 0 ? 0 : at;
}

/* The source positions of position i of the resized axis, as in the core's reference kernel. */
static int neighbours(const void *context, int axis, int64_t i, int64_t *place, double *weight)
{
    const resizing *r = context;
    int64_t n = r->original.extent[axis], m = r->resized.extent[axis];
    double at = linear_source(r->mode, i, n, m);

    weight[0] = 1;
    if (r->mode == PONS_RESIZE_NEAREST) {
        place[0] = i * n / m;
        return 1;
    }
    if (r->mode == PONS_RESIZE_NEAREST_EXACT) {
        place[0] = (2 * i + 1) * n / (2 * m);
        return 1;
    }
    place[0] = (int64_t)floor(at);
    weight[1] = at - floor(at);
    weight[0] = 1 - weight[1];
    place[1] = place[0] + 1 < n ? place[0] + 1 : n - 1;
    return weight[1] == 0 ? 1 : 2;
}

static bool nearest_plan(const pons_request *request, const resizing *r, gather_copy *t)
{
    double weight[2];
    int64_t step = 1;

    t->type[0] = request->input[0].type;
    t->type[1] = request->output[0].type;
    t->axes = 5;
    for (int a = 4, to_step = 1; a >= 0; a--) {
        gather_copy_axis *x = &t->axis[a];
        *x = (gather_copy_axis){ .extent = r->resized.extent[a], .to_step = to_step, .step = step };
        step *= r->original.extent[a];
        to_step *= (int)x->extent;
    }
    for (int a = 1; a < 4; a++) {
        gather_copy_axis *x = &t->axis[a];
        x->table = calloc((size_t)x->extent, sizeof *x->table);
        if (x->table == NULL)
            return false;
        for (int64_t i = 0; i < x->extent; i++) {
            neighbours(r, a, i, &x->table[i], weight);
            x->table[i] *= x->step;
        }
    }
    return gather_copy_finish(t);
}

static pons_status nearest_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    gather_copy_run_several(kernel->state, 1, call->input, call->output[0]);
    return PONS_OK;
}

static void nearest_free(pons_kernel *kernel)
{
    gather_copy_free(kernel->state);
    free(kernel->state);
    kernel->state = NULL;
}

static pons_status nearest_prepare(cpu_device *device, const pons_request *request,
                                   const resizing *r, pons_kernel *kernel, pons_error *err)
{
    gather_copy *t = calloc(1, sizeof *t);

    if (t == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    t->lanes = device->lanes;
    t->threads = device->threads;
    kernel->state = t;
    if (!nearest_plan(request, r, t)) {
        nearest_free(kernel);
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    }
    kernel->run = nearest_run;
    kernel->free = nearest_free;
    kernel->implementation = "gather_copy";
    return PONS_OK;
}

pons_status resize_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err)
{
    const pons_resize_attributes *a = request->attributes;
    bool gradient = request->kind == PONS_KERNEL_RESIZE_GRADIENT;
    const pons_tensor *in = &request->input[0], *out = &request->output[0];
    resizing r = { a->mode, gradient ? out->shape : in->shape, gradient ? in->shape : out->shape };
    separable_plan plan = { .from = in, .to = out, .transposed = gradient, .fixed = PONS_AXIS(0) |
                            PONS_AXIS(4), .sources_max = 2, .source = neighbours, .context = &r };

    *supported = true;
    if (!gradient && a->mode < PONS_RESIZE_LINEAR)
        return nearest_prepare(device, request, &r, kernel, err);
    return separable_prepare(device, request, &plan, kernel, err);
}
