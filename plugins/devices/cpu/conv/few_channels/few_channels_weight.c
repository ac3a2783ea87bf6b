/*
 * few_channels_weight.c - convert the weight between the order of the tensor and that of the loops,
 * mirrored where the sides are swapped.
 */
#include "cpu/cpu.h"
#include "cpu/conv/few_channels/few_channels_internal.h"

#include <string.h>

#include "base/integer.h"

/* The offset of element (y channel, kd, kh, kw, x channel) in the tensor [O, kD, kH, kW, I]. */
static int64_t weight_at(const few_channels_plan *n, int out, int tap, int kw, int in)
{
    int positions = n->taps * n->kernel[2], position = tap * n->kernel[2] + kw;
    int ins = n->x.channels * few_channels_of_pair(n, false);
    int outs = n->y.channels * few_channels_of_pair(n, true);

    if (!n->swapped)
        return ((int64_t)out * positions + position) * ins + in;
    return ((int64_t)in * positions + positions - 1 - position) * outs + out;
}

/* [tap][j][out] or, to spread, [tap][out][j]; zero for outputs that only pad. */
static int64_t packed_at(const few_channels_plan *n, int out, int tap, int j)
{
    if (n->form == PLANAR_INPUT)
        return ((int64_t)tap * n->outs + out) * n->inner + j;
    return ((int64_t)tap * n->inner + j) * n->outs + out;
}

static float weight_read(const few_channels_plan *n, const void *weight, int64_t at)
{
    float value;

    if (n->weight_type == PONS_BF16)
        n->lanes->layout->from_bf16(&value, (const uint16_t *)weight + at, 1);
    else
        value = ((const float *)weight)[at];
    return value;
}

/* Number j of all that a tap reads of a row of x. */
static int64_t number_at(const few_channels_plan *n, int out, int tap, int j)
{
    int ins = n->x.channels * few_channels_of_pair(n, false);

    return weight_at(n, out, tap, j / ins, j % ins);
}

/* The weight of a pair: two channels of y to be spread, else two neighbours of what is read. */
static float weight_read_pair(const few_channels_plan *n, const uint16_t *weight, int out, int tap,
                              int j)
{
    bool spread = n->form == PLANAR_INPUT;
    int ins = n->x.channels * few_channels_of_pair(n, false);
    uint16_t pair[2] = { 0 };
    float number;

    for (int i = 0; i < 2; i++)
        if (spread || 2 * j + i < n->kernel[2] * ins)
            pair[i] = weight[spread ? number_at(n, 2 * out + i, tap, j)
                                    : number_at(n, out, tap, 2 * j + i)];
    memcpy(&number, pair, sizeof number);
    return number;
}

/* For each kd pairs of the first two kh, then those of the third. */
static void pack_interleaved(const few_channels_plan *n, const uint16_t *weight, float *packed)
{
    int numbers = n->kernel[2] * n->x.channels;

    for (int kd = 0; kd < n->kernel[0]; kd++, packed += (numbers + n->inner) * n->outs)
        for (int out = 0; out < n->y.channels; out++) {
            for (int j = 0; j < numbers; j++) {
                uint16_t pair[2] = { weight[number_at(n, out, kd * 3, j)],
                                     weight[number_at(n, out, kd * 3 + 1, j)] };
                memcpy(packed + j * n->outs + out, pair, sizeof pair);
            }
            for (int j = 0; j < n->inner; j++)
                packed[(numbers + j) * n->outs + out] =
                    weight_read_pair(n, weight, out, kd * 3 + 2, j);
        }
}

void few_channels_weight_pack(const few_channels_plan *n, const void *weight, float *packed)
{
    if (n->interleaved_at > 0) {
        pack_interleaved(n, weight, packed);
        return;
    }
    memset(packed, 0, (size_t)n->weights * sizeof(float));
    for (int tap = 0; tap < n->taps; tap++)
        for (int j = 0; j < n->inner; j++)
            for (int out = 0; out < n->y.channels; out++)
                packed[packed_at(n, out, tap, j)] =
                    n->bf16x2 ? weight_read_pair(n, weight, out, tap, j)
                             : weight_read(n, weight, number_at(n, out, tap, j));
}

/* ---- partial sums of all tasks to the tensor ------------------------------------------------- */

enum { PIECE = 512 }; /* elements that a task adds */

typedef struct addition {
    const few_channels_plan *n;
    float *sums;
} addition;

/* Add in a tree, whose order depends on the count of tasks alone. */
static void add_piece(void *context, int64_t piece, int thread)
{
    const addition *a = context;
    const few_channels_plan *n = a->n;
    int64_t first = piece * PIECE, rest = n->sums - first, count = min_i64(rest, PIECE);

    (void)thread;
    for (int step = 1; step < n->tasks; step *= 2)
        for (int task = 0; task + step < n->tasks; task += 2 * step) {
            float *to = a->sums + task * n->sums + first;
            const float *from = to + step * n->sums;
            for (int64_t i = 0; i < count; i++)
                to[i] += from[i];
        }
}

void few_channels_weight_add(const few_channels_plan *n, float *sums)
{
    addition a = { n, sums };

    cpu_parallel_for(n->threads, ceil_div_i64(n->sums, PIECE), add_piece, &a);
}

static float sixteen(const float *lane)
{
    float sum[FEW_CHANNELS_LANES];

    memcpy(sum, lane, sizeof sum);
    for (int step = FEW_CHANNELS_LANES / 2; step > 0; step /= 2)
        for (int i = 0; i < step; i++)
            sum[i] += sum[i + step];
    return sum[0];
}

/* [tap][j][out] or, planar, [tap][out][j]. */
static int64_t sum_at(const few_channels_plan *n, int tap, int j, int out)
{
    if (n->form == PLANAR_WEIGHT)
        return ((int64_t)tap * n->outs + out) * n->inner + j;
    return ((int64_t)tap * n->inner + j) * n->outs + out;
}

void few_channels_weight_write(const few_channels_plan *n, const float *sums, float *weight)
{
    int lanes = n->form == PLANAR_WEIGHT ? FEW_CHANNELS_LANES : 1;

    for (int tap = 0; tap < n->taps; tap++)
        for (int j = 0; j < n->inner; j++)
            for (int out = 0; out < n->y.channels; out++) {
                const float *from = sums + sum_at(n, tap, j, out) * lanes;
                weight[weight_at(n, out, tap, j / n->x.channels, j % n->x.channels)] =
                    lanes == 1 ? *from : sixteen(from);
            }
}
