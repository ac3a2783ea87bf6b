/*
 * convolution.c - who computes a convolution or a matrix product. Families are asked in turn: our
 * kernels for few channels on one side (narrow.h), those for many where they are the faster ones
 * (wide.h), the library (onednn.h), our kernels for any (direct.h), which declines only types that the
 * graph never hands to it.
 */
#include "cpu.h"
#include "direct.h"
#include "narrow.h"
#include "onednn.h"

#include <omp.h>

static pons_status by_narrow(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    return narrow_prepare(device->narrow, device->threads, request, kernel, supported, err);
}

/*
 * In bf16 our tiles are faster than the library (docs/performance.md), which takes two to four times
 * as long for the weight gradient and has nothing at all for processors without AVX-512. In float both
 * are near the limit of the processor, the library nearer.
 */
static pons_status by_wide(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err)
{
    const pons_convolution *c = request->attributes;

    if (request->kind != PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT || c->groups != 1 ||
        (device->library != NULL && request->input[0].type != PONS_BF16))
        return PONS_OK;
    return wide_prepare_weight(device->wide, device->threads, request, kernel, supported, err);
}

/* The library cuts its work when a kernel is made. */
static pons_status by_onednn(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    omp_set_num_threads(device->threads);
    return onednn_prepare_convolution(device->library, request, kernel, supported, err);
}

static pons_status by_direct(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    return direct_prepare(device->direct, device->threads, request, kernel, supported, err);
}

static pons_status product_by_onednn(cpu_device *device, const pons_request *request,
                                     pons_kernel *kernel, bool *supported, pons_error *err)
{
    omp_set_num_threads(device->threads);
    return onednn_prepare_matmul(device->library, request, kernel, supported, err);
}

static pons_status product_by_direct(cpu_device *device, const pons_request *request,
                                     pons_kernel *kernel, bool *supported, pons_error *err)
{
    return direct_matmul_prepare(device->direct, device->threads, request, kernel, supported, err);
}

static pons_status ask(const cpu_prepare *family, int count, cpu_device *device,
                       const pons_request *request, pons_kernel *kernel, bool *supported,
                       pons_error *err)
{
    pons_status status = PONS_OK;

    *supported = false;
    for (int i = 0; i < count && status == PONS_OK && !*supported; i++)
        status = family[i](device, request, kernel, supported, err);
    return status;
}

pons_status convolution_prepare(cpu_device *device, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err)
{
    static const cpu_prepare families[] = { by_narrow, by_wide, by_onednn, by_direct };

    return ask(families, sizeof families / sizeof *families, device, request, kernel, supported,
               err);
}

pons_status matmul_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err)
{
    static const cpu_prepare families[] = { product_by_onednn, product_by_direct };

    return ask(families, sizeof families / sizeof *families, device, request, kernel, supported,
               err);
}
