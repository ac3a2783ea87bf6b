/*
 * color_jitter - change brightness, contrast, saturation and hue in random order, as torchvision's
 * ColorJitter does with floats.
 *
 *   brightness  f x                            f and the two below: uniform around 1
 *   contrast    f x + (1 - f) m                m: mean of the grey values of the patch
 *   saturation  f x + (1 - f) grey             grey = 0.2989 red + 0.587 green + 0.114 blue
 *   hue         the angle of HSV plus f turns  f: uniform around 0
 *
 * x lies between 0 (black) and 1 (white), and each result is clamped to this range. A normalised
 * image is scaled back: x = value std + mean. Three channels are colours. Channels of any other
 * number are grey each, without saturation and hue. The steps before contrast run in a first pass
 * over the patch, in which the mean is summed. The other steps run in a second pass.
 */
#include "color_jitter.h"

#include <pons/transform.h>

#include "base/avx2_clone.h"

enum { BLOCK = 128, LANES = 16 };

typedef struct color_jitter {
    pons_reals brightness, contrast, saturation, hue, mean, std;
    double probability;
} color_jitter;

static const pons_option options[] = {
    PONS_REALS(color_jitter, brightness, "0", 0, FLT_MAX,
               "Range of the factor: F for 1 - F (at least 0) to 1 + F, or both ends.",
               .count_min = 1, .count_max = 2),
    PONS_REALS(color_jitter, contrast, "0", 0, FLT_MAX, "Range of the factor, as of brightness.",
               .count_min = 1, .count_max = 2),
    PONS_REALS(color_jitter, saturation, "0", 0, FLT_MAX, "Range of the factor, as of brightness.",
               .count_min = 1, .count_max = 2),
    PONS_REALS(color_jitter, hue, "0", -0.5, 0.5,
               "Range of the turn, 1 for a full circle: F for -F to F, or both ends.",
               .count_min = 1, .count_max = 2),
    PONS_REALS(color_jitter, mean, "0", -FLT_MAX, FLT_MAX,
               "Mean by which [preprocess] normalised, one number or one per channel: value std + "
               "mean is 0 for black, 1 for white.", .count_min = 1),
    PONS_REALS(color_jitter, std, "1", 1e-30, FLT_MAX,
               "Deviation by which [preprocess] normalised.", .count_min = 1),
    PONS_REAL(color_jitter, probability, "1", 0, 1, "Probability that a patch is changed."),
    PONS_OPTIONS_END
};

static const char *const change_names[] = { "brightness", "contrast", "saturation", "hue" };

static const pons_reals *range_of(const color_jitter *s, int change)
{
    const pons_reals *ranges[] = { &s->brightness, &s->contrast, &s->saturation, &s->hue };

    return ranges[change];
}

static pons_status check(const void *config, pons_error *err)
{
    const color_jitter *s = config;

    for (int i = 0; i < JITTER_COUNT; i++) {
        const pons_reals *r = range_of(s, i);
        if (r->count == 2 && r->item[0] > r->item[1])
            return pons_option_fail(err, change_names[i], "found %g before %g, expected the lower "
                                    "end first", r->item[0], r->item[1]);
    }
    if (s->hue.count == 1 && s->hue.item[0] < 0)
        return pons_option_fail(err, "hue", "found %g, expected at least 0, or two ends",
                                s->hue.item[0]);
    return PONS_OK;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static float draw_factor(const color_jitter *s, int change, pons_rng *draws)
{
    const pons_reals *r = range_of(s, change);
    double first = r->item[0], low = change == JITTER_HUE ? -first : first < 1 ? 1 - first : 0;
    double high = change == JITTER_HUE ? first : 1 + first;

    if (r->count == 2) {
        low = first;
        high = r->item[1];
    }
    return (float)pons_draw_range(draws, low, high);
}

/* All numbers are drawn in any case, so an option does not change the draws of another. */
static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    const color_jitter *s = config;
    jitter_record *r = out;

    r->wanted = (double)pons_draw_uniform(draws) < s->probability;
    for (int i = 0; i < JITTER_COUNT; i++)
        r->order[i] = i;
    for (int i = JITTER_COUNT - 1; i > 0; i--) {
        int64_t other = pons_draw_index(draws, i + 1);
        int kept = r->order[i];
        r->order[i] = r->order[other];
        r->order[other] = kept;
    }
    for (int i = 0; i < JITTER_COUNT; i++)
        r->factor[i] = draw_factor(s, i, draws);
    return PONS_OK;
}

/* ---- blocks of voxels ------------------------------------------------------------------------ */

/* Voxels in planes of colours; a grey image has the first plane alone. */
typedef struct block {
    float c[3][BLOCK];
} block;

/* A run of changes over a patch of 'step' channels, of which channel[0 .. count - 1] take part. */
typedef struct jitter_pass {
    const jitter_record *record;
    int first, end;            /* changes, in order                                               */
    float *image;
    int64_t voxels;
    int step, count, channel[3];
    float mean[3], std[3];
    float grey;                /* the mean of the grey values, for contrast                       */
    bool sums;                 /* sum the grey values after the changes                           */
} jitter_pass;

static inline float limit(float x)
{
    x = x < 0 ? 0 : x;
    return x > 1 ? 1 : x;
}

AVX2_BODY void scale_block(block *b, int count, float factor, float term)
{
    for (int c = 0; c < count; c++)
        for (int n = 0; n < BLOCK; n++)
            b->c[c][n] = limit(b->c[c][n] * factor + term);
}

AVX2_BODY float grey_of(const block *b, int n)
{
    return 0.2989f * b->c[0][n] + 0.587f * b->c[1][n] + 0.114f * b->c[2][n];
}

AVX2_BODY void saturate_block(block *b, float factor)
{
    for (int n = 0; n < BLOCK; n++) {
        float rest = (1 - factor) * grey_of(b, n);

        b->c[0][n] = limit(b->c[0][n] * factor + rest);
        b->c[1][n] = limit(b->c[1][n] * factor + rest);
        b->c[2][n] = limit(b->c[2][n] * factor + rest);
    }
}

/* The share of a colour in HSV: 'at' is the hue in sixths of a turn plus 5, 3 or 1, below 11. */
static inline float share_of(float at)
{
    float k = at >= 6 ? at - 6 : at, low = k < 4 - k ? k : 4 - k;

    return limit(low);
}

/* The largest colour stays; the others follow the hue, from red over green to blue. */
AVX2_BODY void turn_block(block *b, float turn)
{
    for (int n = 0; n < BLOCK; n++) {
        float red = b->c[0][n], green = b->c[1][n], blue = b->c[2][n];
        float high = red > green ? red : green, low = red < green ? red : green, range, unit, hue;

        high = high > blue ? high : blue;
        low = low < blue ? low : blue;
        range = high - low;
        unit = 1 / (range > 0 ? range : 1);
        hue = high == green ? 2 + (blue - red) * unit : 4 + (red - green) * unit;
        hue = high == red ? (green - blue) * unit : hue;
        hue += turn;
        hue = hue < 0 ? hue + 6 : hue;
        hue = hue >= 6 ? hue - 6 : hue;
        b->c[0][n] = limit(high - range * share_of(hue + 5));
        b->c[1][n] = limit(high - range * share_of(hue + 3));
        b->c[2][n] = limit(high - range * share_of(hue + 1));
    }
}

AVX2_BODY void change_block(const jitter_pass *p, block *b, int change)
{
    float factor = p->record->factor[change];

    if (change == JITTER_BRIGHTNESS)
        scale_block(b, p->count, factor, 0);
    else if (change == JITTER_CONTRAST)
        scale_block(b, p->count, factor, (1 - factor) * p->grey);
    else if (change == JITTER_SATURATION && p->count == 3)
        saturate_block(b, factor);
    else if (change == JITTER_HUE && p->count == 3)
        turn_block(b, 6 * factor);
}

/* Sums of grey values, each of every LANES-th voxel. */
AVX2_BODY void sum_block(const block *b, int count, double sum[LANES])
{
    for (int n = 0; n < BLOCK; n += LANES)
        for (int i = 0; i < LANES; i++)
            sum[i] += (double)(count == 3 ? grey_of(b, n + i) : b->c[0][n + i]);
}

/* Channels 0, 1, 2 of three have loops of their own, which become vectors. */
AVX2_BODY void load_block(const jitter_pass *p, const float *x, int count, block *b)
{
    if (p->step == 3 && p->count == 3 && count == BLOCK)
        for (int n = 0; n < BLOCK; n++) {
            b->c[0][n] = x[3 * n] * p->std[0] + p->mean[0];
            b->c[1][n] = x[3 * n + 1] * p->std[1] + p->mean[1];
            b->c[2][n] = x[3 * n + 2] * p->std[2] + p->mean[2];
        }
    else
        for (int c = 0; c < p->count; c++)
            for (int n = 0; n < count; n++)
                b->c[c][n] = x[n * p->step + p->channel[c]] * p->std[c] + p->mean[c];
}

AVX2_BODY void store_block(const jitter_pass *p, const block *b, int count, float *x)
{
    if (p->step == 3 && p->count == 3 && count == BLOCK)
        for (int n = 0; n < BLOCK; n++) {
            x[3 * n] = (b->c[0][n] - p->mean[0]) / p->std[0];
            x[3 * n + 1] = (b->c[1][n] - p->mean[1]) / p->std[1];
            x[3 * n + 2] = (b->c[2][n] - p->mean[2]) / p->std[2];
        }
    else
        for (int c = 0; c < p->count; c++)
            for (int n = 0; n < count; n++)
                x[n * p->step + p->channel[c]] = (b->c[c][n] - p->mean[c]) / p->std[c];
}

/* Returns the sum of the grey values after the changes, if p->sums. Zeros fill the last block. */
AVX2_BODY double run_pass_body(const jitter_pass *p)
{
    double sum[LANES] = { 0 }, all = 0;

    for (int64_t at = 0; at < p->voxels; at += BLOCK) {
        int count = p->voxels - at < BLOCK ? (int)(p->voxels - at) : BLOCK;
        float *x = p->image + at * p->step;
        block b;
        if (count < BLOCK)
            b = (block){ { { 0 } } };
        load_block(p, x, count, &b);
        for (int i = p->first; i < p->end; i++)
            change_block(p, &b, p->record->order[i]);
        if (p->sums)
            sum_block(&b, p->count, sum);
        if (p->end > p->first)
            store_block(p, &b, count, x);
    }
    for (int i = 0; i < LANES; i++)
        all += sum[i];
    return all;
}

typedef double run_pass(const jitter_pass *p);

static double run_pass_plain(const jitter_pass *p)
{
    return run_pass_body(p);
}

AVX2_CLONE double run_pass_avx2(const jitter_pass *p)
{
    return run_pass_body(p);
}

/* ---- apply ----------------------------------------------------------------------------------- */

static pons_status check_numbers(const char *name, const pons_reals *numbers, int count,
                                 pons_error *err)
{
    if (numbers->count == 1 || numbers->count == count)
        return PONS_OK;
    return pons_option_fail(err, name, "found %d numbers, expected 1 or %d as channels",
                            numbers->count, count);
}

/* Take 'count' channels from the scope's n-th on, with their means and deviations. */
static void set_channels(const color_jitter *s, const pons_transform_scope *scope, int n, int count,
                         jitter_pass *p)
{
    int at = 0;

    p->count = count;
    for (int c = 0; c < p->step && at < n + count; c++) {
        if (!pons_scope_has(scope, c))
            continue;
        if (at >= n) {
            p->channel[at - n] = c;
            p->mean[at - n] = (float)s->mean.item[s->mean.count == 1 ? 0 : at];
            p->std[at - n] = (float)s->std.item[s->std.count == 1 ? 0 : at];
        }
        at++;
    }
}

/* The place of contrast in the order; JITTER_COUNT if it changes nothing. */
static int find_contrast(const jitter_record *r)
{
    int at = 0;

    while (r->order[at] != JITTER_CONTRAST)
        at++;
    return r->factor[JITTER_CONTRAST] == 1 ? JITTER_COUNT : at;
}

static bool changes_nothing(const jitter_record *r)
{
    return r->factor[JITTER_BRIGHTNESS] == 1 && r->factor[JITTER_CONTRAST] == 1
           && r->factor[JITTER_SATURATION] == 1 && r->factor[JITTER_HUE] == 0;
}

/* Run the changes, in two passes if contrast is one of them. */
static void run_changes(jitter_pass *p)
{
    run_pass *run = AVX2_CHOOSE(run_pass_avx2, run_pass_plain);

    p->first = 0;
    p->end = find_contrast(p->record);
    p->sums = p->end < JITTER_COUNT;
    p->grey = (float)(run(p) / (double)p->voxels);
    if (!p->sums)
        return;
    p->first = p->end;
    p->end = JITTER_COUNT;
    p->sums = false;
    run(p);
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const color_jitter *s = config;
    const jitter_record *r = planned;
    jitter_pass p = { .record = r, .image = patch->image, .step = patch->channels,
                      .voxels = patch->extent[0] * patch->extent[1] * patch->extent[2] };
    int channels = 0, together;

    for (int c = 0; c < patch->channels; c++)
        channels += pons_scope_has(scope, c);
    if (check_numbers("mean", &s->mean, channels, err) != PONS_OK
        || check_numbers("std", &s->std, channels, err) != PONS_OK)
        return err->status;
    together = channels == 3 ? 3 : 1;
    for (int n = 0; n < channels && r->wanted && !changes_nothing(r); n += together) {
        set_channels(s, scope, n, together, &p);
        run_changes(&p);
    }
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .record_size = sizeof(jitter_record), .plan = plan, .apply_patch = apply
};

PONS_TRANSFORM(color_jitter, "1.0", "change brightness, contrast, saturation and hue", options,
               operations);
