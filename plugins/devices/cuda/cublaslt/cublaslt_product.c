/*
 * cublaslt_product.c - a matrix product by cuBLASLt as a prepared kernel.
 */
#include "cuda/cuda.h"

#include <stdlib.h>

typedef struct planned {
    cuda_device *device;
    const pons_request *request;
    cublaslt_product product;
    cublaslt_choice choice;
} planned;

static void planned_free(planned *p)
{
    p->device->driver.use(p->device->context);
    cublaslt_product_free(&p->device->blas, &p->product);
    free(p);
}

static void kernel_free(pons_kernel *kernel) { planned_free(kernel->state); }

static pons_status check_status(const planned *p, int status, const char *what, pons_error *err)
{
    if (status == 0)
        return PONS_OK;
    return pons_fail(err, PONS_DEVICE, "cannot %s '%s' on device 'cuda:%d': cuBLASLt says %d (%s)",
                     what, p->request->name, p->device->ordinal, status,
                     p->device->blas.status_text(status));
}

static pons_status kernel_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const planned *p = kernel->state;
    const cuda_device *d = p->device;
    void *const operand[3] = { call->input[0], call->input[1], call->output[0] };

    if (cuda_check(d, d->driver.use(d->context), "use the device", err) != PONS_OK)
        return PONS_DEVICE;
    return check_status(p, cublaslt_product_run(&d->blas, &p->product, &p->choice, operand,
                                                call->scratch,
                                                d->stream[PONS_STREAM_KERNELS]), "run", err);
}

static pons_status prepare_product(planned *p, bool *found, pons_error *err)
{
    cuda_device *d = p->device;
    cublaslt_choice all[AUTOTUNE_CANDIDATES];
    int most = d->autotune != NULL ? AUTOTUNE_CANDIDATES : 1, count, best;

    if (check_status(p, cublaslt_product_new(&d->blas, p->request, &p->product), "plan",
                     err) != PONS_OK
        || check_status(p, cublaslt_product_choose(&d->blas, &p->product, d->workspace_limit, most,
                                                   all, &count), "plan", err) != PONS_OK)
        return PONS_DEVICE;
    *found = count > 0;
    if (!*found)
        return PONS_OK;
    if (cublaslt_choose_algorithm(d, p->request, &p->product, count, all, &best, err) == PONS_OK)
        p->choice = all[best];
    return err->status;
}

pons_status cublaslt_prepare(cuda_device *d, const pons_request *r, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    pons_status status;
    planned *p;

    *supported = false;
    if (!cublaslt_supports(r))
        return PONS_OK;
    if (cuda_check(d, d->driver.use(d->context), "use the device", err) != PONS_OK)
        return PONS_DEVICE;
    if (!cublaslt_is_available(&d->blas, d->toolkit))
        return PONS_OK;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", r->name);
    p->device = d;
    p->request = r;
    status = prepare_product(p, supported, err);
    if (status != PONS_OK || !*supported) {
        planned_free(p);
        return status;
    }
    *kernel = (pons_kernel){ .run = kernel_run, .free = kernel_free, .state = p,
                             .implementation = "cublas", .scratch_size = p->choice.workspace };
    return PONS_OK;
}
