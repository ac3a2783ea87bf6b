/*
 * few_channels_amx_gradient.c - the gradient by the weight of a convolution with few input
 * channels, on a matrix unit. (Of many channels of x each tile would be used once for each kernel
 * position, and come from the second cache or behind: vectors are faster there.)
 *
 * A row of the output's gradient is cut into cells of P positions. All numbers of a cell times all
 * those that it reads of a row of x, summed over cells, is a matrix, in whose band
 *
 *   dw[o][kd][kh][kw][i] = sum over a of m[kd, kh][(a s + kw) I + i][a O + o]
 *
 * the gradient lies P times, to be added up; what is off the band is dropped. So a plane of either
 * tensor is packed once, cells as the axis that is summed over, and each (kd, kh) is a product of
 * the same packed planes: rows of x belong together by h mod stride, and where a row of them begins
 * is what kh chooses.
 *
 * A task is some planes of the output's gradient, with sums of its own; those of all tasks are
 * added in a tree. Cells and tasks depend on the shapes alone, never on the threads.
 */
#include "cpu/cpu.h"
#include "cpu/conv/few_channels_amx/few_channels_amx.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum {
    TILE = WIDE_TILE * WIDE_TILE,
    TASKS = 32,                      /* about */
    MOST_SUMS = 1 << 17,             /* numbers of a task's sums */
    PACK_ROWS_CYCLES = 500, PACK_PANEL_CYCLES = 300, /* a tile of 32 cells */
    PRODUCT_CYCLES = 30, VECTOR_PRODUCTS = 17 /* of a tile; numbers that vectors multiply a cycle */
};

/* A tensor as rows of cells. */
typedef struct cell_side {
    int extent[3], channels;
    int begin;          /* position of the first cell, before the row where there is padding */
    int step, length;   /* positions from cell to cell, and of a cell */
    int inner, inner_end; /* cells from 'inner' on lie within their row */
    int tiles;          /* of 16 numbers of a cell */
} cell_side;

typedef struct tile_gradient {
    int threads, cases;
    int kernel[3], stride[3], pad[3];
    int positions, cells;       /* of a cell; of a row */
    cell_side x, y;
    int low, rows;              /* rows of x before those of the first output row; of a phase */
    int64_t steps;              /* of a plane of y */
    int64_t pitch;              /* bytes of a packed row of x */
    int64_t phase, x_plane;     /* bytes of packed x: rows of a phase; all */
    int64_t y_plane, stage;     /* bytes: packed y; cells at the ends of rows */
    int64_t area;
    int block, blocks;          /* planes of a task; tasks of a case */
    int64_t sums;               /* numbers */
    int64_t *a_at, *b_at;
} tile_gradient;

/* Kernel position k along an axis reads element stride (p + shift_of) + phase_of. */
static int shift_of(const tile_gradient *g, int axis, int k)
{
    return floor_div_int(k - g->pad[axis], g->stride[axis]);
}

static int phase_of(const tile_gradient *g, int axis, int k)
{
    return k - g->pad[axis] - shift_of(g, axis, k) * g->stride[axis];
}

/* ---- packing --------------------------------------------------------------------------------- */

typedef struct work {
    const tile_gradient *g;
    const pons_call *call;
    char *area;
    float *sums;
} work;

/* What one thread's memory holds: planes of x, one for each kd; one of y; what does not fit. */
typedef struct place {
    char *x, *y, *stage;
    const char *zero;
} place;

/* A cell that reaches over an end of its row, with zeros there. */
static const char *cut_cell(const cell_side *s, const uint16_t *row, int first, char *to)
{
    int begin = first < 0 ? 0 : first, end = min_int(first + s->length, s->extent[2]);
    size_t size = (size_t)s->channels * sizeof *row;

    memset(to, 0, (size_t)s->length * size);
    if (end > begin)
        memcpy(to + (size_t)(begin - first) * size, row + (int64_t)begin * s->channels,
               (size_t)(end - begin) * size);
    return to;
}

/* Cells 'cell' .. of a row, as many as 'position' still has room for. */
static int find_row(const tile_gradient *g, const cell_side *s, const uint16_t *row, int cell,
                    int room, const place *p, char *stage, const char **position)
{
    int end = min_int(cell + room, g->cells), inner = min_int(end, s->inner_end), c = cell;
    int size = s->length * s->channels * 2, step = s->step * s->channels * 2;

    if (row == NULL) {
        for (; c < end; c++)
            position[c - cell] = p->zero;
        return end - cell;
    }
    for (; c < end && c < s->inner; c++)
        position[c - cell] = cut_cell(s, row, s->begin + c * s->step, stage + (c - cell) * size);
    for (; c < inner; c++)
        position[c - cell] = (const char *)row + s->begin * s->channels * 2 + (int64_t)c * step;
    for (; c < end; c++)
        position[c - cell] = cut_cell(s, row, s->begin + c * s->step, stage + (c - cell) * size);
    return end - cell;
}

/* 32 cells from number 'at' on; row r of them is row 'stride' (r - low) + phase of the plane. */
static void find_cells(const tile_gradient *g, const cell_side *s, const uint16_t *plane,
                       int64_t at, int stride, int low, int phase, const place *p,
                       const char **position)
{
    int row = (int)(at / g->cells), cell = (int)(at % g->cells), size = s->length * s->channels * 2;

    for (int i = 0; i < WIDE_NUMBERS; row++, cell = 0) {
        int h = stride * (row - low) + phase;
        const uint16_t *from = h < 0 || h >= s->extent[1]
                                   ? NULL
                                   : plane + (int64_t)h * s->extent[2] * s->channels;
        i += find_row(g, s, from, cell, WIDE_NUMBERS - i, p, p->stage + i * size, position + i);
    }
}

/* Numbers of a cell in its tile t. */
static int in_tile(const cell_side *s, int t)
{
    return min_int(WIDE_TILE, s->length * s->channels - t * WIDE_TILE);
}

static const uint16_t *plane_of(const cell_side *s, const void *tensor, int image, int d)
{
    int64_t plane = (int64_t)s->extent[1] * s->extent[2] * s->channels;

    return (const uint16_t *)tensor + ((int64_t)image * s->extent[0] + d) * plane;
}

static void pack_x(const tile_gradient *g, const uint16_t *plane, const place *p, char *to)
{
    const char *position[WIDE_NUMBERS];

    for (int phase = 0; phase < g->stride[1]; phase++)
        for (int64_t at = 0; at < g->pitch / (int64_t)sizeof(uint16_t); at += WIDE_NUMBERS) {
            find_cells(g, &g->x, plane, at, g->stride[1], g->low, phase, p, position);
            for (int t = 0; t < g->x.tiles; t++)
                wide_pack_rows(to + phase * g->phase + t * WIDE_TILE * g->pitch +
                                   at * (int64_t)sizeof(uint16_t),
                               g->pitch, position, t * WIDE_TILE, in_tile(&g->x, t));
        }
}

static void pack_y(const tile_gradient *g, const uint16_t *plane, const place *p)
{
    const char *position[WIDE_NUMBERS];

    for (int64_t step = 0; step < g->steps; step++) {
        find_cells(g, &g->y, plane, step * WIDE_NUMBERS, 1, 0, 0, p, position);
        for (int t = 0; t < g->y.tiles; t++)
            wide_pack_panel(p->y + (t * g->steps + step) * WIDE_PANEL, position, t * WIDE_TILE,
                            in_tile(&g->y, t));
    }
}

/* ---- products -------------------------------------------------------------------------------- */

/* Rows are (kh, tile of x), all of one kd; columns are tiles of y. */
static void set_row(const tile_gradient *g, const char *x, float *sums, int row, int column,
                    int r, wide_product *p)
{
    int kh = row / g->x.tiles, t = row % g->x.tiles;
    int64_t first = (int64_t)(shift_of(g, 1, kh) + g->low) * g->cells;

    p->a[r] = x + phase_of(g, 1, kh) * g->phase + t * WIDE_TILE * g->pitch +
              first * (int64_t)sizeof(uint16_t);
    for (int n = 0; n < p->columns; n++)
        p->c[r][n] = sums + ((int64_t)row * g->y.tiles + column + n) * TILE;
}

static void multiply(const tile_gradient *g, const char *x, const char *y, float *sums)
{
    wide_product p = { .pitch = g->pitch, .steps = g->steps, .a_at = g->a_at, .b_at = g->b_at,
                       .c_pitch = WIDE_TILE * sizeof(float), .add = true };
    int rows = g->kernel[1] * g->x.tiles;

    for (int column = 0; column < g->y.tiles; column += p.columns) {
        p.columns = min_int(g->y.tiles - column, WIDE_COLUMNS);
        for (int n = 0; n < p.columns; n++)
            p.b[n] = y + (column + n) * g->steps * WIDE_PANEL;
        for (int row = 0; row < rows; row += p.rows) {
            p.rows = min_int(rows - row, p.columns == 1 ? WIDE_ROWS : 2);
            for (int r = 0; r < p.rows; r++)
                set_row(g, x, sums, row + r, column, r, &p);
            wide_tiles.multiply(&p);
        }
    }
}

static void run_plane(const work *w, const place *p, int image, int d, int *held, float *sums)
{
    const tile_gradient *g = w->g;
    int64_t of_kd = (int64_t)g->kernel[1] * g->x.tiles * g->y.tiles * TILE;

    pack_y(g, plane_of(&g->y, w->call->input[1], image, d), p);
    for (int kd = 0; kd < g->kernel[0]; kd++) {
        int z = d * g->stride[0] + kd - g->pad[0], slot;
        if (z < 0 || z >= g->x.extent[0])
            continue;
        slot = z % g->kernel[0];
        if (held[slot] != z)
            pack_x(g, plane_of(&g->x, w->call->input[0], image, z), p, p->x + slot * g->x_plane);
        held[slot] = z;
        multiply(g, p->x + slot * g->x_plane, p->y, sums + kd * of_kd);
    }
}

static void run_task(void *context, int64_t task, int thread)
{
    const work *w = context;
    const tile_gradient *g = w->g;
    char *area = w->area + thread * g->area;
    place p = { area, area + g->kernel[0] * g->x_plane, NULL, NULL };
    int first = (int)(task % g->blocks) * g->block, held[NARROW_TAPS];
    float *sums = w->sums + task * g->sums;

    p.stage = p.y + g->y_plane;
    p.zero = memset(p.stage + g->stage, 0, (size_t)(g->area - (p.stage + g->stage - area)));
    memset(sums, 0, (size_t)g->sums * sizeof *sums);
    for (int i = 0; i < g->kernel[0]; i++)
        held[i] = -1;
    wide_tiles.begin();
    for (int d = first; d < first + g->block && d < g->y.extent[0]; d++)
        run_plane(w, &p, (int)(task / g->blocks), d, held, sums);
    wide_tiles.end();
}

/* ---- the gradient from its sums -------------------------------------------------------------- */

/* 'count' numbers of all tasks: neighbours, then pairs of pairs. */
static void add_tasks(const tile_gradient *g, float *sums, int64_t count)
{
    int tasks = g->blocks * g->cases;

    for (int step = 1; step < tasks; step *= 2)
        for (int task = 0; task + step < tasks; task += 2 * step) {
            float *to = sums + task * g->sums, *from = sums + (task + step) * g->sums;
            for (int64_t i = 0; i < count; i++)
                to[i] += from[i];
        }
}

/* dw[o][.][j], j = kw I + i, from the tiles of its (kd, kh). */
static float band(const tile_gradient *g, const float *tiles, int o, int j)
{
    float sum = 0;

    for (int a = 0; a < g->positions; a++) {
        int m = a * g->stride[2] * g->x.channels + j, n = a * g->y.channels + o;
        int tile = m / WIDE_TILE * g->y.tiles + n / WIDE_TILE;
        sum += tiles[tile * TILE + m % WIDE_TILE * WIDE_TILE + n % WIDE_TILE];
    }
    return sum;
}

static void write_tap(void *context, int64_t tap, int thread)
{
    const work *w = context;
    const tile_gradient *g = w->g;
    int64_t taps = (int64_t)g->kernel[0] * g->kernel[1], count = g->sums / taps;
    int row = g->kernel[2] * g->x.channels;
    float *sums = w->sums + tap * count, *to = w->call->output[0];

    (void)thread;
    add_tasks(g, sums, count);
    for (int o = 0; o < g->y.channels; o++)
        for (int j = 0; j < row; j++)
            to[(o * taps + tap) * row + j] = band(g, sums, o, j);
}

static pons_status gradient_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const tile_gradient *g = kernel->state;
    work w = { g, call, call->scratch, NULL };

    (void)err;
    w.sums = (float *)(w.area + g->threads * g->area);
    cpu_parallel(g->threads, (int64_t)g->blocks * g->cases, run_task, &w);
    cpu_parallel(g->threads, (int64_t)g->kernel[0] * g->kernel[1], write_tap, &w);
    return PONS_OK;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static void gradient_free(pons_kernel *kernel)
{
    tile_gradient *g = kernel->state;

    free(g->a_at);
    free(g->b_at);
    free(g);
}

static void plan_inner(cell_side *s)
{
    int room = s->extent[2] - s->length - s->begin;

    s->inner = (int)ceil_div_i64(-s->begin, s->step);
    s->inner_end = room < 0 ? 0 : room / s->step + 1;
}

static void plan_cells(tile_gradient *g, int positions)
{
    g->positions = positions;
    g->cells = (int)ceil_div_i64(g->y.extent[2], positions);
    g->y.step = g->y.length = positions;
    g->x.step = positions * g->stride[2];
    g->x.length = (positions - 1) * g->stride[2] + g->kernel[2];
    g->x.begin = -g->pad[2];
    plan_inner(&g->x);
    plan_inner(&g->y);
    g->x.tiles = (int)ceil_div_i64((int64_t)g->x.length * g->x.channels, WIDE_TILE);
    g->y.tiles = (int)ceil_div_i64((int64_t)g->y.length * g->y.channels, WIDE_TILE);
    g->steps = ceil_div_i64((int64_t)g->y.extent[1] * g->cells, WIDE_NUMBERS);
    g->low = 0;
    g->rows = 0;
    for (int k = 0; k < g->kernel[1]; k++) {
        int shift = shift_of(g, 1, k);
        g->low = -shift > g->low ? -shift : g->low;
        g->rows = shift > g->rows ? shift : g->rows;
    }
    g->rows += g->y.extent[1] + g->low;
    g->sums = (int64_t)g->kernel[0] * g->kernel[1] * g->x.tiles * g->y.tiles * TILE;
}

/* Of a plane of the output's gradient, about. */
static int64_t cycles(const tile_gradient *g)
{
    int64_t packed = ceil_div_i64((int64_t)g->rows * g->cells, WIDE_NUMBERS);
    int64_t x = packed * g->stride[0] * g->stride[1] * g->x.tiles * PACK_ROWS_CYCLES;
    int64_t y = g->steps * g->y.tiles * PACK_PANEL_CYCLES;
    int64_t products = g->steps * g->x.tiles * g->y.tiles * g->kernel[0] * g->kernel[1];

    return x + y + products * PRODUCT_CYCLES;
}

/* The length of cells that takes least; 0 if vectors take less. */
static int choose_positions(tile_gradient *g)
{
    int64_t asked = (int64_t)g->y.extent[1] * g->y.extent[2] * g->y.channels * g->x.channels *
                    g->kernel[0] * g->kernel[1] * g->kernel[2];
    int64_t least = asked / VECTOR_PRODUCTS;
    int best = 0;

    for (int p = 1; p <= WIDE_TILE && p <= g->y.extent[2]; p++) {
        plan_cells(g, p);
        if (g->sums <= MOST_SUMS && cycles(g) < least) {
            best = p;
            least = cycles(g);
        }
    }
    return best;
}

static void plan_memory(tile_gradient *g)
{
    int64_t behind = (int64_t)(g->rows - g->y.extent[1]) * g->cells + g->steps * WIDE_NUMBERS;
    int64_t x_cell = (int64_t)g->x.length * g->x.channels, y_cell = (int64_t)g->y.length *
                                                                   g->y.channels;
    int64_t cell = (x_cell > y_cell ? x_cell : y_cell) * (int64_t)sizeof(uint16_t);

    g->pitch = (ceil_div_i64(behind, WIDE_NUMBERS) | 1) * WIDE_STEP;
    g->phase = g->x.tiles * WIDE_TILE * g->pitch;
    g->x_plane = g->phase * g->stride[1];
    g->y_plane = g->y.tiles * g->steps * WIDE_PANEL;
    g->stage = round_up_i64(WIDE_NUMBERS * cell, 64);
    g->area = g->kernel[0] * g->x_plane + g->y_plane + g->stage + round_up_i64(cell, 64);
    g->block = (int)ceil_div_i64((int64_t)g->y.extent[0] * g->cases, TASKS);
    g->block = min_int(g->block, g->y.extent[0]);
    g->blocks = (int)ceil_div_i64(g->y.extent[0], g->block);
}

static pons_status plan_steps(tile_gradient *g, pons_error *err)
{
    g->a_at = malloc((size_t)g->steps * sizeof *g->a_at);
    g->b_at = malloc((size_t)g->steps * sizeof *g->b_at);
    if (g->a_at == NULL || g->b_at == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    for (int64_t s = 0; s < g->steps; s++) {
        g->a_at[s] = s * WIDE_STEP;
        g->b_at[s] = s * WIDE_PANEL;
    }
    return PONS_OK;
}

static cell_side side_of(const pons_tensor *t)
{
    const int64_t *e = t->shape.extent;

    return (cell_side){ .extent = { (int)e[1], (int)e[2], (int)e[3] }, .channels = (int)e[4] };
}

static bool suits(const pons_request *request)
{
    const pons_convolution *c = request->attributes;
    const int64_t *k = request->output[0].shape.extent;
    bool suited = c->groups == 1 && k[1] <= NARROW_TAPS && request->input[0].type == PONS_BF16 &&
                  request->input[1].type == PONS_BF16 && request->output[0].type == PONS_F32 &&
                  k[4] <= NARROW_CHANNELS;

    for (int i = 0; i < 3; i++)
        suited = suited && c->dilation[i] == 1 && c->pad_low[i] < k[1 + i];
    return suited;
}

pons_status narrow_tile_prepare_weight(int threads, const pons_request *request,
                                       pons_kernel *kernel, bool *supported, pons_error *err)
{
    const pons_convolution *c = request->attributes;
    tile_gradient g = { .threads = threads, .cases = (int)request->input[0].shape.extent[0],
                        .x = side_of(&request->input[0]), .y = side_of(&request->input[1]) };
    tile_gradient *kept;
    int positions;

    *supported = false;
    if (!suits(request))
        return PONS_OK;
    for (int i = 0; i < 3; i++) {
        g.kernel[i] = (int)request->output[0].shape.extent[1 + i];
        g.stride[i] = c->stride[i];
        g.pad[i] = c->pad_low[i];
    }
    positions = choose_positions(&g);
    if (positions == 0)
        return PONS_OK;
    plan_cells(&g, positions);
    plan_memory(&g);
    if ((kept = malloc(sizeof *kept)) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    *kept = g;
    kernel->state = kept;
    kernel->free = gradient_free;
    if (plan_steps(kept, err) != PONS_OK) {
        gradient_free(kernel);
        *kernel = (pons_kernel){ 0 };
        return err->status;
    }
    kernel->run = gradient_run;
    kernel->implementation = "own";
    kernel->scratch_size = (size_t)(g.area * threads + (int64_t)g.blocks * g.cases * g.sums *
                                                           (int64_t)sizeof(float));
    *supported = true;
    return PONS_OK;
}
