/*
 * direct_weight_gradient.c - the weight gradient of direct.h.
 *
 * A task is one block of outputs over one share of the tiles. It sums into its own part of a
 * partial result. The number of partial results and their order depend on the extents alone.
 */
#include "cpu/conv/direct/direct.h"

#include "cpu/cpu.h"

#include <string.h>

#include "base/integer.h"

/* The greatest size of all partial results in floats, and their greatest number. */
#define WEIGHT_PARTIAL_FLOATS ((int64_t)1 << 22)
#define WEIGHT_PARTIALS 32

void direct_weight_gradient_plan(direct *d)
{
    int tiles = d->cases * d->tiles[0] * d->tiles[1];
    int64_t most = WEIGHT_PARTIAL_FLOATS / d->packed_size;

    d->partials = most < 1 ? 1 : most > WEIGHT_PARTIALS ? WEIGHT_PARTIALS : (int)most;
    d->partials = min_int(tiles, d->partials);
    d->line_size = (int64_t)d->tile[0] * d->tile[1] * d->grid[2] * 2 * d->lanes->lanes;
}

size_t direct_weight_gradient_scratch(const direct *d)
{
    return (size_t)(d->partials * d->packed_size +
                    d->threads * (d->buffer_size + d->line_size)) * sizeof(float);
}

typedef struct work {
    const direct *d;
    const pons_call *call;
    float *partial, *area;
} work;

/* The planes and rows of a tile that lie inside the grid. */
static void tile_extent(const direct *d, const int tile[2], int extent[2])
{
    for (int i = 0; i < 2; i++) {
        int left = d->grid[i] - tile[i] * d->tile[i];
        extent[i] = min_int(left, d->tile[i]);
    }
}

/* Copy one block of y's channels as floats, point after point. Padding channels are zero. */
static void fill_y(const direct *d, const void *y, int image, const int tile[2],
                   const int extent[2], int group, int block, float *to)
{
    int first = direct_block_first(d, block);
    int outs = direct_block_vectors(d, block) * d->lanes->lanes;
    int channels = min_int(d->outs - first, outs);

    for (int p = 0; p < extent[0]; p++)
        for (int r = 0; r < extent[1]; r++) {
            int64_t row = (((int64_t)image * d->grid[0] + tile[0] * d->tile[0] + p) * d->grid[1] +
                           tile[1] * d->tile[1] + r) * d->grid[2];
            for (int w = 0; w < d->grid[2]; w++, to += outs) {
                d->lanes->read[d->to.type](to, y, (row + w) * d->to.channels + group * d->outs +
                                                      first, channels);
                memset(to + channels, 0, (size_t)(outs - channels) * sizeof *to);
            }
        }
}

static void run_tile(const work *k, int64_t number, int group, int block, float *buffer, float *sum)
{
    const direct *d = k->d;
    int tile[2] = { (int)(number / d->tiles[1] % d->tiles[0]), (int)(number % d->tiles[1]) };
    int image = (int)(number / d->tiles[1] / d->tiles[0]), extent[2];
    int vectors = direct_block_vectors(d, block), outs = vectors * d->lanes->lanes;
    int64_t row = (int64_t)d->buffer[2] * d->from.channels;
    float *y = buffer + d->buffer_size;
    direct_rows rows;

    tile_extent(d, tile, extent);
    rows = (direct_rows){ extent[1], d->grid[2], row * d->step_from[1],
                          (int64_t)d->step_from[2] * d->from.channels };
    direct_fill(d, k->call->input[0], image, tile, buffer);
    fill_y(d, k->call->input[1], image, tile, extent, group, block, y);
    for (int tap = 0; tap < d->volume; tap++)
        for (int p = 0; p < extent[0]; p++)
            d->lanes->weight(sum + (int64_t)tap * d->inner * outs, &rows,
                             buffer + d->tap[tap] + group * d->inner +
                                 (int64_t)p * d->step_from[0] * d->buffer[1] * row,
                             d->inner, y + (int64_t)p * extent[1] * d->grid[2] * outs, vectors);
}

static void run_task(void *context, int64_t task, int thread)
{
    const work *k = context;
    const direct *d = k->d;
    int all = d->groups * d->blocks, group = (int)(task % all / d->blocks);
    int block = (int)(task % d->blocks), share = (int)(task / all);
    int64_t tiles = (int64_t)d->cases * d->tiles[0] * d->tiles[1];
    float *sum = k->partial + share * d->packed_size + direct_block_at(d, group, block);

    memset(sum, 0, (size_t)direct_block_vectors(d, block) * (size_t)d->lanes->lanes *
                       (size_t)d->volume * (size_t)d->inner * sizeof *sum);
    for (int64_t i = tiles * share / d->partials; i < tiles * (share + 1) / d->partials; i++)
        run_tile(k, i, group, block, k->area + thread * (d->buffer_size + d->line_size), sum);
}

/* ---- partial results to the tensor ----------------------------------------------------------- */

#define WEIGHT_PIECE ((int64_t)1 << 14)

/* Sum the partial results in a tree (R2). */
static void join_piece(void *context, int64_t i, int thread)
{
    const work *k = context;
    const direct *d = k->d;
    int64_t first = i * WEIGHT_PIECE, left = d->packed_size - first;

    for (int step = 1; step < d->partials; step *= 2)
        for (int p = 0; p + step < d->partials; p += 2 * step)
            d->lanes->add(k->partial + p * d->packed_size + first,
                          k->partial + (p + step) * d->packed_size + first,
                          min_i64(left, WEIGHT_PIECE));
}

static void write_channel(void *context, int64_t i, int thread)
{
    const work *k = context;
    const direct *d = k->d;
    int group = (int)(i / d->outs), out = (int)(i % d->outs), block = out / (2 * d->lanes->lanes);
    int outs = direct_block_vectors(d, block) * d->lanes->lanes;
    const float *from = k->partial + direct_block_at(d, group, block) + out -
                        direct_block_first(d, block);

    for (int tap = 0; tap < d->volume; tap++)
        for (int j = 0; j < d->inner; j++, from += outs)
            map_number_store(d->weight_type, k->call->output[0],
                             direct_weight_at(d, group, out, tap, j), *from);
}

pons_status direct_weight_gradient_run(const pons_kernel *kernel, const pons_call *call,
                                       pons_error *err)
{
    const direct *d = kernel->state;
    work k = { d, call, call->scratch, (float *)call->scratch + d->partials * d->packed_size };

    cpu_parallel_for(d->threads, (int64_t)d->partials * d->groups * d->blocks, run_task, &k);
    cpu_parallel_for(d->threads, ceil_div_i64(d->packed_size, WEIGHT_PIECE), join_piece, &k);
    cpu_parallel_for(d->threads, (int64_t)d->groups * d->outs, write_channel, &k);
    return PONS_OK;
}
