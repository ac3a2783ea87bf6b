/*
 * direct.c - plan a convolution of direct.h; run convolutions and input gradients.
 *
 * A task is a tile, or one block of a tile's outputs if tiles are few. Tasks depend on the extents
 * alone. One task sums an output in a fixed order, so bits do not depend on the threads.
 */
#include "cpu/conv/direct/direct.h"

#include "cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

/* ---- plan ------------------------------------------------------------------------------------ */

/* The target size of a tile's buffer, in floats. It fits the L2 cache beside a block's weights. */
#define DIRECT_BUFFER (1 << 16)
/* The number of tiles below which each block of outputs is a task. */
#define DIRECT_TILES 64

/* The offset that kernel index k of an axis reads for a phase; false if k does not reach it. */
static bool tap_offset(const direct *d, const pons_convolution *c, int axis, int phase, int k,
                       int *offset)
{
    int at = k * c->dilation[axis] - c->pad_low[axis];

    if (d->direction != CONV_INPUT_GRADIENT) {
        *offset = at;
        return true;
    }
    *offset = (phase - at) / c->stride[axis];
    return (phase - at) % c->stride[axis] == 0;
}

/* The lowest offset and the range that all phases read along an axis. */
static void plan_reach(direct *d, const pons_convolution *c, int axis)
{
    int low = 0, high = 0, offset;
    bool any = false;

    for (int phase = 0; phase < d->step_to[axis]; phase++)
        for (int k = 0; k < d->kernel[axis]; k++) {
            if (!tap_offset(d, c, axis, phase, k, &offset))
                continue;
            low = any ? min_int(low, offset) : offset;
            high = any ? max_int(high, offset) : offset;
            any = true;
        }
    d->low[axis] = low;
    d->reach[axis] = high - low + 1;
}

static int64_t buffer_floats(const direct *d, int planes, int rows)
{
    return (int64_t)((planes - 1) * d->step_from[0] + d->reach[0]) *
           ((rows - 1) * d->step_from[1] + d->reach[1]) * d->buffer[2] * d->from.channels;
}

/* A tile takes rows, then planes, until the buffer is full. It has at least one row. */
static void plan_tiles(direct *d)
{
    d->buffer[2] = (d->grid[2] - 1) * d->step_from[2] + d->reach[2];
    d->tile[0] = d->tile[1] = 1;
    while (d->tile[1] < d->grid[1] && buffer_floats(d, 1, d->tile[1] + 1) <= DIRECT_BUFFER)
        d->tile[1]++;
    while (d->tile[1] == d->grid[1] && d->tile[0] < d->grid[0] &&
           buffer_floats(d, d->tile[0] + 1, d->tile[1]) <= DIRECT_BUFFER)
        d->tile[0]++;
    for (int i = 0; i < 2; i++) {
        d->tiles[i] = ceil_div_int(d->grid[i], d->tile[i]);
        d->tile[i] = ceil_div_int(d->grid[i], d->tiles[i]);
        d->buffer[i] = (d->tile[i] - 1) * d->step_from[i] + d->reach[i];
    }
    d->buffer_size = round_up_i64(buffer_floats(d, d->tile[0], d->tile[1]), 16);
}

static bool plan_taps(direct *d, const pons_convolution *c)
{
    int taps = 0;

    d->phases = d->step_to[0] * d->step_to[1] * d->step_to[2];
    d->phase_first = calloc((size_t)d->phases + 1, sizeof *d->phase_first);
    d->tap_kernel = calloc((size_t)d->volume, sizeof *d->tap_kernel);
    d->tap = calloc((size_t)d->volume, sizeof *d->tap);
    if (d->phase_first == NULL || d->tap_kernel == NULL || d->tap == NULL)
        return false;
    for (int phase = 0; phase < d->phases; phase++) {
        int of[3] = { phase / d->step_to[2] / d->step_to[1], phase / d->step_to[2] % d->step_to[1],
                      phase % d->step_to[2] };
        for (int k = 0; k < d->volume; k++) {
            int at[3] = { k / d->kernel[2] / d->kernel[1], k / d->kernel[2] % d->kernel[1],
                          k % d->kernel[2] };
            int offset[3];
            if (!tap_offset(d, c, 0, of[0], at[0], &offset[0]) ||
                !tap_offset(d, c, 1, of[1], at[1], &offset[1]) ||
                !tap_offset(d, c, 2, of[2], at[2], &offset[2]))
                continue;
            d->tap_kernel[taps] = k;
            d->tap[taps++] = (((int64_t)(offset[0] - d->low[0]) * d->buffer[1] + offset[1] -
                               d->low[1]) * d->buffer[2] + offset[2] - d->low[2]) *
                             d->from.channels;
        }
        d->phase_first[phase + 1] = taps;
    }
    return true;
}

static void plan_blocks(direct *d)
{
    int lanes = d->lanes->lanes;

    d->outs_padded = round_up_int(d->outs, lanes);
    d->blocks = ceil_div_int(d->outs_padded, 2 * lanes);
    d->line_size = (int64_t)d->grid[2] * 2 * lanes;
    d->packed_size = (int64_t)d->groups * d->outs_padded * d->volume * d->inner;
    d->by_block = d->cases * d->tiles[0] * d->tiles[1] < DIRECT_TILES;
}

/* ---- weights --------------------------------------------------------------------------------- */

int64_t direct_weight_at(const direct *d, int group, int out, int tap, int j)
{
    bool gradient = d->direction == CONV_INPUT_GRADIENT;
    int o = gradient ? group * d->inner + j : group * d->outs + out;

    return ((int64_t)o * d->volume + d->tap_kernel[tap]) * (gradient ? d->outs : d->inner) +
           (gradient ? out : j);
}

typedef struct packing {
    const direct *d;
    const void *from;
    float *to;
} packing;

/* Pack one tap of one block as [j][o]. Padding outputs are zero. */
static void pack_tap(void *context, int64_t i, int thread)
{
    const packing *p = context;
    const direct *d = p->d;
    int tap = (int)(i % d->volume), block = (int)(i / d->volume % d->blocks);
    int group = (int)(i / d->volume / d->blocks), first = direct_block_first(d, block);
    int outs = direct_block_vectors(d, block) * d->lanes->lanes;
    float *to = p->to + direct_block_at(d, group, block) + (int64_t)tap * d->inner * outs;

    for (int o = 0; o < outs; o++)
        for (int j = 0; j < d->inner; j++)
            to[(int64_t)j * outs + o] =
                first + o >= d->outs ? 0
                    : map_number_load(d->weight_type, p->from,
                                      direct_weight_at(d, group, first + o, tap, j));
}

static pons_status direct_pack(const pons_kernel *kernel, int input, const void *from, void *to,
                               pons_error *err)
{
    packing p = { kernel->state, from, to };

    cpu_parallel_for(p.d->threads, (int64_t)p.d->groups * p.d->blocks * p.d->volume, pack_tap, &p);
    return PONS_OK;
}

/* ---- one tile -------------------------------------------------------------------------------- */

/* Fill a row of the buffer from row (plane, row) of the image. Positions outside it are zero. */
static void fill_row(const direct *d, const void *from, int image, int plane, int row, float *to)
{
    int channels = d->from.channels, n = d->from.extent[2];
    int first = max_int(d->low[2], 0), end = min_int(d->low[2] + d->buffer[2], n);
    int64_t at = ((int64_t)image * d->from.extent[0] + plane) * d->from.extent[1] + row;
    int64_t before = (int64_t)(first - d->low[2]) * channels, size = d->buffer[2];

    size *= channels;
    if (plane < 0 || plane >= d->from.extent[0] || row < 0 || row >= d->from.extent[1] ||
        end <= first) {
        memset(to, 0, (size_t)size * sizeof *to);
        return;
    }
    memset(to, 0, (size_t)before * sizeof *to);
    d->lanes->read[d->from.type](to + before, from, (at * n + first) * channels,
                                 (int64_t)(end - first) * channels);
    before += (int64_t)(end - first) * channels;
    memset(to + before, 0, (size_t)(size - before) * sizeof *to);
}

void direct_fill(const direct *d, const void *from, int image, const int tile[2], float *buffer)
{
    int plane = tile[0] * d->tile[0] * d->step_from[0] + d->low[0];
    int row = tile[1] * d->tile[1] * d->step_from[1] + d->low[1];

    for (int p = 0; p < d->buffer[0]; p++)
        for (int r = 0; r < d->buffer[1]; r++)
            fill_row(d, from, image, plane + p, row + r,
                     buffer + ((int64_t)p * d->buffer[1] + r) * d->buffer[2] * d->from.channels);
}

typedef struct work {
    const direct *d;
    const pons_call *call;
    const float *weight;
    float *area;     /* a buffer and a line for each thread */
} work;

/* Compute one block of outputs of a tile for one phase. */
static void run_phase(const work *k, int image, const int tile[2], int group, int block, int phase,
                      const float *buffer, float *line)
{
    const direct *d = k->d;
    int of[3] = { phase / d->step_to[2] / d->step_to[1], phase / d->step_to[2] % d->step_to[1],
                  phase % d->step_to[2] };
    int vectors = direct_block_vectors(d, block), first = direct_block_first(d, block);
    int outs = vectors * d->lanes->lanes, channels = min_int(outs, d->outs - first);
    int taps = d->phase_first[phase + 1] - d->phase_first[phase];
    int width = ceil_div_int(d->to.extent[2] - of[2], d->step_to[2]);
    const float *weight = k->weight + direct_block_at(d, group, block) +
                          (int64_t)d->phase_first[phase] * d->inner * outs;

    for (int i = 0; i < d->tile[0] * d->tile[1]; i++) {
        int p = i / d->tile[1], r = i % d->tile[1];
        int plane = (tile[0] * d->tile[0] + p) * d->step_to[0] + of[0];
        int row = (tile[1] * d->tile[1] + r) * d->step_to[1] + of[1];
        int64_t at = ((int64_t)image * d->to.extent[0] + plane) * d->to.extent[1] + row;
        const float *x = buffer + ((int64_t)p * d->step_from[0] * d->buffer[1] +
                                   r * d->step_from[1]) * d->buffer[2] * d->from.channels +
                         group * d->inner;
        if (plane >= d->to.extent[0] || row >= d->to.extent[1] || width <= 0)
            continue;
        d->lanes->forward(line, width, x, (int64_t)d->step_from[2] * d->from.channels, taps,
                          d->tap + d->phase_first[phase], d->inner, weight, vectors);
        for (int w = 0; w < width; w++)
            d->lanes->write[d->to.type](k->call->output[0],
                                        (at * d->to.extent[2] + w * d->step_to[2] + of[2]) *
                                            d->to.channels + group * d->outs + first,
                                        line + (int64_t)w * outs, channels);
    }
}

static void run_task(void *context, int64_t task, int thread)
{
    const work *k = context;
    const direct *d = k->d;
    int all = d->groups * d->blocks, of_tile = d->by_block ? all : 1;
    int64_t at = task / of_tile;
    int tile[2] = { (int)(at / d->tiles[1] % d->tiles[0]), (int)(at % d->tiles[1]) };
    int image = (int)(at / d->tiles[1] / d->tiles[0]);
    int first = d->by_block ? (int)(task % of_tile) : 0, end = d->by_block ? first + 1 : all;
    float *buffer = k->area + thread * (d->buffer_size + d->line_size);

    direct_fill(d, k->call->input[0], image, tile, buffer);
    for (int b = first; b < end; b++)
        for (int phase = 0; phase < d->phases; phase++)
            run_phase(k, image, tile, b / d->blocks, b % d->blocks, phase, buffer,
                      buffer + d->buffer_size);
}

static pons_status direct_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const direct *d = kernel->state;
    work k = { d, call, call->input[1], call->scratch };

    if (kernel->pack_size[1] == 0) {
        k.weight = call->scratch;
        k.area += d->packed_size;
        direct_pack(kernel, 1, call->input[1], call->scratch, err);
    }
    cpu_parallel_for(d->threads, (int64_t)d->cases * d->tiles[0] * d->tiles[1] *
                                 (d->by_block ? d->groups * d->blocks : 1), run_task, &k);
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

static void direct_free(pons_kernel *kernel)
{
    direct *d = kernel->state;

    free(d->phase_first);
    free(d->tap_kernel);
    free(d->tap);
    free(d);
    kernel->state = NULL;
}

static void describe(direct *d, const conv_problem *p)
{
    bool input = p->direction == CONV_INPUT_GRADIENT;

    d->direction = p->direction;
    d->from = *conv_from(p);
    d->to = *conv_to(p);
    d->weight_type = p->weight_type;
    d->cases = p->cases;
    d->groups = p->groups;
    d->inner = d->from.channels / p->groups;
    d->outs = d->to.channels / p->groups;
    d->volume = p->taps;
    for (int i = 0; i < 3; i++) {
        d->kernel[i] = p->kernel[i];
        d->step_from[i] = input ? 1 : p->stride[i];
        d->step_to[i] = input ? p->stride[i] : 1;
        d->grid[i] = ceil_div_int(d->to.extent[i], d->step_to[i]);
        plan_reach(d, p->attributes, i);
    }
}

/* Weights of a parameter are packed once a step. The key identifies their layout. */
static void want_packed(const direct *d, const conv_problem *p, pons_kernel *kernel)
{
    uint64_t key = 0x646972656374; /* 'direct' */
    const int parts[] = { (int)p->request->kind, d->lanes->lanes, d->groups, d->phases,
                          d->phases > 1 ? d->tap_kernel[0] : 0 };

    if (!p->packable)
        return;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        key = (key ^ (uint64_t)parts[i]) * UINT64_C(0x100000001b3);
    for (int i = 0; i < d->volume; i++)
        key = (key ^ (uint64_t)d->tap_kernel[i]) * UINT64_C(0x100000001b3);
    kernel->pack_size[1] = (size_t)d->packed_size * sizeof(float);
    kernel->pack_key[1] = key;
    kernel->pack = direct_pack;
}

bool direct_supports(const conv_problem *p)
{
    return conv_type_supported(p->x.type) && conv_type_supported(p->y.type)
        && conv_type_supported(p->weight_type);
}

pons_status direct_prepare(const cpu_device *cpu, const conv_problem *p, pons_kernel *kernel,
                           pons_error *err)
{
    bool weight = p->direction == CONV_WEIGHT_GRADIENT;
    direct *d = calloc(1, sizeof *d);

    if (d == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", p->request->name);
    *d = (direct){ .lanes = cpu->direct, .threads = cpu->threads };
    kernel->state = d;
    describe(d, p);
    plan_tiles(d);
    plan_blocks(d);
    if (!plan_taps(d, p->attributes)) {
        direct_free(kernel);
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", p->request->name);
    }
    if (weight) {
        direct_weight_gradient_plan(d);
        kernel->scratch_size = direct_weight_gradient_scratch(d);
    } else {
        want_packed(d, p, kernel);
        kernel->scratch_size = (size_t)(d->threads * (d->buffer_size + d->line_size) +
                                        (kernel->pack_size[1] > 0 ? 0 : d->packed_size)) *
                               sizeof(float);
    }
    kernel->run = weight ? direct_weight_gradient_run : direct_run;
    kernel->free = direct_free;
    return PONS_OK;
}

const conv_operations direct_operations = { .supports = direct_supports,
                                            .prepare = direct_prepare };
