/*
 * wide_weight.c - the gradient of a convolution by its weight, between tensors of many channels.
 *
 *   dw[o][tap][i] = sum over positions p of y[p - shift(tap)][o] x[p][i]
 *
 * is one product of matrices for each kernel position: rows are the output's channels along the
 * grid of wide_grid.h, so that a kernel position is where a row begins; columns are the input's
 * channels. So a tile has the order of the weight.
 *
 * Where the grid's gaps cost more than packing the input anew for each kernel position (deep layers,
 * many channels of the output), the grid is gathered: it has no gaps, rows are the output's channels
 * alone and columns the input's at each kernel position.
 *
 * Positions are cut into chunks that fit a core's cache. Many chunks are a task each: it packs its
 * part and computes partial sums of all tiles, which are added in a tree. Few chunks (deep layers:
 * few positions, many weights) are computed one after another, a task is some of the tiles, and
 * these are summed up in the weight itself where channels fill them. A few rows then meet all
 * columns before the next ones do: what they write lies side by side in the weight, which is larger
 * than the cache.
 * The cut depends on the shapes alone, never on the threads (R4).
 */
#include "cpu.h"
#include "wide.h"
#include "wide_grid.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_BYTES = 1 << 20,    /* of both packed tensors: what a core's own cache holds */
    GATHERED_BYTES = 1 << 18, /* of the gradient alone, where the input is gathered, */
    GATHERED_STEPS = 12,      /* so many steps at a time: two columns in the first cache */
    CHUNKS_APART = 4,         /* that many chunks are tasks of their own; */
    SUMS_APART = 1 << 18,     /* so are fewer, cut into as many, where their sums are few numbers */
    TASKS = 64,               /* into so many tasks a chunk is cut otherwise, about */
    TOGETHER = WIDE_ROWS,     /* rows that meet all columns in turn: neighbours in the weight */
    TILE_NUMBERS = WIDE_TILE * WIDE_TILE
};

/* 16 channels of the output at a kernel position (gathered: at any), as many rows of a product. */
typedef struct weight_row {
    int tap, out;
} weight_row;

typedef struct wide_weight {
    const wide_unit *unit;
    int threads;
    wide_grid grid;
    bool gathered;                 /* the grid is; a thread packs one kernel position's columns */
    int groups, ins, outs;         /* channels in a group */
    int in_tiles, out_tiles;       /* of a group */
    int row_count, column_count;   /* of a group: tiles */
    weight_row *row;               /* those that meet the same phase of the input together */
    bool apart;                    /* chunks are tasks of their own */
    bool direct;                   /* tiles are parts of the weight */
    int chunks;
    int together;                  /* TOGETHER, or all, which meet what one thread has gathered */
    int splits, parts;             /* of the rows and of the columns, over tasks */
    int64_t steps;                 /* of a chunk */
    int64_t y_blocks;              /* packed gradient: as many blocks of positions */
    int64_t pitch;                 /* bytes of a packed row */
    int64_t rows_size, strip_size; /* bytes: 16 packed rows; packed panels of 16 channels */
    int64_t y_size, x_size, sums;  /* bytes: packed gradient, packed input, partial sums of a chunk */
    int64_t *a_at, *b_at;
    char *zero;
} wide_weight;

static int smaller(int a, int b) { return a < b ? a : b; }
static int64_t over(int64_t n, int64_t by) { return (n + by - 1) / by; }

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
                           smaller(WIDE_TILE, w->outs - o * WIDE_TILE));
}

/* Block 'block' of a chunk of the input: 'count' tiles of channels of a phase, of all groups. */
static void pack_x(const wide_weight *w, const void *x, int chunk, int64_t block, int phase,
                   int tile, int count, char *to)
{
    const char *position[WIDE_NUMBERS];
    int64_t first = (chunk * w->steps + block) * WIDE_NUMBERS;

    wide_positions(&w->grid, &w->grid.phase[phase], x, w->zero, first, WIDE_NUMBERS, position);
    for (int end = tile + count; tile < end; tile++, to += w->strip_size) {
        int in = tile % w->in_tiles * WIDE_TILE;
        wide_pack_panel(to, position, tile / w->in_tiles * w->ins + in,
                        smaller(WIDE_TILE, w->ins - in));
    }
}

static void pack(const wide_weight *w, const pons_call *call, int chunk, int64_t block, char *area)
{
    int tiles = w->groups * w->in_tiles;
    char *to = area + w->y_size + block * WIDE_PANEL;

    if (block < w->y_blocks)
        pack_y(w, call->input[1], chunk, block, area);
    for (int phase = 0; !w->gathered && block < w->steps && phase < w->grid.phases; phase++)
        pack_x(w, call->input[0], chunk, block, phase, 0, tiles, to + phase * tiles * w->strip_size);
}

/* ---- products -------------------------------------------------------------------------------- */

typedef struct work {
    const wide_weight *w;
    const pons_call *call;
    char *area;  /* of the first thread, or of all */
    float *sums; /* of the first chunk */
    int chunk;
} work;

/* What a task works on. */
typedef struct part {
    const work *of;
    int chunk;
    const char *rows;   /* the packed gradient */
    char *panels;       /* the packed input, or where to gather it */
    float *sums;
} part;

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

/* The tile of a row and a column. */
static float *sums_of(const part *k, int group, const weight_row *row, int column)
{
    const wide_weight *w = k->of->w;
    int tap = w->gathered ? column / w->in_tiles : row->tap, in = column % w->in_tiles;

    return w->direct ? part_of(w, k->of->call->output[0], group, row->out, in, tap)
                     : tile_of(w, k->sums, group, row->out, in, tap);
}

static void set_rows(const part *k, int group, int column, const weight_row *row, wide_product *p)
{
    const wide_weight *w = k->of->w;

    for (int r = 0; r < p->rows; r++) {
        int64_t strip = (int64_t)group * w->out_tiles + row[r].out;
        int64_t first = w->grid.high - w->grid.tap[row[r].tap].shift;

        p->a[r] = k->rows + strip * w->rows_size + first * (int64_t)sizeof(uint16_t);
        for (int n = 0; n < p->columns; n++)
            p->c[r][n] = sums_of(k, group, row + r, column + n);
    }
}

/* Steps begin .. end - 1 of 'count' columns from 'column' on, those of a kernel position at once. */
static void gather(const part *k, int group, int column, int count, int64_t begin, int64_t end)
{
    const wide_weight *w = k->of->w;
    char *to = k->panels;

    for (int last = column + count, some; column < last; column += some) {
        int tap = column / w->in_tiles, in = column % w->in_tiles;

        some = smaller(last - column, w->in_tiles - in);
        for (int64_t block = begin; block < end; block++)
            pack_x(w, k->of->call->input[0], k->chunk, block, tap, group * w->in_tiles + in, some,
                   to + (block - begin) * WIDE_PANEL);
        to += some * w->strip_size;
    }
}

/* Columns of a product and its rows first .. end - 1, as many at a time as it takes. */
static void multiply_rows(const part *k, wide_product *p, int group, int column, int first, int end)
{
    const wide_weight *w = k->of->w;
    int most = p->columns == 2 ? 2 : WIDE_ROWS;

    for (int at = first; at < end; at += p->rows) {
        int phase = w->grid.tap[w->row[at].tap].phase;
        int64_t strip = ((int64_t)phase * w->groups + group) * w->in_tiles + column;

        p->rows = 1;
        while (p->rows < smaller(most, end - at) &&
               w->grid.tap[w->row[at + p->rows].tap].phase == phase)
            p->rows++;
        for (int n = 0; n < p->columns; n++)
            p->b[n] = k->panels + ((w->gathered ? 0 : strip) + n) * w->strip_size;
        set_rows(k, group, column, w->row + at, p);
        w->unit->multiply(p);
    }
}

/* One column or two from 'column' on, rows first .. end - 1. Gathered, piece by piece. */
static void multiply(const part *k, int group, int column, int first, int end)
{
    const wide_weight *w = k->of->w;
    int64_t piece = w->gathered ? GATHERED_STEPS : w->steps;
    wide_product p = { .columns = smaller(WIDE_COLUMNS, w->column_count - column),
                       .pitch = w->pitch, .b_at = w->b_at };

    p.c_pitch = (int64_t)sizeof(float) * (w->direct ? (int64_t)w->grid.taps * w->ins : WIDE_TILE);
    for (int64_t at = 0; at < w->steps; at += p.steps) {
        p.steps = at + piece < w->steps ? piece : w->steps - at;
        p.a_at = w->a_at + at;
        p.add = at > 0 || (!w->apart && k->chunk > 0);
        if (w->gathered)
            gather(k, group, column, p.columns, at, at + p.steps);
        multiply_rows(k, &p, group, column, first, end);
    }
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static int pair_count(const wide_weight *w)
{
    return (int)over(w->column_count, WIDE_COLUMNS);
}

/* Products number 'job' of groups x pairs of columns. */
static void run_job(const part *k, int job, int first, int end)
{
    int pairs = pair_count(k->of->w);

    multiply(k, job / pairs, job % pairs * WIDE_COLUMNS, first, end);
}

static int job_count(const wide_weight *w)
{
    return w->groups * pair_count(w);
}

static void chunk_task(void *context, int64_t chunk, int thread)
{
    const work *k = context;
    const wide_weight *w = k->w;
    char *area = k->area + thread * (w->y_size + w->x_size);
    part p = { k, (int)chunk, area, area + w->y_size,
               k->sums + chunk * (w->sums / (int64_t)sizeof(float)) };

    for (int64_t block = 0; block < w->y_blocks; block++)
        pack(w, k->call, (int)chunk, block, area);
    w->unit->begin();
    for (int job = 0; job < job_count(w); job++)
        run_job(&p, job, 0, w->row_count);
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
    int64_t split = i / w->parts, place = i % w->parts, bands = over(w->row_count, w->together);
    int first = (int)(bands * split / w->splits) * w->together;
    int end = smaller((int)(bands * (split + 1) / w->splits) * w->together, w->row_count);
    int job_end = (int)(job_count(w) * (place + 1) / w->parts);
    part p = { k, k->chunk, k->area, k->area + w->y_size + (w->gathered ? thread * w->x_size : 0),
               k->sums };

    w->unit->begin();
    for (int at = first; at < end; at += w->together)
        for (int job = (int)(job_count(w) * place / w->parts); job < job_end; job++)
            run_job(&p, job, at, smaller(at + w->together, end));
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
    int outs = smaller(WIDE_TILE, w->outs - out * WIDE_TILE);
    int ins = smaller(WIDE_TILE, w->ins - in * WIDE_TILE);

    (void)thread;
    for (int tap = 0; tap < w->grid.taps; tap++) {
        float *tile = tile_of(w, k->sums, group, out, in, tap);

        add_chunks(tile, w->sums / (int64_t)sizeof(float), w->apart ? w->chunks : 1);
        write_tile(w, tile, part_of(w, k->call->output[0], group, out, in, tap), outs, ins);
    }
}

/* Of what is packed. */
static int64_t area_size(const wide_weight *w)
{
    if (w->apart)
        return (w->y_size + w->x_size) * w->threads;
    return w->y_size + w->x_size * (w->gathered ? w->threads : 1);
}

static pons_status weight_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const wide_weight *w = kernel->state;
    work k = { .w = w, .call = call, .area = call->scratch };

    (void)err;
    k.sums = (float *)(k.area + area_size(w));
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

static int64_t positions(const pons_tensor *t)
{
    const int64_t *e = t->shape.extent;

    return e[0] * e[1] * e[2] * e[3];
}

static int64_t sum_count(const wide_weight *w)
{
    return (int64_t)w->groups * w->out_tiles * w->in_tiles * w->grid.taps * TILE_NUMBERS;
}

/* Packed bytes of a step. */
static int64_t step_bytes(const wide_weight *w)
{
    int columns = w->gathered ? 0 : w->grid.phases * w->in_tiles;

    return (int64_t)WIDE_PANEL * w->groups * (columns + w->out_tiles);
}

/* Chunks: as large as the cache allows, but not small beside what they read around themselves. */
static void plan_chunks(wide_weight *w)
{
    int64_t steps = over(w->grid.count, WIDE_NUMBERS), around = w->grid.low + w->grid.high;
    int64_t most = (w->gathered ? GATHERED_BYTES : CHUNK_BYTES) / step_bytes(w);

    most = most < over(around, WIDE_NUMBERS) ? over(around, WIDE_NUMBERS) : most;
    w->chunks = (int)over(steps, most < 1 ? 1 : most);
    if (w->chunks >= CHUNKS_APART || (w->chunks > 1 && sum_count(w) <= SUMS_APART))
        w->chunks = (int)over(w->chunks, CHUNKS_APART) * CHUNKS_APART;
    w->steps = over(steps, w->chunks);
    w->chunks = (int)over(steps, w->steps);
    w->y_blocks = over(w->steps * WIDE_NUMBERS + around, WIDE_NUMBERS);
    w->apart = w->chunks >= CHUNKS_APART;
    w->direct = !w->apart && w->ins % WIDE_TILE == 0 && w->outs % WIDE_TILE == 0;
}

static void plan_memory(wide_weight *w)
{
    int64_t rows = (int64_t)w->groups * w->out_tiles, columns = (int64_t)w->groups * w->in_tiles;

    w->pitch = (w->y_blocks | 1) * WIDE_STEP; /* odd: rows do not meet in one set of the cache */
    w->rows_size = WIDE_TILE * w->pitch;
    w->strip_size = WIDE_PANEL * (w->gathered ? GATHERED_STEPS : w->steps);
    w->y_size = rows * w->rows_size;
    w->x_size = w->strip_size * (w->gathered ? WIDE_COLUMNS : w->grid.phases * columns);
    w->sums = w->direct ? 0 : sum_count(w) * (int64_t)sizeof(float);
    w->together = w->gathered ? w->out_tiles : TOGETHER;
    w->splits = smaller((int)over(w->row_count, w->together), TASKS);
    w->parts = smaller(job_count(w), TASKS / w->splits);
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

static pons_status plan_tiles(wide_weight *w, pons_error *err)
{
    w->row = malloc((size_t)w->grid.taps * (size_t)w->out_tiles * sizeof *w->row);
    if (w->row == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    w->column_count = w->gathered ? w->grid.taps * w->in_tiles : w->in_tiles;
    if (!w->gathered)
        list_rows(w);
    for (int out = 0; w->gathered && out < w->out_tiles; out++)
        w->row[w->row_count++] = (weight_row){ 0, out };
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

/* With gaps, or gathered where all products with their packing take less time. */
static pons_status plan_grid(wide_weight *w, const pons_tensor *x, const pons_tensor *y,
                             const pons_tensor *dw, const pons_convolution *c, pons_error *err)
{
    int64_t rows = (int64_t)w->out_tiles * WIDE_TILE, gaps;

    if (wide_grid_init(&w->grid, x, y, dw, c, err) != PONS_OK)
        return err->status;
    gaps = w->grid.count * rows;
    if (w->unit->line == 0 || positions(y) * (rows + w->unit->line) >= gaps)
        return PONS_OK;
    wide_grid_clear(&w->grid);
    w->gathered = true;
    return wide_grid_gather(&w->grid, x, y, dw, c, err);
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
    if ((w = calloc(1, sizeof *w)) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    *w = (wide_weight){ .unit = unit, .threads = threads, .groups = c->groups,
                        .ins = (int)dw->shape.extent[4],
                        .outs = (int)dw->shape.extent[0] / c->groups };
    w->in_tiles = (int)over(w->ins, WIDE_TILE);
    w->out_tiles = (int)over(w->outs, WIDE_TILE);
    kernel->state = w;
    kernel->free = weight_free;
    if (plan_grid(w, x, y, dw, c, err) != PONS_OK || plan_tiles(w, err) != PONS_OK)
        goto fail;
    plan_chunks(w);
    plan_memory(w);
    if (plan_steps(w, x, y, err) != PONS_OK)
        goto fail;
    kernel->run = weight_run;
    kernel->implementation = "own";
    kernel->scratch_size = (size_t)(area_size(w) + w->sums * (w->apart ? w->chunks : 1));
    *supported = true;
    return PONS_OK;
fail:
    weight_free(kernel);
    return err->status;
}
