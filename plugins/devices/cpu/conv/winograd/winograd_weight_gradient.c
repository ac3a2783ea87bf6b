/*
 * winograd_weight_gradient.c - gradients by the weight as winograd.h has them.
 *
 * The gradient of each factor is what gemm_weight_rows.c sums up for a kernel that is one wide
 * along H and W: lines are rows of tiles, of the gradient of sums and of sources, and factors are
 * groups, whose terms are the products by a factor. Only at the end those of all factors become
 * the weights'.
 *
 * A pair has the same tile of two rows of tiles, of all images' rows, so that planes of an odd
 * number of tiles leave none empty: with 6 x 6 points a fourth of the products would be.
 */
#include "cpu/conv/winograd/winograd.h"

#include "cpu/conv/bf16_gemm/gemm_weight_rows.h"

#include <stdlib.h>

#include "base/integer.h"

enum {
    MAKES = 2,              /* points of a convolution's tile along an axis */
    TOGETHER = 2,           /* rows of tiles, whose numbers are pairs */
    AHEAD = 2,              /* output channels whose weights are asked for before that */
    FACTORS = WINOGRAD_FACTORS * WINOGRAD_FACTORS,
    TAPS = WINOGRAD_KERNEL * WINOGRAD_KERNEL,
    NUMBER = sizeof(uint16_t)
};

enum { ALONG_H, ALONG_W, PLANE_AXES };

typedef struct winograd_weight {
    weight_lines lines;             /* first: what the functions of a form are handed */
    winograd_kind kind;
    const winograd_form *form;
    int x[PLANE_AXES], y[PLANE_AXES]; /* points of a plane */
    int low[PLANE_AXES];            /* how far a point's sum begins before it */
    int cases, rows;                /* rows: of tiles, of a plane */
} winograd_weight;

static const winograd_weight *whole(const weight_lines *lines)
{
    return (const winograd_weight *)lines;
}

static int64_t plane_size(const int extent[PLANE_AXES], int channels)
{
    return (int64_t)extent[ALONG_H] * extent[ALONG_W] * channels * NUMBER;
}

/* Plane 'plane' of the image that has row 'row' of all images' rows of tiles; NULL: none has. */
static const char *plane_of(const winograd_weight *g, const char *tensor, int planes, int64_t size,
                            int plane, int row)
{
    int image = row / g->rows;

    return image < g->cases ? tensor + ((int64_t)image * planes + plane) * size : NULL;
}

/* The four points of a tile, zeros where there are none. */
static void find_points(const winograd_weight *g, const char *plane, int row, int tile,
                        const char *point[WINOGRAD_POINTS])
{
    for (int i = 0; i < WINOGRAD_POINTS; i++) {
        int h = row * MAKES + i / MAKES;
        int at = tile * MAKES + i % MAKES;
        bool inside = plane != NULL && h < g->y[ALONG_H] && at < g->y[ALONG_W];
        point[i] = inside ? plane + ((int64_t)h * g->y[ALONG_W] + at) * g->lines.outs * NUMBER
                          : g->lines.zero;
    }
}

/* Where a block's tiles lie: of each point those of number k and 16 + k side by side. */
static void find_tiles(const winograd_weight *g, const char *y, const weight_span *s, int64_t block,
                       const char *to[WINOGRAD_POINTS][WIDE_NUMBERS])
{
    const weight_lines *w = &g->lines;
    int64_t lines = weight_line_count(s);

    for (int i = 0; i < WIDE_NUMBERS; i++) {
        int64_t number = block * WIDE_NUMBERS + i, line = number / w->y_width;
        const char *plane = NULL, *point[WINOGRAD_POINTS];
        int at[AXES] = { 0 }, row = 0;

        if (line < lines) {
            weight_line_of(s, line, at);
            row = at[LINES] * TOGETHER + (int)(number % TOGETHER);
            plane = plane_of(g, y, w->y[PLANES], plane_size(g->y, w->outs), at[PLANES], row);
        }
        find_points(g, plane, row % g->rows, (int)(number % w->y_width) / TOGETHER, point);
        for (int p = 0; p < WINOGRAD_POINTS; p++)
            to[p][i % WIDE_TILE * 2 + i / WIDE_TILE] = point[p];
    }
}

/* Into the first cache. */
static void ask_for(const char *const tile[WIDE_NUMBERS], int64_t ahead)
{
    for (int i = 0; i < WIDE_NUMBERS; i++)
        __builtin_prefetch(tile[i] + ahead);
}

static void pack_y(const weight_lines *w, const char *y, const weight_span *s, int64_t block,
                   char *to)
{
    _Alignas(WIDE_STEP) char rows[WINOGRAD_POINTS][WIDE_TILE][WIDE_STEP];
    const char *tile[WINOGRAD_POINTS][WIDE_NUMBERS];
    int64_t ahead = plane_size(whole(w)->y, w->outs);

    find_tiles(whole(w), y, s, block, tile);
    for (int o = 0; o < w->out_tiles; o++) {
        for (int p = 0; p < WINOGRAD_POINTS; p++) {
            ask_for(tile[p], ahead + o * WIDE_TILE * NUMBER);
            wide_pack_rows(rows[p], WIDE_STEP, tile[p], o * WIDE_TILE,
                           min_int(WIDE_TILE, w->outs - o * WIDE_TILE));
        }
        for (int r = 0; r < WIDE_TILE; r++, to += w->pitch) {
            const char *const point[WINOGRAD_POINTS] = { rows[0][r], rows[1][r], rows[2][r],
                                                         rows[3][r] };
            winograd_sums_gradient(whole(w)->kind, point, to, w->out_tiles * WIDE_TILE * w->pitch);
        }
    }
}

/* Row 'row' of all images' rows of tiles. */
static winograd_read read_of(const winograd_weight *g, const char *x, int plane, int row)
{
    const weight_lines *w = &g->lines;
    int64_t point = (int64_t)w->ins * NUMBER;
    const char *from = plane_of(g, x, w->x[PLANES], plane_size(g->x, w->ins), plane, row);
    winograd_read r = { .first = -g->low[ALONG_W], .width = g->x[ALONG_W],
                        .tiles = w->y_width / TOGETHER,
                        .ahead = plane_size(g->x, w->ins) };

    for (int i = 0; i < g->form->reads; i++) {
        int h = row % g->rows * g->form->moves - g->low[ALONG_H] + i;
        bool inside = from != NULL && h >= 0 && h < g->x[ALONG_H];
        r.line[i] = inside ? from + h * g->x[ALONG_W] * point : w->zero;
        r.step[i] = inside ? point : 0;
    }
    return r;
}

static void next_channels(const winograd_weight *g, winograd_read *r)
{
    for (int i = 0; i < g->form->reads; i++)
        r->line[i] += r->step[i] > 0 ? WIDE_TILE * NUMBER : 0;
}

static void pack_x(const weight_lines *w, const char *x, const int at[AXES], char *to)
{
    const winograd_weight *g = whole(w);
    winograd_read row[TOGETHER];

    for (int i = 0; i < TOGETHER; i++)
        row[i] = read_of(g, x, at[PLANES], at[LINES] * TOGETHER + i);
    row->to = to;
    row->pitch = WIDE_STEP;
    row->apart = w->in_tiles * w->strip;
    for (int in = 0; in < w->ins; in += WIDE_TILE, row->to += w->strip) {
        row->channels = min_int(WIDE_TILE, w->ins - in);
        winograd_read_pairs(g->kind, row);
        for (int i = 0; i < TOGETHER; i++)
            next_channels(g, &row[i]);
    }
}

/* All products by a factor, which is one along H and one along W. */
static int terms(const weight_lines *w, int group, weight_term *to)
{
    const winograd_form *f = whole(w)->form;
    int count = 0;

    for (int i = 0; i < f->products; i++)
        for (int k = 0; k < f->products && f->product[i].factor == group / WINOGRAD_FACTORS; k++)
            if (f->product[k].factor == group % WINOGRAD_FACTORS)
                to[count++] = (weight_term){
                    .y = f->product[i].sum * f->sums + f->product[k].sum,
                    .x = f->product[i].source * f->sources + f->product[k].source };
    return count;
}

static void write(const weight_lines *w, const weight_place *at, const float *sums, int64_t apart,
                  float *weight)
{
    int end = min_int(w->outs, at->end_out * WIDE_TILE);

    for (int o = at->first_out * WIDE_TILE; o < end; o++, sums += WEIGHT_ROW)
        for (int n = at->first; n < at->end; n++) {
            int in = n * WIDE_TILE;
            float *to = weight + ((int64_t)o * w->kernel[0] + at->d) * TAPS * w->ins + in;
            winograd_weights_gradient(whole(w)->kind, sums + (n - at->first) * WIDE_TILE, apart,
                                      min_int(WIDE_TILE, w->ins - in), to, w->ins,
                                      AHEAD * (int64_t)w->kernel[0] * TAPS * w->ins);
        }
}

static const weight_form tiles = { .name = "winograd", .pack_y = pack_y, .pack_x = pack_x,
                                   .write = write, .terms = terms, .together = true };

static bool is_ours(const pons_request *request)
{
    const pons_convolution *c = request->attributes;
    const int64_t *k = request->output[0].shape.extent;

    return c->groups == 1 && k[2] == WINOGRAD_KERNEL && k[3] == WINOGRAD_KERNEL &&
           c->stride[1] == c->stride[2] && c->stride[2] <= 2 &&
           c->dilation[1] * c->dilation[2] == 1 && request->input[0].type == PONS_BF16 &&
           request->input[1].type == PONS_BF16 && request->output[0].type == PONS_F32;
}

static void read_planes(winograd_weight *g, const pons_request *request)
{
    const int64_t *x = request->input[0].shape.extent, *y = request->input[1].shape.extent;
    const pons_convolution *c = request->attributes;

    g->kind = c->stride[2] == 1 ? WINOGRAD_PLAIN : WINOGRAD_STRIDED;
    g->form = &winograd_forms[g->kind];
    for (int i = 0; i < PLANE_AXES; i++) {
        g->x[i] = (int)x[2 + i];
        g->y[i] = (int)y[2 + i];
        g->low[i] = c->pad_low[1 + i];
    }
    g->cases = (int)y[0];
    g->rows = (g->y[ALONG_H] + 1) / MAKES;
}

/* A line is two rows of tiles of a plane, of one image or two. */
static void read_shapes(winograd_weight *g, const pons_request *request)
{
    weight_lines *w = &g->lines;
    const int64_t *dw = request->output[0].shape.extent;

    read_planes(g, request);
    w->c = *(const pons_convolution *)request->attributes;
    for (int i = 1; i < 3; i++) {
        w->c.pad_low[i] = w->c.pad_high[i] = 0;
        w->c.stride[i] = w->kernel[i] = 1;
    }
    w->x[CASES] = w->y[CASES] = 1;
    w->x[PLANES] = (int)request->input[0].shape.extent[1];
    w->y[PLANES] = (int)request->input[1].shape.extent[1];
    w->x[LINES] = w->y[LINES] = (g->cases * g->rows + 1) / TOGETHER;
    w->x_width = w->y_width = (g->y[ALONG_W] + 1) / MAKES * TOGETHER;
    w->kernel[0] = (int)dw[1];
    w->groups = FACTORS;
    w->y_sets = g->form->sums * g->form->sums;
    w->x_sets = g->form->sources * g->form->sources;
    w->outs = (int)dw[0];
    w->ins = (int)dw[4];
}

pons_status winograd_prepare_weight(const wide_unit *unit, int threads, const pons_request *request,
                                    pons_kernel *kernel, bool *supported, pons_error *err)
{
    winograd_weight *g;

    *supported = false;
    if (unit->lines == NULL || !is_ours(request))
        return PONS_OK;
    if ((g = calloc(1, sizeof *g)) == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    g->lines.form = &tiles;
    g->lines.unit = unit;
    g->lines.threads = threads;
    read_shapes(g, request);
    return wide_lines_prepare(&g->lines, kernel, supported, err);
}
