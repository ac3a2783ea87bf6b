/*
 * gemm_image.c - a convolution, and its gradient by the input, between tensors of many channels.
 *
 * Sources are copied to the grid of gemm_grid.h, where 16 positions behind one another are the
 * rows of a product whatever the kernel position; weights are packed as panels, once a step.
 * Results are turned into the tensor's type tile by tile.
 *
 * Positions are cut into chunks that fit a core's cache. Many chunks are a task each, which copies
 * its part of the sources; of few, all positions are copied first, and a task is some of the
 * columns at some of the positions: no more tasks than keep the threads busy, since those of equal
 * columns read the same panels. No sum crosses tasks, so bits do not depend on the cut.
 */
#include "cpu/cpu.h"
#include "cpu/conv/bf16_gemm/gemm_terms.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum {
    CHUNK_BYTES = 1 << 20,  /* of copied sources */
    PANEL_BYTES = 1 << 19,  /* of panels that are read again and again */
    RANGE_BYTES = 1 << 18,  /* of targets that are written in turns */
    SMALL_BYTES = 1 << 16,  /* of weights: packed by one thread */
    COPIED = 256,           /* positions that a task copies */
    CHUNKS_APART = 4,       /* that many chunks are tasks of their own */
    TASKS = 4               /* of a chunk otherwise, for each thread, at least */
};

typedef struct wide_image {
    const wide_unit *unit;
    int threads;
    wide_grid grid;
    wide_terms terms;
    int columns;            /* tiles of the targets' channels */
    int chunks, splits;     /* splits: of a chunk's positions, over tasks */
    int64_t blocks;         /* of 16 positions, in a chunk */
    int64_t range;          /* blocks that all targets pass in turn: they share cache lines */
    int64_t positions;      /* copied for a chunk, of each source */
    int64_t source_size, area, panels;  /* bytes */
    int64_t *a_at, *b_at;
    char *zero;
    bool packed;            /* weights come as panels */
} wide_image;

/* ---- weights --------------------------------------------------------------------------------- */

/* Panels lie as [target][column][step]. */
static int64_t panel_at(const wide_image *w, const wide_target *t, int column)
{
    return ((int64_t)t->first * w->columns + (int64_t)column * t->count) * w->terms.steps *
           WIDE_PANEL;
}

/* The kernel position of number j of a term's step, and the source's channel. */
static int tap_of(const wide_image *w, const wide_term *term, int step, int j, int *channel)
{
    const wide_terms *t = &w->terms;

    *channel = t->joined > 1 ? j % t->ins : step * WIDE_NUMBERS + j;
    return *channel < t->ins ? term->tap[t->joined > 1 ? j / t->ins : 0] : -1;
}

/* w[channel][tap][target's channels] are panels but for the order of rows. */
static void pack_rows(const wide_image *w, const char *weight, const wide_term *term, int step,
                      int column, char *to)
{
    const char *row[WIDE_NUMBERS];
    int64_t size = (int64_t)sizeof(uint16_t) * w->terms.outs;
    int channel;

    for (int j = 0; j < WIDE_NUMBERS; j++) {
        int tap = tap_of(w, term, step, j, &channel);
        row[j] = tap < 0 ? w->zero : weight + ((int64_t)channel * w->grid.taps + tap) * size;
    }
    wide_pack_panel(to, row, column * WIDE_TILE,
                    min_int(WIDE_TILE, w->terms.outs - column * WIDE_TILE));
}

/* Number j of a column: runs of a position's channels, as many as are joined. */
static void read_column(const wide_image *w, const char *weight, const wide_term *term, int step,
                        char line[WIDE_STEP])
{
    unsigned run = WIDE_NUMBERS / (unsigned)w->terms.joined;
    int64_t size = sizeof(uint16_t);
    int channel;

    memset(line, 0, WIDE_STEP);
    for (unsigned j = 0; j < WIDE_NUMBERS; j += run) {
        int tap = tap_of(w, term, step, (int)j, &channel);
        if (tap >= 0)
            memcpy(line + j * sizeof(uint16_t),
                   weight + ((int64_t)tap * w->terms.ins + channel) * size,
                   (size_t)(min_int((int)run, w->terms.ins - channel) * size));
    }
}

/* w[target's channel][tap][channels] are columns. */
static void pack_columns(const wide_image *w, const char *weight, const wide_term *term, int step,
                         int column, char *to)
{
    static const char none[WIDE_STEP];
    char line[WIDE_TILE][WIDE_STEP];
    const char *row[WIDE_TILE];
    int64_t size = (int64_t)sizeof(uint16_t) * w->grid.taps * w->terms.ins;

    for (int o = 0; o < WIDE_TILE; o++) {
        int out = column * WIDE_TILE + o;
        row[o] = out < w->terms.outs ? line[o] : none;
        if (out < w->terms.outs)
            read_column(w, weight + out * size, term, step, line[o]);
    }
    wide_pack_columns(to, row);
}

typedef struct pack_work {
    const wide_image *w;
    const char *from;
    char *to;
} pack_work;

static int pairs(const wide_image *w)
{
    return (int)ceil_div_i64(w->columns, WIDE_COLUMNS);
}

/* The panels of two columns of a target, in turns: they share cache lines of the weight. */
static void pack_task(void *context, int64_t i, int thread)
{
    const pack_work *k = context;
    const wide_image *w = k->w;
    const wide_target *t = w->terms.target + i / pairs(w);
    int first = (int)(i % pairs(w)) * WIDE_COLUMNS;
    int end = min_int(first + WIDE_COLUMNS, w->columns);

    (void)thread;
    for (int s = 0; s < t->count * w->terms.steps; s++)
        for (int column = first; column < end; column++)
            (w->terms.gradient ? pack_rows : pack_columns)(
                w, k->from, w->terms.term + t->first + s / w->terms.steps, s % w->terms.steps,
                column, k->to + panel_at(w, t, column) + (int64_t)s * WIDE_PANEL);
}

static void pack_weights(const wide_image *w, const void *from, void *to)
{
    pack_work k = { w, from, to };

    cpu_parallel(w->panels < SMALL_BYTES ? 1 : w->threads,
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
static void copy_points(const wide_image *w, const char *from, int64_t pitch, int64_t count,
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
static void copy_block(const wide_image *w, const void *source, int chunk, int64_t block,
                       char *area)
{
    int64_t first = chunk * w->blocks * WIDE_TILE - w->terms.low;
    int64_t begin = block * COPIED, end = begin + COPIED;
    const char *from;

    end = end < w->positions ? end : w->positions;
    for (int s = 0; s < w->terms.source_count; s++) {
        const wide_view *v = w->terms.source + s;
        char *to = area + s * w->source_size;
        for (int64_t at = begin, run; at < end; at += run) {
            run = wide_run(&w->grid, v, source, first + at, first + end, &from);
            if (from == NULL)
                memset(to + at * w->terms.point, 0, (size_t)(run * w->terms.point));
            else
                copy_points(w, from, v->step[2], run, to + at * w->terms.point);
        }
    }
}

/* ---- products -------------------------------------------------------------------------------- */

/* Rows of tiles that are computed together. */
typedef struct group {
    int rows;
    int64_t block[WIDE_ROWS];
    char *place[WIDE_ROWS][WIDE_TILE];
} group;

/* Up to 'most' blocks from *block on that hold points of the target. */
static void next_group(const wide_image *w, const wide_target *t, void *target, int64_t first,
                       int64_t *block, int64_t end, int most, group *g)
{
    for (g->rows = 0; g->rows < most && *block < end; ++*block) {
        char **place = g->place[g->rows];
        bool any = false;

        wide_positions(&w->grid, &t->view, target, NULL, (first + *block) * WIDE_TILE, WIDE_TILE,
                       (const char **)place);
        for (int i = 0; i < WIDE_TILE; i++)
            any = any || place[i] != NULL;
        if (any)
            g->block[g->rows++] = *block;
    }
}

static void multiply_group(const wide_image *w, const wide_target *t, const char *area,
                           const char *panels, const group *g, int column, int columns)
{
    _Alignas(64) float tile[WIDE_ROWS][WIDE_COLUMNS][WIDE_TILE * WIDE_TILE];
    wide_product p = { .rows = g->rows, .columns = columns, .pitch = w->terms.point,
                       .c_pitch = WIDE_TILE * sizeof(float),
                       .steps = (int64_t)t->count * w->terms.steps,
                       .a_at = w->a_at + (int64_t)t->first * w->terms.steps, .b_at = w->b_at };

    for (int n = 0; n < columns; n++)
        p.b[n] = panels + panel_at(w, t, column + n);
    for (int r = 0; r < g->rows; r++) {
        p.a[r] = area + g->block[r] * WIDE_TILE * w->terms.point;
        for (int n = 0; n < columns; n++)
            p.c[r][n] = tile[r][n];
    }
    w->unit->multiply(&p);
    for (int r = 0; r < g->rows; r++)
        for (int n = 0; n < columns; n++)
            wide_store(tile[r][n], g->place[r], (column + n) * WIDE_TILE,
                       min_int(WIDE_TILE, w->terms.outs - (column + n) * WIDE_TILE));
}

/* Columns first .. end - 1 of a target at blocks low .. high - 1 of a chunk. */
static void run_target(const wide_image *w, const wide_target *t, const char *area,
                       const char *panels, void *target, int chunk, int first, int end,
                       int64_t low, int64_t high)
{
    int most = end - first > 1 ? 2 : WIDE_ROWS;
    group g;

    while (low < high) {
        next_group(w, t, target, chunk * w->blocks, &low, high, most, &g);
        for (int column = first; column < end && g.rows > 0; column += WIDE_COLUMNS)
            multiply_group(w, t, area, panels, &g, column, min_int(WIDE_COLUMNS, end - column));
    }
}

/* ---- tasks ----------------------------------------------------------------------------------- */

typedef struct work {
    const wide_image *w;
    const void *source;
    void *target;
    const char *panels;
    char *area; /* of the first thread, or of all */
    int chunk;
} work;

/* Columns whose panels stay in the cache while a chunk's positions pass. */
static int columns_together(const wide_image *w, const wide_target *t)
{
    int64_t most = PANEL_BYTES / (((int64_t)t->count * w->terms.steps + 1) * WIDE_PANEL);

    return most < WIDE_COLUMNS ? WIDE_COLUMNS : (int)(most / WIDE_COLUMNS * WIDE_COLUMNS);
}

/*
 * Columns first .. end - 1 of all targets at blocks low .. high - 1. Targets take turns every
 * 'range' blocks, since they lie between one another in memory.
 */
static void run_blocks(const work *k, const char *area, int chunk, int first, int end, int64_t low,
                       int64_t high)
{
    const wide_image *w = k->w;

    for (int64_t next; low < high; low = next) {
        next = low + w->range < high ? low + w->range : high;
        for (int i = 0; i < w->terms.target_count; i++) {
            const wide_target *t = w->terms.target + i;
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
    const wide_image *w = k->w;
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

/* Two columns at some of the chunk's blocks. */
static void part_task(void *context, int64_t i, int thread)
{
    const work *k = context;
    const wide_image *w = k->w;
    int split = (int)(i % w->splits), first = (int)(i / w->splits) * WIDE_COLUMNS;

    (void)thread;
    w->unit->begin();
    run_blocks(k, k->area, k->chunk, first, min_int(first + WIDE_COLUMNS, w->columns),
               w->blocks * split / w->splits, w->blocks * (split + 1) / w->splits);
    w->unit->end();
}

static pons_status image_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const wide_image *w = kernel->state;
    work k = { .w = w, .source = call->input[0], .target = call->output[0],
               .panels = call->input[1], .area = call->scratch };

    (void)err;
    if (!w->packed) {
        pack_weights(w, call->input[1], call->scratch);
        k.panels = call->scratch;
        k.area += w->panels;
    }
    if (w->chunks >= CHUNKS_APART) {
        cpu_parallel(w->threads, w->chunks, chunk_task, &k);
        return PONS_OK;
    }
    for (k.chunk = 0; k.chunk < w->chunks; k.chunk++) {
        cpu_parallel(w->threads, ceil_div_i64(w->positions, COPIED), copy_task, &k);
        cpu_parallel(w->threads, (int64_t)pairs(w) * w->splits, part_task, &k);
    }
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void image_free(pons_kernel *kernel)
{
    wide_image *w = kernel->state;

    wide_terms_clear(&w->terms);
    wide_grid_clear(&w->grid);
    free(w->a_at);
    free(w->b_at);
    free(w->zero);
    free(w);
}

/* Chunks: as large as the cache allows, but not small beside what they read around themselves. */
static void plan_chunks(wide_image *w)
{
    const wide_terms *t = &w->terms;
    int64_t blocks = ceil_div_i64(w->grid.count, WIDE_TILE);
    int64_t around = ceil_div_i64(t->low + t->high, WIDE_TILE);
    int64_t most = CHUNK_BYTES / ((int64_t)WIDE_TILE * t->point * t->source_count);

    most = max_i64(most, around);
    w->chunks = (int)ceil_div_i64(blocks, most < 1 ? 1 : most);
    if (w->chunks >= CHUNKS_APART)
        w->chunks = (int)round_up_i64(w->chunks, CHUNKS_APART);
    w->blocks = ceil_div_i64(blocks, w->chunks);
    w->chunks = (int)ceil_div_i64(blocks, w->blocks);
    w->splits = (int)ceil_div_i64(TASKS * w->threads, pairs(w));
    w->splits = w->splits > w->blocks ? (int)w->blocks : w->splits;
    w->range = t->target_count > 1 ? RANGE_BYTES / (t->target_count * t->outs * WIDE_TILE * 2) + 1
                                   : w->blocks;
    w->positions = w->blocks * WIDE_TILE + t->low + t->high;
    w->source_size = w->positions * t->point;
    w->area = round_up_i64(w->source_size * t->source_count, WIDE_STEP);
    w->panels = (int64_t)t->term_count * t->steps * w->columns * WIDE_PANEL;
}

static pons_status plan_steps(wide_image *w, pons_error *err)
{
    const wide_terms *t = &w->terms;
    size_t steps = (size_t)t->term_count * (size_t)t->steps + 1;

    w->a_at = calloc(steps, sizeof *w->a_at);
    w->b_at = calloc(steps, sizeof *w->b_at);
    w->zero = calloc((size_t)t->outs, sizeof(uint16_t));
    if (w->a_at == NULL || w->b_at == NULL || w->zero == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    for (int i = 0; i < t->term_count * t->steps; i++) {
        const wide_term *term = t->term + i / t->steps;
        w->a_at[i] = term->source * w->source_size + (t->low + term->offset) * t->point +
                     i % t->steps * WIDE_STEP;
        w->b_at[i] = (int64_t)i * WIDE_PANEL;
    }
    return PONS_OK;
}

/* Equal for kernels that want equal panels of one weight. */
static uint64_t panel_key(const wide_image *w)
{
    const wide_terms *t = &w->terms;
    uint64_t key = 0xcbf29ce484222325u ^ (uint64_t)t->gradient;

    for (int i = 0; i < t->term_count; i++)
        for (int k = 0; k < t->joined; k++)
            key = (key ^ (uint64_t)(t->term[i].tap[k] + 1)) * 0x100000001b3u;
    for (int i = 0; i < t->target_count; i++)
        key = (key ^ (uint64_t)t->target[i].count) * 0x100000001b3u;
    return key;
}

static void plan_packing(const wide_image *w, pons_kernel *kernel)
{
    if (!w->packed)
        return;
    kernel->pack = image_pack;
    kernel->pack_size[1] = (size_t)w->panels;
    kernel->pack_key[1] = panel_key(w);
}

pons_status wide_prepare_image(const wide_unit *unit, int threads, const pons_request *request,
                               pons_kernel *kernel, bool *supported, pons_error *err)
{
    const pons_convolution *c = request->attributes;
    bool gradient = request->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT;
    const pons_tensor *from = &request->input[0], *to = &request->output[0];
    const pons_tensor *x = gradient ? to : from, *y = gradient ? from : to;
    const pons_tensor *weight = &request->input[1];
    wide_image *w;

    *supported = false;
    if (from->type != PONS_BF16 || to->type != PONS_BF16 || weight->type != PONS_BF16 ||
        c->groups != 1)
        return PONS_OK;
    if ((w = calloc(1, sizeof *w)) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    *w = (wide_image){ .unit = unit, .threads = threads,
                       .packed = request->packable >> 1 & 1 };
    kernel->state = w;
    if (wide_grid_init(&w->grid, x, y, weight, c, err) != PONS_OK ||
        wide_terms_init(&w->terms, &w->grid, x, weight, c, gradient, err) != PONS_OK)
        goto fail;
    w->columns = (int)ceil_div_i64(w->terms.outs, WIDE_TILE);
    plan_chunks(w);
    if (plan_steps(w, err) != PONS_OK)
        goto fail;
    plan_packing(w, kernel);
    kernel->run = image_run;
    kernel->free = image_free;
    kernel->implementation = "own";
    kernel->scratch_size = (size_t)((w->packed ? 0 : w->panels) +
                                    w->area * (w->chunks >= CHUNKS_APART ? threads : 1));
    *supported = true;
    return PONS_OK;
fail:
    image_free(kernel);
    return err->status;
}
