/*
 * kernels_float.c - the reference kernels in float.
 */
#define REAL float
#define REAL_TYPE PONS_F32
#define NAME(name) name##_float
#define TABLE reference_float

#include "graph/reference/kernels_body.h"
