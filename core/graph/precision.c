/*
 * precision.c - which tensors are stored in 16 bits.
 */
#include "graph/plan.h"

pons_status pass_precision(pons_graph *g, precision p, pons_error *err)
{
    return PONS_OK;
}
