/*
 * move_body.h - data movement, arg_max and the gradient of a minimum or maximum.
 */

#include "graph/ir/shape.h"

static void NAME(transpose)(const pons_request *r, const void *const *in, double *out)
{
    const pons_transpose_attributes *t = r->attributes;
    pons_shape s = r->output[0].shape;
    const REAL *x = in[0];
    int64_t at[PONS_RANK_MAX] = { 0 }, from[PONS_RANK_MAX], y = 0;

    do {
        for (int i = 0; i < s.rank; i++)
            from[t->order[i]] = at[i];
        out[y++] = x[index_of(r->input[0].shape, from)];
    } while (index_next(s, at));
}

static void NAME(flip)(const pons_request *r, const void *const *in, double *out)
{
    const pons_flip_attributes *f = r->attributes;
    pons_shape s = r->output[0].shape;
    const REAL *x = in[0];
    int64_t at[PONS_RANK_MAX] = { 0 }, from[PONS_RANK_MAX], y = 0;

    do {
        for (int i = 0; i < s.rank; i++)
            from[i] = (f->axes & PONS_AXIS(i)) != 0 ? s.extent[i] - 1 - at[i] : at[i];
        out[y++] = x[index_of(s, from)];
    } while (index_next(s, at));
}

static void NAME(crop)(const pons_request *r, const void *const *in, double *out)
{
    const pons_crop_attributes *c = r->attributes;
    pons_shape s = r->output[0].shape;
    const REAL *x = in[0];
    int64_t at[PONS_RANK_MAX] = { 0 }, from[PONS_RANK_MAX], y = 0;

    do {
        for (int i = 0; i < s.rank; i++)
            from[i] = c->start[i] + at[i] * c->step[i];
        out[y++] = x[index_of(r->input[0].shape, from)];
    } while (index_next(s, at));
}

/*
 * Visit every element of the padded tensor with its source. The gradient goes from the former to
 * the latter.
 */
static void NAME(pad_each)(const pons_pad_attributes *p, const REAL *from, pons_shape inner,
                           pons_shape padded, bool gradient, double *out)
{
    int64_t at[PONS_RANK_MAX] = { 0 }, source[PONS_RANK_MAX], y = 0;

    do {
        bool inside = true;

        for (int i = 0; i < padded.rank; i++) {
            source[i] = pad_source(p->mode, at[i], p->low[i], p->step[i], inner.extent[i]);
            inside = inside && source[i] >= 0;
        }
        if (inside && gradient)
            out[index_of(inner, source)] += from[y];
        else if (inside)
            out[y] = from[index_of(inner, source)];
        y++;
    } while (index_next(padded, at));
}

static void NAME(pad)(const pons_request *r, const void *const *in, double *out)
{
    NAME(pad_each)(r->attributes, in[0], r->input[0].shape, r->output[0].shape, false, out);
}

static void NAME(pad_gradient)(const pons_request *r, const void *const *in, double *out)
{
    NAME(pad_each)(r->attributes, in[0], r->output[0].shape, r->input[0].shape, true, out);
}

static void NAME(concatenate)(const pons_request *r, const void *const *in, double *out)
{
    const pons_axis_attributes *a = r->attributes;
    int64_t begin = 0;

    for (int k = 0; k < r->input_count; k++) {
        pons_shape s = r->input[k].shape;
        const REAL *x = in[k];
        int64_t at[PONS_RANK_MAX] = { 0 }, to[PONS_RANK_MAX];

        do {
            for (int i = 0; i < s.rank; i++)
                to[i] = at[i] + (i == a->axis ? begin : 0);
            out[index_of(r->output[0].shape, to)] = *x++;
        } while (index_next(s, at));
        begin += s.extent[a->axis];
    }
}

/* An index outside the axis gives 0. */
static void NAME(gather)(const pons_request *r, const void *const *in, double *out)
{
    const pons_axis_attributes *a = r->attributes;
    pons_shape s = r->output[0].shape;
    const REAL *x = in[0], *index = in[1];
    int64_t at[PONS_RANK_MAX] = { 0 }, from[PONS_RANK_MAX], y = 0;

    do {
        for (int i = 0; i < s.rank; i++)
            from[i] = i == a->axis ? (int64_t)index[at[i]] : at[i];
        if (from[a->axis] >= 0 && from[a->axis] < r->input[0].shape.extent[a->axis])
            out[y] = x[index_of(r->input[0].shape, from)];
        y++;
    } while (index_next(s, at));
}

/* The first extreme of 'x' over 'axes' at position 'at' of the reduced tensor. */
static int64_t NAME(first_extreme)(const REAL *x, pons_shape s, const int64_t *at, unsigned axes,
                                   bool minimum)
{
    pons_shape window = s;
    int64_t inside[PONS_RANK_MAX] = { 0 }, from[PONS_RANK_MAX], best = -1;

    for (int i = 0; i < s.rank; i++)
        window.extent[i] = (axes & PONS_AXIS(i)) != 0 ? s.extent[i] : 1;
    do {
        int64_t here;

        for (int i = 0; i < s.rank; i++)
            from[i] = at[i] + inside[i];
        here = index_of(s, from);
        if (best < 0 || (minimum ? x[here] < x[best] : x[here] > x[best]))
            best = here;
    } while (index_next(window, inside));
    return best;
}

static void NAME(arg_max)(const pons_request *r, const void *const *in, double *out)
{
    const pons_axis_attributes *a = r->attributes;
    pons_shape s = r->input[0].shape;
    int64_t at[PONS_RANK_MAX] = { 0 }, y = 0, below = 1;

    for (int i = a->axis + 1; i < s.rank; i++)
        below *= s.extent[i];
    do {
        int64_t best = NAME(first_extreme)(in[0], s, at, PONS_AXIS(a->axis), false);

        out[y++] = (double)(best / below % s.extent[a->axis]);
    } while (index_next(r->output[0].shape, at));
}

static void NAME(extreme_gradient)(const pons_request *r, const void *const *in, double *out)
{
    const pons_minmax_attributes *e = r->attributes;
    const REAL *dy = in[1];
    int64_t at[PONS_RANK_MAX] = { 0 };

    do {
        out[NAME(first_extreme)(in[0], r->input[0].shape, at, e->axes, e->minimum)] += *dy++;
    } while (index_next(r->input[1].shape, at));
}

static void NAME(copy)(const pons_request *r, const void *const *in, double *out)
{
    const REAL *x = in[0];
    int64_t count = shape_count(r->output[0].shape);

    for (int64_t i = 0; i < count; i++)
        out[i] = x[i];
}
