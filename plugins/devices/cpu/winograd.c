/*
 * winograd.c - convolutions and gradients by the input as winograd.h has them.
 *
 * The gradient by the input is the convolution of y's gradient with the kernel turned around. A task
 * makes some planes of some rows of tiles, one plane after the other. The components of as many
 * planes of the source as the kernel has stay in a core's cache: plane p lies at p modulo as many.
 * Then each component is a product of tiles by weights (wide.h), a few channels of the target at a
 * time. The cut depends on the shapes alone, and no sum crosses tasks (R4).
 */
#include "winograd.h"

#include "cpu.h"

#include <stdlib.h>
#include <string.h>

enum {
    READ_BYTES = 1 << 19,   /* of components that stay */
    TILES_LEAST = 48,       /* of a task's plane: that many meet each weight */
    TILES_MOST = 64,
    PLANES_LEAST = 8,       /* of a task: it reads those around them, too */
    TASKS = 16,             /* as many, where that leaves enough planes */
    NUMBER = sizeof(uint16_t),
    LINE = 64,
    ROW_BYTES = WIDE_ACROSS * WIDE_TILE * sizeof(float),
    TAPS = WINOGRAD_KERNEL * WINOGRAD_KERNEL
};

enum { ALONG_D, ALONG_H, ALONG_W };

typedef struct winograd {
    const wide_unit *unit;
    int threads;
    bool gradient, packed;  /* by the input; weights come as panels */
    int cases, from[3], to[3];
    int ins, outs;          /* channels of what is read and made */
    int depth, low[3];      /* of the kernel; how far a point's sum begins before it */
    int tiles[3];           /* along H and W */
    int rows, planes;       /* of a task: of tiles, of the target */
    int bands, slabs;       /* a plane in tasks, and all planes */
    int groups;             /* of WIDE_TILE tiles, of a task's plane */
    int columns, blocks;    /* WIDE_TILE channels of the target; blocks of them */
    int steps, pairs;       /* of a kernel plane: panels, and the pairs of them in use */
    int64_t pitch, apart, plane; /* bytes of a tile's component, of all tiles', of all components */
    int64_t sum_apart;      /* bytes of the sums of a component */
    int64_t area, panels;   /* bytes: of a thread; of all weights */
    char *zero;
} winograd;

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }
static int64_t over(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* Bytes, an odd number of lines: components of a tile do not meet in one set of the cache. */
static int64_t odd_lines(int64_t bytes) { return (over(bytes, LINE) | 1) * LINE; }

/* ---- weights --------------------------------------------------------------------------------- */

/* Panels lie as [component][column][kernel plane][step]. */
static int64_t panel_at(const winograd *w, int component, int column, int plane)
{
    return (((int64_t)component * w->columns + column) * w->depth + plane) * w->steps * WIDE_PANEL;
}

/* 32 numbers of the axis that is summed over by 16 channels, or 16 channels of 32 numbers each. */
typedef struct weight_rows {
    _Alignas(64) char of[WINOGRAD_COMPONENTS][WIDE_PANEL];
} weight_rows;

/* At 'place' of all rows: the components of 'count' weights. */
static void weigh(const char *weight, int64_t tap, bool turned, int count, int64_t place,
                  weight_rows *rows)
{
    const char *at[TAPS];
    char *to[WINOGRAD_COMPONENTS];

    for (int i = 0; i < TAPS; i++)
        at[i] = weight + (turned ? TAPS - 1 - i : i) * tap;
    for (int c = 0; c < WINOGRAD_COMPONENTS; c++)
        to[c] = rows->of[c] + place;
    if (count > 0)
        winograd_weights(at, smaller(count, WIDE_TILE), to);
    for (int c = 0; c < WINOGRAD_COMPONENTS && count <= 0; c++)
        memset(to[c], 0, WIDE_TILE * NUMBER);
}

/* w[target's channel][tap][source's channels]: 16 rows of 32 numbers. */
static void weigh_columns(const winograd *w, const char *weight, int column, int plane, int step,
                          weight_rows *rows)
{
    int64_t tap = (int64_t)w->ins * NUMBER;

    for (int o = 0; o < WIDE_TILE; o++)
        for (int half = 0; half < 2; half++) {
            int out = column * WIDE_TILE + o, in = step * WIDE_NUMBERS + half * WIDE_TILE;
            weigh(weight + (((int64_t)out * w->depth + plane) * TAPS * w->ins + in) * NUMBER, tap,
                  false, out < w->outs ? w->ins - in : 0,
                  o * (int64_t)WIDE_STEP + half * WIDE_TILE * NUMBER, rows);
        }
}

/* w[source's channel][tap][target's channels], turned around: 32 rows of 16 channels. */
static void weigh_rows(const winograd *w, const char *weight, int column, int plane, int step,
                       weight_rows *rows)
{
    int64_t tap = (int64_t)w->outs * NUMBER;

    for (int j = 0; j < WIDE_NUMBERS; j++) {
        int in = step * WIDE_NUMBERS + j, out = column * WIDE_TILE;
        int64_t row = ((int64_t)in * w->depth + w->depth - 1 - plane) * TAPS;
        weigh(weight + (row * w->outs + out) * NUMBER, tap, true,
              in < w->ins ? w->outs - out : 0, j * (int64_t)WIDE_TILE * NUMBER, rows);
    }
}

typedef struct pack_work {
    const winograd *w;
    const char *from;
    char *to;
} pack_work;

static void pack_task(void *context, int64_t i, int thread)
{
    const pack_work *k = context;
    const winograd *w = k->w;
    int step = (int)(i % w->steps), plane = (int)(i / w->steps % w->depth);
    int column = (int)(i / w->steps / w->depth), rows = w->gradient ? WIDE_NUMBERS : WIDE_TILE;
    weight_rows weights;

    (void)thread;
    (w->gradient ? weigh_rows : weigh_columns)(w, k->from, column, plane, step, &weights);
    for (int c = 0; c < WINOGRAD_COMPONENTS; c++) {
        char *to = k->to + panel_at(w, c, column, plane) + (int64_t)step * WIDE_PANEL;
        const char *row[WIDE_NUMBERS];

        for (int r = 0; r < rows; r++)
            row[r] = weights.of[c] + r * (WIDE_PANEL / rows);
        if (w->gradient)
            wide_pack_panel(to, row, 0, WIDE_TILE);
        else
            wide_pack_columns(to, row);
    }
}

static void pack_weights(const winograd *w, const void *from, void *to)
{
    pack_work k = { w, from, to };

    cpu_parallel(w->threads, (int64_t)w->columns * w->depth * w->steps, pack_task, &k);
}

static pons_status winograd_pack(const pons_kernel *kernel, int input, const void *from, void *to,
                                 pons_error *err)
{
    (void)input;
    (void)err;
    pack_weights(kernel->state, from, to);
    return PONS_OK;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

typedef struct work {
    const winograd *w;
    const char *source, *panels;
    char *target, *area;    /* area: of the first thread */
} work;

/* What a task works on, and the memory of its thread. */
typedef struct part {
    const work *k;
    int image, first_row, rows;
    char *planes, *sums;
    wide_stretch *run;
} part;

/* Where a line of a tensor begins. */
static int64_t line_at(const int extent[3], int channels, int image, int d, int h)
{
    return (((int64_t)image * extent[ALONG_D] + d) * extent[ALONG_H] + h) * extent[ALONG_W] *
           channels * NUMBER;
}

static char *plane_at(const part *p, int plane)
{
    int depth = p->k->w->depth;

    return p->planes + (plane % depth + depth) % depth * p->k->w->plane;
}

static bool is_inside(const winograd *w, int plane)
{
    return plane >= 0 && plane < w->from[ALONG_D];
}

static void read_plane(const part *p, int plane)
{
    const winograd *w = p->k->w;
    winograd_read r = { .first = -w->low[ALONG_W], .width = w->from[ALONG_W],
                        .tiles = w->tiles[ALONG_W], .channels = w->ins, .to = plane_at(p, plane),
                        .pitch = w->pitch, .apart = w->apart };

    for (int row = 0; row < p->rows; row++, r.to += r.tiles * r.pitch) {
        int h = (p->first_row + row) * WINOGRAD_POINTS - w->low[ALONG_H];
        for (int i = 0; i < WINOGRAD_READ; i++) {
            bool inside = h + i >= 0 && h + i < w->from[ALONG_H];
            r.line[i] = inside ? p->k->source + line_at(w->from, w->ins, p->image, plane, h + i)
                               : w->zero;
            r.step[i] = inside ? (int64_t)w->ins * NUMBER : 0;
        }
        winograd_read_tiles(&r);
    }
}

/* The pairs that a plane of the target sums over: a run for each plane of the kernel that meets one. */
static int list_runs(const part *p, int d)
{
    const winograd *w = p->k->w;
    int count = 0;

    for (int k = 0; k < w->depth; k++) {
        int plane = d - w->low[ALONG_D] + k;
        if (is_inside(w, plane))
            p->run[count++] = (wide_stretch){ .a = plane_at(p, plane) - p->planes,
                                              .b = (int64_t)k * w->steps * WIDE_PANEL,
                                              .pairs = w->pairs };
    }
    return count;
}

/* Columns first .. first + columns - 1 of a component. */
static void multiply(const part *p, int component, int first, int columns, int runs)
{
    const winograd *w = p->k->w;
    int groups = (int)over((int64_t)p->rows * w->tiles[ALONG_W], WIDE_TILE);
    wide_line_product product = { .columns = columns, .count = runs, .pitch = w->pitch,
                                  .run = p->run };

    for (int n = 0; n < columns; n++)
        product.b[n] = p->k->panels + panel_at(w, component, first + n, 0);
    for (int g = 0; g < groups; g++) {
        product.a = p->planes + component * w->apart + g * WIDE_TILE * w->pitch;
        product.c = (float *)(p->sums + component * w->sum_apart + g * WIDE_TILE * ROW_BYTES);
        w->unit->lines(&product);
    }
}

/* The n-th of the columns that were multiplied, which is 'column' of the target. */
static void write_column(const part *p, int d, int n, int column)
{
    const winograd *w = p->k->w;
    winograd_write r = { .from = (const float *)p->sums + n * WIDE_TILE, .pitch = ROW_BYTES,
                         .apart = w->sum_apart, .step = (int64_t)w->outs * NUMBER,
                         .tiles = w->tiles[ALONG_W], .width = w->to[ALONG_W],
                         .channels = smaller(WIDE_TILE, w->outs - column * WIDE_TILE) };

    for (int row = 0; row < p->rows; row++) {
        int h = (p->first_row + row) * WINOGRAD_POINTS;
        char *line = p->k->target + line_at(w->to, w->outs, p->image, d, h) +
                     column * (int64_t)WIDE_TILE * NUMBER;

        r.line[0] = line;
        r.line[1] = h + 1 < w->to[ALONG_H] ? line + w->to[ALONG_W] * r.step : NULL;
        winograd_write_tiles(&r);
        r.from += (int64_t)r.tiles * ROW_BYTES / (int64_t)sizeof(float);
    }
}

static void make_plane(const part *p, int d)
{
    const winograd *w = p->k->w;
    int runs = list_runs(p, d);

    for (int block = 0; block < w->blocks; block++) {
        int first = w->columns * block / w->blocks;
        int columns = w->columns * (block + 1) / w->blocks - first;

        for (int c = 0; c < WINOGRAD_COMPONENTS; c++)
            multiply(p, c, first, columns, runs);
        for (int n = 0; n < columns; n++)
            write_column(p, d, n, first + n);
    }
}

static void task(void *context, int64_t i, int thread)
{
    const work *k = context;
    const winograd *w = k->w;
    int band = (int)(i % w->bands), slab = (int)(i / w->bands % w->slabs);
    int first = slab * w->planes, end = smaller(first + w->planes, w->to[ALONG_D]);
    part p = { .k = k, .image = (int)(i / w->bands / w->slabs), .first_row = band * w->rows,
               .planes = k->area + thread * w->area };

    p.rows = smaller(w->rows, w->tiles[ALONG_H] - p.first_row);
    p.sums = p.planes + w->depth * w->plane;
    p.run = (wide_stretch *)(p.sums + WINOGRAD_COMPONENTS * w->sum_apart);
    w->unit->begin();
    for (int d = first; d < end; d++) {
        int last = d - w->low[ALONG_D] + w->depth - 1;
        for (int plane = d == first ? last - w->depth + 1 : last; plane <= last; plane++)
            if (is_inside(w, plane))
                read_plane(&p, plane);
        make_plane(&p, d);
    }
    w->unit->end();
}

static pons_status winograd_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const winograd *w = kernel->state;
    work k = { .w = w, .source = call->input[0], .target = call->output[0],
               .panels = call->input[1], .area = call->scratch };

    (void)err;
    if (!w->packed) {
        pack_weights(w, call->input[1], call->scratch);
        k.panels = call->scratch;
        k.area += w->panels;
    }
    cpu_parallel(w->threads, (int64_t)w->cases * w->slabs * w->bands, task, &k);
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void winograd_free(pons_kernel *kernel)
{
    winograd *w = kernel->state;

    free(w->zero);
    free(w);
}

static void read_shapes(winograd *w, const pons_request *request)
{
    const pons_convolution *c = request->attributes;
    const int64_t *from = request->input[0].shape.extent, *to = request->output[0].shape.extent;

    w->cases = (int)from[0];
    w->ins = (int)from[4];
    w->outs = (int)to[4];
    w->depth = (int)request->input[1].shape.extent[1];
    for (int i = 0; i < 3; i++) {
        int kernel = (int)request->input[1].shape.extent[1 + i];
        w->from[i] = (int)from[1 + i];
        w->to[i] = (int)to[1 + i];
        w->tiles[i] = (int)over(to[1 + i], WINOGRAD_POINTS);
        w->low[i] = w->gradient ? kernel - 1 - c->pad_low[i] : c->pad_low[i];
    }
}

/* Rows of tiles, so that the cache holds what they read, and planes, so that there are tasks. */
static void cut(winograd *w)
{
    int64_t tile = (int64_t)w->depth * WINOGRAD_COMPONENTS * w->pitch;
    int most = larger(TILES_LEAST, (int)smaller(TILES_MOST, (int)(READ_BYTES / tile)));

    w->rows = larger(1, smaller(most / w->tiles[ALONG_W], w->tiles[ALONG_H]));
    w->bands = (int)over(w->tiles[ALONG_H], w->rows);
    w->rows = (int)over(w->tiles[ALONG_H], w->bands);
    w->slabs = smaller((int)over(TASKS, (int64_t)w->cases * w->bands),
                       larger(1, w->to[ALONG_D] / PLANES_LEAST));
    w->planes = (int)over(w->to[ALONG_D], w->slabs);
    w->slabs = (int)over(w->to[ALONG_D], w->planes);
}

static void plan(winograd *w)
{
    w->columns = (int)over(w->outs, WIDE_TILE);
    w->blocks = (int)over(w->columns, WIDE_ACROSS);
    w->steps = (int)over(w->ins, WIDE_NUMBERS);
    w->pairs = (int)over(w->ins, 2);
    w->pitch = w->pairs * 2 * (int64_t)NUMBER;
    cut(w);
    w->groups = (int)over((int64_t)w->rows * w->tiles[ALONG_W], WIDE_TILE);
    w->apart = odd_lines((int64_t)w->groups * WIDE_TILE * w->pitch);
    w->plane = WINOGRAD_COMPONENTS * w->apart;
    w->sum_apart = odd_lines((int64_t)w->groups * WIDE_TILE * ROW_BYTES);
    w->area = w->depth * w->plane + WINOGRAD_COMPONENTS * w->sum_apart +
              over(w->depth * (int64_t)sizeof(wide_stretch), LINE) * LINE;
    w->panels = panel_at(w, WINOGRAD_COMPONENTS, 0, 0);
}

static bool is_ours(const pons_request *request)
{
    const pons_convolution *c = request->attributes;
    const int64_t *k = request->input[1].shape.extent;

    for (int i = 0; i < 3; i++)
        if (c->stride[i] != 1 || c->dilation[i] != 1)
            return false;
    return c->groups == 1 && k[2] == WINOGRAD_KERNEL && k[3] == WINOGRAD_KERNEL &&
           request->input[0].type == PONS_BF16 && request->input[1].type == PONS_BF16 &&
           request->output[0].type == PONS_BF16;
}

pons_status winograd_prepare(const wide_unit *unit, int threads, const pons_request *request,
                             pons_kernel *kernel, bool *supported, pons_error *err)
{
    winograd *w;

    *supported = false;
    if (unit->lines == NULL || !is_ours(request))
        return PONS_OK;
    if ((w = calloc(1, sizeof *w)) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    *w = (winograd){ .unit = unit, .threads = threads, .packed = request->packable >> 1 & 1,
                     .gradient = request->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT };
    read_shapes(w, request);
    plan(w);
    if ((w->zero = calloc((size_t)w->ins, NUMBER)) == NULL) {
        free(w);
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    }
    *kernel = (pons_kernel){ .run = winograd_run, .free = winograd_free, .state = w,
                             .implementation = "winograd" };
    if (w->packed) {
        kernel->pack = winograd_pack;
        kernel->pack_size[1] = (size_t)w->panels;
        kernel->pack_key[1] = w->gradient ? UINT64_C(0x77696e6f67726164) : UINT64_C(0x77696e6f);
    }
    kernel->scratch_size = (size_t)((w->packed ? 0 : w->panels) + w->area * threads);
    *supported = true;
    return PONS_OK;
}
