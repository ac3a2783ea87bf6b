/*
 * separable.c - run the kernels of separable.h row by row.
 *
 * An output row is made in two steps. The input rows that it reads are added with the weights of
 * all outer axes; the sums are then combined along the last axis. One task computes a row, in a
 * fixed order.
 */
#include "cpu/pool/separable.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists ----------------------------------------------------------------------------------- */

static void mix_free(row_loops_mix *m)
{
    free(m->first);
    free(m->source);
    free(m->weight);
}

static bool mix_allocate(row_loops_mix *m, int64_t count, int64_t entries)
{
    m->count = count;
    m->first = calloc((size_t)count + 1, sizeof *m->first);
    m->source = calloc((size_t)entries + 1, sizeof *m->source);
    m->weight = calloc((size_t)entries + 1, sizeof *m->weight);
    return m->first != NULL && m->source != NULL && m->weight != NULL;
}

/*
 * The entries of all positions in order, grouped by the reading position or, transposed, by the one
 * that is read.
 */
static bool mix_make(row_loops_mix *m, const separable_plan *p, int axis, int64_t in, int64_t out)
{
    int64_t reading = p->transposed ? in : out, *place = calloc((size_t)p->sources_max,
                                                                sizeof *place);
    double *weight = calloc((size_t)p->sources_max, sizeof *weight);
    bool made = place != NULL && weight != NULL && mix_allocate(m, out, p->sources_max * reading);

    for (int64_t i = 0; i < reading && made; i++) {
        int n = p->source(p->context, axis, i, place, weight);
        for (int k = 0; k < n; k++)
            m->first[(p->transposed ? place[k] : i) + 1]++;
    }
    for (int64_t i = 0; i < out && made; i++)
        m->first[i + 1] += m->first[i];
    for (int64_t i = 0; i < reading && made; i++) {
        int n = p->source(p->context, axis, i, place, weight);
        for (int k = 0; k < n; k++) {
            int64_t to = m->first[p->transposed ? place[k] : i]++;
            m->source[to] = p->transposed ? i : place[k];
            m->weight[to] = (float)weight[k];
        }
    }
    for (int64_t i = out; i > 0 && made; i--)
        m->first[i] = m->first[i - 1];
    if (made)
        m->first[0] = 0;
    free(place);
    free(weight);
    return made;
}

/* The identity matrix. */
static bool mix_fixed(row_loops_mix *m, int64_t count)
{
    if (!mix_allocate(m, count, count))
        return false;
    for (int64_t i = 0; i < count; i++) {
        m->first[i + 1] = i + 1;
        m->source[i] = i;
        m->weight[i] = 1;
    }
    return true;
}

/* ---- run ------------------------------------------------------------------------------------- */

typedef struct work {
    const separable *b;
    const void *from;
    void *to;
    float *area;
} work;

/* Add the input row 'at' to the sums, or take the maximum. */
static void accumulate_row(const work *k, int64_t at, float weight, bool first, float *sum,
                           float *line)
{
    const separable *b = k->b;
    bool plain = first && (b->largest || weight == 1);
    const float *x = plain ? sum : line;

    if (b->type[0] == PONS_F32 && !plain)
        x = (const float *)k->from + at * b->row_in;
    else
        b->lanes->load[b->type[0]]((float *)x, k->from, at * b->row_in, (int)b->row_in);
    if (plain)
        return;
    if (b->largest)
        b->rows->largest(sum, x, b->row_in);
    else if (first)
        b->rows->scale(sum, x, weight, b->row_in);
    else
        b->rows->scale_add(sum, x, weight, b->row_in);
}

/* Combine all input rows of an output row: every combination of entries on the outer axes. */
static bool sum_rows(const work *k, const int64_t *position, float *sum, float *line)
{
    const separable *b = k->b;
    int64_t entry[PONS_RANK_MAX];
    int outer = b->axes - 1, a = outer - 1;
    bool first = true;

    for (int i = 0; i < outer; i++) {
        entry[i] = b->mix[i].first[position[i]];
        if (entry[i] == b->mix[i].first[position[i] + 1])
            return false;
    }
    do {
        int64_t at = 0;
        float weight = 1;
        for (int i = 0; i < outer; i++) {
            at = at * b->in[i] + b->mix[i].source[entry[i]];
            weight *= b->mix[i].weight[entry[i]];
        }
        accumulate_row(k, at, weight, first, sum, line);
        first = false;
        for (a = outer - 1; a >= 0; a--) {
            if (++entry[a] < b->mix[a].first[position[a] + 1])
                break;
            entry[a] = b->mix[a].first[position[a]];
        }
    } while (a >= 0);
    return true;
}

static void run_row(void *context, int64_t row, int thread)
{
    const work *k = context;
    const separable *b = k->b;
    float *sum = k->area + thread * (2 * b->row_in + b->row_out), *line = sum + b->row_in;
    float *out = line + b->row_in;
    int64_t position[PONS_RANK_MAX], rest = row;

    for (int a = b->axes - 2; a >= 0; a--) {
        position[a] = rest % b->out[a];
        rest /= b->out[a];
    }
    if (!sum_rows(k, position, sum, line))
        memset(out, 0, (size_t)b->row_out * sizeof *out);
    else if (b->largest)
        b->rows->mix_largest(out, sum, b->run, &b->mix[b->axes - 1]);
    else
        b->rows->mix(out, sum, b->run, &b->mix[b->axes - 1]);
    b->lanes->store[b->type[1]](k->to, row * b->row_out, out, (int)b->row_out);
}

static pons_status separable_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const separable *b = kernel->state;
    work k = { b, call->input[b->input], call->output[0], call->scratch };
    int64_t rows = 1;

    for (int a = 0; a + 1 < b->axes; a++)
        rows *= b->out[a];
    cpu_parallel_for(b->threads, rows, run_row, &k);
    return PONS_OK;
}

static void separable_free(pons_kernel *kernel)
{
    separable *b = kernel->state;

    for (int a = 0; a < PONS_RANK_MAX; a++)
        mix_free(&b->mix[a]);
    free(b);
    kernel->state = NULL;
}

/* ---- prepare --------------------------------------------------------------------------------- */

/* Fixed axes at the end form the run. The axis before the run is combined within a row. */
static bool plan_axes(separable *b, const separable_plan *p)
{
    int rank = p->to->shape.rank;

    b->run = 1;
    while (rank > 1 && (p->fixed >> (rank - 1) & 1) != 0)
        b->run *= p->to->shape.extent[--rank];
    b->axes = rank;
    for (int a = 0; a < rank; a++) {
        b->in[a] = p->from->shape.extent[a];
        b->out[a] = p->to->shape.extent[a];
        if (!((p->fixed >> a & 1) != 0 ? mix_fixed(&b->mix[a], b->out[a])
                                       : mix_make(&b->mix[a], p, a, b->in[a], b->out[a])))
            return false;
    }
    b->row_in = b->in[rank - 1] * b->run;
    b->row_out = b->out[rank - 1] * b->run;
    return true;
}

pons_status separable_prepare(cpu_device *device, const pons_request *request,
                              const separable_plan *plan, pons_kernel *kernel, pons_error *err)
{
    separable *b = calloc(1, sizeof *b);

    if (b == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    *b = (separable){ .lanes = device->lanes, .rows = device->rows, .threads = device->threads,
                      .largest = plan->largest, .type = { plan->from->type, plan->to->type },
                      .input = plan->input };
    kernel->state = b;
    if (!plan_axes(b, plan)) {
        separable_free(kernel);
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    }
    kernel->run = separable_run;
    kernel->free = separable_free;
    kernel->implementation = "separable";
    kernel->scratch_size = (size_t)device->threads * (size_t)(2 * b->row_in + b->row_out) *
                           sizeof(float);
    return PONS_OK;
}
