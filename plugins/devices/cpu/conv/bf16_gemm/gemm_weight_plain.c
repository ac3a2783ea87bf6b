/*
 * gemm_weight_plain.c - gradients by the weight from the tensors as they stand
 * (gemm_weight_rows.h).
 */
#include "cpu/conv/bf16_gemm/gemm_weight_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum {
    AHEAD = 1 << 11,        /* bytes that are asked for before they are packed */
    NUMBER = sizeof(uint16_t)
};

/* Where a line's first voxel lies. */
static int64_t line_offset(const int extent[AXES], int64_t line, const int at[AXES])
{
    return (((int64_t)at[CASES] * extent[PLANES] + at[PLANES]) * extent[LINES] + at[LINES]) * line;
}

/* The addresses of WIDE_NUMBERS voxels from 'at' on, line behind line, and of zeros between. */
static void find_voxels(const weight_lines *w, const char *y, const weight_span *s, int64_t voxel,
                        int64_t at, const char **to)
{
    int width = 2 * w->pairs;
    int64_t lines = weight_line_count(s), line = at / width;
    int j = (int)(at % width);

    for (int i = 0; i < WIDE_NUMBERS; line++, j = 0) {
        const char *from = NULL;
        int end = min_int(width, j + WIDE_NUMBERS - i), last = 0;
        if (line < lines) {
            int p[AXES];
            weight_line_of(s, line, p);
            from = y + line_offset(w->y, w->y_width * voxel, p);
            last = min_int(end, w->y_width);
        }
        for (; j < last; j++)
            to[i++] = from + j * voxel;
        for (; j < end; j++)
            to[i++] = w->zero;
    }
}

/* Into the first cache. */
static void ask_for(const char *from, int64_t size)
{
    for (int64_t i = 0; i < size; i += 64)
        __builtin_prefetch(from + i);
}

static void pack_y(const weight_lines *w, const char *y, const weight_span *s, int64_t block,
                   char *to)
{
    const char *voxel[WIDE_NUMBERS];
    int64_t size = (int64_t)NUMBER * w->groups * w->outs;

    find_voxels(w, y, s, size, block * WIDE_NUMBERS, voxel);
    ask_for(voxel[0] + AHEAD, WIDE_NUMBERS * size);
    for (int g = 0; g < w->groups; g++)
        for (int o = 0; o < w->out_tiles; o++, to += WIDE_TILE * w->pitch)
            wide_pack_rows(to, w->pitch, voxel, g * w->outs + o * WIDE_TILE,
                           min_int(WIDE_TILE, w->outs - o * WIDE_TILE));
}

/* Which elements of a line of x strip k has; those outside of it are zeros. */
static wide_line line_of_strip(const weight_lines *w, int k)
{
    int stride = w->c.stride[2], at = k * w->c.dilation[2] - w->c.pad_low[2];
    int numbers = w->y_width + 2 * (w->x_pairs - w->pairs);
    int64_t voxel = (int64_t)NUMBER * w->groups * w->ins;

    return (wide_line){
        .start = at * voxel, .step = stride * voxel, .pairs = w->x_pairs,
        .first = at < 0 ? (stride - 1 - at) / stride : 0,
        .end = at >= w->x_width ? 0 : min_int((w->x_width - 1 - at) / stride + 1, numbers),
    };
}

static void pack_x(const weight_lines *w, const char *x, const int at[AXES], char *to)
{
    int64_t size = (int64_t)NUMBER * w->groups * w->ins * w->x_width;
    const char *from = x + line_offset(w->x, size, at);

    ask_for(from + AHEAD, size);
    for (int g = 0; g < w->groups; g++)
        for (int i = 0; i < w->in_tiles; i++)
            for (int k = 0; k < w->strips; k++, to += w->strip) {
                int64_t channel = g * w->ins + i * WIDE_TILE;
                wide_line line = line_of_strip(w, k);
                wide_pack_line(to, from + channel * NUMBER, &line,
                               min_int(WIDE_TILE, w->ins - i * WIDE_TILE));
            }
}

static void write(const weight_lines *w, const weight_place *at, const float *sums, int64_t apart,
                  float *weight)
{
    int rows = w->kernel[0] * w->kernel[1], end = min_int(w->outs, at->end_out * WIDE_TILE);

    (void)apart;
    for (int o = at->first_out * WIDE_TILE; o < end; o++, sums += WEIGHT_ROW)
        for (int n = at->first; n < at->end; n++) {
            int tap = (at->d * w->kernel[1] + at->h) * w->kernel[2] + n % w->kernel[2];
            int in = n / w->kernel[2] * WIDE_TILE;
            int64_t row = ((int64_t)at->group * w->outs + o) * rows * w->kernel[2] + tap;
            float *to = weight + row * w->ins + in;
            int count = min_int(WIDE_TILE, w->ins - in);

            memcpy(to, sums + (n - at->first) * WIDE_TILE, (size_t)count * sizeof *to);
        }
}

static const weight_form plain = { .name = "own", .pack_y = pack_y, .pack_x = pack_x,
                                   .write = write };

static void read_shapes(weight_lines *w, const pons_request *request)
{
    const int64_t *x = request->input[0].shape.extent, *y = request->input[1].shape.extent;
    const int64_t *dw = request->output[0].shape.extent;

    w->c = *(const pons_convolution *)request->attributes;
    w->groups = w->y_sets = w->x_sets = w->c.groups;
    w->ins = (int)dw[4];
    w->outs = (int)dw[0] / w->groups;
    for (int i = 0; i < 3; i++) {
        w->x[i] = (int)x[i];
        w->y[i] = (int)y[i];
        w->kernel[i] = (int)dw[1 + i];
    }
    w->x_width = (int)x[3];
    w->y_width = (int)y[3];
}

pons_status wide_prepare_lines(const wide_unit *unit, int threads, const pons_request *request,
                               pons_kernel *kernel, bool *supported, pons_error *err)
{
    weight_lines *w = calloc(1, sizeof *w);

    *supported = false;
    if (w == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    w->form = &plain;
    w->unit = unit;
    w->threads = threads;
    read_shapes(w, request);
    return wide_lines_prepare(w, kernel, supported, err);
}
