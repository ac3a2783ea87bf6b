/*
 * x86_absent.c - takes the place of bf16_gemm, few_channels_amx and winograd where processors have
 * neither AMX nor AVX-512.
 */
#include "cpu/conv/few_channels_amx/few_channels_amx.h"
#include "cpu/conv/winograd/winograd.h"

const wide_unit wide_tiles = { NULL, NULL, NULL, NULL }, wide_dots = { NULL, NULL, NULL, NULL };

const wide_unit *wide_find(void)
{
    return NULL;
}

pons_status wide_prepare_image(const wide_unit *unit, int threads, const pons_request *request,
                               pons_kernel *kernel, bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}

pons_status wide_prepare_weight(const wide_unit *unit, int threads, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}

pons_status winograd_prepare(const wide_unit *unit, int threads, const pons_request *request,
                             pons_kernel *kernel, bool *supported, pons_error *err)
{
    *supported = false;
    return PONS_OK;
}

pons_status winograd_prepare_weight(const wide_unit *unit, int threads, const pons_request *request,
                                    pons_kernel *kernel, bool *supported, pons_error *err)
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
