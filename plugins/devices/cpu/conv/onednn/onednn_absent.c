/*
 * onednn_absent.c - stands in for onednn.c in a build without the library: declines everything.
 */
#include "cpu/conv/onednn/onednn.h"

pons_status onednn_open(onednn **out, pons_error *err)
{
    *out = NULL;
    return PONS_OK;
}

void onednn_close(onednn *o)
{
}

void onednn_version(char *text, size_t size)
{
    if (size > 0)
        text[0] = '\0';
}

pons_status onednn_prepare_convolution(onednn *o, const pons_request *request, pons_kernel *kernel,
                                       bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}

pons_status onednn_prepare_matmul(onednn *o, const pons_request *request, pons_kernel *kernel,
                                  bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}
