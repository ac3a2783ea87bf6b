/*
 * wide_weight.c - the gradient of a convolution by its weight, between tensors of many channels.
 *
 *   dw[o][tap][i] = sum over positions p of y[p][o] x[p + shift(tap)][i]
 *
 * is one product of matrices for each kernel position: rows are the input's channels along the
 * grid of wide_grid.h, so that a kernel position is where a row begins; columns are the output's
 * channels.
 *
 * Positions are cut into chunks that fit a core's cache. Many chunks are a task each: it packs its
 * part and computes partial sums of all tiles, which are added in a tree. Few chunks (deep layers:
 * few positions, many weights) are computed one after another, and a task is some of the tiles.
 * The cut depends on the shapes alone, never on the threads (R4).
 */
#include "cpu.h"
#include "wide.h"
#include "wide_grid.h"

#include <stdlib.h>

enum {
    CHUNK_BYTES = 1 << 20, /* of both packed tensors: what a core's own cache holds */
    CHUNKS_APART = 4,      /* that many chunks are tasks of their own */
    TASKS = 64,            /* into so many tasks a chunk is cut otherwise, about */
    TILE_NUMBERS = WIDE_TILE * WIDE_TILE
};

typedef struct wide_weight {
    int threads;
    wide_grid grid;
    int groups, ins, outs;         /* channels in a group */
    int in_tiles, out_tiles;       /* of a group */
    int chunks, splits;            /* splits: of the kernel positions, over tasks */
    int64_t steps;                 /* of a chunk */
    int64_t x_blocks;              /* packed input: as many blocks of positions */
    int64_t pitch;                 /* bytes of a packed row */
    int64_t rows_size, strip_size; /* bytes: 16 packed rows; packed panels of 16 channels */
    int64_t x_size, area, sums;    /* bytes: packed input; both; partial sums of a chunk */
    int64_t *a_at, *b_at;
    char *zero;
} wide_weight;

static int smaller(int a, int b) { return a < b ? a : b; }
static int64_t over(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* ---- packing --------------------------------------------------------------------------------- */

/* Block 'block' of the input around a chunk, whose first row begins 'low' before the chunk. */
static void pack_x(const wide_weight *w, const void *x, int chunk, int64_t block, char *area)
{
    const char *position[WIDE_NUMBERS];
    int64_t first = (chunk * w->steps + block) * WIDE_NUMBERS - w->grid.low;
    char *to = area + block * WIDE_STEP;

    for (int phase = 0; phase < w->grid.phases; phase++) {
        wide_positions(&w->grid, &w->grid.phase[phase], x, w->zero, first, WIDE_NUMBERS, position);
        for (int g = 0; g < w->groups; g++)
            for (int i = 0; i < w->in_tiles; i++, to += w->rows_size)
                wide_pack_rows(to, w->pitch, position, g * w->ins + i * WIDE_TILE,
                               smaller(WIDE_TILE, w->ins - i * WIDE_TILE));
    }
}

static void pack_y(const wide_weight *w, const void *y, int chunk, int64_t block, char *area)
{
    const char *position[WIDE_NUMBERS];
    char *to = area + w->x_size + block * WIDE_PANEL;

    wide_positions(&w->grid, &w->grid.output, y, w->zero, (chunk * w->steps + block) * WIDE_NUMBERS,
                   WIDE_NUMBERS, position);
    for (int g = 0; g < w->groups; g++)
        for (int o = 0; o < w->out_tiles; o++, to += w->strip_size)
            wide_pack_panel(to, position, g * w->outs + o * WIDE_TILE,
                            smaller(WIDE_TILE, w->outs - o * WIDE_TILE));
}

static void pack(const wide_weight *w, const pons_call *call, int chunk, int64_t block, char *area)
{
    if (block < w->x_blocks)
        pack_x(w, call->input[0], chunk, block, area);
    if (block < w->steps)
        pack_y(w, call->input[1], chunk, block, area);
}

/* ---- products -------------------------------------------------------------------------------- */

/* Tiles lie as [group][output channels][input channels][kernel position]. */
static float *tile_of(const wide_weight *w, float *sums, int group, int out, int in, int tap)
{
    int64_t at = ((int64_t)group * w->out_tiles + out) * w->in_tiles + in;

    return sums + (at * w->grid.taps + tap) * TILE_NUMBERS;
}

/* One column or two, one tile of input channels, kernel positions first .. end - 1. */
static void multiply(const wide_weight *w, const char *area, float *sums, int group, int out,
                     int in, int first, int end, bool add)
{
    wide_product p = { .columns = smaller(WIDE_COLUMNS, w->out_tiles - out), .pitch = w->pitch,
                       .steps = w->steps, .a_at = w->a_at, .b_at = w->b_at, .add = add };
    int most = p.columns == 2 ? 2 : WIDE_ROWS;

    for (int n = 0; n < p.columns; n++)
        p.b[n] = area + w->x_size + ((int64_t)group * w->out_tiles + out + n) * w->strip_size;
    for (int tap = first; tap < end; tap += p.rows) {
        p.rows = smaller(most, end - tap);
        for (int r = 0; r < p.rows; r++) {
            const wide_tap *t = &w->grid.tap[tap + r];
            int64_t rows = ((int64_t)t->phase * w->groups + group) * w->in_tiles + in;
            p.a[r] = area + rows * w->rows_size +
                     (w->grid.low + t->shift) * (int64_t)sizeof(uint16_t);
            for (int n = 0; n < p.columns; n++)
                p.c[r][n] = tile_of(w, sums, group, out + n, in, tap + r);
        }
        wide_multiply(&p);
    }
}

/* ---- tasks ----------------------------------------------------------------------------------- */

typedef struct work {
    const wide_weight *w;
    const pons_call *call;
    char *area;  /* of the first thread, or of all */
    float *sums; /* of the first chunk */
    int chunk;
} work;

static int column_count(const wide_weight *w)
{
    return (int)over(w->out_tiles, WIDE_COLUMNS);
}

/* Products number 'job' of groups x columns x input tiles. */
static void run_job(const wide_weight *w, const char *area, float *sums, int job, int first,
                    int end, bool add)
{
    int in = job % w->in_tiles, column = job / w->in_tiles;

    multiply(w, area, sums, column / column_count(w), column % column_count(w) * WIDE_COLUMNS, in,
             first, end, add);
}

static int job_count(const wide_weight *w)
{
    return w->groups * column_count(w) * w->in_tiles;
}

static void chunk_task(void *context, int64_t chunk, int thread)
{
    const work *k = context;
    const wide_weight *w = k->w;
    char *area = k->area + thread * w->area;
    float *sums = k->sums + chunk * (w->sums / (int64_t)sizeof(float));

    for (int64_t block = 0; block < w->x_blocks; block++)
        pack(w, k->call, (int)chunk, block, area);
    wide_begin();
    for (int job = 0; job < job_count(w); job++)
        run_job(w, area, sums, job, 0, w->grid.taps, false);
    wide_end();
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
    int split = (int)(i % w->splits), taps = w->grid.taps;

    (void)thread;
    wide_begin();
    run_job(w, k->area, k->sums, (int)(i / w->splits), taps * split / w->splits,
            taps * (split + 1) / w->splits, k->chunk > 0);
    wide_end();
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

/* [i][o] to [o][tap][i]. */
static void write_tile(const wide_weight *w, const float *tile, float *weight, int outs, int ins)
{
    int64_t row = (int64_t)w->grid.taps * w->ins;

    for (int o = 0; o < outs; o++)
        for (int i = 0; i < ins; i++)
            weight[o * row + i] = tile[i * WIDE_TILE + o];
}

static void write_task(void *context, int64_t job, int thread)
{
    const work *k = context;
    const wide_weight *w = k->w;
    int in = (int)(job % w->in_tiles), column = (int)(job / w->in_tiles);
    int out = column % w->out_tiles, group = column / w->out_tiles;
    int outs = smaller(WIDE_TILE, w->outs - out * WIDE_TILE);
    int ins = smaller(WIDE_TILE, w->ins - in * WIDE_TILE);
    int chunks = w->chunks >= CHUNKS_APART ? w->chunks : 1;
    float *weight = k->call->output[0];

    (void)thread;
    weight += ((int64_t)group * w->outs + out * WIDE_TILE) * w->grid.taps * w->ins +
              in * WIDE_TILE;
    for (int tap = 0; tap < w->grid.taps; tap++, weight += w->ins) {
        float *tile = tile_of(w, k->sums, group, out, in, tap);
        add_chunks(tile, w->sums / (int64_t)sizeof(float), chunks);
        write_tile(w, tile, weight, outs, ins);
    }
}

static pons_status weight_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const wide_weight *w = kernel->state;
    bool apart = w->chunks >= CHUNKS_APART;
    work k = { .w = w, .call = call, .area = call->scratch };

    (void)err;
    k.sums = (float *)(k.area + w->area * (apart ? w->threads : 1));
    if (apart)
        cpu_parallel(w->threads, w->chunks, chunk_task, &k);
    for (k.chunk = 0; !apart && k.chunk < w->chunks; k.chunk++) {
        cpu_parallel(w->threads, w->x_blocks, pack_task, &k);
        cpu_parallel(w->threads, (int64_t)job_count(w) * w->splits, tile_task, &k);
    }
    cpu_parallel(w->threads, (int64_t)w->groups * w->out_tiles * w->in_tiles, write_task, &k);
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void weight_free(pons_kernel *kernel)
{
    wide_weight *w = kernel->state;

    wide_grid_clear(&w->grid);
    free(w->a_at);
    free(w->b_at);
    free(w->zero);
    free(w);
}

/* Chunks: as large as the cache allows, but not small beside what they read around themselves. */
static void plan_chunks(wide_weight *w)
{
    int64_t steps = over(w->grid.count, WIDE_NUMBERS), around = w->grid.low + w->grid.high;
    int64_t bytes = WIDE_STEP * WIDE_TILE * (int64_t)w->groups *
                    (w->grid.phases * w->in_tiles + w->out_tiles); /* of a step */
    int64_t most = CHUNK_BYTES / bytes;

    most = most < over(around, WIDE_NUMBERS) ? over(around, WIDE_NUMBERS) : most;
    w->chunks = (int)over(steps, most < 1 ? 1 : most);
    if (w->chunks >= CHUNKS_APART)
        w->chunks = (int)over(w->chunks, CHUNKS_APART) * CHUNKS_APART;
    w->steps = over(steps, w->chunks);
    w->chunks = (int)over(steps, w->steps);
    w->x_blocks = over(w->steps * WIDE_NUMBERS + around, WIDE_NUMBERS);
}

static void plan_memory(wide_weight *w)
{
    int64_t rows = (int64_t)w->groups * w->in_tiles, columns = (int64_t)w->groups * w->out_tiles;

    w->pitch = (w->x_blocks | 1) * WIDE_STEP; /* odd: rows do not meet in one set of the cache */
    w->rows_size = WIDE_TILE * w->pitch;
    w->strip_size = w->steps * WIDE_PANEL;
    w->x_size = w->grid.phases * rows * w->rows_size;
    w->area = w->x_size + columns * w->strip_size;
    w->sums = rows * w->out_tiles * w->grid.taps * TILE_NUMBERS * (int64_t)sizeof(float);
    w->splits = smaller(w->grid.taps, (int)over(TASKS, job_count(w)));
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

pons_status wide_prepare_weight(int threads, const pons_request *request, pons_kernel *kernel,
                                bool *supported, pons_error *err)
{
    const pons_convolution *c = request->attributes;
    const pons_tensor *x = &request->input[0], *y = &request->input[1], *dw = &request->output[0];
    wide_weight *w;

    *supported = false;
    if (x->type != PONS_BF16 || y->type != PONS_BF16 || dw->type != PONS_F32)
        return PONS_OK;
    if ((w = calloc(1, sizeof *w)) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    *w = (wide_weight){ .threads = threads, .groups = c->groups, .ins = (int)dw->shape.extent[4],
                        .outs = (int)dw->shape.extent[0] / c->groups };
    w->in_tiles = (int)over(w->ins, WIDE_TILE);
    w->out_tiles = (int)over(w->outs, WIDE_TILE);
    kernel->state = w;
    kernel->free = weight_free;
    if (wide_grid_init(&w->grid, x, y, dw, c, err) != PONS_OK)
        goto fail;
    plan_chunks(w);
    plan_memory(w);
    if (plan_steps(w, x, y, err) != PONS_OK)
        goto fail;
    kernel->run = weight_run;
    kernel->implementation = "own";
    kernel->scratch_size = w->chunks >= CHUNKS_APART
                         ? (size_t)(w->area * threads + w->sums * w->chunks)
                         : (size_t)(w->area + w->sums);
    *supported = true;
    return PONS_OK;
fail:
    weight_free(kernel);
    return err->status;
}
