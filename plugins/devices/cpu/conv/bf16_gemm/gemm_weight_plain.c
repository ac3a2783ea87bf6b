/*
 * gemm_weight_plain.c - the form of weight gradients that packs the elements of the tensors
 * (gemm_weight_rows.h).
 */
#include "cpu/conv/bf16_gemm/gemm_weight_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

enum {
    AHEAD = 1 << 11,        /* bytes that are prefetched before they are packed */
    NUMBER = sizeof(uint16_t)
};

/* The address of a line's first voxel. */
static int64_t line_offset(const int extent[AXES], int64_t line, const int at[AXES])
{
    return (((int64_t)at[CASES] * extent[PLANES] + at[PLANES]) * extent[LINES] + at[LINES]) * line;
}

/* The addresses of GEMM_ELEMENTS voxels from 'at' on, line behind line, and of zeros between. */
static void find_voxels(const gemm_weight_rows *w, const char *y, const gemm_weight_span *s,
                        int64_t voxel, int64_t at, const char **to)
{
    int width = 2 * w->pairs;
    int64_t lines = gemm_weight_line_count(s), line = at / width;
    int j = (int)(at % width);

    for (int i = 0; i < GEMM_ELEMENTS; line++, j = 0) {
        const char *from = NULL;
        int end = min_int(width, j + GEMM_ELEMENTS - i), last = 0;
        if (line < lines) {
            int p[AXES];
            gemm_weight_line_of(s, line, p);
            from = y + line_offset(w->y, w->y_width * voxel, p);
            last = min_int(end, w->y_width);
        }
        for (; j < last; j++)
            to[i++] = from + j * voxel;
        for (; j < end; j++)
            to[i++] = w->zero;
    }
}

/* Prefetch into the L1 cache. */
static void ask_for(const char *from, int64_t size)
{
    for (int64_t i = 0; i < size; i += 64)
        __builtin_prefetch(from + i);
}

static void pack_y(const gemm_weight_rows *w, const char *y, const gemm_weight_span *s,
                   int64_t block, char *to)
{
    const char *voxel[GEMM_ELEMENTS];
    int64_t size = (int64_t)NUMBER * w->groups * w->outs;

    find_voxels(w, y, s, size, block * GEMM_ELEMENTS, voxel);
    ask_for(voxel[0] + AHEAD, GEMM_ELEMENTS * size);
    for (int g = 0; g < w->groups; g++)
        for (int o = 0; o < w->out_tiles; o++, to += GEMM_TILE * w->pitch)
            gemm_pack_rows(to, w->pitch, voxel, g * w->outs + o * GEMM_TILE,
                           min_int(GEMM_TILE, w->outs - o * GEMM_TILE));
}

/* The elements of a line of x in strip k; those outside of the line are zeros. */
static gemm_line line_of_strip(const gemm_weight_rows *w, int k)
{
    int stride = w->c.stride[2], at = k * w->c.dilation[2] - w->c.pad_low[2];
    int numbers = w->y_width + 2 * (w->x_pairs - w->pairs);
    int64_t voxel = (int64_t)NUMBER * w->groups * w->ins;

    return (gemm_line){
        .start = at * voxel, .step = stride * voxel, .pairs = w->x_pairs,
        .first = at < 0 ? (stride - 1 - at) / stride : 0,
        .end = at >= w->x_width ? 0 : min_int((w->x_width - 1 - at) / stride + 1, numbers),
    };
}

static void pack_x(const gemm_weight_rows *w, const char *x, const int at[AXES], char *to)
{
    int64_t size = (int64_t)NUMBER * w->groups * w->ins * w->x_width;
    const char *from = x + line_offset(w->x, size, at);

    ask_for(from + AHEAD, size);
    for (int g = 0; g < w->groups; g++)
        for (int i = 0; i < w->in_tiles; i++)
            for (int k = 0; k < w->strips; k++, to += w->strip) {
                int64_t channel = g * w->ins + i * GEMM_TILE;
                gemm_line line = line_of_strip(w, k);
                gemm_pack_line(to, from + channel * NUMBER, &line,
                               min_int(GEMM_TILE, w->ins - i * GEMM_TILE));
            }
}

static void write(const gemm_weight_rows *w, const gemm_weight_place *at, const float *sums,
                  int64_t apart, float *weight)
{
    int rows = w->kernel[0] * w->kernel[1], end = min_int(w->outs, at->end_out * GEMM_TILE);

    (void)apart;
    for (int o = at->first_out * GEMM_TILE; o < end; o++, sums += WEIGHT_ROW)
        for (int n = at->first; n < at->end; n++) {
            int tap = (at->d * w->kernel[1] + at->h) * w->kernel[2] + n % w->kernel[2];
            int in = n / w->kernel[2] * GEMM_TILE;
            int64_t row = ((int64_t)at->group * w->outs + o) * rows * w->kernel[2] + tap;
            float *to = weight + row * w->ins + in;
            int count = min_int(GEMM_TILE, w->ins - in);

            memcpy(to, sums + (n - at->first) * GEMM_TILE, (size_t)count * sizeof *to);
        }
}

static const gemm_weight_form plain = { .pack_y = pack_y, .pack_x = pack_x, .write = write };

static void read_shapes(gemm_weight_rows *w, const conv_problem *p)
{
    w->c = *p->attributes;
    w->groups = w->y_sets = w->x_sets = p->groups;
    w->ins = p->x.channels / p->groups;
    w->outs = p->y.channels / p->groups;
    w->x[CASES] = w->y[CASES] = p->cases;
    w->x[PLANES] = p->x.extent[0];
    w->y[PLANES] = p->y.extent[0];
    w->x[LINES] = p->x.extent[1];
    w->y[LINES] = p->y.extent[1];
    memcpy(w->kernel, p->kernel, sizeof w->kernel);
    w->x_width = p->x.extent[2];
    w->y_width = p->y.extent[2];
}

pons_status bf16_gemm_prepare_rows(const gemm_engine *unit, int threads, const conv_problem *p,
                                   pons_kernel *kernel, pons_error *err)
{
    gemm_weight_rows *w = calloc(1, sizeof *w);

    if (w == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    w->form = &plain;
    w->unit = unit;
    w->threads = threads;
    w->together = 2;
    read_shapes(w, p);
    return gemm_weight_rows_prepare(w, kernel, err);
}
