/*
 * cudnn_absent.c - a build without cuDNN: all convolutions are our own.
 */
#include "cuda/cuda.h"

#include <stdio.h>

void dnn_find(cuda_dnn *dnn)
{
    *dnn = (cuda_dnn){ .missing = "'cudnn' is not in this build" };
}

void dnn_start(cuda_dnn *dnn, cuda_stream stream) {}

void dnn_close(cuda_dnn *dnn) {}

void dnn_describe(const cuda_dnn *dnn, char *text, size_t size)
{
    snprintf(text, size, "no cuDNN (%s)", dnn->missing);
}

pons_status cuda_prepare_dnn(cuda_device *d, const pons_request *r, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}
