/*
 * matmul_select.c - select the implementation of a matrix product: the library, where it has one
 * that fits the workspace limit, and the direct kernels otherwise.
 */
#include "cpu/conv/direct/direct.h"
#include "cpu/conv/onednn/onednn.h"

pons_status matmul_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err)
{
    size_t limit = device->settings.workspace_limit;
    pons_status status = onednn_prepare_matmul(device, request, kernel, supported, err);

    if (status == PONS_OK && *supported && limit > 0 && kernel->scratch_size > limit) {
        kernel->free(kernel);
        *kernel = (pons_kernel){ .run = NULL };
        *supported = false;
    }
    if (status != PONS_OK || *supported)
        return status;
    return direct_prepare_matmul(device, request, kernel, supported, err);
}
