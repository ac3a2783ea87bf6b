/*
 * wide_absent.c - takes the place of the other wide_*.c, of narrow_tile*.c and of winograd*.c where
 * processors have neither AMX nor AVX-512.
 */
#include "narrow_tile.h"
#include "winograd.h"

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
