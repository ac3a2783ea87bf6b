/*
 * cudnn_convolution.c - a convolution by a plan of cuDNN as a prepared kernel.
 *
 * A run puts the plan on the device's stream with the addresses of the call; a set of addresses is
 * described to the library when it comes first, and kept: those of a program are few. Scratch
 * memory is the plan's workspace, behind the 16-bit gradient where there is one.
 */
#include "cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum { POINTERS = 3, SCRATCH_ALIGNMENT = 256 };

typedef struct addresses {
    void *pointer[POINTERS], *workspace;
    dnn_descriptor pack;
} addresses;

typedef struct planned {
    cuda_device *device;
    dnn_convolution convolution;
    dnn_plan plan;
    int known_count;
    addresses *known;
    size_t low_size;           /* of the gradient in 16 bits; 0: there is none                    */
    pons_request widening;     /* and what makes it 32                                            */
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
    dnn_plan_free(&p->plan);
    free(p->known);
    free(p);
}

static void kernel_free(pons_kernel *kernel) { planned_free(kernel->state); }

/* ---- run ------------------------------------------------------------------------------------- */

static pons_status fail(const planned *p, const char *what, int status, pons_error *err)
{
    char why[160] = "";

    p->device->dnn.last_error(why, sizeof why);
    return pons_fail(err, PONS_DEVICE, "cannot %s '%s' on device 'cuda:%d': cuDNN says %d (%s)",
                     what, p->convolution.request->name, p->device->ordinal, status, why);
}

/* Describe a set of addresses, the last known one, to the library. */
static pons_status describe(planned *p, pons_error *err)
{
    addresses *a = &p->known[p->known_count];
    dnn_list l = { .dnn = &p->device->dnn };

    a->pack = dnn_pack(&l, a->pointer, a->workspace);
    if (l.status == 0) {
        p->known_count++;
        return PONS_OK;
    }
    fail(p, "describe the memory of", l.status, err);
    dnn_list_free(&l);
    return PONS_DEVICE;
}

static pons_status find_addresses(planned *p, const addresses *wanted, dnn_descriptor *pack,
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
        status = describe(p, err);
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
    dnn_descriptor pack = NULL;
    int result;

    dnn_order(&p->convolution, call, low, wanted.pointer);
    if (cuda_check(d, d->driver.use(d->context), "use the device", err) != PONS_OK
        || find_addresses(p, &wanted, &pack, err) != PONS_OK)
        return PONS_DEVICE;
    result = d->dnn.execute(d->dnn.handle, p->plan.plan, pack);
    if (result != 0)
        return fail(p, "run", result, err);
    if (low == NULL)
        return PONS_OK;
    return p->widen.run(&p->widen, &(pons_call){ .input = &low, .output = call->output }, err);
}

/* ---- prepare --------------------------------------------------------------------------------- */

/* Room for the gradient in 16 bits, and the kernel that reads it. */
static pons_status add_widening(planned *p, const pons_request *r, bool *supported, pons_error *err)
{
    size_t size = 2 * (size_t)source_count(r->output[0].shape);

    p->widening = (pons_request){ .kind = PONS_KERNEL_COPY, .name = r->name, .input_count = 1,
                                  .output_count = 1, .input = &p->convolution.w,
                                  .output = r->output };
    p->low_size = round_up_size(size, SCRATCH_ALIGNMENT);
    return cuda_prepare_own(p->device, &p->widening, &p->widen, supported, err);
}

static pons_status prepare(planned *p, const pons_request *r, bool *supported, pons_error *err)
{
    cuda_device *d = p->device;
    const dnn_wishes wishes = { .architecture = d->architecture, .deterministic = d->deterministic,
                                .workspace = d->workspace_limit };

    if (dnn_is_doubtful(&d->dnn, &p->convolution, &wishes))
        return PONS_OK;
    if (cuda_check(d, d->driver.use(d->context), "use the device", err) != PONS_OK
        || cuda_choose_plan(d, &p->convolution, &wishes, &p->plan, err) != PONS_OK)
        return PONS_DEVICE;
    *supported = p->plan.plan != NULL;
    if (*supported && p->convolution.w.type != r->output[0].type)
        return add_widening(p, r, supported, err);
    return PONS_OK;
}

pons_status cuda_prepare_dnn(cuda_device *d, const pons_request *r, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    dnn_convolution convolution;
    pons_status status;
    planned *p;

    *supported = false;
    if (d->dnn.handle == NULL || !dnn_takes(r, &convolution))
        return PONS_OK;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", r->name);
    p->device = d;
    p->convolution = convolution;
    status = prepare(p, r, supported, err);
    if (status != PONS_OK || !*supported) {
        planned_free(p);
        return status;
    }
    *kernel = (pons_kernel){ .run = kernel_run, .free = kernel_free, .state = p,
                             .implementation = "cudnn",
                             .scratch_size = p->low_size + p->plan.workspace };
    return PONS_OK;
}
