/*
 * wide_absent.c - takes the place of the other wide_*.c and of narrow_tile*.c where processors have
 * no AMX.
 */
#include "narrow_tile.h"
#include "wide.h"

bool wide_runs(void)
{
    return false;
}

pons_status wide_prepare_image(int threads, const pons_request *request, pons_kernel *kernel,
                               bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}

pons_status wide_prepare_weight(int threads, const pons_request *request, pons_kernel *kernel,
                                bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}

pons_status narrow_tile_prepare(const narrow_lanes *lanes, int threads, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}

pons_status narrow_tile_prepare_weight(int threads, const pons_request *request,
                                       pons_kernel *kernel, bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}
