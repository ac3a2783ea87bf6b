/*
 * cudnn_convolution.c - a convolution by a plan of cuDNN as a prepared kernel.
 *
 * A run executes the plan on the device's stream with the addresses of the call. Each set of
 * addresses gets a variant pack at its first use, which is kept: a program has few sets. Scratch
 * memory is the 16-bit gradient, if there is one, followed by the plan's workspace.
 */
#include "cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum { POINTERS = 3, SCRATCH_ALIGNMENT = 256 };

typedef struct addresses {
    void *pointer[POINTERS], *workspace;
    cudnn_descriptor pack;
} addresses;

typedef struct planned {
    cuda_device *device;
    cudnn_convolution convolution;
    cudnn_plan plan;
    int known_count;
    addresses *known;
    size_t low_size;           /* bytes of the 16-bit gradient; 0: none                           */
    pons_request widening;     /* conversion of the 16-bit gradient to f32                        */
    pons_kernel widen;
} planned;

static void planned_free(planned *p)
{
    if (p == NULL)
        return;
    p->device->driver.use(p->device->context);
    for (int i = 0; i < p->known_count; i++)
        p->device->dnn.descriptor_free(p->known[i].pack);
    if (p->widen.free != NULL)
        p->widen.free(&p->widen);
    cudnn_plan_free(&p->plan);
    free(p->known);
    free(p);
}

static void kernel_free(pons_kernel *kernel) { planned_free(kernel->state); }

/* ---- run ------------------------------------------------------------------------------------- */

static pons_status fail_status(const planned *p, const char *what, int status, pons_error *err)
{
    char why[160] = "";

    p->device->dnn.last_error(why, sizeof why);
    return pons_fail(err, PONS_DEVICE, "cannot %s '%s' on device 'cuda:%d': cuDNN says %d (%s)",
                     what, p->convolution.request->name, p->device->ordinal, status, why);
}

/* Make the variant pack of the last set of addresses. */
static pons_status describe_addresses(planned *p, pons_error *err)
{
    addresses *a = &p->known[p->known_count];
    cudnn_list l = { .dnn = &p->device->dnn };

    a->pack = cudnn_variant_pack(&l, a->pointer, a->workspace);
    if (l.status == 0) {
        p->known_count++;
        return PONS_OK;
    }
    fail_status(p, "describe the memory of", l.status, err);
    cudnn_list_free(&l);
    return PONS_DEVICE;
}

static pons_status find_addresses(planned *p, const addresses *wanted, cudnn_descriptor *pack,
                                  pons_error *err)
{
    addresses *known;
    pons_status status = PONS_OK;
    int i = 0;

    while (i < p->known_count
           && (memcmp(p->known[i].pointer, wanted->pointer, sizeof wanted->pointer) != 0
               || p->known[i].workspace != wanted->workspace))
        i++;
    if (i == p->known_count) {
        known = realloc(p->known, (size_t)(i + 1) * sizeof *known);
        if (known == NULL)
            return pons_fail(err, PONS_DEVICE, "cannot run '%s': out of memory",
                             p->convolution.request->name);
        p->known = known;
        known[i] = *wanted;
        status = describe_addresses(p, err);
    }
    if (status == PONS_OK)
        *pack = p->known[i].pack;
    return status;
}

static pons_status kernel_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    planned *p = kernel->state;
    cuda_device *d = p->device;
    void *low = p->low_size > 0 ? call->scratch : NULL;
    addresses wanted = { .workspace = (char *)call->scratch + p->low_size };
    cudnn_descriptor pack = NULL;
    int result;

    cudnn_order_pointers(&p->convolution, call, low, wanted.pointer);
    if (cuda_check(d, d->driver.use(d->context), "use the device", err) != PONS_OK
        || find_addresses(p, &wanted, &pack, err) != PONS_OK)
        return PONS_DEVICE;
    result = d->dnn.execute(d->dnn.handle, p->plan.plan, pack);
    if (result != 0)
        return fail_status(p, "run", result, err);
    if (low == NULL)
        return PONS_OK;
    return p->widen.run(&p->widen, &(pons_call){ .input = &low, .output = call->output }, err);
}

/* ---- prepare --------------------------------------------------------------------------------- */

/* Reserve memory for the 16-bit gradient, and prepare the kernel that converts it. */
static pons_status add_widening(planned *p, const pons_request *r, bool *supported, pons_error *err)
{
    size_t size = 2 * (size_t)codegen_count(r->output[0].shape);

    p->widening = (pons_request){ .kind = PONS_KERNEL_COPY, .name = r->name, .input_count = 1,
                                  .output_count = 1, .input = &p->convolution.w,
                                  .output = r->output };
    p->low_size = round_up_size(size, SCRATCH_ALIGNMENT);
    return cuda_prepare_own(p->device, &p->widening, &p->widen, supported, err);
}

static pons_status prepare_plan(planned *p, const pons_request *r, bool *supported, pons_error *err)
{
    cuda_device *d = p->device;
    const cudnn_constraints constraints = { .architecture = d->architecture, .deterministic
        = d->deterministic,
                                            .workspace = d->workspace_limit };

    if (cudnn_is_known_bad(&d->dnn, &p->convolution, &constraints))
        return PONS_OK;
    if (cuda_check(d, d->driver.use(d->context), "use the device", err) != PONS_OK
        || cudnn_choose_plan(d, &p->convolution, &constraints, &p->plan, err) != PONS_OK)
        return PONS_DEVICE;
    *supported = p->plan.plan != NULL;
    if (*supported && p->convolution.w.type != r->output[0].type)
        return add_widening(p, r, supported, err);
    return PONS_OK;
}

pons_status cudnn_prepare(cuda_device *d, const pons_request *r, pons_kernel *kernel,
                          bool *supported, pons_error *err)
{
    cudnn_convolution convolution;
    pons_status status;
    planned *p;

    *supported = false;
    if (d->dnn.handle == NULL || !cudnn_supports(r, &convolution))
        return PONS_OK;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", r->name);
    p->device = d;
    p->convolution = convolution;
    status = prepare_plan(p, r, supported, err);
    if (status != PONS_OK || !*supported) {
        planned_free(p);
        return status;
    }
    *kernel = (pons_kernel){ .run = kernel_run, .free = kernel_free, .state = p,
                             .implementation = "cudnn",
                             .scratch_size = p->low_size + p->plan.workspace };
    return PONS_OK;
}
