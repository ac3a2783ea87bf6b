/*
 * bias_field.h - the record of bias_field.
 */
#ifndef PLUGINS_TRANSFORMS_RANDOM_BIAS_FIELD_H
#define PLUGINS_TRANSFORMS_RANDOM_BIAS_FIELD_H

#include <stdint.h>

enum { BIAS_DEGREE_MAX = 5, BIAS_TERMS_MAX = 56 };

/* Coefficients of the polynomials P_i(x) P_j(y) P_k(z) with i + j + k <= degree, k fastest. */
typedef struct bias_record {
    int32_t wanted, degree;
    float coefficient[BIAS_TERMS_MAX];
} bias_record;

#endif
