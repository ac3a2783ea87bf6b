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

static bool profitable(const conv_problem *p, const conv_machine *machine)
{
    return false;
}

const conv_operations onednn_operations = { .profitable = profitable };

pons_status onednn_prepare_matmul(const cpu_device *cpu, const pons_request *request,
                                  pons_kernel *kernel, bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}
