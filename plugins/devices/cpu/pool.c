/*
 * pool.c - pooling of [N, D, H, W, C] and its gradient, in f32 and bf16.
 *
 * A unit of work is a row: the positions along W at one (n, d, h). Gradients are gathered: each row
 * of the input asks which windows hold it, so that rows are independent and every sum has one order.
 */
#include "cpu.h"
#include "lane.h"
#include "rows.h"

#include <stdlib.h>

typedef struct pool {
    pons_pool p;
    pons_type type[3];      /* x, y's gradient or 0, output                                       */
    int64_t x[5], y[5];
    int threads;
} pool;

/* The part of window 'i' that lies inside; returns its whole size, padding counted. */
static int64_t window(const pool *s, int axis, int64_t i, int64_t *begin, int64_t *end)
{
    const pons_pool *p = &s->p;
    int64_t n = s->x[1 + axis], first = i * p->stride[axis] - p->pad_low[axis];
    int64_t last = first + p->kernel[axis];

    if (last > n + p->pad_high[axis])
        last = n + p->pad_high[axis];
    *begin = first < 0 ? 0 : first;
    *end = last > n ? n : last;
    return last - first;
}

/* Windows whose range along an axis can hold position 'i': [first, end). */
static void windows_of(const pool *s, int axis, int64_t i, int64_t *first, int64_t *end)
{
    int64_t stride = s->p.stride[axis], low = i + s->p.pad_low[axis] - s->p.kernel[axis] + 1;

    *first = low <= 0 ? 0 : (low + stride - 1) / stride;
    *end = (i + s->p.pad_low[axis]) / stride + 1;
    if (*end > s->y[1 + axis])
        *end = s->y[1 + axis];
}

typedef struct box {
    int64_t begin[3], end[3], size;
} box;

static box box_of(const pool *s, int64_t d, int64_t h, int64_t w)
{
    box b;

    b.size = window(s, 0, d, &b.begin[0], &b.end[0]) * window(s, 1, h, &b.begin[1], &b.end[1])
           * window(s, 2, w, &b.begin[2], &b.end[2]);
    return b;
}

static int64_t place(const int64_t *extent, int64_t n, int64_t d, int64_t h, int64_t w)
{
    return (((n * extent[1] + d) * extent[2] + h) * extent[3] + w) * extent[4];
}

static void pool_point(const pool *s, const pons_call *call, int64_t n, const box *b, int64_t to)
{
    int64_t channels = s->x[4];

    for (int64_t c = 0; c < channels; c++) {
        double sum = 0;
        float best = 0;
        bool any = false;
        for (int64_t d = b->begin[0]; d < b->end[0]; d++)
            for (int64_t h = b->begin[1]; h < b->end[1]; h++)
                for (int64_t w = b->begin[2]; w < b->end[2]; w++) {
                    float x = number_in(s->type[0], call->input[0], place(s->x, n, d, h, w) + c);
                    sum += (double)x;
                    if (!any || x > best || (x != x && best == best))
                        best = x;
                    any = true;
                }
        number_out(s->type[2], call->output[0], to + c,
                   s->p.mode == PONS_POOL_MAX ? best : (float)(sum / (double)b->size));
    }
}

/* The first largest of a window, in row-major order. */
static int64_t first_largest(const pool *s, const void *x, int64_t n, const box *b, int64_t c)
{
    int64_t best = -1;
    float most = 0;

    for (int64_t d = b->begin[0]; d < b->end[0]; d++)
        for (int64_t h = b->begin[1]; h < b->end[1]; h++)
            for (int64_t w = b->begin[2]; w < b->end[2]; w++) {
                int64_t at = place(s->x, n, d, h, w) + c;
                float v = number_in(s->type[0], x, at);
                if (best < 0 || v > most || (v != v && most == most)) {
                    best = at;
                    most = v;
                }
            }
    return best;
}

/* The gradient at one position of x: of each window that holds it, or whose maximum it is. */
static void gradient_point(const pool *s, const pons_call *call, int64_t n, const int64_t at[3])
{
    int64_t first[3], end[3], here = place(s->x, n, at[0], at[1], at[2]);

    for (int a = 0; a < 3; a++)
        windows_of(s, a, at[a], &first[a], &end[a]);
    for (int64_t c = 0; c < s->x[4]; c++) {
        double sum = 0;
        for (int64_t d = first[0]; d < end[0]; d++)
            for (int64_t h = first[1]; h < end[1]; h++)
                for (int64_t w = first[2]; w < end[2]; w++) {
                    box b = box_of(s, d, h, w);
                    double dy = (double)number_in(s->type[1], call->input[1],
                                                  place(s->y, n, d, h, w) + c);
                    if (s->p.mode == PONS_POOL_MEAN)
                        sum += dy / (double)b.size;
                    else if (first_largest(s, call->input[0], n, &b, c) == here + c)
                        sum += dy;
                }
        number_out(s->type[2], call->output[0], here + c, (float)sum);
    }
}

typedef struct pool_call {
    const pool *s;
    const pons_call *call;
} pool_call;

static void pool_row(void *context, int64_t row, int thread)
{
    const pool_call *k = context;
    const int64_t *y = k->s->y;
    int64_t h = row % y[2], d = row / y[2] % y[1], n = row / y[2] / y[1];

    for (int64_t w = 0; w < y[3]; w++) {
        box b = box_of(k->s, d, h, w);
        pool_point(k->s, k->call, n, &b, place(y, n, d, h, w));
    }
}

static void gradient_row(void *context, int64_t row, int thread)
{
    const pool_call *k = context;
    const int64_t *x = k->s->x;
    int64_t h = row % x[2], d = row / x[2] % x[1], n = row / x[2] / x[1];

    for (int64_t w = 0; w < x[3]; w++)
        gradient_point(k->s, k->call, n, (int64_t[]){ d, h, w });
}

static pons_status pool_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const pool *s = kernel->state;
    pool_call k = { s, call };

    cpu_parallel(s->threads, s->y[0] * s->y[1] * s->y[2], pool_row, &k);
    return PONS_OK;
}

static pons_status gradient_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const pool *s = kernel->state;
    pool_call k = { s, call };

    cpu_parallel(s->threads, s->x[0] * s->x[1] * s->x[2], gradient_row, &k);
    return PONS_OK;
}

static void pool_free(pons_kernel *kernel) { free(kernel->state); }

pons_status pool_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                         bool *supported, pons_error *err)
{
    bool gradient = request->kind == PONS_KERNEL_POOL_GRADIENT;
    const pons_tensor *y = gradient ? &request->input[1] : &request->output[0];
    pool *s;

    if (!rows_type(request->input[0].type) || !rows_type(y->type)
        || !rows_type(request->output[0].type))
        return PONS_OK;
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    s->p = *(const pons_pool *)request->attributes;
    s->type[0] = request->input[0].type;
    s->type[1] = y->type;
    s->type[2] = request->output[0].type;
    s->threads = device->threads;
    for (int i = 0; i < 5; i++) {
        s->x[i] = request->input[0].shape.extent[i];
        s->y[i] = y->shape.extent[i];
    }
    *supported = true;
    kernel->state = s;
    kernel->run = gradient ? gradient_run : pool_run;
    kernel->free = pool_free;
    kernel->implementation = "own";
    return PONS_OK;
}
