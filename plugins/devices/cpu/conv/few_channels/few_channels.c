/*
 * few_channels.c - plan the convolutions of few_channels.h.
 *
 * Work is cut into bands of rows in blocks of planes. Blocks, bands and the order of sums depend on
 * the extents alone, never on the threads.
 *
 * With stride 1 the gradient by the input is a convolution of the output's gradient with the
 * mirrored kernel. So both are computed by the form that suits the sides better: sides are swapped
 * ('swapped'), paddings become k - 1 - pad, and weights are read or written mirrored.
 *
 * Where the processor multiplies pairs of bf16, what is summed over comes in pairs, and the loops
 * take each for one number: two neighbours of what a kernel reads of a row, which lie side by side
 * in memory, a last one beside a weight of zero; of the side that is spread two neighbouring
 * channels, so that half of them are left; for the gradient by the weight two neighbouring rows of
 * both sides. Of kernels of 3 rows that read an odd number of each, the first two rows are paired,
 * which leaves fewer last ones.
 */
#include "cpu/conv/few_channels/few_channels_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

static void narrow_free(pons_kernel *kernel)
{
    narrow *n = kernel->state;
    free(n->shift);
    free(n);
}

static narrow_side side_of(const pons_tensor *t)
{
    const int64_t *e = t->shape.extent;
    return (narrow_side){ t->type, { (int)e[1], (int)e[2], (int)e[3] }, (int)e[4],
                          e[2] * e[3] * e[4], e[3] * e[4], 0 };
}

static bool choose_form(narrow *n, pons_kernel_kind kind)
{
    bool few_in = n->x.channels <= NARROW_CHANNELS, few_out = n->y.channels <= NARROW_CHANNELS;
    bool dense = n->stride[0] * n->stride[1] * n->stride[2] == 1;

    if (!few_in && !few_out)
        return false;
    switch (kind) {
    case PONS_KERNEL_CONVOLUTION:
        n->swapped = few_out && !few_in && dense;
        n->form = n->swapped ? PLANAR_SPREAD : few_out ? PLANAR_FORWARD : WIDE_FORWARD;
        break;
    case PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT:
        n->swapped = !few_in || (few_out && dense);
        n->form = !n->swapped ? PLANAR_SPREAD : few_in ? PLANAR_FORWARD : WIDE_FORWARD;
        break;
    default:
        n->swapped = !few_in;
        n->form = few_in && few_out ? PLANAR_WEIGHT : WIDE_WEIGHT;
        break;
    }
    return !n->swapped || dense;
}

static void swap_sides(narrow *n)
{
    narrow_side x = n->x;

    n->x = n->y;
    n->y = x;
    for (int i = 0; i < 3; i++)
        n->pad[i] = n->kernel[i] - 1 - n->pad[i];
}

/* Channels of rows that are taken apart by channels come in pairs if their count is even. */
static bool suits_pairs(const narrow *n)
{
    const narrow_side *s = n->form == PLANAR_SPREAD ? &n->y : &n->x;

    if (narrow_is_weight(n))
        return n->x.type == PONS_BF16 && n->y.type == PONS_BF16;
    return s->type == PONS_BF16 && n->weight_type == PONS_BF16 &&
           (n->form == WIDE_FORWARD || s->channels % 2 == 0);
}

static void halve_channels(narrow_side *s)
{
    s->type = PONS_F32; /* as large as a pair */
    s->channels /= 2;
    s->plane /= 2;
    s->row /= 2;
}

/* Loops over pairs that read or write bf16 themselves. */
static void plan_loops(narrow *n)
{
    bool three = n->kernel[2] == 3 && n->pad[2] == 1, half = n->y.type == PONS_BF16;

    n->up = n->form == PLANAR_SPREAD && three && n->stride[2] == 2;
    n->placed = n->form == PLANAR_FORWARD && three && n->stride[2] == 1 && half &&
                n->y.extent[2] == n->x.extent[2] && n->x.channels == 2 && n->y.channels <= 2;
    n->zipped = n->form == WIDE_FORWARD && half && n->y.channels % NARROW_LANES == 0;
    if (n->zipped && n->kernel[1] == 3 && n->kernel[2] * n->x.channels % 2 == 1)
        n->x.apart = 1;
}

static void plan_pairs(narrow *n)
{
    const narrow_pairs *pairs = n->lanes->pairs;

    n->pairs = pairs != NULL && suits_pairs(n);
    n->wide = n->pairs ? pairs->wide : n->lanes->wide;
    n->planar = n->pairs ? pairs->planar : n->lanes->planar;
    n->to_bf16 = pairs != NULL ? pairs->to_bf16 : n->lanes->layout->to_bf16;
    if (n->pairs)
        plan_loops(n);
    if (n->pairs && narrow_is_weight(n)) {
        n->x.apart = n->stride[1];
        n->y.apart = 1;
    } else if (n->pairs && n->form != WIDE_FORWARD) {
        halve_channels(n->form == PLANAR_SPREAD ? &n->y : &n->x);
    }
}

static bool type_known(pons_type type)
{
    return type == PONS_F32 || type == PONS_BF16;
}

/* Extents of buffers. A planar row must hold what a shifted read past the last position sees. */
static void plan_rows(narrow *n)
{
    bool wide = n->form == WIDE_FORWARD || n->form == WIDE_WEIGHT;
    int s = n->stride[2], reach = (n->y.extent[2] - 1) * s + n->kernel[2];
    int padded = max_int(n->pad[2] + n->x.extent[2], reach) + s;
    int64_t widest = max_int(round_up_int(n->y.extent[2], NARROW_LANES), ceil_div_int(padded, s));

    n->taps = n->kernel[0] * n->kernel[1];
    n->gaps = narrow_is_weight(n) && narrow_together(n) * n->stride[1] > n->kernel[1];
    n->inner = n->kernel[2] * n->x.channels;
    n->outs = wide ? round_up_int(n->y.channels, NARROW_LANES) : n->y.channels;
    n->lead = s == 1 ? round_up_int(n->pad[2], NARROW_LANES) : 0;
    n->pitch = round_up_int((int)widest + n->kernel[2] + n->lead, NARROW_LANES);
    n->y_pitch = round_up_int(n->y.extent[2] + n->up, NARROW_LANES);
    if (n->form == PLANAR_SPREAD)
        n->pitch += 2 * NARROW_LANES;
    n->line = (int64_t)max_int(padded * n->x.channels, n->y.extent[2] * n->y.channels) +
              (int64_t)s * n->x.channels + 2 * NARROW_LANES;
    if (n->form == PLANAR_SPREAD)
        n->row = (int64_t)n->y_pitch * n->y.channels;
    else if (wide)
        n->row = round_up_int(padded * n->x.channels + NARROW_LANES, NARROW_LANES);
    else
        n->row = (int64_t)n->pitch * s * n->x.channels + n->lead;
    if (n->pairs && n->form == WIDE_FORWARD) {
        n->inner = ceil_div_int(n->inner, 2);
        n->row = round_up_int(ceil_div_int(padded * n->x.channels, 2) + NARROW_LANES, NARROW_LANES);
    }
    if (n->placed)
        n->row = n->x.row;
    if (n->zipped && n->x.apart > 0) {
        n->zips = (int)n->row;
        n->row += round_up_int(padded * n->x.channels + NARROW_LANES, NARROW_LANES);
    }
}

enum {
    AREA = 3 << 16, /* floats of buffered rows that a thread's second cache keeps */
    PLANES = 8     /* of a task: what two of them read is read twice */
};

/* Planes or rows that 'count' of the output's read along an axis, at most. */
static int reads(const narrow *n, int axis, int count)
{
    if (n->form == PLANAR_SPREAD)
        return min_int((count + n->kernel[axis] - 2) / n->stride[axis] + 1, n->y.extent[axis]);
    return min_int((count - 1) * n->stride[axis] + n->kernel[axis],
                   n->x.extent[axis] + (axis == 1 ? n->x.apart : 0));
}

static void plan_tasks(narrow *n)
{
    bool spread = n->form == PLANAR_SPREAD;
    const int *extent = spread ? n->x.extent : n->y.extent;
    int step = spread ? n->stride[1] : 1;

    n->ring = n->up || n->zipped;
    n->block = n->ring ? PLANES * (spread ? n->stride[0] : 1) : spread ? 2 * n->stride[0] : 4;
    if (narrow_is_weight(n))
        n->block = max_int(n->block, ceil_div_int(extent[0] * n->cases, 64));
    n->block = min_int(n->block, extent[0]);
    n->planes = reads(n, 0, n->ring ? 1 : n->block);
    n->band = extent[1];
    while (!narrow_is_weight(n) && n->band > 8 * step &&
           n->planes * reads(n, 1, n->band) * n->row > AREA)
        n->band = round_up_int(ceil_div_int(n->band, 2), step);
    n->rows = reads(n, 1, n->band);
    n->plane = n->row * n->rows;
    if (n->placed) {
        n->planes = n->x.extent[0];
        n->plane = n->x.plane;
    }
    n->blocks = ceil_div_int(extent[0], n->block);
    n->bands = ceil_div_int(extent[1], n->band);
    n->tasks = n->blocks * n->bands * n->cases;
}

static void plan_memory(narrow *n)
{
    int64_t other = n->form == PLANAR_SPREAD
                        ? (int64_t)n->pitch * (n->inner + n->stride[2] * n->x.channels) +
                              4 * NARROW_MARGIN
                        : max_int(n->y.extent[2] * n->outs, 2 * n->pitch * n->y.channels);

    if (n->form == PLANAR_WEIGHT)
        other = (int64_t)n->y_pitch * n->outs * ceil_div_int(n->y.extent[1], narrow_together(n));
    n->weights = narrow_is_weight(n) ? 0 : (int64_t)n->taps * n->inner * n->outs;
    n->sums = narrow_is_weight(n) ? (int64_t)n->taps * n->inner * n->outs *
                                        (n->form == PLANAR_WEIGHT ? NARROW_LANES : 1)
                                  : 0;
    n->line = round_up_int((int)n->line, NARROW_LANES);
    n->area = (n->placed ? 0 : n->planes * n->plane) + n->line + other + 2 * NARROW_LANES;
    n->area = round_up_i64(n->area, 16);
    n->weights = round_up_i64(n->weights, 16);
}

static pons_status plan_shift(narrow *n, pons_error *err)
{
    int s = n->stride[2];

    n->shift = calloc((size_t)n->inner, sizeof *n->shift);
    if (n->shift == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    for (int j = 0; j < n->inner; j++) {
        int kw = j / n->x.channels, i = j % n->x.channels;
        n->shift[j] = s == 1 ? i * n->pitch + n->lead - n->pad[2] + kw
                             : (kw % s * n->x.channels + i) * n->pitch + kw / s;
    }
    return PONS_OK;
}

pons_status narrow_prepare(const narrow_lanes *lanes, int threads, const pons_request *request,
                           pons_kernel *kernel, bool *supported, pons_error *err)
{
    const pons_convolution *c = request->attributes;
    bool weight = request->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT;
    bool input = request->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT;
    const pons_tensor *x = input ? &request->output[0] : &request->input[0];
    const pons_tensor *y = input ? &request->input[0]
                                 : weight ? &request->input[1] : &request->output[0];
    const pons_tensor *w = weight ? &request->output[0] : &request->input[1];
    narrow n = { .lanes = lanes, .threads = threads, .cases = (int)x->shape.extent[0],
                 .x = side_of(x), .y = side_of(y), .weight_type = w->type };
    bool plain = c->groups == 1;

    for (int i = 0; i < 3; i++) {
        n.kernel[i] = (int)w->shape.extent[1 + i];
        n.stride[i] = c->stride[i];
        n.pad[i] = c->pad_low[i];
        plain = plain && c->dilation[i] == 1 && c->pad_low[i] < n.kernel[i];
    }
    *supported = false;
    if (!plain || n.kernel[2] >= NARROW_MARGIN || n.kernel[0] * n.kernel[1] > NARROW_TAPS ||
        !type_known(n.x.type) || !type_known(n.y.type) ||
        !type_known(n.weight_type) || (weight && n.weight_type != PONS_F32) ||
        !choose_form(&n, request->kind))
        return PONS_OK;
    if (n.swapped)
        swap_sides(&n);
    plan_pairs(&n);
    plan_rows(&n);
    plan_tasks(&n);
    plan_memory(&n);

    narrow *kept = malloc(sizeof *kept);
    if (kept == NULL || plan_shift(&n, err) != PONS_OK) {
        free(kept);
        return pons_fail(err, PONS_DEVICE, "out of memory making a convolution");
    }
    *kept = n;
    kernel->state = kept;
    kernel->run = narrow_run;
    kernel->free = narrow_free;
    kernel->implementation = "own";
    kernel->scratch_size =
        (size_t)(n.weights + threads * n.area + n.tasks * n.sums) * sizeof(float);
    *supported = true;
    return PONS_OK;
}
