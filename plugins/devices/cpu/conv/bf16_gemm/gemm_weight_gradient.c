/*
 * gemm_weight_gradient.c - the gradient of a convolution by its weight, between tensors of many
 * channels. Of units that multiply along lines gemm_weight_rows.c makes it.
 *
 *   dw[o][tap][i] = sum over positions p of y[p - shift(tap)][o] x[p][i]
 *
 * is one product of matrices for each kernel position: rows are the output's channels along the
 * grid of gemm_grid.h, so that a kernel position is where a row begins; columns are the input's
 * channels. So a tile has the order of the weight.
 *
 * Positions are cut into chunks that fit a core's cache. Many chunks are a task each: it packs its
 * part and computes partial sums of all tiles, which are added in a tree. Few chunks (deep layers:
 * few positions, many weights) are computed one after another, a task is some of the tiles, and
 * these are summed up in the weight itself where channels fill them. A few rows then meet all
 * columns before the next ones do: what they write lies side by side in the weight, which is larger
 * than the cache.
 * The cut depends on the shapes alone, never on the threads (R4).
 */
#include "cpu/cpu.h"
#include "cpu/conv/bf16_gemm/bf16_gemm.h"
#include "cpu/conv/bf16_gemm/gemm_grid.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum {
    CHUNK_BYTES = 1 << 20, /* of both packed tensors: what a core's own cache holds */
    CHUNKS_APART = 4,      /* that many chunks are tasks of their own; */
    SUMS_APART = 1 << 18,  /* so are fewer, cut into as many, where their sums are few numbers */
    TASKS = 64,            /* into so many tasks a chunk is cut otherwise, about */
    TOGETHER = WIDE_ROWS,  /* rows that meet all columns in turn: neighbours in the weight */
    TILE_NUMBERS = WIDE_TILE * WIDE_TILE
};

/* 16 channels of the output at a kernel position: as many rows of a product. */
typedef struct weight_row {
    int tap, out;
} weight_row;

typedef struct wide_weight {
    const wide_unit *unit;
    int threads;
    wide_grid grid;
    int groups, ins, outs;         /* channels in a group */
    int in_tiles, out_tiles;       /* of a group */
    int row_count;                 /* of a group */
    weight_row *row;               /* those that meet the same phase of the input together */
    bool apart;                    /* chunks are tasks of their own */
    bool direct;                   /* tiles are parts of the weight */
    int chunks;
    int splits, parts;             /* of the rows and of the columns, over tasks */
    int64_t steps;                 /* of a chunk */
    int64_t y_blocks;              /* packed gradient: as many blocks of positions */
    int64_t pitch;                 /* bytes of a packed row */
    int64_t rows_size, strip_size; /* bytes: 16 packed rows; packed panels of 16 channels */
    int64_t y_size, area, sums;    /* bytes: packed gradient; both; partial sums of a chunk */
    int64_t *a_at, *b_at;
    char *zero;
} wide_weight;

/* ---- packing --------------------------------------------------------------------------------- */

/* Block 'block' of the gradient around a chunk, whose first row begins 'high' before the chunk. */
static void pack_y(const wide_weight *w, const void *y, int chunk, int64_t block, char *area)
{
    const char *position[WIDE_NUMBERS];
    int64_t first = (chunk * w->steps + block) * WIDE_NUMBERS - w->grid.high;
    char *to = area + block * WIDE_STEP;

    wide_positions(&w->grid, &w->grid.output, y, w->zero, first, WIDE_NUMBERS, position);
    for (int g = 0; g < w->groups; g++)
        for (int o = 0; o < w->out_tiles; o++, to += w->rows_size)
            wide_pack_rows(to, w->pitch, position, g * w->outs + o * WIDE_TILE,
                           min_int(WIDE_TILE, w->outs - o * WIDE_TILE));
}

static void pack_x(const wide_weight *w, const void *x, int chunk, int64_t block, char *area)
{
    const char *position[WIDE_NUMBERS];
    int64_t first = (chunk * w->steps + block) * WIDE_NUMBERS;
    char *to = area + w->y_size + block * WIDE_PANEL;

    for (int phase = 0; phase < w->grid.phases; phase++) {
        wide_positions(&w->grid, &w->grid.phase[phase], x, w->zero, first, WIDE_NUMBERS, position);
        for (int g = 0; g < w->groups; g++)
            for (int i = 0; i < w->in_tiles; i++, to += w->strip_size)
                wide_pack_panel(to, position, g * w->ins + i * WIDE_TILE,
                                min_int(WIDE_TILE, w->ins - i * WIDE_TILE));
    }
}

static void pack(const wide_weight *w, const pons_call *call, int chunk, int64_t block, char *area)
{
    if (block < w->y_blocks)
        pack_y(w, call->input[1], chunk, block, area);
    if (block < w->steps)
        pack_x(w, call->input[0], chunk, block, area);
}

/* ---- products -------------------------------------------------------------------------------- */

typedef struct work {
    const wide_weight *w;
    const pons_call *call;
    char *area;  /* of the first thread, or of all */
    float *sums; /* of the first chunk */
    int chunk;
} work;

/* Tiles lie as [group][output channels][input channels][kernel position]. */
static float *tile_of(const wide_weight *w, float *sums, int group, int out, int in, int tap)
{
    int64_t at = ((int64_t)group * w->out_tiles + out) * w->in_tiles + in;

    return sums + (at * w->grid.taps + tap) * TILE_NUMBERS;
}

static float *part_of(const wide_weight *w, float *weight, int group, int out, int in, int tap)
{
    int64_t row = (int64_t)group * w->outs + out * WIDE_TILE;

    return weight + (row * w->grid.taps + tap) * w->ins + in * WIDE_TILE;
}

static void set_rows(const work *k, const char *area, float *sums, int group, int in,
                     const weight_row *row, wide_product *p)
{
    const wide_weight *w = k->w;

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

/* One column or two from input tile 'in' on, rows first .. end - 1. */
static void multiply(const work *k, const char *area, float *sums, int group, int in, int first,
                     int end)
{
    const wide_weight *w = k->w;
    wide_product p = { .columns = min_int(WIDE_COLUMNS, w->in_tiles - in), .pitch = w->pitch,
                       .steps = w->steps, .a_at = w->a_at, .b_at = w->b_at,
                       .add = !w->apart && k->chunk > 0 };
    int most = p.columns == 2 ? 2 : WIDE_ROWS;

    p.c_pitch = (int64_t)sizeof(float) * (w->direct ? (int64_t)w->grid.taps * w->ins : WIDE_TILE);
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

static int column_count(const wide_weight *w)
{
    return (int)ceil_div_i64(w->in_tiles, WIDE_COLUMNS);
}

/* Products number 'job' of groups x columns. */
static void run_job(const work *k, const char *area, float *sums, int job, int first, int end)
{
    int columns = column_count(k->w);

    multiply(k, area, sums, job / columns, job % columns * WIDE_COLUMNS, first, end);
}

static int job_count(const wide_weight *w)
{
    return w->groups * column_count(w);
}

static void chunk_task(void *context, int64_t chunk, int thread)
{
    const work *k = context;
    const wide_weight *w = k->w;
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
    const wide_weight *w = k->w;
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

/* Neighbours, then pairs of pairs: the order is fixed by the number of chunks. */
static void add_chunks(float *sums, int64_t apart, int chunks)
{
    for (int step = 1; step < chunks; step *= 2)
        for (int chunk = 0; chunk + step < chunks; chunk += 2 * step) {
            float *to = sums + chunk * apart, *from = sums + (chunk + step) * apart;
            for (int i = 0; i < TILE_NUMBERS; i++)
                to[i] += from[i];
        }
}

static void write_tile(const wide_weight *w, const float *tile, float *weight, int outs, int ins)
{
    int64_t row = (int64_t)w->grid.taps * w->ins;

    for (int o = 0; o < outs; o++)
        memcpy(weight + o * row, tile + o * WIDE_TILE, (size_t)ins * sizeof *weight);
}

static void write_task(void *context, int64_t job, int thread)
{
    const work *k = context;
    const wide_weight *w = k->w;
    int in = (int)(job % w->in_tiles), column = (int)(job / w->in_tiles);
    int out = column % w->out_tiles, group = column / w->out_tiles;
    int outs = min_int(WIDE_TILE, w->outs - out * WIDE_TILE);
    int ins = min_int(WIDE_TILE, w->ins - in * WIDE_TILE);

    (void)thread;
    for (int tap = 0; tap < w->grid.taps; tap++) {
        float *tile = tile_of(w, k->sums, group, out, in, tap);

        add_chunks(tile, w->sums / (int64_t)sizeof(float), w->apart ? w->chunks : 1);
        write_tile(w, tile, part_of(w, k->call->output[0], group, out, in, tap), outs, ins);
    }
}

static pons_status weight_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const wide_weight *w = kernel->state;
    work k = { .w = w, .call = call, .area = call->scratch };

    (void)err;
    k.sums = (float *)(k.area + w->area * (w->apart ? w->threads : 1));
    if (w->apart)
        cpu_parallel(w->threads, w->chunks, chunk_task, &k);
    for (k.chunk = 0; !w->apart && k.chunk < w->chunks; k.chunk++) {
        cpu_parallel(w->threads, w->y_blocks, pack_task, &k);
        cpu_parallel(w->threads, (int64_t)w->splits * w->parts, tile_task, &k);
    }
    if (!w->direct)
        cpu_parallel(w->threads, (int64_t)w->groups * w->out_tiles * w->in_tiles, write_task, &k);
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void weight_free(pons_kernel *kernel)
{
    wide_weight *w = kernel->state;

    wide_grid_clear(&w->grid);
    free(w->row);
    free(w->a_at);
    free(w->b_at);
    free(w->zero);
    free(w);
}

static int64_t sum_count(const wide_weight *w)
{
    return (int64_t)w->groups * w->out_tiles * w->in_tiles * w->grid.taps * TILE_NUMBERS;
}

/* Chunks: as large as the cache allows, but not small beside what they read around themselves. */
static void plan_chunks(wide_weight *w)
{
    int64_t steps = ceil_div_i64(w->grid.count, WIDE_NUMBERS), around = w->grid.low + w->grid.high;
    int64_t bytes = WIDE_STEP * WIDE_TILE * (int64_t)w->groups *
                    (w->grid.phases * w->in_tiles + w->out_tiles); /* of a step */
    int64_t most = CHUNK_BYTES / bytes;

    most = max_i64(most, ceil_div_i64(around, WIDE_NUMBERS));
    w->chunks = (int)ceil_div_i64(steps, most < 1 ? 1 : most);
    if (w->chunks >= CHUNKS_APART || (w->chunks > 1 && sum_count(w) <= SUMS_APART))
        w->chunks = (int)round_up_i64(w->chunks, CHUNKS_APART);
    w->steps = ceil_div_i64(steps, w->chunks);
    w->chunks = (int)ceil_div_i64(steps, w->steps);
    w->y_blocks = ceil_div_i64(w->steps * WIDE_NUMBERS + around, WIDE_NUMBERS);
    w->apart = w->chunks >= CHUNKS_APART;
    w->direct = !w->apart && w->ins % WIDE_TILE == 0 && w->outs % WIDE_TILE == 0;
}

static void plan_memory(wide_weight *w)
{
    int64_t rows = (int64_t)w->groups * w->out_tiles, columns = (int64_t)w->groups * w->in_tiles;

    w->pitch = (w->y_blocks | 1) * WIDE_STEP; /* odd: rows do not meet in one set of the cache */
    w->rows_size = WIDE_TILE * w->pitch;
    w->strip_size = w->steps * WIDE_PANEL;
    w->y_size = rows * w->rows_size;
    w->area = w->y_size + w->grid.phases * columns * w->strip_size;
    w->sums = w->direct ? 0 : sum_count(w) * (int64_t)sizeof(float);
    w->splits = min_int((int)ceil_div_i64(w->row_count, TOGETHER), TASKS);
    w->parts = min_int(job_count(w), TASKS / w->splits);
}

/* By phase, and in a phase by channels: its kernel positions read the same packed rows. */
static void list_rows(wide_weight *w)
{
    for (int phase = 0; phase < w->grid.phases; phase++)
        for (int out = 0; out < w->out_tiles; out++)
            for (int tap = 0; tap < w->grid.taps; tap++)
                if (w->grid.tap[tap].phase == phase)
                    w->row[w->row_count++] = (weight_row){ tap, out };
}

static pons_status plan_rows(wide_weight *w, pons_error *err)
{
    w->row = malloc((size_t)w->grid.taps * (size_t)w->out_tiles * sizeof *w->row);
    if (w->row == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    list_rows(w);
    return PONS_OK;
}

static pons_status plan_steps(wide_weight *w, const pons_tensor *x, const pons_tensor *y,
                              pons_error *err)
{
    int64_t channels = x->shape.extent[4] > y->shape.extent[4] ? x->shape.extent[4]
                                                               : y->shape.extent[4];

    w->a_at = malloc((size_t)w->steps * sizeof *w->a_at);
    w->b_at = malloc((size_t)w->steps * sizeof *w->b_at);
    w->zero = calloc((size_t)channels, sizeof(uint16_t));
    if (w->a_at == NULL || w->b_at == NULL || w->zero == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    for (int64_t s = 0; s < w->steps; s++) {
        w->a_at[s] = s * WIDE_STEP;
        w->b_at[s] = s * WIDE_PANEL;
    }
    return PONS_OK;
}

pons_status wide_prepare_weight(const wide_unit *unit, int threads, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err)
{
    const pons_convolution *c = request->attributes;
    const pons_tensor *x = &request->input[0], *y = &request->input[1], *dw = &request->output[0];
    wide_weight *w;

    *supported = false;
    if (x->type != PONS_BF16 || y->type != PONS_BF16 || dw->type != PONS_F32)
        return PONS_OK;
    if (unit->lines != NULL)
        return wide_prepare_lines(unit, threads, request, kernel, supported, err);
    if ((w = calloc(1, sizeof *w)) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    *w = (wide_weight){ .unit = unit, .threads = threads, .groups = c->groups,
                        .ins = (int)dw->shape.extent[4],
                        .outs = (int)dw->shape.extent[0] / c->groups };
    w->in_tiles = (int)ceil_div_i64(w->ins, WIDE_TILE);
    w->out_tiles = (int)ceil_div_i64(w->outs, WIDE_TILE);
    kernel->state = w;
    kernel->free = weight_free;
    if (wide_grid_init(&w->grid, x, y, dw, c, err) != PONS_OK || plan_rows(w, err) != PONS_OK)
        goto fail;
    plan_chunks(w);
    plan_memory(w);
    if (plan_steps(w, x, y, err) != PONS_OK)
        goto fail;
    kernel->run = weight_run;
    kernel->implementation = "own";
    kernel->scratch_size = w->apart ? (size_t)(w->area * threads + w->sums * w->chunks)
                                    : (size_t)(w->area + w->sums);
    *supported = true;
    return PONS_OK;
fail:
    weight_free(kernel);
    return err->status;
}
