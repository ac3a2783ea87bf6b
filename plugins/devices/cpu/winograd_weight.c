/*
 * winograd_weight.c - gradients by the weight as winograd.h has them.
 *
 * The gradient of each factor is what wide_lines.c sums up for a kernel that is one wide along H and
 * W: lines are rows of tiles, of the gradient of sums and of sources, and factors are groups. Only at
 * the end those of all factors become the weights'.
 */
#include "winograd.h"

#include "wide_lines.h"

#include <stdlib.h>

enum {
    READS = WINOGRAD_PLAIN_READS,
    MAKES = WINOGRAD_PLAIN_MAKES,
    POINTS = MAKES * MAKES,
    FACTORS = WINOGRAD_FACTORS * WINOGRAD_FACTORS,
    TAPS = WINOGRAD_KERNEL * WINOGRAD_KERNEL,
    NUMBER = sizeof(uint16_t)
};

enum { ALONG_H, ALONG_W, PLANE_AXES };

typedef struct winograd_weight {
    weight_lines lines;             /* first: what the functions of a form are handed */
    int x[PLANE_AXES], y[PLANE_AXES]; /* points of a plane */
    int low[PLANE_AXES];            /* how far a point's sum begins before it */
} winograd_weight;

static int smaller(int a, int b) { return a < b ? a : b; }

static const winograd_weight *whole(const weight_lines *lines)
{
    return (const winograd_weight *)lines;
}

static int64_t plane_size(const int extent[PLANE_AXES], int channels)
{
    return (int64_t)extent[ALONG_H] * extent[ALONG_W] * channels * NUMBER;
}

/* The four points of a tile, zeros where there are none. */
static void find_points(const winograd_weight *g, const char *plane, int row, int tile,
                        const char *point[POINTS])
{
    for (int i = 0; i < POINTS; i++) {
        int h = row * MAKES + i / MAKES;
        int at = tile * MAKES + i % MAKES;
        bool inside = plane != NULL && h < g->y[ALONG_H] && at < g->y[ALONG_W];
        point[i] = inside ? plane + ((int64_t)h * g->y[ALONG_W] + at) * g->lines.outs * NUMBER
                          : g->lines.zero;
    }
}

/* Where a block's tiles lie: of each point those of number k and 16 + k side by side. */
static void find_tiles(const winograd_weight *g, const char *y, const weight_span *s, int64_t block,
                       const char *to[POINTS][WIDE_NUMBERS])
{
    const weight_lines *w = &g->lines;
    int64_t lines = weight_line_count(s);

    for (int i = 0; i < WIDE_NUMBERS; i++) {
        int64_t number = block * WIDE_NUMBERS + i, line = number / (2 * w->pairs);
        const char *plane = NULL, *point[POINTS];
        int at[AXES] = { 0 };

        if (line < lines) {
            weight_line_of(s, line, at);
            plane = y + (at[CASES] * w->y[PLANES] + at[PLANES]) * plane_size(g->y, w->outs);
        }
        find_points(g, plane, at[LINES], (int)(number % (2 * w->pairs)), point);
        for (int p = 0; p < POINTS; p++)
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
    _Alignas(WIDE_STEP) char rows[POINTS][WIDE_TILE][WIDE_STEP];
    const char *tile[POINTS][WIDE_NUMBERS];
    int64_t ahead = plane_size(whole(w)->y, w->outs);

    find_tiles(whole(w), y, s, block, tile);
    for (int o = 0; o < w->out_tiles; o++) {
        for (int p = 0; p < POINTS; p++) {
            ask_for(tile[p], ahead + o * WIDE_TILE * NUMBER);
            wide_pack_rows(rows[p], WIDE_STEP, tile[p], o * WIDE_TILE,
                           smaller(WIDE_TILE, w->outs - o * WIDE_TILE));
        }
        for (int r = 0; r < WIDE_TILE; r++, to += w->pitch) {
            const char *const point[POINTS] = { rows[0][r], rows[1][r], rows[2][r], rows[3][r] };
            winograd_sums_gradient(point, to, w->out_tiles * WIDE_TILE * w->pitch);
        }
    }
}

static void pack_x(const weight_lines *w, const char *x, const int at[AXES], char *to)
{
    const winograd_weight *g = whole(w);
    int64_t size = plane_size(g->x, w->ins), point = (int64_t)w->ins * NUMBER;
    const char *plane = x + (at[CASES] * w->x[PLANES] + at[PLANES]) * size;
    winograd_read r = { .first = -g->low[ALONG_W], .width = g->x[ALONG_W], .tiles = w->y_width, .to = to,
                        .pitch = WIDE_STEP, .apart = w->in_tiles * w->strip, .ahead = size };

    for (int i = 0; i < READS; i++) {
        int h = at[LINES] * MAKES - g->low[ALONG_H] + i;
        bool inside = h >= 0 && h < g->x[ALONG_H];
        r.line[i] = inside ? plane + h * g->x[ALONG_W] * point : w->zero;
        r.step[i] = inside ? point : 0;
    }
    for (int in = 0; in < w->ins; in += WIDE_TILE, r.to += w->strip) {
        r.channels = smaller(WIDE_TILE, w->ins - in);
        winograd_read_pairs(&r);
        for (int i = 0; i < READS; i++)
            r.line[i] += r.step[i] > 0 ? WIDE_TILE * NUMBER : 0;
    }
}

static void write(const weight_lines *w, const weight_place *at, const float *sums, float *weight)
{
    for (int o = 0; o < w->outs; o++, sums += WEIGHT_ROW)
        for (int n = at->first; n < at->end; n++) {
            int in = n * WIDE_TILE;
            float *to = weight + ((int64_t)o * w->kernel[0] + at->d) * TAPS * w->ins + in;
            winograd_weights_gradient(sums + (n - at->first) * WIDE_TILE, w->group_apart,
                                      smaller(WIDE_TILE, w->ins - in), to, w->ins);
        }
}

static const weight_form tiles = { .name = "winograd", .pack_y = pack_y, .pack_x = pack_x,
                                   .write = write, .together = true };

static bool is_ours(const pons_request *request)
{
    const pons_convolution *c = request->attributes;
    const int64_t *k = request->output[0].shape.extent;

    return c->groups == 1 && k[2] == WINOGRAD_KERNEL && k[3] == WINOGRAD_KERNEL &&
           c->stride[1] * c->stride[2] == 1 && c->dilation[1] * c->dilation[2] == 1 &&
           request->input[0].type == PONS_BF16 && request->input[1].type == PONS_BF16 &&
           request->output[0].type == PONS_F32;
}

static void read_shapes(winograd_weight *g, const pons_request *request)
{
    const int64_t *x = request->input[0].shape.extent, *y = request->input[1].shape.extent;
    const int64_t *dw = request->output[0].shape.extent;
    weight_lines *w = &g->lines;

    w->c = *(const pons_convolution *)request->attributes;
    for (int i = 0; i < PLANE_AXES; i++) {
        g->x[i] = (int)x[2 + i];
        g->y[i] = (int)y[2 + i];
        g->low[i] = w->c.pad_low[1 + i];
        w->c.pad_low[1 + i] = w->c.pad_high[1 + i] = 0;
        w->kernel[1 + i] = 1;
    }
    for (int i = 0; i <= PLANES; i++) {
        w->x[i] = (int)x[i];
        w->y[i] = (int)y[i];
    }
    w->x[LINES] = w->y[LINES] = (g->y[ALONG_H] + 1) / MAKES;
    w->x_width = w->y_width = (g->y[ALONG_W] + 1) / MAKES;
    w->kernel[0] = (int)dw[1];
    w->groups = FACTORS;
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
