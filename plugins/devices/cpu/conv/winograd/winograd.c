/*
 * winograd.c - convolutions and input gradients by the algorithm of winograd.h.
 *
 * A task computes some planes of some rows of tiles, of one image or several, plane by plane. The
 * sources of the planes that a target plane sums over stay in the L2 cache, in a ring. Each sum is
 * a product of tiles by factors (bf16_gemm.h), a few target channels at a time. No sum crosses
 * tasks, so bits do not depend on the number of tasks (R4).
 *
 * The input gradient of a convolution with stride 1 is a convolution with the reversed kernel.
 *
 * The form along D makes two planes of the target at once. Its four sources along D lie in
 * place of the ring, and each sum of H and W is four products that are transformed to those of both
 * planes. Pairs begin at even planes, whatever the tasks (R4).
 */
#include "cpu/conv/winograd/winograd.h"

#include "cpu/cpu.h"

#include <stdlib.h>

#include "base/integer.h"

enum {
    READ_BYTES = 1 << 19,   /* of sources in the ring */
    TILES_LEAST = 48,       /* of a task's plane: as many are multiplied by each factor */
    TILES_MOST = 64,
    PLANES_LEAST = 3,       /* of a task, which also reads their neighbours */
    TASKS = 4,              /* for each thread, if that leaves enough planes */
    CACHE_LINE = 64,
    ROW_BYTES = GEMM_ACROSS * GEMM_TILE * sizeof(float),
    SUMS = WINOGRAD_SUMS * WINOGRAD_SUMS
};

enum { ALONG_D, ALONG_H, ALONG_W };

typedef struct winograd {
    int threads;
    bool gradient, packed;  /* input gradient; weights come as panels */
    bool deep;              /* the form is applied along D, too */
    winograd_kind kind;
    pons_type type;
    const gemm_engine *engine;
    const winograd_form *form;
    int cases, from[3], to[3];
    int ins, outs;          /* channels of what is read and made */
    int depth, stride, pad; /* of the kernel along D */
    int first[3];           /* along H and W: the first point read, may lie outside */
    int tiles[3];           /* along H and W */
    int across, down;       /* tiles along W and rows of an image, with the form's reach */
    int rows, planes;       /* of a task: of tiles, of the target */
    int made;               /* planes of the target at once */
    int bands, slabs;       /* counts of tasks along the rows of tiles and along the planes */
    int shares;             /* parts of the target channels, where tasks are fewer than threads */
    int kept;               /* planes in the ring */
    int columns, blocks;    /* GEMM_TILE channels of the target; blocks of them */
    int steps, pairs;       /* of a kernel plane: panels, and the pairs of them in use */
    int64_t pitch, apart, plane; /* bytes of a tile's source, of all tiles', of all sources */
    int64_t sum_apart;      /* bytes of a sum of all tiles */
    int64_t area, panels;   /* bytes: of a thread; of all factors */
    char zero[];            /* a point outside of the source */
} winograd;

/* Round up to an odd count of cache lines: sources and sums of a tile fall into many sets. */
static int64_t odd_lines(int64_t bytes)
{
    return (ceil_div_i64(bytes, CACHE_LINE) | 1) * CACHE_LINE;
}

/* ---- weights --------------------------------------------------------------------------------- */

static winograd_panels panels_of(const winograd *w)
{
    return (winograd_panels){ .kind = w->kind, .type = w->type, .gradient = w->gradient,
                              .deep = w->deep, .ins = w->ins, .outs = w->outs,
                              .depth = w->deep ? WINOGRAD_DEEP : w->depth,
                              .columns = w->columns, .steps = w->steps };
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

/* The work of a task, and the memory of its thread. */
typedef struct part {
    const work *k;
    int first_row, rows;    /* of tiles, of all images */
    int first_block, end_block;
    char *planes, *sums;    /* of the ring or along D; of all planes that are made at once */
    float *products;        /* of GEMM_TILE tiles, one behind the other along D */
    gemm_run *run;          /* of a plane of the target, sum by sum */
    int runs[SUMS];
} part;

/* The bytes of a point with some channels. */
static int64_t point_size(const winograd *w, int channels)
{
    return (int64_t)channels * winograd_size(w->type);
}

/* The byte offset of a line of a tensor whose points have 'point' bytes. */
static int64_t line_at(const int extent[3], int64_t point, int image, int d, int h)
{
    return (((int64_t)image * extent[ALONG_D] + d) * extent[ALONG_H] + h) * extent[ALONG_W] *
           point;
}

/* The bytes of the sums of a plane of the target. */
static int64_t sums_of_plane(const winograd *w)
{
    return w->form->sums * w->form->sums * w->sum_apart;
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

/* The plane of the kernel that is multiplied. */
static int kernel_plane(const winograd *w, int d, int plane)
{
    return w->gradient ? d + w->pad - plane * w->stride : plane + w->pad - d * w->stride;
}

/* The line of a plane of the source; of zeros outside. */
static winograd_line source_line(const part *p, int image, int plane, int h)
{
    const winograd *w = p->k->w;
    int64_t point = point_size(w, w->ins);

    if (plane < 0 || plane >= w->from[ALONG_D] || h < 0 || h >= w->from[ALONG_H])
        return (winograd_line){ w->zero, 0 };
    return (winograd_line){ p->k->source + line_at(w->from, point, image, plane, h), point };
}

/* Read one or two planes of the source as 'to', and prefetch the plane that is 'ahead'. */
static void read_planes(const part *p, winograd_planes planes, int plane, int second, int ahead,
                        char *to)
{
    const winograd *w = p->k->w;
    winograd_read r = { .type = w->type, .planes = planes, .first = w->first[ALONG_W],
                        .width = w->from[ALONG_W], .tiles = w->across, .channels = w->ins,
                        .to = to, .pitch = w->pitch, .apart = w->apart,
                        .ahead = line_at(w->from, point_size(w, w->ins), 0, ahead, 0) };
    int end = p->first_row + p->rows + w->form->reach;

    for (int row = p->first_row; row < end; row++, r.to += r.tiles * r.pitch) {
        int image = row / w->down;
        int h = row % w->down * w->form->moves + w->first[ALONG_H];
        for (int i = 0; i < w->form->reads; i++) {
            r.line[i] = source_line(p, image, plane, h + i);
            r.second[i] = source_line(p, image, second, h + i);
        }
        winograd_read_tiles(w->kind, &r);
    }
}

/* Add the runs of products i along H and k along W, for all planes that are summed. */
static gemm_run *add_runs(const part *p, int d, int i, int k, gemm_run *run)
{
    const winograd *w = p->k->w;
    const winograd_form *f = w->form;
    int source = f->product[i].source * f->sources + f->product[k].source;
    int factor = f->product[i].factor * f->factors + f->product[k].factor;
    int64_t ahead = f->product[i].ahead * w->across + f->product[k].ahead;

    for (int plane = first_plane(w, d); plane < end_plane(w, d); plane++)
        *run++ = (gemm_run){ .a = plane_at(p, plane) - p->planes + source * w->apart +
                                  ahead * w->pitch,
                             .b = panel_at(w, factor, 0, kernel_plane(w, d, plane)),
                             .pairs = w->pairs };
    return run;
}

static void list_runs(part *p, int d)
{
    const winograd_form *f = p->k->w->form;
    gemm_run *run = p->run;

    for (int sum = 0; sum < f->sums * f->sums; sum++) {
        gemm_run *begin = run;
        for (int i = 0; i < f->products; i++)
            for (int k = 0; k < f->products && f->product[i].sum == sum / f->sums; k++)
                if (f->product[k].sum == sum % f->sums)
                    run = add_runs(p, d, i, k, run);
        p->runs[sum] = (int)(run - begin);
    }
}

/* Compute columns first .. first + columns - 1 of all sums. */
static void multiply(const part *p, int first, int columns)
{
    const winograd *w = p->k->w;
    int tiles = p->rows * w->across - w->form->reach;
    gemm_row_product product = { .columns = columns, .pitch = w->pitch, .run = p->run };

    for (int n = 0; n < columns; n++)
        product.b[n] = p->k->panels + panel_at(w, 0, first + n, 0);
    for (int sum = 0; sum < w->form->sums * w->form->sums; sum++) {
        product.count = p->runs[sum];
        for (int t = 0; t < tiles; t += GEMM_TILE) {
            product.rows = tiles - t > GEMM_TILE / 2 ? GEMM_TILE : GEMM_TILE / 2;
            product.a = p->planes + t * w->pitch;
            product.c = (float *)(p->sums + sum * w->sum_apart + t * (int64_t)ROW_BYTES);
            w->engine->lines(&product);
        }
        product.run += product.count;
    }
}

/* Read the sources along D that planes d and d + 1 of the target sum over. */
static void read_deep(const part *p, int d)
{
    static const struct { winograd_planes planes; int first, second, ahead; } source[] = {
        { WINOGRAD_DIFFERENCE, 0, 2, 4 }, { WINOGRAD_SUM, 1, 2, 0 },
        { WINOGRAD_DIFFERENCE, 2, 1, 0 }, { WINOGRAD_DIFFERENCE, 1, 3, 4 },
    };
    const winograd *w = p->k->w;
    int low = d + (w->gradient ? w->pad - w->depth + 1 : -w->pad);

    for (int i = 0; i < WINOGRAD_DEEP; i++)
        read_planes(p, source[i].planes, low + source[i].first, low + source[i].second,
                    source[i].ahead, p->planes + i * w->plane);
}

/* Compute some columns of a sum of both planes, for the tiles of a product. */
static void multiply_deep_tiles(const part *p, gemm_row_product *product, int sum, int tile)
{
    enum { ROW = GEMM_ACROSS * GEMM_TILE, APART_ALONG_D = GEMM_TILE * ROW };
    const winograd *w = p->k->w;
    float *to[WINOGRAD_DEEP_MAKES];

    for (int i = 0; i < WINOGRAD_DEEP; i++) {
        gemm_run run = { .a = i * w->plane + sum * w->apart, .b = panel_at(w, sum, 0, i),
                         .pairs = w->pairs };
        product->run = &run;
        product->a = p->planes + tile * w->pitch;
        product->c = p->products + i * APART_ALONG_D;
        w->engine->lines(product);
    }
    for (int i = 0; i < WINOGRAD_DEEP_MAKES; i++)
        to[i] = (float *)(p->sums + i * sums_of_plane(w) + sum * w->sum_apart) + tile * ROW;
    winograd_write_planes(p->products, APART_ALONG_D, product->rows * ROW, to);
}

/* 'multiply' with the form along D: sum, source and factor have one index. */
static void multiply_deep(const part *p, int first, int columns)
{
    const winograd *w = p->k->w;
    int tiles = p->rows * w->across;
    gemm_row_product product = { .columns = columns, .count = 1, .pitch = w->pitch };

    for (int n = 0; n < columns; n++)
        product.b[n] = p->k->panels + panel_at(w, 0, first + n, 0);
    for (int sum = 0; sum < w->form->sums * w->form->sums; sum++)
        for (int t = 0; t < tiles; t += GEMM_TILE) {
            product.rows = tiles - t > GEMM_TILE / 2 ? GEMM_TILE : GEMM_TILE / 2;
            multiply_deep_tiles(p, &product, sum, t);
        }
}

/* Write the n-th of the multiplied columns, which is 'column' of plane d of the target. */
static void write_column(const part *p, const char *sums, int d, int n, int column)
{
    const winograd *w = p->k->w;
    int64_t point = point_size(w, w->outs);
    winograd_write r = { .type = w->type, .from = sums + n * GEMM_TILE * (int64_t)sizeof(float),
                         .pitch = ROW_BYTES, .apart = w->sum_apart,
                         .step = point, .tiles = w->tiles[ALONG_W],
                         .width = w->to[ALONG_W],
                         .channels = min_int(GEMM_TILE, w->outs - column * GEMM_TILE) };

    for (int row = p->first_row; row < p->first_row + p->rows;
         row++, r.from += w->across * (int64_t)ROW_BYTES) {
        int image = row / w->down, h = row % w->down * w->form->makes;
        for (int i = 0; i < w->form->makes; i++)
            r.line[i] = h + i < w->to[ALONG_H]
                      ? p->k->target + line_at(w->to, point, image, d, h + i) +
                            column * point_size(w, GEMM_TILE)
                      : NULL;
        winograd_write_tiles(w->kind, &r);
    }
}

/* Make the planes of the target that are made at once, from d on. */
static void make_planes(part *p, int d)
{
    const winograd *w = p->k->w;
    int end = min_int(d + w->made, w->to[ALONG_D]);

    if (w->deep)
        read_deep(p, d);
    else
        list_runs(p, d);
    for (int block = p->first_block; block < p->end_block; block++) {
        int first = w->columns * block / w->blocks;
        int columns = w->columns * (block + 1) / w->blocks - first;

        if (w->deep)
            multiply_deep(p, first, columns);
        else
            multiply(p, first, columns);
        for (int i = d; i < end; i++)
            for (int n = 0; n < columns; n++)
                write_column(p, p->sums + (i - d) * sums_of_plane(w), i, n, first + n);
    }
}

/* Rows of tiles of all images; those between two images make no points. */
static int all_rows(const winograd *w) { return w->cases * w->down - w->form->reach; }

/* Read the planes that plane d of the target sums over, from '*next' on. */
static void read_ring(const part *p, int *next, int d)
{
    int plane = max_int(*next, first_plane(p->k->w, d)), end = end_plane(p->k->w, d);

    for (; plane < end; plane++)
        read_planes(p, WINOGRAD_ONE, plane, plane, 1, plane_at(p, plane));
    *next = plane;
}

static void task(void *context, int64_t i, int thread)
{
    const work *k = context;
    const winograd *w = k->w;
    int band = (int)(i % w->bands), slab = (int)(i / w->bands % w->slabs);
    int share = (int)(i / w->bands / w->slabs);
    int first = slab * w->planes, end = min_int(first + w->planes, w->to[ALONG_D]);
    int next = 0;
    part p = { .k = k, .first_row = band * w->rows,
               .first_block = w->blocks * share / w->shares,
               .end_block = w->blocks * (share + 1) / w->shares,
               .planes = k->area + thread * w->area };

    p.rows = min_int(w->rows, all_rows(w) - p.first_row);
    p.sums = p.planes + w->kept * w->plane;
    p.products = (float *)(p.sums + w->made * sums_of_plane(w));
    p.run = (gemm_run *)p.products;
    w->engine->begin();
    for (int d = first; d < end; d += w->made) {
        if (!w->deep)
            read_ring(&p, &next, d);
        make_planes(&p, d);
    }
    w->engine->end();
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
    cpu_parallel_for(w->threads, (int64_t)w->bands * w->slabs * w->shares, task, &k);
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void winograd_free(pons_kernel *kernel)
{
    free(kernel->state);
}

static void read_shapes(winograd *w, const conv_problem *p)
{
    const conv_image *from = conv_from(p), *to = conv_to(p);

    w->gradient = p->direction == CONV_INPUT_GRADIENT;
    w->type = from->type;
    w->engine = w->type == PONS_F32 ? &engine_avx512_f32 : &engine_avx512_bf16;
    w->kind = winograd_kind_of(p);
    w->form = &winograd_forms[w->kind];
    w->cases = p->cases;
    w->ins = from->channels;
    w->outs = to->channels;
    w->depth = p->kernel[ALONG_D];
    w->stride = p->stride[ALONG_D];
    w->pad = p->pad[ALONG_D];
    w->kept = w->gradient ? (int)ceil_div_i64(w->depth, w->stride) : w->depth;
    w->deep = w->type == PONS_F32 && w->kind == WINOGRAD_PLAIN && w->stride == 1 &&
              w->depth == w->form->kernel && to->extent[ALONG_D] > 1;
    w->made = w->deep ? WINOGRAD_DEEP_MAKES : 1;
    if (w->deep)
        w->kept = WINOGRAD_DEEP;
    w->from[ALONG_D] = from->extent[ALONG_D];
    w->to[ALONG_D] = to->extent[ALONG_D];
    for (int i = ALONG_H; i <= ALONG_W; i++) {
        w->from[i] = from->extent[i];
        w->to[i] = to->extent[i];
        w->tiles[i] = (int)ceil_div_i64(to->extent[i], w->form->makes);
        w->first[i] = !w->gradient ? -p->pad[i]
                    : w->kind == WINOGRAD_SPREAD ? 0 : p->pad[i] - w->form->kernel + 1;
    }
    w->down = w->tiles[ALONG_H] + w->form->reach;
    w->across = w->tiles[ALONG_W] + w->form->reach;
}

/* The rows of a product for a count of rows of tiles. */
static int64_t product_rows(const winograd *w, int rows)
{
    return round_up_i64((int64_t)rows * w->across, GEMM_TILE / 2);
}

/* The rows of tiles that the cache holds, or fewer if these pad the products less. */
static int rows_of_band(const winograd *w, int all)
{
    int64_t tile = (int64_t)w->kept * w->form->sources * w->form->sources * w->pitch;
    int tiles = max_int(TILES_LEAST, min_int(TILES_MOST, (int)(READ_BYTES / tile)));
    int most = max_int(1, min_int(all, tiles / w->across)), best = most;
    int64_t least = INT64_MAX;

    for (int rows = most; rows > most / 2; rows--) {
        int64_t computed = all / rows * product_rows(w, rows) + product_rows(w, all % rows);
        best = computed < least ? rows : best;
        least = min_i64(computed, least);
    }
    return best;
}

/* Divide rows of tiles and planes into tasks. */
static void cut(winograd *w)
{
    int rows = all_rows(w);

    w->rows = rows_of_band(w, rows);
    w->bands = (int)ceil_div_i64(rows, w->rows);
    w->slabs = min_int((int)ceil_div_i64(TASKS * w->threads, w->bands),
                       max_int(1, w->to[ALONG_D] / PLANES_LEAST));
    w->planes = (int)round_up_i64(ceil_div_i64(w->to[ALONG_D], w->slabs), w->made);
    w->slabs = (int)ceil_div_i64(w->to[ALONG_D], w->planes);
    w->shares = min_int((int)ceil_div_i64(w->threads, (int64_t)w->bands * w->slabs), w->blocks);
}

static void plan(winograd *w)
{
    const winograd_form *f = w->form;
    int64_t tiles, products = f->products * f->products;

    w->columns = (int)ceil_div_i64(w->outs, GEMM_TILE);
    w->blocks = (int)ceil_div_i64(w->columns, GEMM_ACROSS);
    w->pairs = (int)ceil_div_i64(w->ins, winograd_together(w->type));
    w->steps = (int)ceil_div_i64(w->pairs, GEMM_TILE);
    w->pitch = w->pairs * (int64_t)GEMM_PAIR;
    cut(w);
    tiles = round_up_i64((int64_t)w->rows * w->across, GEMM_TILE);
    /* One more may be written. */
    w->apart = odd_lines((tiles + f->reach * (w->across + 1) + 1) * w->pitch);
    w->plane = f->sources * f->sources * w->apart;
    w->sum_apart = odd_lines(tiles * ROW_BYTES);
    w->area = w->kept * w->plane + w->made * sums_of_plane(w) +
              (w->deep ? WINOGRAD_DEEP * GEMM_TILE * (int64_t)ROW_BYTES
               : odd_lines(products * w->depth * (int64_t)sizeof(gemm_run)));
    w->panels = panel_at(w, winograd_all_factors(w->kind), 0, 0);
}

static bool supports(const conv_problem *p)
{
    for (int i = ALONG_H; i <= ALONG_W; i++)
        if (p->kernel[i] != winograd_forms[winograd_kind_of(p)].kernel ||
            p->stride[i] != p->stride[ALONG_W] || p->stride[i] > 2 ||
            (p->direction == CONV_INPUT_GRADIENT && p->stride[i] == 2 && p->pad[i] != 1))
            return false;
    return p->groups == 1 && !p->dilated &&
           (conv_has_types(p, PONS_BF16, PONS_BF16) || conv_has_types(p, PONS_F32, PONS_F32));
}

/* Kernels that want the same panels of a weight have the same key. */
static uint64_t panel_key(const winograd *w)
{
    return UINT64_C(0x77696e6f67726164) + 8 * (uint64_t)w->kind + 4 * w->deep +
           2 * (w->type == PONS_F32) + w->gradient;
}

static pons_status prepare(const cpu_device *cpu, const conv_problem *p, pons_kernel *kernel,
                           pons_error *err)
{
    winograd *w = calloc(1, sizeof *w + (size_t)conv_from(p)->channels * sizeof(float));
    int64_t busy;           /* threads */

    if (w == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    w->threads = cpu->threads;
    w->packed = p->packable;
    read_shapes(w, p);
    plan(w);
    busy = min_int(w->threads, w->bands * w->slabs * w->shares);
    *kernel = (pons_kernel){ .run = winograd_run, .free = winograd_free, .state = w };
    if (w->packed) {
        kernel->pack = pack;
        kernel->pack_size[1] = (size_t)w->panels;
        kernel->pack_key[1] = panel_key(w);
    }
    kernel->scratch_size = (size_t)((w->packed ? 0 : w->panels) + w->area * busy);
    return PONS_OK;
}

const conv_operations winograd_operations = {
    .supports = supports, .profitable = winograd_profitable, .prepare = prepare,
};
