/*
 * kernels_double.c - the reference kernels in double.
 */
#define REAL double
#define REAL_TYPE PONS_F64
#define NAME(name) name##_double
#define TABLE reference_double

#include "graph/reference/kernels_body.h"
