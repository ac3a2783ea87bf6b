/*
 * reference.c - the reference device: one plain kernel for every kind of request, on one thread.
 *
 * It is the oracle of the tests, and the fallback for requests that a device has no kernel for
 * (R13).
 */
#include "graph/reference/reference.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "graph/reference/reference_internal.h"

typedef struct prepared {
    const reference_kernels *kernels;
    const pons_request *request;
} prepared;

/* ---- kernels --------------------------------------------------------------------------------- */

/* Scratch for the output in double and for each input that is not of the kernels' type. */
static size_t plain_scratch(const reference_kernels *k, const pons_request *r)
{
    size_t size = round_up_size((size_t)shape_count(r->output[0].shape) * sizeof(double), 64);

    for (int i = 0; i < r->input_count; i++)
        if (r->input[i].type != k->real_type)
            size += round_up_size((size_t)shape_count(r->input[i].shape) * k->real_size, 64);
    return size;
}

static void run_plain(const reference_kernels *k, const pons_request *r, const pons_call *call)
{
    const void *in[PONS_KERNEL_INPUTS_MAX];
    int64_t count = shape_count(r->output[0].shape);
    double *out = call->scratch;
    char *free_scratch = (char *)call->scratch + round_up_size((size_t)count * sizeof(double), 64);

    for (int i = 0; i < r->input_count; i++) {
        int64_t elements = shape_count(r->input[i].shape);

        in[i] = call->input[i];
        if (r->input[i].type == k->real_type || in[i] == NULL)
            continue;
        for (int64_t j = 0; j < elements; j++)
            number_store(k->real_type, free_scratch, j,
                         number_load(r->input[i].type, call->input[i], j));
        in[i] = free_scratch;
        free_scratch += round_up_size((size_t)elements * k->real_size, 64);
    }
    memset(out, 0, (size_t)count * sizeof *out);
    k->plain[r->kind](r, in, out);
    for (int64_t i = 0; i < count; i++)
        number_store(r->output[0].type, call->output[0], i, out[i]);
}

static bool is_patch(const pons_request *r)
{
    return r->kind == PONS_KERNEL_PATCH || r->kind == PONS_KERNEL_PATCH_NORMAL
        || r->kind == PONS_KERNEL_PATCH_ACCUMULATE;
}

static pons_status kernel_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const prepared *p = kernel->state;

    if (p->request->kind == PONS_KERNEL_MAP)
        p->kernels->map(p->request, call);
    else if (p->request->kind == PONS_KERNEL_OP)
        reference_op_run(p->kernels, p->request, call);
    else if (is_patch(p->request))
        reference_patch_run(p->request, call);
    else
        run_plain(p->kernels, p->request, call);
    return PONS_OK;
}

static void kernel_free(pons_kernel *kernel)
{
    free(kernel->state);
}

static size_t scratch_size(const reference_kernels *k, const pons_request *r)
{
    if (r->kind == PONS_KERNEL_MAP)
        return k->map_scratch(r->attributes);
    if (is_patch(r))
        return 0;
    return r->kind == PONS_KERNEL_OP ? reference_op_scratch(k, r) : plain_scratch(k, r);
}

static pons_status prepare_kernel(void *device, const pons_request *request, pons_kernel *kernel,
                                  bool *supported, pons_error *err)
{
    const reference_kernels *k = device;
    prepared *p;

    *supported = request->kind == PONS_KERNEL_MAP || request->kind == PONS_KERNEL_OP ||
                 is_patch(request) ||
                 (request->kind > 0 && request->kind < PONS_KERNEL_KIND_COUNT &&
                  k->plain[request->kind] != NULL);
    if (!*supported)
        return PONS_OK;
    if ((p = malloc(sizeof *p)) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    *p = (prepared){ k, request };
    kernel->run = kernel_run;
    kernel->free = kernel_free;
    kernel->state = p;
    kernel->implementation = request->kind == PONS_KERNEL_OP ? "plugin" : "reference";
    kernel->scratch_size = scratch_size(k, request);
    return PONS_OK;
}

/* ---- the device ------------------------------------------------------------------------------ */

static pons_status open_device(const pons_device_settings *settings, void **device, pons_error *err)
{
    *device = (void *)&reference_float;
    return PONS_OK;
}

static void close_device(void *device)
{
}

static void device_facts(void *device, pons_device_facts *facts)
{
    *facts = (pons_device_facts){ .name = "reference", .threads = 1, .host_memory = true };
}

static void *allocate(void *device, size_t size, pons_error *err)
{
    size_t rounded = round_up_size(size, 4096);
    void *memory = rounded >= size ? aligned_alloc(4096, rounded > 0 ? rounded : 4096) : NULL;

    if (memory == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory: %zu bytes", size);
    else
        memset(memory, 0, rounded);
    return memory;
}

static void release(void *device, void *memory, size_t size)
{
    free(memory);
}

static pons_status attach(void *device, pons_error *err)
{
    return PONS_OK;
}

static const pons_device_operations operations = {
    .open = open_device, .close = close_device, .facts = device_facts, .attach = attach,
    .prepare = prepare_kernel, .memory = { .allocate = allocate, .release = release },
};

void device_reference(device *d, bool wide)
{
    *d = (device){ .operations = &operations,
                   .handle = (void *)(wide ? &reference_double : &reference_float),
                   .reference = true, .wide = wide };
    device_facts(d->handle, &d->facts);
}
