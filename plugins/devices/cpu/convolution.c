/*
 * convolution.c - who computes a convolution or a matrix product: our own kernels where one side has
 * few channels (narrow.h), else the library; what neither takes runs on the core's reference kernel.
 */
#include "cpu.h"
#include "narrow.h"
#include "onednn.h"

#include <omp.h>

pons_status convolution_prepare(cpu_device *device, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err)
{
    pons_status status = narrow_prepare(device->narrow, device->threads, request, kernel, supported,
                                        err);

    if (status != PONS_OK || *supported)
        return status;
    omp_set_num_threads(device->threads); /* the library cuts its work when a kernel is made */
    return onednn_prepare_convolution(device->library, request, kernel, supported, err);
}

pons_status matmul_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err)
{
    omp_set_num_threads(device->threads);
    return onednn_prepare_matmul(device->library, request, kernel, supported, err);
}
