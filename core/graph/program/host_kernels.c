/*
 * host_kernels.c - kernels of this process in a program whose memory is that of a device: what
 * they read is fetched, what they write is sent.
 */
#include <stdlib.h>

#include "graph/ir/shape.h"
#include "graph/program/program_internal.h"

typedef struct hosted {
    device device;
    pons_kernel inner;
    int input_count, output_count;
    size_t *size;             /* of inputs, then of outputs                                       */
    void **memory;            /* host memory, likewise                                            */
    void *scratch;
} hosted;

static void hosted_free(pons_kernel *kernel)
{
    hosted *h = kernel->state;

    if (h->inner.free != NULL)
        h->inner.free(&h->inner);
    for (int i = 0; h->memory != NULL && i < h->input_count + h->output_count; i++)
        free(h->memory[i]);
    free(h->size);
    free(h->memory);
    free(h->scratch);
    free(h);
}

static pons_status hosted_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const hosted *h = kernel->state;
    pons_step_key step_key;
    const pons_call inner = { .input = h->memory, .output = h->memory + h->input_count,
                              .scratch = h->scratch, .step_key = &step_key };

    if (mirror_read(&h->device, &step_key, call->step_key, sizeof step_key, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < h->input_count; i++)
        if (mirror_read(&h->device, h->memory[i], call->input[i], h->size[i], err) != PONS_OK)
            return err->status;
    if (h->inner.run(&h->inner, &inner, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < h->output_count; i++)
        if (mirror_write(&h->device, call->output[i], h->memory[h->input_count + i],
                         h->size[h->input_count + i], err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

static bool give_memory(hosted *h, const pons_request *r)
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

pons_status hosted_prepare(const device *d, const pons_request *r, pons_kernel *k, pons_error *err)
{
    hosted *h;

    if (r->kind == PONS_KERNEL_PATCH) /* nobody here knows how much the device holds */
        return pons_fail(err, PONS_DEVICE, "the device '%s' cannot cut patches\n"
                         "hint: --set data.cache=memory", d->facts.name);
    if (r->kind == PONS_KERNEL_PATCH_ACCUMULATE) /* likewise; who builds it has asked */
        return pons_fail(err, PONS_DEVICE, "the device '%s' cannot add up patches", d->facts.name);
    h = calloc(1, sizeof *h);
    if (h != NULL) {
        *h = (hosted){ .device = *d, .inner = *k };
        *k = (pons_kernel){ .run = hosted_run, .free = hosted_free, .state = h,
                            .implementation = h->inner.implementation };
        if (give_memory(h, r))
            return PONS_OK;
    }
    return pons_fail(err, PONS_DEVICE, "out of memory for '%s'", r->name != NULL ? r->name : "");
}
