/*
 * argmax.c - the index of the largest element: over few channels as a map in the channel form, over
 * any other axis by argmax_axes.c.
 */
#include "cpu/cpu.h"

#include <stdlib.h>

typedef struct argmax {
    pons_map map;
    pons_operand load;
    pons_value value[2];
    pons_store store;
    pons_request request;
    pons_kernel kernel;
} argmax;

static pons_status argmax_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const argmax *m = kernel->state;

    return m->kernel.run(&m->kernel, call, err);
}

static void argmax_free(pons_kernel *kernel)
{
    argmax *m = kernel->state;

    if (m->kernel.free != NULL)
        m->kernel.free(&m->kernel);
    free(m);
}

static void make_map(argmax *m, const pons_request *r)
{
    pons_shape s = r->input[0].shape;
    int64_t step = 1, to_step = 1;

    m->map = (pons_map){ .axis_count = s.rank, .channels = (int)s.extent[s.rank - 1],
                         .load_count = 1, .value_count = 2, .store_count = 1, .load = &m->load,
                         .value = m->value, .store = &m->store };
    m->load = (pons_operand){ .type = r->input[0].type };
    m->value[0] = (pons_value){ .operation = PONS_VALUE_LOAD };
    m->value[1] = (pons_value){ .operation = PONS_VALUE_CHANNEL_ARG_MAX, .per_point = 1,
                                .argument_count = 1 };
    m->store = (pons_store){ .value = 1, .to = { .type = r->output[0].type } };
    for (int i = s.rank - 1; i >= 0; i--) {
        m->map.extent[i] = s.extent[i];
        m->load.stride[i] = step;
        m->store.to.stride[i] = i == s.rank - 1 ? 0 : to_step;
        step *= s.extent[i];
        to_step *= i == s.rank - 1 ? 1 : s.extent[i];
    }
    m->request = *r;
    m->request.kind = PONS_KERNEL_MAP;
    m->request.attributes = &m->map;
}

pons_status argmax_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err)
{
    const pons_axis_attributes *a = request->attributes;
    pons_shape s = request->input[0].shape;
    argmax *m;
    pons_status status;

    if (a->axis != s.rank - 1 || s.extent[a->axis] > 64 || request->input[0].type == PONS_I32)
        return argmax_axes_prepare(device, request, kernel, supported, err);
    m = calloc(1, sizeof *m);
    if (m == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    make_map(m, request);
    status = map_prepare(device, &m->request, &m->kernel, supported, err);
    if (status != PONS_OK || !*supported) {
        free(m);
        return status;
    }
    *kernel = (pons_kernel){ .run = argmax_run, .free = argmax_free, .state = m,
                             .implementation = m->kernel.implementation,
                             .scratch_size = m->kernel.scratch_size };
    return PONS_OK;
}
