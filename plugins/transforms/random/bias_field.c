/*
 * bias_field - multiply by the exponential of a random polynomial, as MONAI's RandBiasField.
 *
 *     x = x exp(sum of c_ijk P_i P_j P_k over i + j + k <= degree)
 *
 * P are Legendre polynomials of the position between -1 and 1. All channels get one field.
 */
#include "bias_field.h"

#include <math.h>

#include "channel_draws.h"

enum { PIECE = 256 };

typedef struct bias_field {
    int64_t degree;
    pons_reals coeff_range;
    double probability;
} bias_field;

static const pons_option options[] = {
    PONS_INTEGER(bias_field, degree, "3", 1, BIAS_DEGREE_MAX, "Degree of the polynomial."),
    PONS_REALS(bias_field, coeff_range, "0 0.1", -10, 10, "Ends of the range of a coefficient.",
               .count_min = 2, .count_max = 2),
    PONS_REAL(bias_field, probability, "0.1", 0, 1, "How often a patch gets a bias field."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    return range_check("coeff_range", &((const bias_field *)config)->coeff_range, err);
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    const bias_field *s = config;
    bias_record *r = out;

    r->wanted = (double)pons_draw_uniform(draws) < s->probability;
    r->degree = (int32_t)s->degree;
    for (int t = 0; t < BIAS_TERMS_MAX; t++)
        r->coefficient[t] = (float)range_at(&s->coeff_range, (double)pons_draw_uniform(draws));
    return PONS_OK;
}

/* P_0 .. P_degree at x. */
static void legendre(double x, int degree, double *p)
{
    p[0] = 1;
    p[1] = x;
    for (int n = 1; n < degree; n++)
        p[n + 1] = ((2 * n + 1) * x * p[n] - n * p[n - 1]) / (n + 1);
}

static double position(int64_t i, int64_t count)
{
    return count > 1 ? 2 * (double)i / (double)(count - 1) - 1 : 0;
}

/* The coefficients of P_0(z) .. P_degree(z) in a row. */
static void row_coefficients(const bias_record *r, double x, double y, float *row)
{
    double p[BIAS_DEGREE_MAX + 1], q[BIAS_DEGREE_MAX + 1], sum[BIAS_DEGREE_MAX + 1] = { 0 };
    const float *c = r->coefficient;

    legendre(x, r->degree, p);
    legendre(y, r->degree, q);
    for (int i = 0; i <= r->degree; i++)
        for (int j = 0; j <= r->degree - i; j++)
            for (int k = 0; k <= r->degree - i - j; k++)
                sum[k] += (double)*c++ * p[i] * q[j];
    for (int k = 0; k <= BIAS_DEGREE_MAX; k++)
        row[k] = (float)sum[k];
}

/* The factors of 'count' voxels of a row of 'length' voxels, from 'first' on. */
static void row_factors(const float *c, int64_t first, int64_t count, int64_t length,
                        float *factor)
{
    float step = length > 1 ? 2 / (float)(length - 1) : 0, start = length > 1 ? -1 : 0;

    for (int64_t k = 0; k < count; k++) {
        float z = start + (float)(first + k) * step;
        float p2 = (3 * z * z - 1) / 2, p3 = (5 * z * p2 - 2 * z) / 3;
        float p4 = (7 * z * p3 - 3 * p2) / 4, p5 = (9 * z * p4 - 4 * p3) / 5;

        factor[k] = c[0] + c[1] * z + c[2] * p2 + c[3] * p3 + c[4] * p4 + c[5] * p5;
    }
    for (int64_t k = 0; k < count; k++)
        factor[k] = expf(factor[k]);
}

static void multiply(const pons_transform_scope *scope, int channels, const float *factor,
                     int64_t count, float *x)
{
    for (int c = 0; c < channels; c++)
        for (int64_t k = 0; pons_scope_has(scope, c) && k < count; k++)
            x[k * channels + c] *= factor[k];
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const bias_record *r = planned;
    const int64_t *e = patch->extent;
    float *x = patch->image;

    for (int64_t i = 0; i < e[0] && r->wanted; i++)
        for (int64_t j = 0; j < e[1]; j++) {
            float row[BIAS_DEGREE_MAX + 1], factor[PIECE];

            row_coefficients(r, position(i, e[0]), position(j, e[1]), row);
            for (int64_t k = 0; k < e[2]; k += PIECE) {
                int64_t count = e[2] - k < PIECE ? e[2] - k : PIECE;

                row_factors(row, k, count, e[2], factor);
                multiply(scope, patch->channels, factor, count, x);
                x += count * patch->channels;
            }
        }
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .record_size = sizeof(bias_record), .plan = plan, .apply_patch = apply
};

PONS_TRANSFORM(bias_field, "1.0", "multiply by a smooth random field", options, operations);
