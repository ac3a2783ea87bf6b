/*
 * few_channels.c - plan the convolutions of few_channels.h.
 *
 * Work is divided into bands of rows in blocks of planes. Blocks, bands and the order of sums
 * depend on the extents alone, never on the threads.
 *
 * With stride 1 the input gradient is a convolution of the output's gradient with the mirrored
 * kernel. So both directions take the form that suits the sides better. Then the sides are swapped
 * ('swapped'), paddings become k - 1 - pad, and weights are read or written mirrored.
 *
 * If the processor multiplies pairs of bf16, the loops take a pair as one element:
 *
 *   forward           two neighbours of the elements that a kernel reads of a row; the last one
 *                     of an odd count is multiplied by a weight of zero
 *   input gradient    two neighbouring channels of y
 *   weight gradient   two neighbouring rows of both sides
 *
 * Kernels of 3 rows that read an odd count of elements of each pair the elements of the first two
 * rows instead, which leaves fewer unpaired ones.
 */
#include "cpu/conv/few_channels/few_channels_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

static void few_channels_free(pons_kernel *kernel)
{
    few_channels_plan *n = kernel->state;
    free(n->shift);
    free(n);
}

static few_channels_side side_of(const conv_image *s)
{
    int64_t row = (int64_t)s->extent[2] * s->channels;

    return (few_channels_side){ s->type, { s->extent[0], s->extent[1], s->extent[2] }, s->channels,
                                s->extent[1] * row, row, 0 };
}

static bool choose_form(few_channels_plan *n, const conv_problem *p)
{
    bool few_in = p->x.channels <= FEW_CHANNELS_MAX, few_out = p->y.channels <= FEW_CHANNELS_MAX;
    bool dense = !p->strided;

    if (!few_in && !few_out)
        return false;
    switch (p->direction) {
    case CONV_FORWARD:
        n->swapped = few_out && !few_in && dense;
        n->form = n->swapped ? PLANAR_INPUT : few_out ? PLANAR_FORWARD : VECTOR_FORWARD;
        break;
    case CONV_INPUT_GRADIENT:
        n->swapped = !few_in || (few_out && dense);
        n->form = !n->swapped ? PLANAR_INPUT : few_in ? PLANAR_FORWARD : VECTOR_FORWARD;
        break;
    default:
        n->swapped = !few_in;
        n->form = few_in && few_out ? PLANAR_WEIGHT : VECTOR_WEIGHT;
        break;
    }
    return !n->swapped || dense;
}

static void swap_sides(few_channels_plan *n)
{
    few_channels_side x = n->x;

    n->x = n->y;
    n->y = x;
    for (int i = 0; i < 3; i++)
        n->pad[i] = n->kernel[i] - 1 - n->pad[i];
}

/* Channels of rows that are taken apart by channels come in pairs if their count is even. */
static bool suits_bf16x2(const few_channels_plan *n)
{
    const few_channels_side *s = n->form == PLANAR_INPUT ? &n->y : &n->x;

    if (few_channels_is_weight(n))
        return n->x.type == PONS_BF16 && n->y.type == PONS_BF16;
    return s->type == PONS_BF16 && n->weight_type == PONS_BF16 &&
           (n->form == VECTOR_FORWARD || s->channels % 2 == 0);
}

static void pair_channels(few_channels_side *s)
{
    s->type = PONS_F32; /* as large as a pair */
    s->channels /= 2;
    s->plane /= 2;
    s->row /= 2;
}

/* Loops over pairs that read or write bf16 themselves. */
static void plan_loops(few_channels_plan *n)
{
    bool three = n->kernel[2] == 3 && n->pad[2] == 1, half = n->y.type == PONS_BF16;

    n->upsample2 = n->form == PLANAR_INPUT && three && n->stride[2] == 2;
    n->in_place = n->form == PLANAR_FORWARD && three && n->stride[2] == 1 && half &&
                n->y.extent[2] == n->x.extent[2] && n->x.channels == 2 && n->y.channels <= 2;
    n->interleaved = n->form == VECTOR_FORWARD && half && n->y.channels % FEW_CHANNELS_LANES == 0;
    if (n->interleaved && n->kernel[1] == 3 && n->kernel[2] * n->x.channels % 2 == 1)
        n->x.pair_stride = 1;
}

static void plan_bf16x2(few_channels_plan *n)
{
    const few_channels_bf16x2 *bf16x2 = n->lanes->bf16x2;

    n->bf16x2 = bf16x2 != NULL && suits_bf16x2(n);
    n->vector_loops = n->bf16x2 ? bf16x2->vector_loops : n->lanes->vector_loops;
    n->planar = n->bf16x2 ? bf16x2->planar : n->lanes->planar;
    n->to_bf16 = bf16x2 != NULL ? bf16x2->to_bf16 : n->lanes->layout->to_bf16;
    if (n->bf16x2)
        plan_loops(n);
    if (n->bf16x2 && few_channels_is_weight(n)) {
        n->x.pair_stride = n->stride[1];
        n->y.pair_stride = 1;
    } else if (n->bf16x2 && n->form != VECTOR_FORWARD) {
        pair_channels(n->form == PLANAR_INPUT ? &n->y : &n->x);
    }
}

/* Extents of buffers. A planar row must hold what a shifted read past the last position sees. */
static void plan_rows(few_channels_plan *n)
{
    bool vector_loops = n->form == VECTOR_FORWARD || n->form == VECTOR_WEIGHT;
    int s = n->stride[2], reach = (n->y.extent[2] - 1) * s + n->kernel[2];
    int padded = max_int(n->pad[2] + n->x.extent[2], reach) + s;
    int64_t widest = max_int(round_up_int(n->y.extent[2], FEW_CHANNELS_LANES), ceil_div_int(padded,
                                                                                            s));

    n->taps = n->kernel[0] * n->kernel[1];
    n->gaps = few_channels_is_weight(n)
        && few_channels_rows_together(n) * n->stride[1] > n->kernel[1];
    n->inner = n->kernel[2] * n->x.channels;
    n->outs = vector_loops ? round_up_int(n->y.channels, FEW_CHANNELS_LANES) : n->y.channels;
    n->left_pad = s == 1 ? round_up_int(n->pad[2], FEW_CHANNELS_LANES) : 0;
    n->pitch = round_up_int((int)widest + n->kernel[2] + n->left_pad, FEW_CHANNELS_LANES);
    n->y_pitch = round_up_int(n->y.extent[2] + n->upsample2, FEW_CHANNELS_LANES);
    if (n->form == PLANAR_INPUT)
        n->pitch += 2 * FEW_CHANNELS_LANES;
    n->line = (int64_t)max_int(padded * n->x.channels, n->y.extent[2] * n->y.channels) +
              (int64_t)s * n->x.channels + 2 * FEW_CHANNELS_LANES;
    if (n->form == PLANAR_INPUT)
        n->row = (int64_t)n->y_pitch * n->y.channels;
    else if (vector_loops)
        n->row = round_up_int(padded * n->x.channels + FEW_CHANNELS_LANES, FEW_CHANNELS_LANES);
    else
        n->row = (int64_t)n->pitch * s * n->x.channels + n->left_pad;
    if (n->bf16x2 && n->form == VECTOR_FORWARD) {
        n->inner = ceil_div_int(n->inner, 2);
        n->row = round_up_int(ceil_div_int(padded * n->x.channels, 2) + FEW_CHANNELS_LANES,
                              FEW_CHANNELS_LANES);
    }
    if (n->in_place)
        n->row = n->x.row;
    if (n->interleaved && n->x.pair_stride > 0) {
        n->interleaved_at = (int)n->row;
        n->row += round_up_int(padded * n->x.channels + FEW_CHANNELS_LANES, FEW_CHANNELS_LANES);
    }
}

enum {
    AREA = 3 << 16, /* floats of buffered rows that fit the L2 cache */
    PLANES = 8     /* of a task; tasks read the planes between them twice */
};

/* Planes or rows that 'count' of the output's read along an axis, at most. */
static int reads(const few_channels_plan *n, int axis, int count)
{
    if (n->form == PLANAR_INPUT)
        return min_int((count + n->kernel[axis] - 2) / n->stride[axis] + 1, n->y.extent[axis]);
    return min_int((count - 1) * n->stride[axis] + n->kernel[axis],
                   n->x.extent[axis] + (axis == 1 ? n->x.pair_stride : 0));
}

static void plan_tasks(few_channels_plan *n)
{
    bool spread = n->form == PLANAR_INPUT;
    const int *extent = spread ? n->x.extent : n->y.extent;
    int step = spread ? n->stride[1] : 1;

    n->ring = n->upsample2 || n->interleaved;
    n->block = n->ring ? PLANES * (spread ? n->stride[0] : 1) : spread ? 2 * n->stride[0] : 4;
    if (few_channels_is_weight(n))
        n->block = max_int(n->block, ceil_div_int(extent[0] * n->cases, 64));
    n->block = min_int(n->block, extent[0]);
    n->planes = reads(n, 0, n->ring ? 1 : n->block);
    n->band = extent[1];
    while (!few_channels_is_weight(n) && n->band > 8 * step &&
           n->planes * reads(n, 1, n->band) * n->row > AREA)
        n->band = round_up_int(ceil_div_int(n->band, 2), step);
    n->rows = reads(n, 1, n->band);
    n->plane = n->row * n->rows;
    if (n->in_place) {
        n->planes = n->x.extent[0];
        n->plane = n->x.plane;
    }
    n->blocks = ceil_div_int(extent[0], n->block);
    n->bands = ceil_div_int(extent[1], n->band);
    n->tasks = n->blocks * n->bands * n->cases;
}

static void plan_memory(few_channels_plan *n)
{
    int64_t other = n->form == PLANAR_INPUT
                        ? (int64_t)n->pitch * (n->inner + n->stride[2] * n->x.channels) +
                              4 * FEW_CHANNELS_MARGIN
                        : max_int(n->y.extent[2] * n->outs, 2 * n->pitch * n->y.channels);

    if (n->form == PLANAR_WEIGHT)
        other = (int64_t)n->y_pitch * n->outs * ceil_div_int(n->y.extent[1],
                                                             few_channels_rows_together(n));
    n->weights = few_channels_is_weight(n) ? 0 : (int64_t)n->taps * n->inner * n->outs;
    n->sums = few_channels_is_weight(n) ? (int64_t)n->taps * n->inner * n->outs *
                                        (n->form == PLANAR_WEIGHT ? FEW_CHANNELS_LANES : 1)
                                  : 0;
    n->line = round_up_int((int)n->line, FEW_CHANNELS_LANES);
    n->area = (n->in_place ? 0 : n->planes * n->plane) + n->line + other + 2 * FEW_CHANNELS_LANES;
    n->area = round_up_i64(n->area, 16);
    n->weights = round_up_i64(n->weights, 16);
}

static pons_status plan_shift(few_channels_plan *n, pons_error *err)
{
    int s = n->stride[2];

    n->shift = calloc((size_t)n->inner, sizeof *n->shift);
    if (n->shift == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    for (int j = 0; j < n->inner; j++) {
        int kw = j / n->x.channels, i = j % n->x.channels;
        n->shift[j] = s == 1 ? i * n->pitch + n->left_pad - n->pad[2] + kw
                             : (kw % s * n->x.channels + i) * n->pitch + kw / s;
    }
    return PONS_OK;
}

static bool supports(const conv_problem *p)
{
    bool plain = p->groups == 1 && !p->dilated;
    few_channels_plan n = { .threads = 0 };

    for (int i = 0; i < 3; i++)
        plain = plain && p->pad[i] < p->kernel[i];
    return plain && p->kernel[2] < FEW_CHANNELS_MARGIN
        && p->kernel[0] * p->kernel[1] <= FEW_CHANNELS_TAPS &&
           conv_type_supported(p->x.type) && conv_type_supported(p->y.type) &&
           conv_type_supported(p->weight_type) &&
           (p->direction != CONV_WEIGHT_GRADIENT || p->weight_type == PONS_F32) &&
           choose_form(&n, p);
}

static void describe(few_channels_plan *n, const conv_problem *p)
{
    n->cases = p->cases;
    n->x = side_of(&p->x);
    n->y = side_of(&p->y);
    n->weight_type = p->weight_type;
    for (int i = 0; i < 3; i++) {
        n->kernel[i] = p->kernel[i];
        n->stride[i] = p->stride[i];
        n->pad[i] = p->pad[i];
    }
    choose_form(n, p);
}

static pons_status prepare(const cpu_device *cpu, const conv_problem *p, pons_kernel *kernel,
                           pons_error *err)
{
    few_channels_plan n = { .lanes = cpu->few_channels, .threads = cpu->threads };

    describe(&n, p);
    if (n.swapped)
        swap_sides(&n);
    plan_bf16x2(&n);
    plan_rows(&n);
    plan_tasks(&n);
    plan_memory(&n);

    few_channels_plan *kept = malloc(sizeof *kept);
    if (kept == NULL || plan_shift(&n, err) != PONS_OK) {
        free(kept);
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    }
    *kept = n;
    kernel->state = kept;
    kernel->run = few_channels_run;
    kernel->free = few_channels_free;
    kernel->scratch_size =
        (size_t)(n.weights + n.threads * n.area + n.tasks * n.sums) * sizeof(float);
    return PONS_OK;
}

const conv_operations few_channels_operations = { .supports = supports, .prepare = prepare };
