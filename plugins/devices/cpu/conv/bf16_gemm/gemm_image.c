/*
 * gemm_image.c - convolutions and input gradients by the engines of bf16_gemm.h.
 *
 * Sources are copied to the grid of gemm_grid.h. There 16 consecutive positions are the rows of a
 * product for every kernel position. Weights are packed as panels once a step. Results are
 * converted to bf16 tile by tile.
 *
 * Positions are divided into chunks that fit the L2 cache. If chunks are many, each is a task,
 * which copies its part of the sources. If chunks are few, all positions of a chunk are copied
 * first, and a task is some columns at some positions. Tasks of equal columns read the same panels,
 * so these tasks are only as many as keep the threads busy. No sum crosses tasks, so bits do not
 * depend on the number of tasks.
 */
#include "cpu/cpu.h"
#include "cpu/conv/bf16_gemm/gemm_terms.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum {
    CHUNK_BYTES = 1 << 20,  /* of copied sources */
    PANEL_BYTES = 1 << 19,  /* of panels that stay in the cache for all positions of a chunk */
    RANGE_BYTES = 1 << 18,  /* of targets that are written in turns */
    SMALL_BYTES = 1 << 16,  /* most bytes of weights that one thread packs */
    COPIED = 256,           /* positions that a task copies */
    CHUNKS_APART = 4,       /* least count of chunks that are a task each */
    TASKS = 4               /* least count of tasks of a chunk for each thread */
};

typedef struct gemm_image {
    const gemm_engine *unit;
    int threads;
    gemm_grid grid;
    gemm_terms terms;
    int columns;            /* tiles of the targets' channels */
    int chunks, splits;     /* splits: parts of a chunk's positions, for tasks */
    int64_t blocks;         /* of 16 positions, in a chunk */
    int64_t range;          /* blocks after which the next target is written: they share lines */
    int64_t positions;      /* copied for a chunk, of each source */
    int64_t source_size, area, panels;  /* bytes */
    int64_t *a_at, *b_at;
    char *zero;
    bool packed;            /* weights come as panels */
} gemm_image;

/* ---- weights --------------------------------------------------------------------------------- */

/* Panels lie as [target][column][step]. */
static int64_t panel_at(const gemm_image *w, const gemm_target *t, int column)
{
    return ((int64_t)t->first * w->columns + (int64_t)column * t->count) * w->terms.steps *
           GEMM_PANEL;
}

/* The kernel position of number j of a term's step, and the source's channel. */
static int tap_of(const gemm_image *w, const gemm_term *term, int step, int j, int *channel)
{
    const gemm_terms *t = &w->terms;

    *channel = t->joined > 1 ? j % t->ins : step * GEMM_ELEMENTS + j;
    return *channel < t->ins ? term->tap[t->joined > 1 ? j / t->ins : 0] : -1;
}

/* w[channel][tap][target's channels] are panels but for the order of rows. */
static void pack_rows(const gemm_image *w, const char *weight, const gemm_term *term, int step,
                      int column, char *to)
{
    const char *row[GEMM_ELEMENTS];
    int64_t size = (int64_t)sizeof(uint16_t) * w->terms.outs;
    int channel;

    for (int j = 0; j < GEMM_ELEMENTS; j++) {
        int tap = tap_of(w, term, step, j, &channel);
        row[j] = tap < 0 ? w->zero : weight + ((int64_t)channel * w->grid.taps + tap) * size;
    }
    gemm_pack_panel(to, row, column * GEMM_TILE,
                    min_int(GEMM_TILE, w->terms.outs - column * GEMM_TILE));
}

/* Number j of a column: runs of a position's channels, as many as are joined. */
static void read_column(const gemm_image *w, const char *weight, const gemm_term *term, int step,
                        char line[GEMM_STEP])
{
    unsigned run = GEMM_ELEMENTS / (unsigned)w->terms.joined;
    int64_t size = sizeof(uint16_t);
    int channel;

    memset(line, 0, GEMM_STEP);
    for (unsigned j = 0; j < GEMM_ELEMENTS; j += run) {
        int tap = tap_of(w, term, step, (int)j, &channel);
        if (tap >= 0)
            memcpy(line + j * sizeof(uint16_t),
                   weight + ((int64_t)tap * w->terms.ins + channel) * size,
                   (size_t)(min_int((int)run, w->terms.ins - channel) * size));
    }
}

/* w[target's channel][tap][channels] are columns. */
static void pack_columns(const gemm_image *w, const char *weight, const gemm_term *term, int step,
                         int column, char *to)
{
    static const char none[GEMM_STEP];
    char line[GEMM_TILE][GEMM_STEP];
    const char *row[GEMM_TILE];
    int64_t size = (int64_t)sizeof(uint16_t) * w->grid.taps * w->terms.ins;

    for (int o = 0; o < GEMM_TILE; o++) {
        int out = column * GEMM_TILE + o;
        row[o] = out < w->terms.outs ? line[o] : none;
        if (out < w->terms.outs)
            read_column(w, weight + out * size, term, step, line[o]);
    }
    gemm_pack_columns(to, row);
}

typedef struct pack_work {
    const gemm_image *w;
    const char *from;
    char *to;
} pack_work;

static int pairs(const gemm_image *w)
{
    return (int)ceil_div_i64(w->columns, GEMM_COLUMNS);
}

/* Pack two columns of a target alternately: they share cache lines of the weight. */
static void pack_task(void *context, int64_t i, int thread)
{
    const pack_work *k = context;
    const gemm_image *w = k->w;
    const gemm_target *t = w->terms.target + i / pairs(w);
    int first = (int)(i % pairs(w)) * GEMM_COLUMNS;
    int end = min_int(first + GEMM_COLUMNS, w->columns);

    (void)thread;
    for (int s = 0; s < t->count * w->terms.steps; s++)
        for (int column = first; column < end; column++)
            (w->terms.gradient ? pack_rows : pack_columns)(
                w, k->from, w->terms.term + t->first + s / w->terms.steps, s % w->terms.steps,
                column, k->to + panel_at(w, t, column) + (int64_t)s * GEMM_PANEL);
}

static void pack_weights(const gemm_image *w, const void *from, void *to)
{
    pack_work k = { w, from, to };

    cpu_parallel_for(w->panels < SMALL_BYTES ? 1 : w->threads,
                     (int64_t)w->terms.target_count * pairs(w), pack_task, &k);
}

static pons_status image_pack(const pons_kernel *kernel, int input, const void *from, void *to,
                              pons_error *err)
{
    (void)input;
    (void)err;
    pack_weights(kernel->state, from, to);
    return PONS_OK;
}

/* ---- sources --------------------------------------------------------------------------------- */

/* 'count' points of 'pitch' bytes each; many have 32 or 64 bytes, where a call would cost more. */
static void copy_points(const gemm_image *w, const char *from, int64_t pitch, int64_t count,
                        char *to)
{
    int size = w->terms.ins * (int)sizeof(uint16_t), point = w->terms.point;

    if (pitch == size && size == point) {
        memcpy(to, from, (size_t)(count * size));
        return;
    }
    for (int64_t i = 0; i < count; i++, from += pitch, to += point) {
        if (size == 32)
            memcpy(to, from, 32);
        else if (size == 64)
            memcpy(to, from, 64);
        else
            memcpy(to, from, (size_t)size);
        if (size < point)
            memset(to + size, 0, (size_t)(point - size));
    }
}

/* Block 'block' of every source around a chunk, which begins 'low' before the chunk. */
static void copy_block(const gemm_image *w, const void *source, int chunk, int64_t block,
                       char *area)
{
    int64_t first = chunk * w->blocks * GEMM_TILE - w->terms.low;
    int64_t begin = block * COPIED, end = begin + COPIED;
    const char *from;

    end = min_i64(end, w->positions);
    for (int s = 0; s < w->terms.source_count; s++) {
        const gemm_view *v = w->terms.source + s;
        char *to = area + s * w->source_size;
        for (int64_t at = begin, run; at < end; at += run) {
            run = gemm_grid_run(&w->grid, v, source, first + at, first + end, &from);
            if (from == NULL)
                memset(to + at * w->terms.point, 0, (size_t)(run * w->terms.point));
            else
                copy_points(w, from, v->step[2], run, to + at * w->terms.point);
        }
    }
}

/* ---- products -------------------------------------------------------------------------------- */

/* Tiles that are computed together. */
typedef struct group {
    int rows;
    int64_t block[GEMM_ROWS];
    char *place[GEMM_ROWS][GEMM_TILE];
} group;

/* Up to 'most' blocks from *block on that hold points of the target. */
static void next_group(const gemm_image *w, const gemm_target *t, void *target, int64_t first,
                       int64_t *block, int64_t end, int most, group *g)
{
    for (g->rows = 0; g->rows < most && *block < end; ++*block) {
        char **place = g->place[g->rows];
        bool any = false;

        gemm_grid_positions(&w->grid, &t->view, target, NULL, (first + *block) * GEMM_TILE,
                            GEMM_TILE, (const char **)place);
        for (int i = 0; i < GEMM_TILE; i++)
            any = any || place[i] != NULL;
        if (any)
            g->block[g->rows++] = *block;
    }
}

static void multiply_group(const gemm_image *w, const gemm_target *t, const char *area,
                           const char *panels, const group *g, int column, int columns)
{
    _Alignas(64) float tile[GEMM_ROWS][GEMM_COLUMNS][GEMM_TILE * GEMM_TILE];
    gemm_product p = { .rows = g->rows, .columns = columns, .pitch = w->terms.point,
                       .c_pitch = GEMM_TILE * sizeof(float),
                       .steps = (int64_t)t->count * w->terms.steps,
                       .a_at = w->a_at + (int64_t)t->first * w->terms.steps, .b_at = w->b_at };

    for (int n = 0; n < columns; n++)
        p.b[n] = panels + panel_at(w, t, column + n);
    for (int r = 0; r < g->rows; r++) {
        p.a[r] = area + g->block[r] * GEMM_TILE * w->terms.point;
        for (int n = 0; n < columns; n++)
            p.c[r][n] = tile[r][n];
    }
    w->unit->multiply(&p);
    for (int r = 0; r < g->rows; r++)
        for (int n = 0; n < columns; n++)
            gemm_store(tile[r][n], g->place[r], (column + n) * GEMM_TILE,
                       min_int(GEMM_TILE, w->terms.outs - (column + n) * GEMM_TILE));
}

/* Columns first .. end - 1 of a target at blocks low .. high - 1 of a chunk. */
static void run_target(const gemm_image *w, const gemm_target *t, const char *area,
                       const char *panels, void *target, int chunk, int first, int end,
                       int64_t low, int64_t high)
{
    int most = end - first > 1 ? 2 : GEMM_ROWS;
    group g;

    while (low < high) {
        next_group(w, t, target, chunk * w->blocks, &low, high, most, &g);
        for (int column = first; column < end && g.rows > 0; column += GEMM_COLUMNS)
            multiply_group(w, t, area, panels, &g, column, min_int(GEMM_COLUMNS, end - column));
    }
}

/* ---- tasks ----------------------------------------------------------------------------------- */

typedef struct work {
    const gemm_image *w;
    const void *source;
    void *target;
    const char *panels;
    char *area; /* of the first thread, or of all */
    int chunk;
} work;

/* Columns whose panels stay in the cache while a chunk's positions pass. */
static int columns_together(const gemm_image *w, const gemm_target *t)
{
    int64_t most = PANEL_BYTES / (((int64_t)t->count * w->terms.steps + 1) * GEMM_PANEL);

    return most < GEMM_COLUMNS ? GEMM_COLUMNS : (int)(most / GEMM_COLUMNS * GEMM_COLUMNS);
}

/*
 * Compute columns first .. end - 1 of all targets at blocks low .. high - 1. Targets are
 * interleaved in memory, so each computes 'range' blocks before the next one does.
 */
static void run_blocks(const work *k, const char *area, int chunk, int first, int end, int64_t low,
                       int64_t high)
{
    const gemm_image *w = k->w;

    for (int64_t next; low < high; low = next) {
        next = min_i64(low + w->range, high);
        for (int i = 0; i < w->terms.target_count; i++) {
            const gemm_target *t = w->terms.target + i;
            int together = columns_together(w, t);
            for (int column = first; column < end; column += together)
                run_target(w, t, area, k->panels, k->target, chunk, column,
                           min_int(column + together, end), low, next);
        }
    }
}

static void chunk_task(void *context, int64_t chunk, int thread)
{
    const work *k = context;
    const gemm_image *w = k->w;
    char *area = k->area + thread * w->area;

    for (int64_t block = 0; block * COPIED < w->positions; block++)
        copy_block(w, k->source, (int)chunk, block, area);
    w->unit->begin();
    run_blocks(k, area, (int)chunk, 0, w->columns, 0, w->blocks);
    w->unit->end();
}

static void copy_task(void *context, int64_t block, int thread)
{
    const work *k = context;

    (void)thread;
    copy_block(k->w, k->source, k->chunk, block, k->area);
}

/* Compute two columns at some blocks of the chunk. */
static void part_task(void *context, int64_t i, int thread)
{
    const work *k = context;
    const gemm_image *w = k->w;
    int split = (int)(i % w->splits), first = (int)(i / w->splits) * GEMM_COLUMNS;

    (void)thread;
    w->unit->begin();
    run_blocks(k, k->area, k->chunk, first, min_int(first + GEMM_COLUMNS, w->columns),
               w->blocks * split / w->splits, w->blocks * (split + 1) / w->splits);
    w->unit->end();
}

static pons_status image_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const gemm_image *w = kernel->state;
    work k = { .w = w, .source = call->input[0], .target = call->output[0],
               .panels = call->input[1], .area = call->scratch };

    (void)err;
    if (!w->packed) {
        pack_weights(w, call->input[1], call->scratch);
        k.panels = call->scratch;
        k.area += w->panels;
    }
    if (w->chunks >= CHUNKS_APART) {
        cpu_parallel_for(w->threads, w->chunks, chunk_task, &k);
        return PONS_OK;
    }
    for (k.chunk = 0; k.chunk < w->chunks; k.chunk++) {
        cpu_parallel_for(w->threads, ceil_div_i64(w->positions, COPIED), copy_task, &k);
        cpu_parallel_for(w->threads, (int64_t)pairs(w) * w->splits, part_task, &k);
    }
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void image_free(pons_kernel *kernel)
{
    gemm_image *w = kernel->state;

    gemm_terms_clear(&w->terms);
    gemm_grid_clear(&w->grid);
    free(w->a_at);
    free(w->b_at);
    free(w->zero);
    free(w);
}

/* Chunks: as large as the cache allows, but not small beside what they read around themselves. */
static void plan_chunks(gemm_image *w)
{
    const gemm_terms *t = &w->terms;
    int64_t blocks = ceil_div_i64(w->grid.count, GEMM_TILE);
    int64_t around = ceil_div_i64(t->low + t->high, GEMM_TILE);
    int64_t most = CHUNK_BYTES / ((int64_t)GEMM_TILE * t->point * t->source_count);

    most = max_i64(most, around);
    w->chunks = (int)ceil_div_i64(blocks, max_i64(most, 1));
    if (w->chunks >= CHUNKS_APART)
        w->chunks = (int)round_up_i64(w->chunks, CHUNKS_APART);
    w->blocks = ceil_div_i64(blocks, w->chunks);
    w->chunks = (int)ceil_div_i64(blocks, w->blocks);
    w->splits = (int)ceil_div_i64(TASKS * w->threads, pairs(w));
    w->splits = w->splits > w->blocks ? (int)w->blocks : w->splits;
    w->range = t->target_count > 1 ? RANGE_BYTES / (t->target_count * t->outs * GEMM_TILE * 2) + 1
                                   : w->blocks;
    w->positions = w->blocks * GEMM_TILE + t->low + t->high;
    w->source_size = w->positions * t->point;
    w->area = round_up_i64(w->source_size * t->source_count, GEMM_STEP);
    w->panels = (int64_t)t->term_count * t->steps * w->columns * GEMM_PANEL;
}

static pons_status plan_steps(gemm_image *w, pons_error *err)
{
    const gemm_terms *t = &w->terms;
    size_t steps = (size_t)t->term_count * (size_t)t->steps + 1;

    w->a_at = calloc(steps, sizeof *w->a_at);
    w->b_at = calloc(steps, sizeof *w->b_at);
    w->zero = calloc((size_t)t->outs, sizeof(uint16_t));
    if (w->a_at == NULL || w->b_at == NULL || w->zero == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    for (int i = 0; i < t->term_count * t->steps; i++) {
        const gemm_term *term = t->term + i / t->steps;
        w->a_at[i] = term->source * w->source_size + (t->low + term->offset) * t->point +
                     i % t->steps * GEMM_STEP;
        w->b_at[i] = (int64_t)i * GEMM_PANEL;
    }
    return PONS_OK;
}

/* Equal for kernels that want equal panels of one weight. */
static uint64_t panel_key(const gemm_image *w)
{
    const gemm_terms *t = &w->terms;
    uint64_t key = 0xcbf29ce484222325u ^ (uint64_t)t->gradient;

    for (int i = 0; i < t->term_count; i++)
        for (int k = 0; k < t->joined; k++)
            key = (key ^ (uint64_t)(t->term[i].tap[k] + 1)) * 0x100000001b3u;
    for (int i = 0; i < t->target_count; i++)
        key = (key ^ (uint64_t)t->target[i].count) * 0x100000001b3u;
    return key;
}

static void plan_packing(const gemm_image *w, pons_kernel *kernel)
{
    if (!w->packed)
        return;
    kernel->pack = image_pack;
    kernel->pack_size[1] = (size_t)w->panels;
    kernel->pack_key[1] = panel_key(w);
}

static bool supports(const conv_problem *p)
{
    return p->groups == 1 && conv_has_types(p, PONS_BF16, PONS_BF16);
}

static pons_status prepare(const cpu_device *cpu, const conv_problem *p, pons_kernel *kernel,
                           pons_error *err)
{
    gemm_image *w = calloc(1, sizeof *w);

    if (w == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    *w = (gemm_image){ .unit = bf16_gemm_engine(cpu->isa), .threads = cpu->threads,
                       .packed = p->packable };
    kernel->state = w;
    if (gemm_grid_init(&w->grid, p, err) != PONS_OK ||
        gemm_terms_init(&w->terms, &w->grid, p, err) != PONS_OK)
        goto fail;
    w->columns = (int)ceil_div_i64(w->terms.outs, GEMM_TILE);
    plan_chunks(w);
    if (plan_steps(w, err) != PONS_OK)
        goto fail;
    plan_packing(w, kernel);
    kernel->run = image_run;
    kernel->free = image_free;
    kernel->scratch_size = (size_t)((w->packed ? 0 : w->panels) +
                                    w->area * (w->chunks >= CHUNKS_APART ? w->threads : 1));
    return PONS_OK;
fail:
    image_free(kernel);
    return err->status;
}

const conv_operations bf16_gemm_operations = {
    .supports = supports, .profitable = bf16_gemm_profitable, .prepare = prepare,
};
