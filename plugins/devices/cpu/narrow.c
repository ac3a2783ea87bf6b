/*
 * narrow.c - plan and run the convolutions of narrow.h.
 *
 * Work is cut into blocks of planes; each block turns the planes that it reads into padded float
 * rows in its thread's scratch and calls the loops of narrow_lanes.c row by row. Blocks and the order
 * of sums depend on the extents alone, never on the threads.
 *
 * With stride 1 the gradient by the input is a convolution of the output's gradient with the mirrored
 * kernel. Where the output side is the narrow one, both gradients are computed so: sides are swapped
 * ('swapped'), paddings become k - 1 - pad, and weights are read or written mirrored.
 */
#include "narrow.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

typedef enum form { WIDE_FORWARD, WIDE_WEIGHT, PLANAR_FORWARD, PLANAR_SPREAD, PLANAR_WEIGHT } form;

typedef struct side {
    pons_type type;
    int extent[3], channels;
    int64_t plane, row; /* elements */
} side;

typedef struct narrow {
    const narrow_lanes *lanes;
    int threads;
    form form;
    bool swapped;
    int cases;
    side x, y;                   /* x has the kernel slide over it */
    pons_type weight_type;
    int kernel[3], stride[3], pad[3];
    int taps, inner, outs;       /* kd kh; kw x.channels; y.channels, wide: up to a multiple of 16 */
    int block;                   /* planes of a task */
    int tasks, tasks_of_case;
    int planes;                  /* buffered at most */
    int pitch;                   /* of planar rows */
    int64_t row, plane;          /* floats of a buffered row (all channels) and plane */
    int64_t line;                /* floats of each of the two temporary rows */
    int64_t weights, area, sums; /* floats: packed weight; a thread's; a task's partial sums */
    int *shift;
} narrow;

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }
static int up_to(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }
static int over(int n, int by) { return (n + by - 1) / by; }

/* ---- weights --------------------------------------------------------------------------------- */

/* Where element (y channel, kd, kh, kw, x channel) lies in the tensor [O, kD, kH, kW, I]. */
static int64_t weight_at(const narrow *n, int out, int tap, int kw, int in)
{
    int positions = n->taps * n->kernel[2], position = tap * n->kernel[2] + kw;

    if (!n->swapped)
        return ((int64_t)out * positions + position) * n->x.channels + in;
    return ((int64_t)in * positions + positions - 1 - position) * n->y.channels + out;
}

/* [tap][j][out] or, to spread, [tap][out][j]; zero for outputs that only pad. */
static int64_t packed_at(const narrow *n, int out, int tap, int j)
{
    if (n->form == PLANAR_SPREAD)
        return ((int64_t)tap * n->outs + out) * n->inner + j;
    return ((int64_t)tap * n->inner + j) * n->outs + out;
}

static float weight_read(const narrow *n, const void *weight, int64_t at)
{
    float value;

    if (n->weight_type == PONS_BF16)
        n->lanes->from_bf16(&value, (const uint16_t *)weight + at, 1);
    else
        value = ((const float *)weight)[at];
    return value;
}

static void weight_pack(const narrow *n, const void *weight, float *packed)
{
    memset(packed, 0, (size_t)n->weights * sizeof(float));
    for (int tap = 0; tap < n->taps; tap++)
        for (int j = 0; j < n->inner; j++)
            for (int out = 0; out < n->y.channels; out++)
                packed[packed_at(n, out, tap, j)] =
                    weight_read(n, weight, weight_at(n, out, tap, j / n->x.channels,
                                                     j % n->x.channels));
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void row_read(const narrow *n, const side *s, const void *from, int64_t at, float *to)
{
    if (s->type == PONS_BF16)
        n->lanes->from_bf16(to, (const uint16_t *)from + at, s->row);
    else
        memcpy(to, (const float *)from + at, (size_t)s->row * sizeof(float));
}

static void row_write(const narrow *n, const side *s, void *to, int64_t at, const float *from)
{
    if (s->type == PONS_BF16)
        n->lanes->to_bf16((uint16_t *)to + at, from, s->row);
    else
        memcpy((float *)to + at, from, (size_t)s->row * sizeof(float));
}

static int64_t row_at(const side *s, int image, int plane, int row)
{
    return ((int64_t)image * s->extent[0] + plane) * s->plane + (int64_t)row * s->row;
}

/* One row of x behind its padding; planar: channels and phases of the stride apart. */
static void fill_x(const narrow *n, const void *x, int64_t at, float *line, float *to)
{
    int before = n->pad[2] * n->x.channels, groups = n->stride[2] * n->x.channels;
    bool planar = n->form == PLANAR_FORWARD || n->form == PLANAR_WEIGHT;
    float *row = planar ? line : to;
    int64_t size = planar ? n->line : n->row;

    memset(row, 0, (size_t)size * sizeof(float));
    row_read(n, &n->x, x, at, row + before);
    if (planar) {
        memset(to, 0, (size_t)n->row * sizeof(float));
        n->lanes->split(to, n->pitch, line, (int)(over(n->pad[2] + n->x.extent[2], n->stride[2])),
                        groups);
    }
}

/* One row of y with its channels apart, zero behind its end. */
static void fill_y(const narrow *n, const void *y, int64_t at, float *line, float *to)
{
    row_read(n, &n->y, y, at, line);
    memset(to, 0, (size_t)n->pitch * n->y.channels * sizeof(float));
    n->lanes->split(to, n->pitch, line, n->y.extent[2], n->y.channels);
}

/* ---- one task: what a thread has while it works ---------------------------------------------- */

typedef struct work {
    const narrow *n;
    const float *weight;
    const void *x, *y, *in;  /* in: of x and y the one that is buffered in planes */
    void *out;
    float *buffer, *line, *other;
    int image, first, last;  /* output planes of this task */
    int low;                 /* first buffered plane */
    const float **row, **block;
} work;

static const float *buffered(const work *w, int plane, int row)
{
    return w->buffer + (plane - w->low) * w->n->plane + row * w->n->row;
}

typedef void fill(const narrow *n, const void *from, int64_t at, float *line, float *to);

static void buffer_planes(work *w, const side *s, int low, int high, fill *one)
{
    const narrow *n = w->n;

    w->low = larger(low, 0);
    for (int plane = w->low; plane <= smaller(high, s->extent[0] - 1); plane++)
        for (int row = 0; row < s->extent[1]; row++)
            one(n, w->in, row_at(s, w->image, plane, row), w->line,
                w->buffer + (plane - w->low) * n->plane + row * n->row);
}

/* Rows and weights of the taps that output row (d, h) of a forward convolution reads. */
static int forward_taps(const work *w, int d, int h)
{
    const narrow *n = w->n;
    int count = 0;

    for (int tap = 0; tap < n->taps; tap++) {
        int plane = d * n->stride[0] + tap / n->kernel[1] - n->pad[0];
        int row = h * n->stride[1] + tap % n->kernel[1] - n->pad[1];
        if (plane < 0 || plane >= n->x.extent[0] || row < 0 || row >= n->x.extent[1])
            continue;
        w->row[count] = buffered(w, plane, row);
        w->block[count++] = w->weight + (int64_t)tap * n->inner * n->outs;
    }
    return count;
}

static void buffer_x(work *w)
{
    const narrow *n = w->n;
    buffer_planes(w, &n->x, w->first * n->stride[0] - n->pad[0],
                  w->last * n->stride[0] - n->pad[0] + n->kernel[0] - 1, fill_x);
}

static void run_wide_forward(work *w)
{
    const narrow *n = w->n;

    buffer_x(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = 0; h < n->y.extent[1]; h++) {
            int taps = forward_taps(w, d, h), width = n->y.extent[2], c = n->y.channels;
            n->lanes->wide_forward(w->other, width, n->outs, taps, w->row,
                                   n->stride[2] * n->x.channels, n->inner, w->block);
            for (int i = 1; i < width && c < n->outs; i++)
                memmove(w->other + (int64_t)i * c, w->other + (int64_t)i * n->outs,
                        (size_t)c * sizeof(float));
            row_write(n, &n->y, w->out, row_at(&n->y, w->image, d, h), w->other);
        }
}

static void run_planar_forward(work *w)
{
    const narrow *n = w->n;

    buffer_x(w);
    for (int d = w->first; d <= w->last; d++)
        for (int h = 0; h < n->y.extent[1]; h++) {
            int taps = forward_taps(w, d, h);
            n->lanes->planar_forward(w->other, n->y.extent[2], n->pitch, n->outs, taps, w->row,
                                     n->shift, n->inner, w->block);
            n->lanes->join(w->line, w->other, n->pitch, n->y.extent[2], n->y.channels);
            row_write(n, &n->y, w->out, row_at(&n->y, w->image, d, h), w->line);
        }
}

/* The plane or row of y that kernel position k carries to position 'at' of x; -1: none. */
static int source(const narrow *n, int axis, int at, int k)
{
    int shifted = at + n->pad[axis] - k;

    if (shifted < 0 || shifted % n->stride[axis] != 0 ||
        shifted / n->stride[axis] >= n->y.extent[axis])
        return -1;
    return shifted / n->stride[axis];
}

static int spread_taps(const work *w, int d, int h)
{
    const narrow *n = w->n;
    int count = 0;

    for (int tap = 0; tap < n->taps; tap++) {
        int plane = source(n, 0, d, tap / n->kernel[1]);
        int row = source(n, 1, h, tap % n->kernel[1]);
        if (plane < 0 || row < 0)
            continue;
        w->row[count] = buffered(w, plane, row);
        w->block[count++] = w->weight + (int64_t)tap * n->outs * n->inner;
    }
    return count;
}

enum { MARGIN = 64 }; /* zeros on both sides of a row of z */

/* x[q s + phase][i] = sum over kw of z[kw, i][q + (phase + pad - kw) / s]. */
static void gather_phases(const narrow *n, const float *z, float *rows)
{
    int s = n->stride[2], width = over(n->x.extent[2], s), c = n->x.channels;

    memset(rows, 0, (size_t)n->pitch * s * c * sizeof(float));
    for (int phase = 0; phase < s; phase++)
        for (int kw = 0; kw < n->kernel[2]; kw++) {
            int offset = phase + n->pad[2] - kw;
            if (offset % s != 0)
                continue;
            for (int i = 0; i < c; i++) {
                float *to = rows + (int64_t)(phase * c + i) * n->pitch;
                const float *from = z + (int64_t)(kw * c + i) * n->pitch + offset / s;
                for (int q = 0; q < width; q++)
                    to[q] += from[q];
            }
        }
}

static void run_planar_spread(work *w)
{
    const narrow *n = w->n;
    int s = n->stride[2], low = n->y.extent[0], high = -1;
    float *z = w->other + MARGIN, *rows = w->other + (int64_t)n->pitch * n->inner + 2 * MARGIN;

    for (int d = w->first; d <= w->last; d++)
        for (int k = 0; k < n->kernel[0]; k++) {
            int plane = source(n, 0, d, k);
            low = plane >= 0 ? smaller(low, plane) : low;
            high = larger(high, plane);
        }
    buffer_planes(w, &n->y, low, high, fill_y);
    memset(w->other, 0, (size_t)(n->pitch * n->inner + 2 * MARGIN) * sizeof(float));
    for (int d = w->first; d <= w->last; d++)
        for (int h = 0; h < n->x.extent[1]; h++) {
            int taps = spread_taps(w, d, h);
            n->lanes->planar_spread(z, n->y.extent[2], n->pitch, n->inner, taps, w->row,
                                    n->y.channels, w->block);
            gather_phases(n, z, rows);
            n->lanes->join(w->line, rows, n->pitch, over(n->x.extent[2], s), s * n->x.channels);
            row_write(n, &n->x, w->out, row_at(&n->x, w->image, d, h), w->line);
        }
}

/* y rows for the weight gradient: [w][outs], zero in channels that only pad. */
static void read_wide_y(const narrow *n, const void *y, int64_t at, float *line, float *to)
{
    int c = n->y.channels;

    if (c == n->outs) {
        row_read(n, &n->y, y, at, to);
        return;
    }
    row_read(n, &n->y, y, at, line);
    for (int i = 0; i < n->y.extent[2]; i++) {
        memcpy(to + (int64_t)i * n->outs, line + (int64_t)i * c, (size_t)c * sizeof(float));
        memset(to + (int64_t)i * n->outs + c, 0, (size_t)(n->outs - c) * sizeof(float));
    }
}

static void run_weight(work *w, float *sum)
{
    const narrow *n = w->n;
    int64_t size = n->sums / n->taps;

    buffer_x(w);
    memset(sum, 0, (size_t)n->sums * sizeof(float));
    for (int d = w->first; d <= w->last; d++)
        for (int h = 0; h < n->y.extent[1]; h++) {
            int64_t at = row_at(&n->y, w->image, d, h);
            if (n->form == WIDE_WEIGHT)
                read_wide_y(n, w->y, at, w->line, w->other);
            else
                fill_y(n, w->y, at, w->line, w->other);
            for (int tap = 0; tap < n->taps; tap++) {
                int plane = d * n->stride[0] + tap / n->kernel[1] - n->pad[0];
                int row = h * n->stride[1] + tap % n->kernel[1] - n->pad[1];
                if (plane < 0 || plane >= n->x.extent[0] || row < 0 || row >= n->x.extent[1])
                    continue;
                const float *from = buffered(w, plane, row);
                if (n->form == WIDE_WEIGHT)
                    n->lanes->wide_weight(sum + tap * size, n->y.extent[2], n->outs, from,
                                          n->stride[2] * n->x.channels, n->inner, w->other);
                else
                    n->lanes->planar_weight(sum + tap * size, n->y.extent[2], n->pitch, n->outs,
                                            from, n->shift, n->inner, w->other);
            }
        }
}

/* ---- weight gradient: partial sums of all tasks to the tensor --------------------------------- */

/* Pairs of neighbours, then pairs of pairs: the order is fixed by the number of tasks. */
static void add_tasks(const narrow *n, float *sums)
{
    for (int step = 1; step < n->tasks; step *= 2) {
#pragma omp parallel for num_threads(n->threads) schedule(static)
        for (int64_t i = 0; i < n->sums; i++)
            for (int task = 0; task + step < n->tasks; task += 2 * step)
                sums[task * n->sums + i] += sums[(task + step) * n->sums + i];
    }
}

static float sixteen(const float *lane)
{
    float sum[NARROW_LANES];

    memcpy(sum, lane, sizeof sum);
    for (int step = NARROW_LANES / 2; step > 0; step /= 2)
        for (int i = 0; i < step; i++)
            sum[i] += sum[i + step];
    return sum[0];
}

static void write_weight(const narrow *n, const float *sums, float *weight)
{
    int lanes = n->form == PLANAR_WEIGHT ? NARROW_LANES : 1;

    for (int tap = 0; tap < n->taps; tap++)
        for (int j = 0; j < n->inner; j++)
            for (int out = 0; out < n->y.channels; out++) {
                const float *from = sums + (((int64_t)tap * n->inner + j) * n->outs + out) * lanes;
                weight[weight_at(n, out, tap, j / n->x.channels, j % n->x.channels)] =
                    lanes == 1 ? *from : sixteen(from);
            }
}

/* ---- run ------------------------------------------------------------------------------------- */

static bool is_weight(const narrow *n)
{
    return n->form == WIDE_WEIGHT || n->form == PLANAR_WEIGHT;
}

static void run_task(work *w, int task, float *sums)
{
    const narrow *n = w->n;
    int planes = n->form == PLANAR_SPREAD ? n->x.extent[0] : n->y.extent[0];

    w->image = task / n->tasks_of_case;
    w->first = task % n->tasks_of_case * n->block;
    w->last = smaller(w->first + n->block, planes) - 1;
    switch (n->form) {
    case WIDE_FORWARD: run_wide_forward(w); break;
    case PLANAR_FORWARD: run_planar_forward(w); break;
    case PLANAR_SPREAD: run_planar_spread(w); break;
    default: run_weight(w, sums + task * n->sums); break;
    }
}

static pons_status narrow_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const narrow *n = kernel->state;
    float *packed = call->scratch, *sums = packed + n->weights + n->threads * n->area;
    work shared = { .n = n, .weight = packed, .out = call->output[0] };

    if (is_weight(n)) {
        shared.x = shared.in = call->input[n->swapped ? 1 : 0];
        shared.y = call->input[n->swapped ? 0 : 1];
    } else {
        shared.in = call->input[0];
        weight_pack(n, call->input[1], packed);
    }
#pragma omp parallel num_threads(n->threads)
    {
        const float *row[NARROW_TAPS], *block[NARROW_TAPS];
        work w = shared;

        w.row = row;
        w.block = block;
        w.buffer = packed + n->weights + omp_get_thread_num() * n->area;
        w.line = w.buffer + n->planes * n->plane;
        w.other = w.line + n->line;
#pragma omp for schedule(dynamic)
        for (int task = 0; task < n->tasks; task++)
            run_task(&w, task, sums);
    }
    if (is_weight(n)) {
        add_tasks(n, sums);
        write_weight(n, sums, call->output[0]);
    }
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void narrow_free(pons_kernel *kernel)
{
    narrow *n = kernel->state;
    free(n->shift);
    free(n);
}

static side side_of(const pons_tensor *t)
{
    const int64_t *e = t->shape.extent;
    return (side){ t->type, { (int)e[1], (int)e[2], (int)e[3] }, (int)e[4], e[2] * e[3] * e[4],
                   e[3] * e[4] };
}

static bool choose_form(narrow *n, pons_kernel_kind kind)
{
    bool few_in = n->x.channels <= NARROW_CHANNELS, few_out = n->y.channels <= NARROW_CHANNELS;
    bool dense = n->stride[0] * n->stride[1] * n->stride[2] == 1;

    n->swapped = kind != PONS_KERNEL_CONVOLUTION && !few_in && few_out;
    if ((!few_in && !few_out) || (n->swapped && !dense))
        return false;
    switch (kind) {
    case PONS_KERNEL_CONVOLUTION: n->form = few_out ? PLANAR_FORWARD : WIDE_FORWARD; break;
    case PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT:
        n->form = n->swapped ? WIDE_FORWARD : PLANAR_SPREAD;
        break;
    default: n->form = few_in && few_out ? PLANAR_WEIGHT : WIDE_WEIGHT; break;
    }
    return true;
}

static void swap_sides(narrow *n)
{
    side x = n->x;

    n->x = n->y;
    n->y = x;
    for (int i = 0; i < 3; i++)
        n->pad[i] = n->kernel[i] - 1 - n->pad[i];
}

static bool type_known(pons_type type)
{
    return type == PONS_F32 || type == PONS_BF16;
}

/* Extents of buffers. A planar row must hold what a shifted read past the last position sees. */
static void plan_rows(narrow *n)
{
    bool wide = n->form == WIDE_FORWARD || n->form == WIDE_WEIGHT;
    int s = n->stride[2], reach = (n->y.extent[2] - 1) * s + n->kernel[2];
    int padded = larger(n->pad[2] + n->x.extent[2], reach) + s;
    int64_t widest = larger(up_to(n->y.extent[2], NARROW_LANES), over(padded, s));

    n->taps = n->kernel[0] * n->kernel[1];
    n->inner = n->kernel[2] * n->x.channels;
    n->outs = wide ? up_to(n->y.channels, NARROW_LANES) : n->y.channels;
    n->pitch = up_to((int)widest + n->kernel[2], NARROW_LANES) + 2 * NARROW_LANES;
    n->line = (int64_t)larger(padded * n->x.channels, n->y.extent[2] * n->y.channels) +
              (int64_t)s * n->x.channels + 2 * NARROW_LANES;
    n->weights = is_weight(n) ? 0 : (int64_t)n->taps * n->inner * n->outs;
    if (n->form == PLANAR_SPREAD)
        n->row = (int64_t)n->pitch * n->y.channels;
    else if (wide)
        n->row = up_to(padded * n->x.channels + NARROW_LANES, NARROW_LANES);
    else
        n->row = (int64_t)n->pitch * s * n->x.channels;
    n->plane = n->row * (n->form == PLANAR_SPREAD ? n->y.extent[1] : n->x.extent[1]);
}

static void plan_tasks(narrow *n)
{
    bool spread = n->form == PLANAR_SPREAD;
    int planes = spread ? n->x.extent[0] : n->y.extent[0];
    int64_t other = spread ? (int64_t)n->pitch * (n->inner + n->stride[2] * n->x.channels) +
                                 4 * MARGIN
                           : larger(n->y.extent[2] * n->outs, n->pitch * n->y.channels);

    n->block = spread ? 2 * n->stride[0] : 4;
    if (is_weight(n))
        n->block = larger(n->block, over(planes * n->cases, 64));
    n->block = smaller(n->block, planes);
    n->tasks_of_case = over(planes, n->block);
    n->tasks = n->tasks_of_case * n->cases;
    n->planes = spread ? (n->block + n->kernel[0]) / n->stride[0] + 2
                       : (n->block - 1) * n->stride[0] + n->kernel[0];
    n->planes = smaller(n->planes, spread ? n->y.extent[0] : n->x.extent[0]);
    n->sums = is_weight(n) ? (int64_t)n->taps * n->inner * n->outs *
                                 (n->form == PLANAR_WEIGHT ? NARROW_LANES : 1)
                           : 0;
    n->line = up_to((int)n->line, NARROW_LANES);
    n->area = n->planes * n->plane + n->line + up_to((int)other, NARROW_LANES) + NARROW_LANES;
    n->area = (n->area + 15) / 16 * 16;
    n->weights = (n->weights + 15) / 16 * 16;
}

static pons_status plan_shift(narrow *n, pons_error *err)
{
    int s = n->stride[2];

    n->shift = calloc((size_t)n->inner, sizeof *n->shift);
    if (n->shift == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    for (int j = 0; j < n->inner; j++) {
        int kw = j / n->x.channels, i = j % n->x.channels;
        n->shift[j] = (kw % s * n->x.channels + i) * n->pitch + kw / s;
    }
    return PONS_OK;
}

pons_status narrow_prepare(const narrow_lanes *lanes, int threads, const pons_request *request,
                           pons_kernel *kernel, bool *supported, pons_error *err)
{
    const pons_convolution *c = request->attributes;
    bool weight = request->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT;
    bool input = request->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT;
    const pons_tensor *x = input ? &request->output[0] : &request->input[0];
    const pons_tensor *y = input ? &request->input[0]
                                 : weight ? &request->input[1] : &request->output[0];
    const pons_tensor *w = weight ? &request->output[0] : &request->input[1];
    narrow n = { .lanes = lanes, .threads = threads, .cases = (int)x->shape.extent[0],
                 .x = side_of(x), .y = side_of(y), .weight_type = w->type };
    bool plain = c->groups == 1;

    for (int i = 0; i < 3; i++) {
        n.kernel[i] = (int)w->shape.extent[1 + i];
        n.stride[i] = c->stride[i];
        n.pad[i] = c->pad_low[i];
        plain = plain && c->dilation[i] == 1 && c->pad_low[i] < n.kernel[i];
    }
    *supported = false;
    if (!plain || n.kernel[2] >= MARGIN || n.kernel[0] * n.kernel[1] > NARROW_TAPS ||
        !type_known(n.x.type) || !type_known(n.y.type) ||
        !type_known(n.weight_type) || (weight && n.weight_type != PONS_F32) ||
        !choose_form(&n, request->kind))
        return PONS_OK;
    if (n.swapped)
        swap_sides(&n);
    plan_rows(&n);
    plan_tasks(&n);

    narrow *kept = malloc(sizeof *kept);
    if (kept == NULL || plan_shift(&n, err) != PONS_OK) {
        free(kept);
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    }
    *kept = n;
    kernel->state = kept;
    kernel->run = narrow_run;
    kernel->free = narrow_free;
    kernel->implementation = "own";
    kernel->scratch_size = (size_t)(n.weights + threads * n.area + n.tasks * n.sums) * sizeof(float);
    *supported = true;
    return PONS_OK;
}
