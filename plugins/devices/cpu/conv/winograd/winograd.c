/*
 * winograd.c - convolutions and gradients by the input as winograd.h has them.
 *
 * A task makes some planes of some rows of tiles, of one image or several, one plane after the
 * other. The sources of all planes that a plane of the target sums over stay in a core's cache:
 * plane p lies at p modulo as many. Then each sum is a product of tiles by factors (bf16_gemm.h),
 * a few channels of the target at a time. No sum crosses tasks, so bits do not depend on the cut
 * (R4).
 *
 * The gradient of a convolution with stride 1 is one with the kernel turned around.
 */
#include "cpu/conv/winograd/winograd.h"

#include "cpu/cpu.h"

#include <stdlib.h>

#include "base/integer.h"

enum {
    READ_BYTES = 1 << 19,   /* of sources that stay */
    TILES_LEAST = 48,       /* of a task's plane: that many meet each factor */
    TILES_MOST = 64,
    PLANES_LEAST = 3,       /* of a task: it reads those around them, too */
    TASKS = 4,              /* for each thread, where that leaves enough planes */
    NUMBER = sizeof(uint16_t),
    CACHE_LINE = 64,
    ROW_BYTES = WIDE_ACROSS * WIDE_TILE * sizeof(float),
    FACTORS = WINOGRAD_FACTORS * WINOGRAD_FACTORS,
    SUMS = WINOGRAD_SUMS * WINOGRAD_SUMS,
    PRODUCTS = WINOGRAD_PRODUCTS * WINOGRAD_PRODUCTS
};

enum { ALONG_D, ALONG_H, ALONG_W };

typedef struct winograd {
    const wide_unit *unit;
    int threads;
    bool gradient, packed;  /* by the input; weights come as panels */
    winograd_kind kind;
    const winograd_form *form;
    int cases, from[3], to[3];
    int ins, outs;          /* channels of what is read and made */
    int depth, stride, pad; /* of the kernel along D */
    int first[3];           /* along H and W: the first point that is read, may be outside */
    int tiles[3];           /* along H and W */
    int rows, planes;       /* of a task: of tiles, of the target */
    int bands, slabs;       /* all rows of tiles in tasks, and all planes; */
    int shares;             /* and the target's channels, where those are fewer than threads */
    int kept;               /* planes whose sources stay */
    int columns, blocks;    /* WIDE_TILE channels of the target; blocks of them */
    int steps, pairs;       /* of a kernel plane: panels, and the pairs of them in use */
    int64_t pitch, apart, plane; /* bytes of a tile's source, of all tiles', of all sources */
    int64_t sum_apart;      /* bytes of a sum of all tiles */
    int64_t area, panels;   /* bytes: of a thread; of all factors */
    char zero[];            /* a point outside of the source */
} winograd;

/* Bytes, an odd number of lines: sources and sums of a tile do not meet in one set of the cache. */
static int64_t odd_lines(int64_t bytes)
{
    return (ceil_div_i64(bytes, CACHE_LINE) | 1) * CACHE_LINE;
}

/* ---- weights --------------------------------------------------------------------------------- */

static winograd_panels panels_of(const winograd *w)
{
    return (winograd_panels){ .kind = w->kind, .gradient = w->gradient, .ins = w->ins,
                              .outs = w->outs, .depth = w->depth, .columns = w->columns,
                              .steps = w->steps };
}

static int64_t panel_at(const winograd *w, int factor, int column, int plane)
{
    winograd_panels panels = panels_of(w);

    return winograd_panel_at(&panels, factor, column, plane);
}

static void pack_weights(const winograd *w, const void *from, void *to)
{
    winograd_panels panels = panels_of(w);

    winograd_pack(&panels, w->threads, from, to);
}

static pons_status pack(const pons_kernel *kernel, int input, const void *from, void *to,
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
    int first_row, rows;    /* of tiles, of all images */
    int first_block, end_block;
    char *planes, *sums;
    wide_stretch *run;      /* of a plane of the target, sum by sum */
    int runs[SUMS];
} part;

/* Where a line of a tensor begins. */
static int64_t line_at(const int extent[3], int channels, int image, int d, int h)
{
    return (((int64_t)image * extent[ALONG_D] + d) * extent[ALONG_H] + h) * extent[ALONG_W] *
           channels * NUMBER;
}

static char *plane_at(const part *p, int plane)
{
    return p->planes + plane % p->k->w->kept * p->k->w->plane;
}

/* The planes of the source that one of the target sums over: first .. end - 1. */
static int first_plane(const winograd *w, int d)
{
    if (w->gradient)
        return (int)ceil_div_i64(max_int(0, d + w->pad - w->depth + 1), w->stride);
    return max_int(0, d * w->stride - w->pad);
}

static int end_plane(const winograd *w, int d)
{
    int end = w->gradient ? (d + w->pad) / w->stride + 1 : d * w->stride - w->pad + w->depth;

    return min_int(w->from[ALONG_D], end);
}

/* By which plane of the kernel. */
static int kernel_plane(const winograd *w, int d, int plane)
{
    return w->gradient ? d + w->pad - plane * w->stride : plane + w->pad - d * w->stride;
}

static void read_plane(const part *p, int plane)
{
    const winograd *w = p->k->w;
    winograd_read r = { .first = w->first[ALONG_W], .width = w->from[ALONG_W],
                        .tiles = w->tiles[ALONG_W], .channels = w->ins, .to = plane_at(p, plane),
                        .pitch = w->pitch, .apart = w->apart,
                        .ahead = line_at(w->from, w->ins, 0, 1, 0) };

    for (int row = p->first_row; row < p->first_row + p->rows; row++, r.to += r.tiles * r.pitch) {
        int image = row / w->tiles[ALONG_H];
        int h = row % w->tiles[ALONG_H] * w->form->moves + w->first[ALONG_H];
        for (int i = 0; i < w->form->reads; i++) {
            bool inside = h + i >= 0 && h + i < w->from[ALONG_H];
            r.line[i] = inside ? p->k->source + line_at(w->from, w->ins, image, plane, h + i)
                               : w->zero;
            r.step[i] = inside ? (int64_t)w->ins * NUMBER : 0;
        }
        winograd_read_tiles(w->kind, &r);
    }
}

/* A source by a factor, both of H and W, of all planes that meet. */
static wide_stretch *add_runs(const part *p, int d, int source, int factor, wide_stretch *run)
{
    const winograd *w = p->k->w;

    for (int plane = first_plane(w, d); plane < end_plane(w, d); plane++)
        *run++ = (wide_stretch){ .a = plane_at(p, plane) - p->planes + source * w->apart,
                                 .b = panel_at(w, factor, 0, kernel_plane(w, d, plane)),
                                 .pairs = w->pairs };
    return run;
}

static void list_runs(part *p, int d)
{
    const winograd_form *f = p->k->w->form;
    wide_stretch *run = p->run;

    for (int sum = 0; sum < f->sums * f->sums; sum++) {
        wide_stretch *begin = run;
        for (int i = 0; i < f->products; i++)
            for (int k = 0; k < f->products && f->product[i].sum == sum / f->sums; k++)
                if (f->product[k].sum == sum % f->sums)
                    run = add_runs(p, d, f->product[i].source * f->sources + f->product[k].source,
                                   f->product[i].factor * WINOGRAD_FACTORS + f->product[k].factor,
                                   run);
        p->runs[sum] = (int)(run - begin);
    }
}

/* Columns first .. first + columns - 1 of all sums. */
static void multiply(const part *p, int first, int columns)
{
    const winograd *w = p->k->w;
    int tiles = p->rows * w->tiles[ALONG_W];
    wide_line_product product = { .columns = columns, .pitch = w->pitch, .run = p->run };

    for (int n = 0; n < columns; n++)
        product.b[n] = p->k->panels + panel_at(w, 0, first + n, 0);
    for (int sum = 0; sum < w->form->sums * w->form->sums; sum++) {
        product.count = p->runs[sum];
        for (int t = 0; t < tiles; t += WIDE_TILE) {
            product.rows = tiles - t > WIDE_TILE / 2 ? WIDE_TILE : WIDE_TILE / 2;
            product.a = p->planes + t * w->pitch;
            product.c = (float *)(p->sums + sum * w->sum_apart + t * (int64_t)ROW_BYTES);
            w->unit->lines(&product);
        }
        product.run += product.count;
    }
}

/* The n-th of the columns that were multiplied, which is 'column' of the target. */
static void write_column(const part *p, int d, int n, int column)
{
    const winograd *w = p->k->w;
    winograd_write r = { .from = p->sums + n * WIDE_TILE * (int64_t)sizeof(float),
                         .pitch = ROW_BYTES, .apart = w->sum_apart,
                         .step = (int64_t)w->outs * NUMBER, .tiles = w->tiles[ALONG_W],
                         .width = w->to[ALONG_W],
                         .channels = min_int(WIDE_TILE, w->outs - column * WIDE_TILE) };

    for (int row = p->first_row; row < p->first_row + p->rows;
         row++, r.from += r.tiles * (int64_t)ROW_BYTES) {
        int image = row / w->tiles[ALONG_H], h = row % w->tiles[ALONG_H] * w->form->makes;
        for (int i = 0; i < w->form->makes; i++)
            r.line[i] = h + i < w->to[ALONG_H]
                      ? p->k->target + line_at(w->to, w->outs, image, d, h + i) +
                            column * (int64_t)WIDE_TILE * NUMBER
                      : NULL;
        winograd_write_tiles(w->kind, &r);
    }
}

static void make_plane(part *p, int d)
{
    const winograd *w = p->k->w;

    list_runs(p, d);
    for (int block = p->first_block; block < p->end_block; block++) {
        int first = w->columns * block / w->blocks;
        int columns = w->columns * (block + 1) / w->blocks - first;

        multiply(p, first, columns);
        for (int n = 0; n < columns; n++)
            write_column(p, d, n, first + n);
    }
}

static void task(void *context, int64_t i, int thread)
{
    const work *k = context;
    const winograd *w = k->w;
    int band = (int)(i % w->bands), slab = (int)(i / w->bands % w->slabs);
    int share = (int)(i / w->bands / w->slabs);
    int first = slab * w->planes, end = min_int(first + w->planes, w->to[ALONG_D]);
    int plane = first_plane(w, first);
    part p = { .k = k, .first_row = band * w->rows,
               .first_block = w->blocks * share / w->shares,
               .end_block = w->blocks * (share + 1) / w->shares,
               .planes = k->area + thread * w->area };

    p.rows = min_int(w->rows, w->cases * w->tiles[ALONG_H] - p.first_row);
    p.sums = p.planes + w->kept * w->plane;
    p.run = (wide_stretch *)(p.sums + w->form->sums * w->form->sums * w->sum_apart);
    w->unit->begin();
    for (int d = first; d < end; d++) {
        for (plane = max_int(plane, first_plane(w, d)); plane < end_plane(w, d); plane++)
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
    cpu_parallel(w->threads, (int64_t)w->bands * w->slabs * w->shares, task, &k);
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void winograd_free(pons_kernel *kernel)
{
    free(kernel->state);
}

static void read_shapes(winograd *w, const pons_request *request)
{
    const pons_convolution *c = request->attributes;
    const int64_t *from = request->input[0].shape.extent, *to = request->output[0].shape.extent;

    w->kind = c->stride[ALONG_W] == 1 ? WINOGRAD_PLAIN : w->gradient ? WINOGRAD_SPREAD
                                                                    : WINOGRAD_STRIDED;
    w->form = &winograd_forms[w->kind];
    w->cases = (int)from[0];
    w->ins = (int)from[4];
    w->outs = (int)to[4];
    w->depth = (int)request->input[1].shape.extent[1];
    w->stride = c->stride[ALONG_D];
    w->pad = c->pad_low[ALONG_D];
    w->kept = w->gradient ? (int)ceil_div_i64(w->depth, w->stride) : w->depth;
    w->from[ALONG_D] = (int)from[1];
    w->to[ALONG_D] = (int)to[1];
    for (int i = ALONG_H; i <= ALONG_W; i++) {
        w->from[i] = (int)from[1 + i];
        w->to[i] = (int)to[1 + i];
        w->tiles[i] = (int)ceil_div_i64(to[1 + i], w->form->makes);
        w->first[i] = !w->gradient ? -c->pad_low[i]
                    : w->kind == WINOGRAD_PLAIN ? c->pad_low[i] - WINOGRAD_KERNEL + 1 : 0;
    }
}

/* Rows of a product for so many rows of tiles. */
static int64_t product_rows(const winograd *w, int rows)
{
    return round_up_i64((int64_t)rows * w->tiles[ALONG_W], WIDE_TILE / 2);
}

/* As many rows of tiles as the cache holds, or fewer that leave less of the products empty. */
static int rows_of_band(const winograd *w, int all)
{
    int64_t tile = (int64_t)w->kept * w->form->sources * w->form->sources * w->pitch;
    int tiles = max_int(TILES_LEAST, min_int(TILES_MOST, (int)(READ_BYTES / tile)));
    int most = max_int(1, min_int(all, tiles / w->tiles[ALONG_W])), best = most;
    int64_t least = INT64_MAX;

    for (int rows = most; rows > most / 2; rows--) {
        int64_t computed = all / rows * product_rows(w, rows) + product_rows(w, all % rows);
        best = computed < least ? rows : best;
        least = computed < least ? computed : least;
    }
    return best;
}

/* Rows of tiles, and planes, so that there are tasks. */
static void cut(winograd *w)
{
    int rows = w->cases * w->tiles[ALONG_H];

    w->rows = rows_of_band(w, rows);
    w->bands = (int)ceil_div_i64(rows, w->rows);
    w->slabs = min_int((int)ceil_div_i64(TASKS * w->threads, w->bands),
                       max_int(1, w->to[ALONG_D] / PLANES_LEAST));
    w->planes = (int)ceil_div_i64(w->to[ALONG_D], w->slabs);
    w->slabs = (int)ceil_div_i64(w->to[ALONG_D], w->planes);
    w->shares = min_int((int)ceil_div_i64(w->threads, (int64_t)w->bands * w->slabs), w->blocks);
}

static void plan(winograd *w)
{
    const winograd_form *f = w->form;
    int64_t tiles;

    w->columns = (int)ceil_div_i64(w->outs, WIDE_TILE);
    w->blocks = (int)ceil_div_i64(w->columns, WIDE_ACROSS);
    w->steps = (int)ceil_div_i64(w->ins, WIDE_NUMBERS);
    w->pairs = (int)ceil_div_i64(w->ins, 2);
    w->pitch = w->pairs * 2 * (int64_t)NUMBER;
    cut(w);
    tiles = round_up_i64((int64_t)w->rows * w->tiles[ALONG_W], WIDE_TILE);
    w->apart = odd_lines((tiles + 1) * w->pitch); /* one more may be written */
    w->plane = f->sources * f->sources * w->apart;
    w->sum_apart = odd_lines(tiles * ROW_BYTES);
    w->area = w->kept * w->plane + f->sums * f->sums * w->sum_apart +
              odd_lines(PRODUCTS * w->depth * (int64_t)sizeof(wide_stretch));
    w->panels = panel_at(w, FACTORS, 0, 0);
}

static bool is_ours(const pons_request *request)
{
    const pons_convolution *c = request->attributes;
    const int64_t *k = request->input[1].shape.extent;
    bool gradient = request->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT;

    for (int i = ALONG_H; i <= ALONG_W; i++)
        if (k[1 + i] != WINOGRAD_KERNEL || c->stride[i] != c->stride[ALONG_W] || c->stride[i] > 2 ||
            (gradient && c->stride[i] == 2 && c->pad_low[i] != 1))
            return false;
    return c->groups == 1 && c->dilation[0] * c->dilation[1] * c->dilation[2] == 1 &&
           request->input[0].type == PONS_BF16 && request->input[1].type == PONS_BF16 &&
           request->output[0].type == PONS_BF16;
}

/* Equal for kernels that want equal panels of one weight. */
static uint64_t panel_key(const winograd *w)
{
    return UINT64_C(0x77696e6f67726164) + 2 * (uint64_t)w->kind + w->gradient;
}

pons_status winograd_prepare(const wide_unit *unit, int threads, const pons_request *request,
                             pons_kernel *kernel, bool *supported, pons_error *err)
{
    winograd *w;
    int64_t busy;           /* threads */

    *supported = false;
    if (unit->lines == NULL || !is_ours(request))
        return PONS_OK;
    w = calloc(1, sizeof *w + (size_t)request->input[0].shape.extent[4] * NUMBER);
    if (w == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    w->unit = unit;
    w->threads = threads;
    w->packed = request->packable >> 1 & 1;
    w->gradient = request->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT;
    read_shapes(w, request);
    plan(w);
    busy = min_int(threads, w->bands * w->slabs * w->shares);
    *kernel = (pons_kernel){ .run = winograd_run, .free = winograd_free, .state = w,
                             .implementation = "winograd" };
    if (w->packed) {
        kernel->pack = pack;
        kernel->pack_size[1] = (size_t)w->panels;
        kernel->pack_key[1] = panel_key(w);
    }
    kernel->scratch_size = (size_t)((w->packed ? 0 : w->panels) + w->area * busy);
    *supported = true;
    return PONS_OK;
}
