/*
 * winograd_weight_gradient.c - weight gradients by the algorithm of winograd.h.
 *
 * gemm_weight_rows.c computes the gradients of all factors, as those of a kernel of size 1 along H
 * and W. Its lines are rows of tiles, of the gradients of sums and of sources. Its groups are the
 * factors, and the terms of a group are the products by that factor. At the end the gradients of
 * the factors are transformed into those of the weights.
 *
 * A pair of bf16 has the same tile of two rows of tiles, counted over all images. So planes with an
 * odd count of tiles along W need no padding. Of five weights the second row lies half of all rows
 * behind the first one: the next line of x then has the next rows.
 */
#include "cpu/conv/winograd/winograd.h"

#include "cpu/conv/bf16_gemm/gemm_weight_rows.h"

#include <stdlib.h>

#include "base/integer.h"

enum {
    MAKES = 2,              /* points of a convolution's tile along an axis */
    AHEAD = 2               /* output channels whose weights are prefetched */
};

enum { ALONG_H, ALONG_W, PLANE_AXES };

typedef struct winograd_weight_gradient {
    gemm_weight_rows lines;         /* first: the functions of a form get its address */
    winograd_kind kind;
    pons_type type;
    const winograd_form *form;
    int x[PLANE_AXES], y[PLANE_AXES]; /* points of a plane */
    int low[PLANE_AXES];            /* padding: points that a sum begins before its point */
    int cases, rows;                /* rows: of tiles, of a plane, with the form's reach */
} winograd_weight_gradient;

static const winograd_weight_gradient *whole(const gemm_weight_rows *lines)
{
    return (const winograd_weight_gradient *)lines;
}

/* Bytes of a point with some channels, and of a plane of them. */
static int64_t point_size(const winograd_weight_gradient *g, int channels)
{
    return (int64_t)channels * winograd_size(g->type);
}

static int64_t plane_size(const winograd_weight_gradient *g, const int extent[PLANE_AXES],
                          int channels)
{
    return (int64_t)extent[ALONG_H] * extent[ALONG_W] * point_size(g, channels);
}

/* Plane 'plane' of the image that has row 'row' of all images' rows of tiles; NULL: none has. */
static const char *plane_of(const winograd_weight_gradient *g, const char *tensor, int planes,
                            int64_t size, int plane, int row)
{
    int image = row / g->rows;

    return image < g->cases ? tensor + ((int64_t)image * planes + plane) * size : NULL;
}

/* The row of tiles, of those of all images, that is element 'element' of the pairs of a line. */
static int row_of(const winograd_weight_gradient *g, int line, int element)
{
    return g->form->reach > 0 ? line + element * g->lines.y[LINES]
                              : line * g->lines.together + element;
}

/* The four points of a tile; zeros stand for points outside. */
static void find_points(const winograd_weight_gradient *g, const char *plane, int row, int tile,
                        const char *point[WINOGRAD_POINTS])
{
    for (int i = 0; i < WINOGRAD_POINTS; i++) {
        int h = row * MAKES + i / MAKES;
        int at = tile * MAKES + i % MAKES;
        bool inside = plane != NULL && h < g->y[ALONG_H] && at < g->y[ALONG_W];
        point[i] = inside ? plane + (h * g->y[ALONG_W] + at) * point_size(g, g->lines.outs)
                          : g->lines.zero;
    }
}

/* The addresses of a block's tiles by point; tiles k and 16 + k of bf16 lie side by side. */
static void find_tiles(const winograd_weight_gradient *g, const char *y, const gemm_weight_span *s,
                       int64_t block, const char *to[WINOGRAD_POINTS][GEMM_ELEMENTS])
{
    const gemm_weight_rows *w = &g->lines;
    int64_t lines = gemm_weight_line_count(s);
    int elements = w->together * GEMM_TILE;

    for (int i = 0; i < elements; i++) {
        int64_t number = block * elements + i, line = number / w->y_width;
        const char *plane = NULL, *point[WINOGRAD_POINTS];
        int at[AXES] = { 0 }, row = 0;

        if (line < lines) {
            gemm_weight_line_of(s, line, at);
            row = row_of(whole(w), at[LINES], (int)(number % w->together));
            plane = plane_of(g, y, w->y[PLANES], plane_size(g, g->y, w->outs), at[PLANES], row);
        }
        find_points(g, plane, row % g->rows, (int)(number % w->y_width) / w->together,
                    point);
        for (int p = 0; p < WINOGRAD_POINTS; p++)
            to[p][i % GEMM_TILE * w->together + i / GEMM_TILE] = point[p];
    }
}

/* Prefetch into the L1 cache. */
static void ask_for(int count, const char *const tile[GEMM_ELEMENTS], int64_t ahead)
{
    for (int i = 0; i < count; i++)
        __builtin_prefetch(tile[i] + ahead);
}

static void pack_y(const gemm_weight_rows *w, const char *y, const gemm_weight_span *s,
                   int64_t block, char *to)
{
    _Alignas(GEMM_STEP) char rows[WINOGRAD_POINTS][GEMM_TILE][GEMM_STEP];
    void (*const pack)(void *, int64_t, const char *const *, int, int) =
        whole(w)->type == PONS_F32 ? gemm_pack_float_rows : gemm_pack_rows;
    const char *tile[WINOGRAD_POINTS][GEMM_ELEMENTS];
    int64_t ahead = plane_size(whole(w), whole(w)->y, w->outs);

    find_tiles(whole(w), y, s, block, tile);
    for (int o = 0; o < w->out_tiles; o++) {
        for (int p = 0; p < WINOGRAD_POINTS; p++) {
            ask_for(w->together * GEMM_TILE, tile[p],
                    ahead + o * point_size(whole(w), GEMM_TILE));
            pack(rows[p], GEMM_STEP, tile[p], o * GEMM_TILE,
                           min_int(GEMM_TILE, w->outs - o * GEMM_TILE));
        }
        for (int r = 0; r < GEMM_TILE; r++, to += w->pitch) {
            const char *const point[WINOGRAD_POINTS] = { rows[0][r], rows[1][r], rows[2][r],
                                                         rows[3][r] };
            winograd_gradient_of_sums(whole(w)->kind, whole(w)->type, point, to,
                                      w->out_tiles * GEMM_TILE * w->pitch);
        }
    }
}

/* Row 'row' of all images' rows of tiles. */
static winograd_read read_of(const winograd_weight_gradient *g, const char *x, int plane, int row)
{
    const gemm_weight_rows *w = &g->lines;
    int64_t point = point_size(g, w->ins), size = plane_size(g, g->x, w->ins);
    const char *from = plane_of(g, x, w->x[PLANES], size, plane, row);
    winograd_read r = { .type = g->type, .first = -g->low[ALONG_W], .width = g->x[ALONG_W],
                        .tiles = w->x_width / w->together, .ahead = size };

    for (int i = 0; i < g->form->reads; i++) {
        int h = row % g->rows * g->form->moves - g->low[ALONG_H] + i;
        bool inside = from != NULL && h >= 0 && h < g->x[ALONG_H];
        r.line[i] = inside ? (winograd_line){ from + h * g->x[ALONG_W] * point, point }
                           : (winograd_line){ w->zero, 0 };
    }
    return r;
}

static void next_channels(const winograd_weight_gradient *g, winograd_read *r)
{
    for (int i = 0; i < g->form->reads; i++)
        r->line[i].from += r->line[i].step > 0 ? point_size(g, GEMM_TILE) : 0;
}

static void pack_x(const gemm_weight_rows *w, const char *x, const int at[AXES], char *to)
{
    const winograd_weight_gradient *g = whole(w);
    winograd_read row[2];

    for (int i = 0; i < w->together; i++)
        row[i] = read_of(g, x, at[PLANES], row_of(g, at[LINES], i));
    row->to = to;
    row->pitch = GEMM_STEP;
    row->apart = w->in_tiles * w->strip;
    for (int in = 0; in < w->ins; in += GEMM_TILE, row->to += w->strip) {
        row->channels = min_int(GEMM_TILE, w->ins - in);
        winograd_read_pairs(g->kind, row);
        for (int i = 0; i < w->together; i++)
            next_channels(g, &row[i]);
    }
}

/* All products by a factor, which is one along H and one along W. */
static int terms(const gemm_weight_rows *w, int group, gemm_weight_term *to)
{
    const winograd_form *f = whole(w)->form;
    int count = 0;

    for (int i = 0; i < f->products; i++)
        for (int k = 0; k < f->products && f->product[i].factor == group / f->factors; k++)
            if (f->product[k].factor == group % f->factors)
                to[count++] = (gemm_weight_term){
                    .y = f->product[i].sum * f->sums + f->product[k].sum,
                    .x = f->product[i].source * f->sources + f->product[k].source,
                    .line = f->product[i].ahead, .pair = f->product[k].ahead };
    return count;
}

static void write(const gemm_weight_rows *w, const gemm_weight_place *at, const float *sums,
                  int64_t apart, float *weight)
{
    int end = min_int(w->outs, at->end_out * GEMM_TILE);
    int64_t plane = (int64_t)winograd_taps(whole(w)->kind) * w->ins, row = w->kernel[0] * plane;

    for (int o = at->first_out * GEMM_TILE; o < end; o++, sums += WEIGHT_ROW)
        for (int n = at->first; n < at->end; n++) {
            int in = n * GEMM_TILE;
            float *to = weight + o * row + at->d * plane + in;
            winograd_gradient_of_weights(whole(w)->kind, sums + (n - at->first) * GEMM_TILE, apart,
                                         min_int(GEMM_TILE, w->ins - in), to, w->ins,
                                         AHEAD * row);
        }
}

static const gemm_weight_form tiles = { .pack_y = pack_y, .pack_x = pack_x, .write = write,
                                        .terms = terms, .together = true };

static bool supports(const conv_problem *p)
{
    int kernel = winograd_forms[winograd_kind_of(p)].kernel;

    return p->groups == 1 && p->kernel[1] == kernel && p->kernel[2] == kernel &&
           p->stride[1] == p->stride[2] && p->stride[2] <= 2 &&
           p->dilation[1] * p->dilation[2] == 1 &&
           (conv_has_types(p, PONS_BF16, PONS_F32) || conv_has_types(p, PONS_F32, PONS_F32));
}

static void read_planes(winograd_weight_gradient *g, const conv_problem *p)
{
    g->kind = winograd_kind_of(p);
    g->form = &winograd_forms[g->kind];
    g->type = p->x.type;
    for (int i = 0; i < PLANE_AXES; i++) {
        g->x[i] = p->x.extent[1 + i];
        g->y[i] = p->y.extent[1 + i];
        g->low[i] = p->pad[1 + i];
    }
    g->cases = p->cases;
    g->rows = (g->y[ALONG_H] + 1) / MAKES + g->form->reach;
}

/* A line has one row of tiles of a plane for each element of a pair, from one image or two. */
static void read_shapes(winograd_weight_gradient *g, const conv_problem *p)
{
    gemm_weight_rows *w = &g->lines;

    read_planes(g, p);
    w->together = winograd_together(g->type);
    w->unit = g->type == PONS_F32 ? &engine_avx512_f32 : &engine_avx512_bf16;
    w->c = *p->attributes;
    for (int i = 1; i < 3; i++) {
        w->c.pad_low[i] = w->c.pad_high[i] = 0;
        w->c.stride[i] = w->kernel[i] = 1;
    }
    w->x[CASES] = w->y[CASES] = 1;
    w->x[PLANES] = p->x.extent[0];
    w->y[PLANES] = p->y.extent[0];
    w->ahead = g->form->reach;
    w->y[LINES] = ceil_div_int(g->cases * g->rows - w->ahead, w->together);
    w->x[LINES] = w->y[LINES] + w->ahead;
    w->y_width = (g->y[ALONG_W] + 1) / MAKES * w->together;
    w->x_width = w->y_width + w->ahead * w->together;
    w->kernel[0] = p->kernel[0];
    w->groups = winograd_all_factors(g->kind);
    w->y_sets = g->form->sums * g->form->sums;
    w->x_sets = g->form->sources * g->form->sources;
    w->outs = p->y.channels;
    w->ins = p->x.channels;
}

static pons_status prepare(const cpu_device *cpu, const conv_problem *p, pons_kernel *kernel,
                           pons_error *err)
{
    winograd_weight_gradient *g = calloc(1, sizeof *g);

    if (g == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    g->lines.form = &tiles;
    g->lines.threads = cpu->threads;
    read_shapes(g, p);
    return gemm_weight_rows_prepare(&g->lines, kernel, err);
}

const conv_operations winograd_gradient_operations = {
    .supports = supports, .profitable = winograd_gradient_profitable, .prepare = prepare,
};
