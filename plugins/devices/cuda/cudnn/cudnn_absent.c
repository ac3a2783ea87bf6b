/*
 * cudnn_absent.c - a build without cuDNN: our own kernels compute all convolutions.
 */
#include "cuda/cuda.h"

#include <stdio.h>

void cudnn_find(cudnn_library *dnn)
{
    *dnn = (cudnn_library){ .missing = "'cudnn' is not in this build" };
}

void cudnn_start(cudnn_library *dnn, cuda_stream stream) {}

void cudnn_close(cudnn_library *dnn) {}

void cudnn_describe(const cudnn_library *dnn, char *text, size_t size)
{
    snprintf(text, size, "no cuDNN (%s)", dnn->missing);
}

pons_status cudnn_prepare(cuda_device *d, const pons_request *r, pons_kernel *kernel,
                          bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}
