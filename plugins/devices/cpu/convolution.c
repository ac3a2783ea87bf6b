/*
 * convolution.c - who computes a convolution or a matrix product. Families are asked in turn: our
 * kernels for few channels on one side (narrow.h), those for many where they are faster (wide.h),
 * the library (onednn.h), our kernels for any (direct.h), which declines only types that the graph
 * never hands to it. Whose scratch memory is above the limit is passed over for the next.
 */
#include "cpu.h"
#include "direct.h"
#include "narrow.h"
#include "narrow_tile.h"
#include "onednn.h"
#include "wide.h"

#include <omp.h>

static pons_status by_narrow_tile(cpu_device *device, const pons_request *request,
                                  pons_kernel *kernel, bool *supported, pons_error *err)
{
    if (device->wide != &wide_tiles)
        return PONS_OK;
    if (request->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        return narrow_tile_prepare_weight(device->threads, request, kernel, supported, err);
    return narrow_tile_prepare(device->narrow, device->threads, request, kernel, supported, err);
}

static pons_status by_narrow(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    return narrow_prepare(device->narrow, device->threads, request, kernel, supported, err);
}

/*
 * Where our tiles are faster than the library (2.6.3, docs/performance.md). Gradients by the weight
 * take it two to six times as long; in the other directions it loses where a stride sends it to
 * kernels that scatter, and where sums are long. Vectors of pairs it uses well: ours take 0.96 to
 * 2.4 times as long, and are for builds without it.
 */
static bool wide_wins(const wide_unit *unit, const pons_request *request)
{
    const pons_convolution *c = request->attributes;
    const int64_t *k = request->input[1].shape.extent;
    bool strided = c->stride[0] * c->stride[1] * c->stride[2] > 1;

    if (unit != &wide_tiles)
        return false;
    switch (request->kind) {
    case PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT: return true;
    case PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT:
        return k[1] * k[2] * k[3] > 1 && (k[0] >= 128 || (strided && (k[0] >= 64 || k[4] >= 64)));
    default: return k[1] * k[2] * k[3] > 1 && k[4] >= 256;
    }
}

static pons_status by_wide(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err)
{
    const pons_convolution *c = request->attributes;

    if (device->wide == NULL || c->groups != 1 ||
        (device->library != NULL && !wide_wins(device->wide, request)))
        return PONS_OK;
    if (request->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        return wide_prepare_weight(device->wide, device->threads, request, kernel, supported, err);
    return wide_prepare_image(device->wide, device->threads, request, kernel, supported, err);
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

/* Wants more scratch memory than it may, where another family follows. */
static bool is_too_large(const cpu_device *device, const pons_kernel *kernel)
{
    size_t limit = device->settings.workspace_limit;

    return limit > 0 && kernel->scratch_size > limit;
}

static pons_status ask(const cpu_prepare *family, int count, cpu_device *device,
                       const pons_request *request, pons_kernel *kernel, bool *supported,
                       pons_error *err)
{
    pons_status status = PONS_OK;

    *supported = false;
    for (int i = 0; i < count && status == PONS_OK && !*supported; i++) {
        status = family[i](device, request, kernel, supported, err);
        if (i + 1 < count && *supported && is_too_large(device, kernel)) {
            if (kernel->free != NULL)
                kernel->free(kernel);
            *kernel = (pons_kernel){ .run = NULL };
            *supported = false;
        }
    }
    return status;
}

pons_status convolution_prepare(cpu_device *device, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err)
{
    static const cpu_prepare families[] = { by_narrow_tile, by_narrow, by_wide, by_onednn,
                                            by_direct };

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
