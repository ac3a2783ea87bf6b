/*
 * resize.c - resizing [N, D, H, W, C] by nearest and linear rules, and the gradient, in f32 and bf16.
 *
 * Each axis has a table of at most two neighbours with weights. The gradient inverts the tables:
 * every position of the original lists who reads it, so that it is a gather too. A unit of work is
 * a row: the positions along W at one (n, d, h), channels innermost.
 */
#include "cpu.h"
#include "rows.h"

#include <math.h>
#include <stdlib.h>

/* Who is read by each position along an axis: list[first[i]] .. list[first[i + 1] - 1]. */
typedef struct resize_axis {
    int64_t *first;
    int64_t *from;
    double *weight;
} resize_axis;

typedef struct resize {
    pons_type type[2];
    int64_t in[5], out[5];
    resize_axis axis[3];
    int threads;
} resize;

/* As core's reference: the neighbours of position i of m in an axis of n. */
static void neighbours(pons_resize_mode mode, int64_t i, int64_t n, int64_t m, int64_t place[2],
                       double weight[2])
{
    double at = ((double)i + 0.5) * (double)n / (double)m - 0.5;

    weight[1] = 0;
    if (mode == PONS_RESIZE_NEAREST) {
        place[0] = i * n / m;
    } else if (mode == PONS_RESIZE_NEAREST_EXACT) {
        place[0] = (2 * i + 1) * n / (2 * m);
    } else {
        at = at < 0 ? 0 : at;
        place[0] = (int64_t)floor(at);
        weight[1] = at - floor(at);
    }
    place[1] = place[0] + 1 < n ? place[0] + 1 : n - 1;
    weight[0] = 1 - weight[1];
}

/* 'original' and 'resized' extents; 'gradient': from resized to original. */
static bool axis_make(resize_axis *a, pons_resize_mode mode, int64_t original, int64_t resized,
                      bool gradient)
{
    int64_t targets = gradient ? original : resized, place[2], at = 0;
    double weight[2];

    a->first = calloc((size_t)targets + 1, sizeof *a->first);
    a->from = calloc(2 * (size_t)resized, sizeof *a->from);
    a->weight = calloc(2 * (size_t)resized, sizeof *a->weight);
    if (a->first == NULL || a->from == NULL || a->weight == NULL)
        return false;
    for (int64_t t = 0; t < targets; t++) {
        a->first[t] = at;
        for (int64_t i = gradient ? 0 : t; i < (gradient ? resized : t + 1); i++) {
            neighbours(mode, i, original, resized, place, weight);
            for (int k = 0; k < 2; k++)
                if (weight[k] != 0 && (!gradient || place[k] == t)) {
                    a->from[at] = gradient ? i : place[k];
                    a->weight[at++] = weight[k];
                }
        }
    }
    a->first[targets] = at;
    return true;
}

typedef struct resize_call {
    const resize *s;
    const pons_call *call;
} resize_call;

static void resize_point(const resize_call *k, int64_t n, const int64_t at[3], int64_t to)
{
    const resize *s = k->s;
    const resize_axis *a = s->axis;

    for (int64_t c = 0; c < s->out[4]; c++) {
        double sum = 0;
        for (int64_t d = a[0].first[at[0]]; d < a[0].first[at[0] + 1]; d++)
            for (int64_t h = a[1].first[at[1]]; h < a[1].first[at[1] + 1]; h++)
                for (int64_t w = a[2].first[at[2]]; w < a[2].first[at[2] + 1]; w++) {
                    int64_t from = ((n * s->in[1] + a[0].from[d]) * s->in[2] + a[1].from[h])
                                 * s->in[3] + a[2].from[w];
                    sum += a[0].weight[d] * a[1].weight[h] * a[2].weight[w]
                         * (double)number_in(s->type[0], k->call->input[0], from * s->in[4] + c);
                }
        number_out(s->type[1], k->call->output[0], to + c, (float)sum);
    }
}

static void resize_row(void *context, int64_t row, int thread)
{
    const resize_call *k = context;
    const int64_t *e = k->s->out;
    int64_t h = row % e[2], d = row / e[2] % e[1], n = row / e[2] / e[1];

    for (int64_t w = 0; w < e[3]; w++)
        resize_point(k, n, (int64_t[]){ d, h, w }, (row * e[3] + w) * e[4]);
}

static pons_status resize_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const resize *s = kernel->state;
    resize_call k = { s, call };

    cpu_parallel(s->threads, s->out[0] * s->out[1] * s->out[2], resize_row, &k);
    return PONS_OK;
}

static void resize_free(pons_kernel *kernel)
{
    resize *s = kernel->state;

    for (int i = 0; i < 3; i++) {
        free(s->axis[i].first);
        free(s->axis[i].from);
        free(s->axis[i].weight);
    }
    free(s);
}

pons_status resize_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                           bool *supported, pons_error *err)
{
    const pons_resize_attributes *a = request->attributes;
    const pons_tensor *in = &request->input[0], *out = &request->output[0];
    bool gradient = request->kind == PONS_KERNEL_RESIZE_GRADIENT, made = true;
    resize *s;

    if (!rows_type(in->type) || !rows_type(out->type))
        return PONS_OK;
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    kernel->state = s;
    s->type[0] = in->type;
    s->type[1] = out->type;
    s->threads = device->threads;
    for (int i = 0; i < 5; i++) {
        s->in[i] = in->shape.extent[i];
        s->out[i] = out->shape.extent[i];
    }
    for (int i = 0; i < 3 && made; i++)
        made = axis_make(&s->axis[i], a->mode, gradient ? s->out[1 + i] : s->in[1 + i],
                         gradient ? s->in[1 + i] : s->out[1 + i], gradient);
    if (!made) {
        resize_free(kernel);
        kernel->state = NULL;
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    }
    *supported = true;
    kernel->run = resize_run;
    kernel->free = resize_free;
    kernel->implementation = "own";
    return PONS_OK;
}
