/*
 * pool_gradient.c - the gradient of a maximum pool, in two steps: each window finds its first
 * largest element; each row of x gathers from the windows that contain it.
 */
#include "cpu/pool/pool_internal.h"
#include "cpu/pool/row_loops.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

typedef struct pool {
    pons_pool p;
    const map_lanes *lanes;
    const row_loops *rows;
    int threads;
    pons_type type[3];      /* x, gradient of y, gradient of x                                    */
    int64_t x[5], y[5];
    int64_t *begin, *end;   /* [W'] range of each window along W                                  */
    int64_t line[2], area;  /* floats of a row of x, of y; of a thread's work memory              */
    int most;               /* most rows of a window                                              */
} pool;

/* Windows that can contain position 'i' of an axis: [first, end). */
static void windows_of(const pool *s, int axis, int64_t i, int64_t *first, int64_t *end)
{
    int64_t stride = s->p.stride[axis], low = i + s->p.pad_low[axis] - s->p.kernel[axis] + 1;

    *first = low <= 0 ? 0 : ceil_div_i64(low, stride);
    *end = (i + s->p.pad_low[axis]) / stride + 1;
    if (*end > s->y[1 + axis])
        *end = s->y[1 + axis];
}

typedef struct work {
    const pool *s;
    const pons_call *call;
    int32_t *index;         /* index of the largest: [N, D', H', W', C]                           */
    float *area;
} work;

/* Row 'number' of x as floats, in place if x is f32. */
static const float *row_of(const work *k, int64_t number, float *line)
{
    const pool *s = k->s;

    if (s->type[0] == PONS_F32)
        return (const float *)k->call->input[0] + number * s->line[0];
    s->lanes->load[s->type[0]](line, k->call->input[0], number * s->line[0], (int)s->line[0]);
    return line;
}

/* Range of the rows of x in the windows of row (d, h) of y. */
static void window_rows(const pool *s, int64_t d, int64_t h, int64_t begin[2], int64_t end[2])
{
    pool_span(&s->p, 0, s->x[1], d, &begin[0], &end[0]);
    pool_span(&s->p, 1, s->x[2], h, &begin[1], &end[1]);
}

static void find_row(void *context, int64_t number, int thread)
{
    const work *k = context;
    const pool *s = k->s;
    int64_t h = number % s->y[2], d = number / s->y[2] % s->y[1], n = number / s->y[2] / s->y[1];
    const row_loops_windows w = { s->y[3], s->x[4], s->begin, s->end };
    float *area = k->area + thread * s->area;
    const float **row = (const float **)area;
    int64_t begin[2], end[2];
    int rows = 0;

    area += 2 * s->most;
    window_rows(s, d, h, begin, end);
    for (int64_t i = begin[0]; i < end[0]; i++)
        for (int64_t j = begin[1]; j < end[1]; j++, rows++)
            row[rows] = row_of(k, (n * s->x[1] + i) * s->x[2] + j, area + rows * s->line[0]);
    if (rows > 0)
        s->rows->windows_find(k->index + number * s->line[1], row, rows, &w);
}

/* Add the gradients of the windows of row (d, h) of y to row (at[0], at[1]) of x. */
static void add_windows(const work *k, int64_t n, const int64_t at[2], int64_t d, int64_t h,
                        float *dx)
{
    const pool *s = k->s;
    const row_loops_windows w = { s->y[3], s->x[4], s->begin, s->end };
    int64_t number = (n * s->y[1] + d) * s->y[2] + h, begin[2], end[2];
    float *dy = dx + s->line[0];

    window_rows(s, d, h, begin, end);
    if (at[0] < begin[0] || at[0] >= end[0] || at[1] < begin[1] || at[1] >= end[1])
        return;
    s->lanes->load[s->type[1]](dy, k->call->input[1], number * s->line[1], (int)s->line[1]);
    s->rows->windows_add(dx, dy, k->index + number * s->line[1],
                         (int)((at[0] - begin[0]) * (end[1] - begin[1]) + at[1] - begin[1]), &w);
}

static void add_row(void *context, int64_t number, int thread)
{
    const work *k = context;
    const pool *s = k->s;
    int64_t at[2] = { number / s->x[2] % s->x[1], number % s->x[2] };
    int64_t n = number / s->x[2] / s->x[1], first[2], end[2];
    float *dx = k->area + thread * s->area;

    memset(dx, 0, (size_t)s->line[0] * sizeof *dx);
    windows_of(s, 0, at[0], &first[0], &end[0]);
    windows_of(s, 1, at[1], &first[1], &end[1]);
    for (int64_t d = first[0]; d < end[0]; d++)
        for (int64_t h = first[1]; h < end[1]; h++)
            add_windows(k, n, at, d, h, dx);
    s->lanes->store[s->type[2]](k->call->output[0], number * s->line[0], dx, (int)s->line[0]);
}

static int64_t index_floats(const pool *s)
{
    return round_up_i64(s->y[0] * s->y[1] * s->y[2] * s->line[1], 16);
}

static pons_status gradient_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const pool *s = kernel->state;
    work k = { s, call, call->scratch, (float *)call->scratch + index_floats(s) };

    cpu_parallel_for(s->threads, s->y[0] * s->y[1] * s->y[2], find_row, &k);
    cpu_parallel_for(s->threads, s->x[0] * s->x[1] * s->x[2], add_row, &k);
    return PONS_OK;
}

static void gradient_free(pons_kernel *kernel)
{
    pool *s = kernel->state;

    free(s->begin);
    free(s->end);
    free(s);
    kernel->state = NULL;
}

pons_status pool_gradient_prepare(cpu_device *device, const pons_request *request,
                                  pons_kernel *kernel, pons_error *err)
{
    pool *s = calloc(1, sizeof *s);

    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    *s = (pool){ .p = *(const pons_pool *)request->attributes, .lanes = device->lanes,
                 .rows = device->rows, .threads = device->threads,
                 .type = { request->input[0].type, request->input[1].type,
                           request->output[0].type } };
    for (int i = 0; i < 5; i++) {
        s->x[i] = request->input[0].shape.extent[i];
        s->y[i] = request->input[1].shape.extent[i];
    }
    s->line[0] = s->x[3] * s->x[4];
    s->line[1] = s->y[3] * s->y[4];
    s->most = s->p.kernel[0] * s->p.kernel[1];
    s->area = 2 * s->most + (s->type[0] == PONS_F32 ? 0 : s->most * s->line[0]);
    if (s->area < s->line[0] + s->line[1])
        s->area = s->line[0] + s->line[1];
    s->area = round_up_i64(s->area, 16);
    s->begin = calloc((size_t)s->y[3], sizeof *s->begin);
    s->end = calloc((size_t)s->y[3], sizeof *s->end);
    kernel->state = s;
    if (s->begin == NULL || s->end == NULL) {
        gradient_free(kernel);
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    }
    for (int64_t i = 0; i < s->y[3]; i++)
        pool_span(&s->p, 2, s->x[3], i, &s->begin[i], &s->end[i]);
    kernel->run = gradient_run;
    kernel->free = gradient_free;
    kernel->implementation = "pool_gradient";
    kernel->scratch_size = (size_t)(index_floats(s) + device->threads * s->area) * sizeof(float);
    return PONS_OK;
}
