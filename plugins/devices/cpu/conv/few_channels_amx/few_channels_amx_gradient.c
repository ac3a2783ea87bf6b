/*
 * few_channels_amx_gradient.c - weight gradients with few input channels, on the tile registers of
 * AMX. With many input channels each tile would be used once for each kernel position and come
 * from the L2 cache or memory; vectors are faster there.
 *
 * A row of the output's gradient is divided into cells of P positions. A matrix has the products of
 * all elements of a cell by all elements of x that the cell reads, summed over cells. In its band
 *
 *   dw[o][kd][kh][kw][i] = sum over a of m[kd, kh][(a s + kw) I + i][a O + o]
 *
 * the gradient occurs P times, and these are added; the rest is dropped. So a plane of either
 * tensor is packed once, with cells as the axis that is summed over. Each (kd, kh) is a product of
 * the same packed planes: rows of x are grouped by h mod stride, and kh selects the first one.
 *
 * A task is some planes of the output's gradient, with its own sums, which are added in a tree.
 * Cells and tasks depend on the shapes alone, never on the threads.
 */
#include "cpu/cpu.h"
#include "cpu/conv/few_channels_amx/few_channels_amx.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum {
    TILE = GEMM_TILE * GEMM_TILE,
    TASKS = 32,                      /* approximate number of tasks */
    MOST_SUMS = 1 << 17,             /* maximum number of sums of a task */
    PACK_ROWS_CYCLES = 500,          /* cycles to pack a tile of 32 cells of x */
    PACK_PANEL_CYCLES = 300,         /* cycles to pack a tile of 32 cells of y's gradient */
    PRODUCT_CYCLES = 30,             /* cycles of the product of two tiles */
    VECTOR_PRODUCTS = 17             /* multiplications a cycle by vector instructions */
};

/* A tensor as rows of cells. */
typedef struct cell_side {
    int extent[3], channels;
    int begin;          /* position of the first cell, before the row where there is padding */
    int step, length;   /* positions from cell to cell, and of a cell */
    int inner, inner_end; /* cells from 'inner' on lie within their row */
    int tiles;          /* of 16 elements of a cell */
} cell_side;

typedef struct few_channels_amx_gradient {
    int threads, cases;
    int kernel[3], stride[3], pad[3];
    int positions, cells;       /* of a cell; of a row */
    cell_side x, y;
    int low, rows;              /* rows of x before that of the first output row; of a phase */
    int64_t steps;              /* of a plane of y */
    int64_t pitch;              /* bytes of a packed row of x */
    int64_t phase, x_plane;     /* bytes of packed x: rows of a phase; all */
    int64_t y_plane, stage;     /* bytes: packed y; cells at the ends of rows */
    int64_t area;
    int block, blocks;          /* planes of a task; tasks of a case */
    int64_t sums;               /* floats */
    int64_t *a_at, *b_at;
} few_channels_amx_gradient;

/* Kernel position k along an axis reads element stride (p + shift_of) + phase_of. */
static int shift_of(const few_channels_amx_gradient *g, int axis, int k)
{
    return floor_div_int(k - g->pad[axis], g->stride[axis]);
}

static int phase_of(const few_channels_amx_gradient *g, int axis, int k)
{
    return k - g->pad[axis] - shift_of(g, axis, k) * g->stride[axis];
}

/* ---- packing --------------------------------------------------------------------------------- */

typedef struct work {
    const few_channels_amx_gradient *g;
    const pons_call *call;
    char *area;
    float *sums;
} work;

/* The memory of a thread: planes of x, one for each kd; a plane of y; cells at ends of rows. */
typedef struct place {
    char *x, *y, *stage;
    const char *zero;
} place;

/* Copy a cell that reaches over an end of its row, with zeros there. */
static const char *cut_cell(const cell_side *s, const uint16_t *row, int first, char *to)
{
    int begin = max_int(first, 0), end = min_int(first + s->length, s->extent[2]);
    size_t size = (size_t)s->channels * sizeof *row;

    memset(to, 0, (size_t)s->length * size);
    if (end > begin)
        memcpy(to + (size_t)(begin - first) * size, row + (int64_t)begin * s->channels,
               (size_t)(end - begin) * size);
    return to;
}

/* Cells 'cell' .. of a row, as many as 'position' still has room for. */
static int find_row(const few_channels_amx_gradient *g, const cell_side *s, const uint16_t *row,
                    int cell, int room, const place *p, char *stage, const char **position)
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
static void find_cells(const few_channels_amx_gradient *g, const cell_side *s,
                       const uint16_t *plane,
                       int64_t at, int stride, int low, int phase, const place *p,
                       const char **position)
{
    int row = (int)(at / g->cells), cell = (int)(at % g->cells), size = s->length * s->channels * 2;

    for (int i = 0; i < GEMM_ELEMENTS; row++, cell = 0) {
        int h = stride * (row - low) + phase;
        const uint16_t *from = h < 0 || h >= s->extent[1]
                                   ? NULL
                                   : plane + (int64_t)h * s->extent[2] * s->channels;
        i += find_row(g, s, from, cell, GEMM_ELEMENTS - i, p, p->stage + i * size, position + i);
    }
}

/* The count of elements of a cell in its tile t. */
static int in_tile(const cell_side *s, int t)
{
    return min_int(GEMM_TILE, s->length * s->channels - t * GEMM_TILE);
}

static const uint16_t *plane_of(const cell_side *s, const void *tensor, int image, int d)
{
    int64_t plane = (int64_t)s->extent[1] * s->extent[2] * s->channels;

    return (const uint16_t *)tensor + ((int64_t)image * s->extent[0] + d) * plane;
}

static void pack_x(const few_channels_amx_gradient *g, const uint16_t *plane, const place *p,
                   char *to)
{
    const char *position[GEMM_ELEMENTS];

    for (int phase = 0; phase < g->stride[1]; phase++)
        for (int64_t at = 0; at < g->pitch / (int64_t)sizeof(uint16_t); at += GEMM_ELEMENTS) {
            find_cells(g, &g->x, plane, at, g->stride[1], g->low, phase, p, position);
            for (int t = 0; t < g->x.tiles; t++)
                gemm_pack_rows(to + phase * g->phase + t * GEMM_TILE * g->pitch +
                                   at * (int64_t)sizeof(uint16_t),
                               g->pitch, position, t * GEMM_TILE, in_tile(&g->x, t));
        }
}

static void pack_y(const few_channels_amx_gradient *g, const uint16_t *plane, const place *p)
{
    const char *position[GEMM_ELEMENTS];

    for (int64_t step = 0; step < g->steps; step++) {
        find_cells(g, &g->y, plane, step * GEMM_ELEMENTS, 1, 0, 0, p, position);
        for (int t = 0; t < g->y.tiles; t++)
            gemm_pack_panel(p->y + (t * g->steps + step) * GEMM_PANEL, position, t * GEMM_TILE,
                            in_tile(&g->y, t));
    }
}

/* ---- products -------------------------------------------------------------------------------- */

/* Rows are (kh, tile of x), all of one kd; columns are tiles of y. */
static void set_row(const few_channels_amx_gradient *g, const char *x, float *sums, int row,
                    int column, int r, gemm_product *p)
{
    int kh = row / g->x.tiles, t = row % g->x.tiles;
    int64_t first = (int64_t)(shift_of(g, 1, kh) + g->low) * g->cells;

    p->a[r] = x + phase_of(g, 1, kh) * g->phase + t * GEMM_TILE * g->pitch +
              first * (int64_t)sizeof(uint16_t);
    for (int n = 0; n < p->columns; n++)
        p->c[r][n] = sums + ((int64_t)row * g->y.tiles + column + n) * TILE;
}

static void multiply(const few_channels_amx_gradient *g, const char *x, const char *y, float *sums)
{
    gemm_product p = { .pitch = g->pitch, .steps = g->steps, .a_at = g->a_at, .b_at = g->b_at,
                       .c_pitch = GEMM_TILE * sizeof(float), .add = true };
    int rows = g->kernel[1] * g->x.tiles;

    for (int column = 0; column < g->y.tiles; column += p.columns) {
        p.columns = min_int(g->y.tiles - column, GEMM_COLUMNS);
        for (int n = 0; n < p.columns; n++)
            p.b[n] = y + (column + n) * g->steps * GEMM_PANEL;
        for (int row = 0; row < rows; row += p.rows) {
            p.rows = min_int(rows - row, p.columns == 1 ? GEMM_ROWS : 2);
            for (int r = 0; r < p.rows; r++)
                set_row(g, x, sums, row + r, column, r, &p);
            engine_amx.multiply(&p);
        }
    }
}

static void run_plane(const work *w, const place *p, int image, int d, int *held, float *sums)
{
    const few_channels_amx_gradient *g = w->g;
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
    const few_channels_amx_gradient *g = w->g;
    char *area = w->area + thread * g->area;
    place p = { area, area + g->kernel[0] * g->x_plane, NULL, NULL };
    int first = (int)(task % g->blocks) * g->block, held[FEW_CHANNELS_TAPS];
    float *sums = w->sums + task * g->sums;

    p.stage = p.y + g->y_plane;
    p.zero = memset(p.stage + g->stage, 0, (size_t)(g->area - (p.stage + g->stage - area)));
    memset(sums, 0, (size_t)g->sums * sizeof *sums);
    for (int i = 0; i < g->kernel[0]; i++)
        held[i] = -1;
    engine_amx.begin();
    for (int d = first; d < first + g->block && d < g->y.extent[0]; d++)
        run_plane(w, &p, (int)(task / g->blocks), d, held, sums);
    engine_amx.end();
}

/* ---- the gradient from its sums -------------------------------------------------------------- */

/* 'count' numbers of all tasks: neighbours, then pairs of pairs. */
static void add_tasks(const few_channels_amx_gradient *g, float *sums, int64_t count)
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
static float band(const few_channels_amx_gradient *g, const float *tiles, int o, int j)
{
    float sum = 0;

    for (int a = 0; a < g->positions; a++) {
        int m = a * g->stride[2] * g->x.channels + j, n = a * g->y.channels + o;
        int tile = m / GEMM_TILE * g->y.tiles + n / GEMM_TILE;
        sum += tiles[tile * TILE + m % GEMM_TILE * GEMM_TILE + n % GEMM_TILE];
    }
    return sum;
}

static void write_tap(void *context, int64_t tap, int thread)
{
    const work *w = context;
    const few_channels_amx_gradient *g = w->g;
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
    const few_channels_amx_gradient *g = kernel->state;
    work w = { g, call, call->scratch, NULL };

    (void)err;
    w.sums = (float *)(w.area + g->threads * g->area);
    cpu_parallel_for(g->threads, (int64_t)g->blocks * g->cases, run_task, &w);
    cpu_parallel_for(g->threads, (int64_t)g->kernel[0] * g->kernel[1], write_tap, &w);
    return PONS_OK;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static void gradient_free(pons_kernel *kernel)
{
    few_channels_amx_gradient *g = kernel->state;

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

static void plan_cells(few_channels_amx_gradient *g, int positions)
{
    g->positions = positions;
    g->cells = (int)ceil_div_i64(g->y.extent[2], positions);
    g->y.step = g->y.length = positions;
    g->x.step = positions * g->stride[2];
    g->x.length = (positions - 1) * g->stride[2] + g->kernel[2];
    g->x.begin = -g->pad[2];
    plan_inner(&g->x);
    plan_inner(&g->y);
    g->x.tiles = (int)ceil_div_i64((int64_t)g->x.length * g->x.channels, GEMM_TILE);
    g->y.tiles = (int)ceil_div_i64((int64_t)g->y.length * g->y.channels, GEMM_TILE);
    g->steps = ceil_div_i64((int64_t)g->y.extent[1] * g->cells, GEMM_ELEMENTS);
    g->low = 0;
    g->rows = 0;
    for (int k = 0; k < g->kernel[1]; k++) {
        int shift = shift_of(g, 1, k);
        g->low = max_int(-shift, g->low);
        g->rows = max_int(shift, g->rows);
    }
    g->rows += g->y.extent[1] + g->low;
    g->sums = (int64_t)g->kernel[0] * g->kernel[1] * g->x.tiles * g->y.tiles * TILE;
}

/* The approximate size of a plane of the output's gradient. */
static int64_t cycles(const few_channels_amx_gradient *g)
{
    int64_t packed = ceil_div_i64((int64_t)g->rows * g->cells, GEMM_ELEMENTS);
    int64_t x = packed * g->stride[0] * g->stride[1] * g->x.tiles * PACK_ROWS_CYCLES;
    int64_t y = g->steps * g->y.tiles * PACK_PANEL_CYCLES;
    int64_t products = g->steps * g->x.tiles * g->y.tiles * g->kernel[0] * g->kernel[1];

    return x + y + products * PRODUCT_CYCLES;
}

/* The length of cells that takes least, in *least cycles; 0: the sums of all are too many. */
static int choose_positions(few_channels_amx_gradient *g, int64_t *least)
{
    int best = 0;

    *least = INT64_MAX;
    for (int p = 1; p <= GEMM_TILE && p <= g->y.extent[2]; p++) {
        plan_cells(g, p);
        if (g->sums <= MOST_SUMS && cycles(g) < *least) {
            best = p;
            *least = cycles(g);
        }
    }
    return best;
}

static void plan_memory(few_channels_amx_gradient *g)
{
    int64_t behind = (int64_t)(g->rows - g->y.extent[1]) * g->cells + g->steps * GEMM_ELEMENTS;
    int64_t x_cell = (int64_t)g->x.length * g->x.channels, y_cell = (int64_t)g->y.length *
                                                                   g->y.channels;
    int64_t cell = max_i64(x_cell, y_cell) * (int64_t)sizeof(uint16_t);

    g->pitch = (ceil_div_i64(behind, GEMM_ELEMENTS) | 1) * GEMM_STEP;
    g->phase = g->x.tiles * GEMM_TILE * g->pitch;
    g->x_plane = g->phase * g->stride[1];
    g->y_plane = g->y.tiles * g->steps * GEMM_PANEL;
    g->stage = round_up_i64(GEMM_ELEMENTS * cell, 64);
    g->area = g->kernel[0] * g->x_plane + g->y_plane + g->stage + round_up_i64(cell, 64);
    g->block = (int)ceil_div_i64((int64_t)g->y.extent[0] * g->cases, TASKS);
    g->block = min_int(g->block, g->y.extent[0]);
    g->blocks = (int)ceil_div_i64(g->y.extent[0], g->block);
}

static pons_status plan_steps(few_channels_amx_gradient *g, pons_error *err)
{
    g->a_at = malloc((size_t)g->steps * sizeof *g->a_at);
    g->b_at = malloc((size_t)g->steps * sizeof *g->b_at);
    if (g->a_at == NULL || g->b_at == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    for (int64_t s = 0; s < g->steps; s++) {
        g->a_at[s] = s * GEMM_STEP;
        g->b_at[s] = s * GEMM_PANEL;
    }
    return PONS_OK;
}

static cell_side side_of(const conv_image *s)
{
    return (cell_side){ .extent = { s->extent[0], s->extent[1], s->extent[2] },
                        .channels = s->channels };
}

static void describe(few_channels_amx_gradient *g, const conv_problem *p)
{
    *g = (few_channels_amx_gradient){ .cases = p->cases, .x = side_of(&p->x), .y = side_of(&p->y) };
    for (int i = 0; i < 3; i++) {
        g->kernel[i] = p->kernel[i];
        g->stride[i] = p->stride[i];
        g->pad[i] = p->pad[i];
    }
}

static bool supports(const conv_problem *p)
{
    bool suited = p->groups == 1 && !p->dilated && p->kernel[0] <= FEW_CHANNELS_TAPS &&
                  conv_has_types(p, PONS_BF16, PONS_F32) && p->x.channels <= FEW_CHANNELS_MAX;
    few_channels_amx_gradient g;
    int64_t least;

    for (int i = 0; i < 3; i++)
        suited = suited && p->pad[i] < p->kernel[i];
    describe(&g, p);
    return suited && choose_positions(&g, &least) > 0;
}

static bool profitable(const conv_problem *p, const conv_machine *machine)
{
    int64_t asked = (int64_t)p->y.extent[1] * p->y.extent[2] * p->y.channels * p->x.channels *
                    p->taps, least;
    few_channels_amx_gradient g;

    (void)machine;
    describe(&g, p);
    return choose_positions(&g, &least) > 0 && least < asked / VECTOR_PRODUCTS;
}

static pons_status prepare(const cpu_device *cpu, const conv_problem *p, pons_kernel *kernel,
                           pons_error *err)
{
    few_channels_amx_gradient *g = malloc(sizeof *g);
    int64_t least;

    if (g == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    describe(g, p);
    g->threads = cpu->threads;
    plan_cells(g, choose_positions(g, &least));
    plan_memory(g);
    kernel->state = g;
    kernel->free = gradient_free;
    if (plan_steps(g, err) != PONS_OK) {
        gradient_free(kernel);
        return err->status;
    }
    kernel->run = gradient_run;
    kernel->scratch_size = (size_t)(g->area * g->threads + (int64_t)g->blocks * g->cases *
                                                               g->sums * (int64_t)sizeof(float));
    return PONS_OK;
}

const conv_operations few_channels_amx_gradient_operations = {
    .supports = supports, .profitable = profitable, .prepare = prepare,
};
