/*
 * window_body.h - pooling and resizing with their gradients. Images are [N, D, H, W, C].
 */

/* The element of the window at position 'p' of y that a maximum takes: the first largest. */
static int64_t NAME(first_largest)(const REAL *x, pons_shape s, const int64_t *p,
                                   const int64_t *begin, const int64_t *end)
{
    int64_t best = -1;

    for (int64_t d = begin[0]; d < end[0]; d++)
        for (int64_t h = begin[1]; h < end[1]; h++)
            for (int64_t w = begin[2]; w < end[2]; w++) {
                int64_t at = index_of(s, (int64_t[]){ p[0], d, h, w, p[4] });

                if (best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best]))
                    best = at;
            }
    return best;
}

/* Pool 'x', or distribute the gradient 'dy' over the pooled elements. */
static void NAME(pool_each)(const pons_pool *p, const REAL *x, pons_shape xs, pons_shape ys,
                            const REAL *dy, double *out)
{
    int64_t at[5] = { 0 }, begin[3], end[3];

    do {
        int64_t y = index_of(ys, at), size = 1;

        for (int i = 0; i < 3; i++)
            size *= pool_window(p, i, at[1 + i], xs.extent[1 + i], &begin[i], &end[i]);
        if (p->mode == PONS_POOL_MAX) {
            int64_t best = NAME(first_largest)(x, xs, at, begin, end);

            if (dy != NULL)
                out[best] += dy[y];
            else
                out[y] = x[best];
            continue;
        }
        for (int64_t d = begin[0]; d < end[0]; d++)
            for (int64_t h = begin[1]; h < end[1]; h++)
                for (int64_t w = begin[2]; w < end[2]; w++) {
                    int64_t from = index_of(xs, (int64_t[]){ at[0], d, h, w, at[4] });

                    if (dy != NULL)
                        out[from] += (double)dy[y] / (double)size;
                    else
                        out[y] += (double)x[from] / (double)size;
                }
    } while (index_next(ys, at));
}

static void NAME(pool)(const pons_request *r, const void *const *in, double *out)
{
    NAME(pool_each)(r->attributes, in[0], r->input[0].shape, r->output[0].shape, NULL, out);
}

static void NAME(pool_gradient)(const pons_request *r, const void *const *in, double *out)
{
    NAME(pool_each)(r->attributes, in[0], r->input[0].shape, r->input[1].shape, in[1], out);
}

/* Visit every element of the resized image with its eight neighbours in the original one. */
static void NAME(resize_each)(pons_resize_mode mode, const REAL *from, pons_shape original,
                              pons_shape resized, bool gradient, double *out)
{
    int64_t at[5] = { 0 };

    do {
        int64_t neighbour[3][2], y = index_of(resized, at);
        double second[3];

        for (int i = 0; i < 3; i++)
            resize_source(mode, at[1 + i], original.extent[1 + i], resized.extent[1 + i],
                          neighbour[i], &second[i]);
        for (int corner = 0; corner < 8; corner++) {
            int64_t source[5] = { at[0], 0, 0, 0, at[4] };
            double weight = 1;

            for (int i = 0; i < 3; i++) {
                int side = corner >> i & 1;

                source[1 + i] = neighbour[i][side];
                weight *= side ? second[i] : 1 - second[i];
            }
            if (weight == 0)
                continue;
            if (gradient)
                out[index_of(original, source)] += weight * from[y];
            else
                out[y] += weight * from[index_of(original, source)];
        }
    } while (index_next(resized, at));
}

static void NAME(resize)(const pons_request *r, const void *const *in, double *out)
{
    const pons_resize_attributes *a = r->attributes;

    NAME(resize_each)(a->mode, in[0], r->input[0].shape, r->output[0].shape, false, out);
}

static void NAME(resize_gradient)(const pons_request *r, const void *const *in, double *out)
{
    const pons_resize_attributes *a = r->attributes;

    NAME(resize_each)(a->mode, in[0], r->output[0].shape, r->input[0].shape, true, out);
}
