/*
 * gemm_weight_gradient.c - weight gradients by the engines of bf16_gemm.h. Engines that multiply
 * along lines take gemm_weight_rows.c instead.
 *
 *   dw[o][tap][i] = sum over positions p of y[p - shift(tap)][o] x[p][i]
 *
 * is a matrix product for each kernel position. Rows are the output's channels along the grid of
 * gemm_grid.h, so a kernel position is an offset into the rows. Columns are the input's channels.
 * So a tile has the order of the weight.
 *
 * Positions are divided into chunks that fit the L2 cache. If chunks are many, each is a task,
 * which packs its part and computes partial sums of all tiles. These are added in a tree. If chunks
 * are few (deep layers), they are computed one after another, and a task is some tiles. Then sums
 * are formed in the weight itself where channels fill the tiles. A few rows are multiplied by all
 * columns before the next rows are, because the weight is larger than the cache. The division
 * depends on the shapes alone, never on the threads (R4).
 */
#include "cpu/cpu.h"
#include "cpu/conv/bf16_gemm/bf16_gemm.h"
#include "cpu/conv/bf16_gemm/gemm_grid.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum {
    CHUNK_BYTES = 1 << 20, /* bytes of both packed tensors in a chunk: a core's L2 cache */
    CHUNKS_APART = 4,      /* minimum number of chunks that are tasks of their own */
    SUMS_APART = 1 << 18,  /* maximum number of sums with which fewer chunks become that many */
    TASKS = 64,            /* approximate number of tasks of a chunk that is not one itself */
    TOGETHER = GEMM_ROWS,  /* neighbouring rows of the weight, multiplied by all columns in turn */
    TILE_NUMBERS = GEMM_TILE * GEMM_TILE
};

/* 16 rows of a product: as many channels of the output at a kernel position. */
typedef struct weight_row {
    int tap, out;
} weight_row;

typedef struct gemm_weight_gradient {
    const gemm_engine *unit;
    int threads;
    gemm_grid grid;
    int groups, ins, outs;         /* channels in a group */
    int in_tiles, out_tiles;       /* of a group */
    int row_count;                 /* of a group */
    weight_row *row;               /* ordered by the phase of the input */
    bool apart;                    /* each chunk is a task */
    bool direct;                   /* tiles are parts of the weight */
    int chunks;
    int splits, parts;             /* of the rows and of the columns, for tasks */
    int64_t steps;                 /* of a chunk */
    int64_t y_blocks;              /* blocks of positions of the packed gradient */
    int64_t pitch;                 /* bytes of a packed row */
    int64_t rows_size, strip_size; /* bytes: 16 packed rows; packed panels of 16 channels */
    int64_t y_size, area, sums;    /* bytes: packed gradient; both; partial sums of a chunk */
    int64_t *a_at, *b_at;
    char *zero;
} gemm_weight_gradient;

/* ---- packing --------------------------------------------------------------------------------- */

/* Block 'block' of the gradient around a chunk, whose first row begins 'high' before the chunk. */
static void pack_y(const gemm_weight_gradient *w, const void *y, int chunk, int64_t block,
                   char *area)
{
    const char *position[GEMM_ELEMENTS];
    int64_t first = (chunk * w->steps + block) * GEMM_ELEMENTS - w->grid.high;
    char *to = area + block * GEMM_STEP;

    gemm_grid_positions(&w->grid, &w->grid.output, y, w->zero, first, GEMM_ELEMENTS, position);
    for (int g = 0; g < w->groups; g++)
        for (int o = 0; o < w->out_tiles; o++, to += w->rows_size)
            gemm_pack_rows(to, w->pitch, position, g * w->outs + o * GEMM_TILE,
                           min_int(GEMM_TILE, w->outs - o * GEMM_TILE));
}

static void pack_x(const gemm_weight_gradient *w, const void *x, int chunk, int64_t block,
                   char *area)
{
    const char *position[GEMM_ELEMENTS];
    int64_t first = (chunk * w->steps + block) * GEMM_ELEMENTS;
    char *to = area + w->y_size + block * GEMM_PANEL;

    for (int phase = 0; phase < w->grid.phases; phase++) {
        gemm_grid_positions(&w->grid, &w->grid.phase[phase], x, w->zero, first, GEMM_ELEMENTS,
                            position);
        for (int g = 0; g < w->groups; g++)
            for (int i = 0; i < w->in_tiles; i++, to += w->strip_size)
                gemm_pack_panel(to, position, g * w->ins + i * GEMM_TILE,
                                min_int(GEMM_TILE, w->ins - i * GEMM_TILE));
    }
}

static void pack(const gemm_weight_gradient *w, const pons_call *call, int chunk, int64_t block,
                 char *area)
{
    if (block < w->y_blocks)
        pack_y(w, call->input[1], chunk, block, area);
    if (block < w->steps)
        pack_x(w, call->input[0], chunk, block, area);
}

/* ---- products -------------------------------------------------------------------------------- */

typedef struct work {
    const gemm_weight_gradient *w;
    const pons_call *call;
    char *area;  /* of the first thread, or of all */
    float *sums; /* of the first chunk */
    int chunk;
} work;

/* Tiles lie as [group][output channels][input channels][kernel position]. */
static float *tile_of(const gemm_weight_gradient *w, float *sums, int group, int out, int in,
                      int tap)
{
    int64_t at = ((int64_t)group * w->out_tiles + out) * w->in_tiles + in;

    return sums + (at * w->grid.taps + tap) * TILE_NUMBERS;
}

static float *part_of(const gemm_weight_gradient *w, float *weight, int group, int out, int in,
                      int tap)
{
    int64_t row = (int64_t)group * w->outs + out * GEMM_TILE;

    return weight + (row * w->grid.taps + tap) * w->ins + in * GEMM_TILE;
}

static void set_rows(const work *k, const char *area, float *sums, int group, int in,
                     const weight_row *row, gemm_product *p)
{
    const gemm_weight_gradient *w = k->w;

    for (int r = 0; r < p->rows; r++) {
        int64_t strip = (int64_t)group * w->out_tiles + row[r].out;
        int64_t first = w->grid.high - w->grid.tap[row[r].tap].shift;

        p->a[r] = area + strip * w->rows_size + first * (int64_t)sizeof(uint16_t);
        for (int n = 0; n < p->columns; n++)
            p->c[r][n] = w->direct ? part_of(w, k->call->output[0], group, row[r].out, in + n,
                                             row[r].tap)
                                   : tile_of(w, sums, group, row[r].out, in + n, row[r].tap);
    }
}

/* Compute one or two columns from input tile 'in' on, rows first .. end - 1. */
static void multiply(const work *k, const char *area, float *sums, int group, int in, int first,
                     int end)
{
    const gemm_weight_gradient *w = k->w;
    gemm_product p = { .columns = min_int(GEMM_COLUMNS, w->in_tiles - in), .pitch = w->pitch,
                       .steps = w->steps, .a_at = w->a_at, .b_at = w->b_at,
                       .add = !w->apart && k->chunk > 0 };
    int most = p.columns == 2 ? 2 : GEMM_ROWS;

    p.c_pitch = (int64_t)sizeof(float) * (w->direct ? (int64_t)w->grid.taps * w->ins : GEMM_TILE);
    for (int at = first; at < end; at += p.rows) {
        int phase = w->grid.tap[w->row[at].tap].phase;
        int64_t strip = ((int64_t)phase * w->groups + group) * w->in_tiles + in;

        p.rows = 1;
        while (p.rows < min_int(most, end - at) &&
               w->grid.tap[w->row[at + p.rows].tap].phase == phase)
            p.rows++;
        for (int n = 0; n < p.columns; n++)
            p.b[n] = area + w->y_size + (strip + n) * w->strip_size;
        set_rows(k, area, sums, group, in, w->row + at, &p);
        w->unit->multiply(&p);
    }
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static int column_count(const gemm_weight_gradient *w)
{
    return (int)ceil_div_i64(w->in_tiles, GEMM_COLUMNS);
}

/* Compute the products of a job; jobs are numbered groups x columns. */
static void run_job(const work *k, const char *area, float *sums, int job, int first, int end)
{
    int columns = column_count(k->w);

    multiply(k, area, sums, job / columns, job % columns * GEMM_COLUMNS, first, end);
}

static int job_count(const gemm_weight_gradient *w)
{
    return w->groups * column_count(w);
}

static void chunk_task(void *context, int64_t chunk, int thread)
{
    const work *k = context;
    const gemm_weight_gradient *w = k->w;
    char *area = k->area + thread * w->area;
    float *sums = k->sums + chunk * (w->sums / (int64_t)sizeof(float));

    for (int64_t block = 0; block < w->y_blocks; block++)
        pack(w, k->call, (int)chunk, block, area);
    w->unit->begin();
    for (int job = 0; job < job_count(w); job++)
        run_job(k, area, sums, job, 0, w->row_count);
    w->unit->end();
}

static void pack_task(void *context, int64_t block, int thread)
{
    const work *k = context;

    (void)thread;
    pack(k->w, k->call, k->chunk, block, k->area);
}

static void tile_task(void *context, int64_t i, int thread)
{
    const work *k = context;
    const gemm_weight_gradient *w = k->w;
    int64_t split = i / w->parts, part = i % w->parts;
    int first = (int)(w->row_count * split / w->splits);
    int end = (int)(w->row_count * (split + 1) / w->splits);
    int job_end = (int)(job_count(w) * (part + 1) / w->parts);

    (void)thread;
    w->unit->begin();
    for (int at = first; at < end; at += TOGETHER)
        for (int job = (int)(job_count(w) * part / w->parts); job < job_end; job++)
            run_job(k, k->area, k->sums, job, at, min_int(at + TOGETHER, end));
    w->unit->end();
}

/* ---- the gradient from its tiles ------------------------------------------------------------- */

/* Add in a tree, whose order depends on the count of chunks alone. */
static void add_chunks(float *sums, int64_t apart, int chunks)
{
    for (int step = 1; step < chunks; step *= 2)
        for (int chunk = 0; chunk + step < chunks; chunk += 2 * step) {
            float *to = sums + chunk * apart, *from = sums + (chunk + step) * apart;
            for (int i = 0; i < TILE_NUMBERS; i++)
                to[i] += from[i];
        }
}

static void write_tile(const gemm_weight_gradient *w, const float *tile, float *weight, int outs,
                       int ins)
{
    int64_t row = (int64_t)w->grid.taps * w->ins;

    for (int o = 0; o < outs; o++)
        memcpy(weight + o * row, tile + o * GEMM_TILE, (size_t)ins * sizeof *weight);
}

static void write_task(void *context, int64_t job, int thread)
{
    const work *k = context;
    const gemm_weight_gradient *w = k->w;
    int in = (int)(job % w->in_tiles), column = (int)(job / w->in_tiles);
    int out = column % w->out_tiles, group = column / w->out_tiles;
    int outs = min_int(GEMM_TILE, w->outs - out * GEMM_TILE);
    int ins = min_int(GEMM_TILE, w->ins - in * GEMM_TILE);

    (void)thread;
    for (int tap = 0; tap < w->grid.taps; tap++) {
        float *tile = tile_of(w, k->sums, group, out, in, tap);

        add_chunks(tile, w->sums / (int64_t)sizeof(float), w->apart ? w->chunks : 1);
        write_tile(w, tile, part_of(w, k->call->output[0], group, out, in, tap), outs, ins);
    }
}

static pons_status weight_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const gemm_weight_gradient *w = kernel->state;
    work k = { .w = w, .call = call, .area = call->scratch };

    (void)err;
    k.sums = (float *)(k.area + w->area * (w->apart ? w->threads : 1));
    if (w->apart)
        cpu_parallel_for(w->threads, w->chunks, chunk_task, &k);
    for (k.chunk = 0; !w->apart && k.chunk < w->chunks; k.chunk++) {
        cpu_parallel_for(w->threads, w->y_blocks, pack_task, &k);
        cpu_parallel_for(w->threads, (int64_t)w->splits * w->parts, tile_task, &k);
    }
    if (!w->direct)
        cpu_parallel_for(w->threads, (int64_t)w->groups * w->out_tiles * w->in_tiles, write_task,
                         &k);
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void weight_free(pons_kernel *kernel)
{
    gemm_weight_gradient *w = kernel->state;

    gemm_grid_clear(&w->grid);
    free(w->row);
    free(w->a_at);
    free(w->b_at);
    free(w->zero);
    free(w);
}

static int64_t sum_count(const gemm_weight_gradient *w)
{
    return (int64_t)w->groups * w->out_tiles * w->in_tiles * w->grid.taps * TILE_NUMBERS;
}

/* Chunks: as large as the cache allows, but not small beside what they read around themselves. */
static void plan_chunks(gemm_weight_gradient *w)
{
    int64_t steps = ceil_div_i64(w->grid.count, GEMM_ELEMENTS), around = w->grid.low + w->grid.high;
    int64_t bytes = GEMM_STEP * GEMM_TILE * (int64_t)w->groups *
                    (w->grid.phases * w->in_tiles + w->out_tiles); /* of a step */
    int64_t most = CHUNK_BYTES / bytes;

    most = max_i64(most, ceil_div_i64(around, GEMM_ELEMENTS));
    w->chunks = (int)ceil_div_i64(steps, max_i64(most, 1));
    if (w->chunks >= CHUNKS_APART || (w->chunks > 1 && sum_count(w) <= SUMS_APART))
        w->chunks = (int)round_up_i64(w->chunks, CHUNKS_APART);
    w->steps = ceil_div_i64(steps, w->chunks);
    w->chunks = (int)ceil_div_i64(steps, w->steps);
    w->y_blocks = ceil_div_i64(w->steps * GEMM_ELEMENTS + around, GEMM_ELEMENTS);
    w->apart = w->chunks >= CHUNKS_APART;
    w->direct = !w->apart && w->ins % GEMM_TILE == 0 && w->outs % GEMM_TILE == 0;
}

static void plan_memory(gemm_weight_gradient *w)
{
    int64_t rows = (int64_t)w->groups * w->out_tiles, columns = (int64_t)w->groups * w->in_tiles;

    w->pitch = (w->y_blocks | 1) * GEMM_STEP; /* odd: rows do not meet in one set of the cache */
    w->rows_size = GEMM_TILE * w->pitch;
    w->strip_size = w->steps * GEMM_PANEL;
    w->y_size = rows * w->rows_size;
    w->area = w->y_size + w->grid.phases * columns * w->strip_size;
    w->sums = w->direct ? 0 : sum_count(w) * (int64_t)sizeof(float);
    w->splits = min_int((int)ceil_div_i64(w->row_count, TOGETHER), TASKS);
    w->parts = min_int(job_count(w), TASKS / w->splits);
}

/* By phase, and in a phase by channels: its kernel positions read the same packed rows. */
static void list_rows(gemm_weight_gradient *w)
{
    for (int phase = 0; phase < w->grid.phases; phase++)
        for (int out = 0; out < w->out_tiles; out++)
            for (int tap = 0; tap < w->grid.taps; tap++)
                if (w->grid.tap[tap].phase == phase)
                    w->row[w->row_count++] = (weight_row){ tap, out };
}

static pons_status plan_rows(gemm_weight_gradient *w, pons_error *err)
{
    w->row = malloc((size_t)w->grid.taps * (size_t)w->out_tiles * sizeof *w->row);
    if (w->row == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    list_rows(w);
    return PONS_OK;
}

static pons_status plan_steps(gemm_weight_gradient *w, const conv_problem *p, pons_error *err)
{
    int channels = max_int(p->x.channels, p->y.channels);

    w->a_at = malloc((size_t)w->steps * sizeof *w->a_at);
    w->b_at = malloc((size_t)w->steps * sizeof *w->b_at);
    w->zero = calloc((size_t)channels, sizeof(uint16_t));
    if (w->a_at == NULL || w->b_at == NULL || w->zero == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    for (int64_t s = 0; s < w->steps; s++) {
        w->a_at[s] = s * GEMM_STEP;
        w->b_at[s] = s * GEMM_PANEL;
    }
    return PONS_OK;
}

pons_status bf16_gemm_prepare_gradient(const gemm_engine *unit, int threads, const conv_problem *p,
                                       pons_kernel *kernel, pons_error *err)
{
    gemm_weight_gradient *w;

    if (unit->lines != NULL)
        return bf16_gemm_prepare_rows(unit, threads, p, kernel, err);
    if ((w = calloc(1, sizeof *w)) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    *w = (gemm_weight_gradient){ .unit = unit, .threads = threads, .groups = p->groups,
                                 .ins = p->x.channels / p->groups, .outs
                                     = p->y.channels / p->groups };
    w->in_tiles = (int)ceil_div_i64(w->ins, GEMM_TILE);
    w->out_tiles = (int)ceil_div_i64(w->outs, GEMM_TILE);
    kernel->state = w;
    kernel->free = weight_free;
    if (gemm_grid_init(&w->grid, p, err) != PONS_OK || plan_rows(w, err) != PONS_OK)
        goto fail;
    plan_chunks(w);
    plan_memory(w);
    if (plan_steps(w, p, err) != PONS_OK)
        goto fail;
    kernel->run = weight_run;
    kernel->scratch_size = w->apart ? (size_t)(w->area * threads + w->sums * w->chunks)
                                    : (size_t)(w->area + w->sums);
    return PONS_OK;
fail:
    weight_free(kernel);
    return err->status;
}

static bool supports(const conv_problem *p)
{
    return p->groups == 1 && conv_has_types(p, PONS_BF16, PONS_F32);
}

static pons_status prepare(const cpu_device *cpu, const conv_problem *p, pons_kernel *kernel,
                           pons_error *err)
{
    return bf16_gemm_prepare_gradient(bf16_gemm_engine(cpu->isa), cpu->threads, p, kernel, err);
}

const conv_operations bf16_gemm_gradient_operations = {
    .supports = supports, .profitable = bf16_gemm_profitable, .prepare = prepare,
};
