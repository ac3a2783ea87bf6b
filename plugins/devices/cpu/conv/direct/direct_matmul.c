/*
 * direct_matmul.c - matrix products with the loops of direct.h.
 *
 * Rows of a are points, columns of b are outputs. A task is a piece of the rows and a block of the
 * columns. It copies both as floats in the layout of the loops. One task sums an element, in order.
 */
#include "cpu/conv/direct/direct.h"

#include "cpu/cpu.h"

#include <stdlib.h>

#include "base/integer.h"

#define MATMUL_ROWS 96

typedef struct product {
    const direct_lanes *lanes;
    int threads;
    bool transpose[2];
    pons_type type[3];
    int64_t batch, m, n, k;
    int64_t row_pieces, blocks;
    int64_t panel, tile, area; /* floats of a thread: columns of b; rows of a; in all */
} product;

typedef struct work {
    const product *p;
    const pons_call *call;
} work;

/* Copy 'rows' by 'columns' of a matrix with the given steps, from element 'at', to to[i][j]. */
static void copy_matrix(const product *p, pons_type type, const void *from, int64_t at,
                        int64_t rows, int64_t row_step, int64_t columns, int64_t step, float *to,
                        int64_t pitch)
{
    if (step == 1) {
        for (int64_t i = 0; i < rows; i++)
            p->lanes->read[type](to + i * pitch, from, at + i * row_step, columns);
        return;
    }
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < rows; i++)
            to[i * pitch + j] = map_number_load(type, from, at + i * row_step + j * step);
}

static void run_task(void *context, int64_t task, int thread)
{
    const work *work = context;
    const product *p = work->p;
    int64_t block = task % p->blocks, piece = task / p->blocks % p->row_pieces;
    int64_t batch = task / p->blocks / p->row_pieces, column = block * 2 * p->lanes->lanes;
    int64_t row = piece * MATMUL_ROWS, rows = min_i64(p->m - row, MATMUL_ROWS);
    int64_t left = p->n - column;
    int vectors = left > p->lanes->lanes ? 2 : 1, outs = vectors * p->lanes->lanes;
    int64_t columns = min_i64(left, outs), no_tap = 0;
    float *panel = (float *)work->call->scratch + thread * p->area, *tile = panel + p->panel;
    float *line = tile + p->tile;
    bool ta = p->transpose[0], tb = p->transpose[1];

    for (int64_t i = 0; i < p->k * outs && columns < outs; i++)
        panel[i] = 0;
    copy_matrix(p, p->type[1], work->call->input[1],
                batch * p->k * p->n + column * (tb ? p->k : 1), p->k, tb ? 1 : p->n, columns,
                tb ? p->k : 1, panel, outs);
    copy_matrix(p, p->type[0], work->call->input[0], batch * p->m * p->k + row * (ta ? 1 : p->k),
                rows, ta ? 1 : p->k, p->k, ta ? p->m : 1, tile, p->k);
    p->lanes->forward(line, (int)rows, tile, p->k, 1, &no_tap, (int)p->k, panel, vectors);
    for (int64_t i = 0; i < rows; i++)
        p->lanes->write[p->type[2]](work->call->output[0],
                                    (batch * p->m + row + i) * p->n + column, line + i * outs,
                                    columns);
}

static pons_status matmul_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const product *p = kernel->state;
    work work = { p, call };

    cpu_parallel_for(p->threads, p->batch * p->row_pieces * p->blocks, run_task, &work);
    return PONS_OK;
}

static void matmul_free(pons_kernel *kernel)
{
    free(kernel->state);
}

pons_status direct_prepare_matmul(const cpu_device *cpu, const pons_request *request,
                                  pons_kernel *kernel, bool *supported, pons_error *err)
{
    const direct_lanes *lanes = cpu->direct;
    const pons_matmul_attributes *t = request->attributes;
    const pons_tensor *a = &request->input[0], *c = &request->output[0];
    int rank = c->shape.rank, wide = 2 * lanes->lanes;
    product *p;

    *supported = false;
    if (!conv_type_supported(a->type) || !conv_type_supported(request->input[1].type)
        || !conv_type_supported(c->type))
        return PONS_OK;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    *p = (product){ .lanes = lanes, .threads = cpu->threads, .batch = 1,
                    .transpose = { t->transpose_a, t->transpose_b },
                    .type = { a->type, request->input[1].type, c->type },
                    .m = c->shape.extent[rank - 2], .n = c->shape.extent[rank - 1],
                    .k = a->shape.extent[rank - (t->transpose_a ? 2 : 1)] };
    for (int i = 0; i < rank - 2; i++)
        p->batch *= c->shape.extent[i];
    p->row_pieces = ceil_div_i64(p->m, MATMUL_ROWS);
    p->blocks = ceil_div_i64(p->n, wide);
    p->panel = p->k * wide;
    p->tile = round_up_i64(p->k * MATMUL_ROWS, 16);
    p->area = p->panel + p->tile + (int64_t)MATMUL_ROWS * wide;
    kernel->scratch_size = (size_t)(p->threads * p->area) * sizeof(float);
    kernel->state = p;
    kernel->run = matmul_run;
    kernel->free = matmul_free;
    kernel->implementation = "direct";
    *supported = true;
    return PONS_OK;
}
