/*
 * host_kernels.c - kernels of this process for a device with memory of its own. They copy their
 * inputs to the host and their outputs back.
 */
#include <stdlib.h>

#include "graph/ir/shape.h"
#include "graph/program/program_internal.h"

typedef struct host_kernel {
    device device;
    pons_kernel inner;
    int input_count, output_count;
    size_t *size;             /* bytes of each input, then of each output                         */
    void **memory;            /* host memory of each input, then of each output                   */
    void *scratch;
} host_kernel;

static void host_kernel_free(pons_kernel *kernel)
{
    host_kernel *h = kernel->state;

    if (h->inner.free != NULL)
        h->inner.free(&h->inner);
    for (int i = 0; h->memory != NULL && i < h->input_count + h->output_count; i++)
        free(h->memory[i]);
    free(h->size);
    free(h->memory);
    free(h->scratch);
    free(h);
}

static pons_status host_kernel_run(const pons_kernel *kernel, const pons_call *call,
                                   pons_error *err)
{
    const host_kernel *h = kernel->state;
    pons_step_key step_key;
    const pons_call inner = { .input = h->memory, .output = h->memory + h->input_count,
                              .scratch = h->scratch, .step_key = &step_key };

    if (staging_read(&h->device, &step_key, call->step_key, sizeof step_key, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < h->input_count; i++)
        if (staging_read(&h->device, h->memory[i], call->input[i], h->size[i], err) != PONS_OK)
            return err->status;
    if (h->inner.run(&h->inner, &inner, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < h->output_count; i++)
        if (staging_write(&h->device, call->output[i], h->memory[h->input_count + i],
                          h->size[h->input_count + i], err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

static bool allocate_copies(host_kernel *h, const pons_request *r)
{
    int count = r->input_count + r->output_count;

    h->input_count = r->input_count;
    h->output_count = r->output_count;
    h->size = calloc((size_t)count, sizeof *h->size);
    h->memory = calloc((size_t)count, sizeof *h->memory);
    if (h->size == NULL || h->memory == NULL)
        return false;
    for (int i = 0; i < count; i++) {
        const pons_tensor *t = i < r->input_count ? &r->input[i] : &r->output[i - r->input_count];
        h->size[i] = (size_t)shape_count(t->shape) * type_size(t->type);
        h->memory[i] = aligned_alloc(MEMORY_ALIGNMENT, memory_round(h->size[i] + 1));
        if (h->memory[i] == NULL)
            return false;
    }
    if (h->inner.scratch_size > 0)
        h->scratch = aligned_alloc(MEMORY_ALIGNMENT, memory_round(h->inner.scratch_size));
    return h->scratch != NULL || h->inner.scratch_size == 0;
}

pons_status host_kernel_prepare(const device *d, const pons_request *r, pons_kernel *k,
                                pons_error *err)
{
    host_kernel *h;

    if (r->kind == PONS_KERNEL_PATCH) /* the size of resident memory is unknown here */
        return pons_fail(err, PONS_DEVICE, "the device '%s' cannot cut patches\n"
                         "hint: --set data.cache=memory", d->facts.name);
    if (r->kind == PONS_KERNEL_PATCH_ACCUMULATE) /* likewise; the graph's builder has asked the   */
                                                 /* device                                        */
        return pons_fail(err, PONS_DEVICE, "the device '%s' cannot add up patches", d->facts.name);
    h = calloc(1, sizeof *h);
    if (h != NULL) {
        *h = (host_kernel){ .device = *d, .inner = *k };
        *k = (pons_kernel){ .run = host_kernel_run, .free = host_kernel_free, .state = h,
                            .implementation = h->inner.implementation };
        if (allocate_copies(h, r))
            return PONS_OK;
    }
    return pons_fail(err, PONS_DEVICE, "out of memory for '%s'", r->name != NULL ? r->name : "");
}
