/*
 * convolution_body.h - convolution, its gradients and the matrix product, by definition.
 *
 * Shapes: x [N, D, H, W, I], w [O, kD, kH, kW, I / groups], y [N, D', H', W', O]. All three
 * convolution kernels visit the same terms x[p s - pad + k d] w[k] <-> y[p].
 */

#include "graph/ir/shape.h"

/*
 * The rows of channels that one point of y and one point of the kernel combine; false outside the
 * image.
 */
static bool NAME(meets)(const pons_convolution *c, const pons_shape *x, const int64_t *p,
                        const int64_t *k, int64_t *x_row)
{
    int64_t at[5] = { p[0] };

    for (int i = 0; i < 3; i++) {
        at[1 + i] = p[1 + i] * c->stride[i] - c->pad_low[i] + k[i] * c->dilation[i];
        if (at[1 + i] < 0 || at[1 + i] >= x->extent[1 + i])
            return false;
    }
    *x_row = index_of(*x, at);
    return true;
}

/* Call 'row' for every pair of rows. The pointers are to the first channel of each. */
static void NAME(each_row)(const pons_convolution *c, pons_shape x, pons_shape w, pons_shape y,
                           void (*row)(const pons_convolution *c, const pons_shape *w,
                                       void *context, int64_t x_row, int64_t k, int64_t y_row),
                           void *context)
{
    pons_shape points = { 4, { y.extent[0], y.extent[1], y.extent[2], y.extent[3] } };
    pons_shape kernel = { 3, { w.extent[1], w.extent[2], w.extent[3] } };
    int64_t p[4] = { 0 }, x_row;

    do {
        int64_t k[3] = { 0 };

        do {
            if (NAME(meets)(c, &x, p, k, &x_row))
                row(c, &w, context, x_row, index_of(kernel, k), index_of(points, p) * y.extent[4]);
        } while (index_next(kernel, k));
    } while (index_next(points, p));
}

typedef struct NAME(terms) {
    const REAL *x, *w, *y;
    double *out;
} NAME(terms);

/* The weights of output channel o at kernel point k, and the first input channel of its group. */
static int64_t NAME(weights)(const pons_convolution *c, const pons_shape *w, int64_t o, int64_t k,
                             int64_t *first)
{
    *first = o / (w->extent[0] / c->groups) * w->extent[4];
    return (o * w->extent[1] * w->extent[2] * w->extent[3] + k) * w->extent[4];
}

static void NAME(forward_row)(const pons_convolution *c, const pons_shape *w, void *context,
                              int64_t x_row, int64_t k, int64_t y_row)
{
    NAME(terms) *t = context;

    for (int64_t o = 0; o < w->extent[0]; o++) {
        int64_t first, at = NAME(weights)(c, w, o, k, &first);
        const REAL *x = t->x + x_row + first, *weight = t->w + at;
        double sum = 0;

        for (int64_t i = 0; i < w->extent[4]; i++)
            sum += (double)x[i] * weight[i];
        t->out[y_row + o] += sum;
    }
}

static void NAME(input_row)(const pons_convolution *c, const pons_shape *w, void *context,
                            int64_t x_row, int64_t k, int64_t y_row)
{
    NAME(terms) *t = context;

    for (int64_t o = 0; o < w->extent[0]; o++) {
        int64_t first, at = NAME(weights)(c, w, o, k, &first);
        double *x = t->out + x_row + first, y = t->y[y_row + o];
        const REAL *weight = t->w + at;

        for (int64_t i = 0; i < w->extent[4]; i++)
            x[i] += y * weight[i];
    }
}

static void NAME(weight_row)(const pons_convolution *c, const pons_shape *w, void *context,
                             int64_t x_row, int64_t k, int64_t y_row)
{
    NAME(terms) *t = context;

    for (int64_t o = 0; o < w->extent[0]; o++) {
        int64_t first, at = NAME(weights)(c, w, o, k, &first);
        double *weight = t->out + at, y = t->y[y_row + o];
        const REAL *x = t->x + x_row + first;

        for (int64_t i = 0; i < w->extent[4]; i++)
            weight[i] += y * x[i];
    }
}

static void NAME(convolution)(const pons_request *r, const void *const *in, double *out)
{
    NAME(terms) t = { .x = in[0], .w = in[1], .out = out };

    NAME(each_row)(r->attributes, r->input[0].shape, r->input[1].shape, r->output[0].shape,
                   NAME(forward_row), &t);
}

static void NAME(convolution_input_gradient)(const pons_request *r, const void *const *in,
                                             double *out)
{
    NAME(terms) t = { .y = in[0], .w = in[1], .out = out };

    NAME(each_row)(r->attributes, r->output[0].shape, r->input[1].shape, r->input[0].shape,
                   NAME(input_row), &t);
}

static void NAME(convolution_weight_gradient)(const pons_request *r, const void *const *in,
                                              double *out)
{
    NAME(terms) t = { .x = in[0], .y = in[1], .out = out };

    NAME(each_row)(r->attributes, r->input[0].shape, r->output[0].shape, r->input[1].shape,
                   NAME(weight_row), &t);
}

static void NAME(matmul)(const pons_request *r, const void *const *in, double *out)
{
    const pons_matmul_attributes *t = r->attributes;
    pons_shape s = r->output[0].shape, a_shape = r->input[0].shape;
    int64_t m = s.extent[s.rank - 2], n = s.extent[s.rank - 1];
    int64_t k = a_shape.extent[s.rank - (t->transpose_a ? 2 : 1)];
    const REAL *a = in[0], *b = in[1];

    for (int64_t batch = 0; batch < shape_count(s) / (m * n); batch++, a += m * k, b += k * n)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                for (int64_t l = 0; l < k; l++)
                    out[(batch * m + i) * n + j] +=
                        (double)a[t->transpose_a ? l * m + i : i * k + l] *
                        b[t->transpose_b ? j * k + l : l * n + j];
}
