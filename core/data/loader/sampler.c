/*
 * sampler.c - choose the position of a patch: uniform, balanced, by class, or the whole case.
 *
 * 'balanced' is MONAI's RandCropByPosNegLabel after a symmetric SpatialPad: the centre is a
 * foreground voxel with probability positive / (positive + negative), else a background voxel; the
 * box is then shifted into the case. An empty set is replaced by the other one.
 *
 * Patches of the loss of a validation are 'uniform' in a case that has no voxel to centre them on.
 *
 * 'foreground' is nnU-Net's rule: the last samples of a step, rounded to even, are centred on a
 * voxel of a class that the case has, each class alike. The others are uniform; with ignored voxels
 * they are centred on any other voxel. The box is shifted into the case; with 'far_beyond' at the
 * case's beginning alone, as nnU-Net's. nnU-Net's box begins one voxel earlier where the margin
 * that it cuts out for rotations is odd.
 */
#include "data/loader/sampler.h"

#include <inttypes.h>
#include <math.h>

#include "base/integer.h"
#include "data/packed/sampling_index.h"

typedef pons_status sampler_rule(const packed_case *p, sampler_input *input,
                                 const int64_t extent[3], int64_t start[3], pons_error *err);

/*
 * Start of a box of e voxels on a shorter axis of n: centred, the odd voxel of padding comes last.
 */
static int64_t centred_pad(int64_t n, int64_t e)
{
    return -((e - n) / 2);
}

static pons_status choose_uniform(const packed_case *p, sampler_input *input,
                                  const int64_t extent[3], int64_t start[3], pons_error *err)
{
    for (int a = 0; a < 3; a++) {
        int64_t n = p->image.extent[a], free_voxels = n - extent[a];
        int64_t drawn = pons_draw_index(&input->draws, free_voxels > 0 ? free_voxels + 1 : 1);
        start[a] = free_voxels >= 0 ? drawn : centred_pad(n, extent[a]);
    }
    return PONS_OK;
}

static void centre_on(const packed_case *p, int64_t voxel, bool beyond, const int64_t extent[3],
                      int64_t start[3])
{
    const int64_t *n = p->image.extent;
    int64_t at[3] = { voxel / (n[1] * n[2]), voxel / n[2] % n[1], voxel % n[2] };

    for (int a = 0; a < 3; a++) {
        int64_t first = n[a] < extent[a] ? centred_pad(n[a], extent[a]) : 0;
        int64_t last = max_i64(n[a] - extent[a], first);
        int64_t wanted = max_i64(at[a] - extent[a] / 2, first);
        start[a] = beyond ? wanted : min_i64(wanted, last);
    }
}

static pons_status centre_on_set(const packed_case *p, sampler_input *input, int set,
                                 const int64_t extent[3], int64_t start[3])
{
    int64_t n = pons_draw_index(&input->draws, sampling_index_count(p, set));

    centre_on(p, sampling_index_voxel(p, set, n), input->settings->far_beyond, extent, start);
    return PONS_OK;
}

static pons_status choose_balanced(const packed_case *p, sampler_input *input,
                                   const int64_t extent[3], int64_t start[3], pons_error *err)
{
    const loader_settings *s = input->settings;
    double share = s->positive / (s->positive + s->negative);
    int set = (double)pons_draw_uniform(&input->draws) < share ? 0 : 1;

    if (sampling_index_count(p, set) == 0)
        set = 1 - set;
    if (sampling_index_count(p, set) == 0 && s->validation)
        return choose_uniform(p, input, extent, start, err);
    if (sampling_index_count(p, set) == 0)
        return pons_fail(err, PONS_DATA, "there is no foreground voxel and no background voxel "
                         "above %g to centre a patch on", p->background_above);
    return centre_on_set(p, input, set, extent, start);
}

static double weight_of_set(const packed_case *p, const loader_settings *s, int set)
{
    if (sampling_index_count(p, set) == 0)
        return 0;
    return s->class_weight_count > 0 ? s->class_weights[set] : 1;
}

static pons_status choose_by_class(const packed_case *p, sampler_input *input,
                                   const int64_t extent[3], int64_t start[3], pons_error *err)
{
    double total = 0, drawn;
    int chosen = -1;

    for (int set = 0; set < p->set_count; set++)
        total += weight_of_set(p, input->settings, set);
    drawn = pons_draw_range(&input->draws, 0, total);
    for (int set = 0; set < p->set_count && drawn >= 0; set++) {
        if (weight_of_set(p, input->settings, set) > 0)
            chosen = set;
        drawn -= weight_of_set(p, input->settings, set);
    }
    if (chosen < 0 && input->settings->validation)
        return choose_uniform(p, input, extent, start, err);
    if (chosen < 0)
        return pons_fail(err, PONS_DATA, "there is no voxel of a class with a weight above 0");
    return centre_on_set(p, input, chosen, extent, start);
}

/* The rounded share of one sample is 0 or 1 in every step, so a step of one sample draws. */
static bool is_forced(sampler_input *input)
{
    const loader_settings *s = input->settings;
    int64_t count = (int64_t)s->micro_batches * s->batch * s->per_case;

    if (count == 1)
        return (double)pons_draw_uniform(&input->draws) < s->foreground_share;
    return (double)input->number >= nearbyint((double)count * (1 - s->foreground_share));
}

/* The n-th class or region that the case has, apart from the background, or -1. */
static int class_at(const packed_case *p, int64_t n)
{
    int valid = p->set_count - 1, background = p->label.channels == 1 && valid > 1 ? 1 : 0;

    for (int set = background; set < valid; set++)
        if (sampling_index_count(p, set) > 0 && n-- == 0)
            return set;
    return -1;
}

static pons_status choose_foreground(const packed_case *p, sampler_input *input,
                                     const int64_t extent[3], int64_t start[3], pons_error *err)
{
    int classes = 0, valid = p->set_count - 1;
    int64_t ignored = pons_volume_count(&p->image) - sampling_index_count(p, valid);

    while (class_at(p, classes) >= 0)
        classes++;
    if (is_forced(input) && classes > 0)
        return centre_on_set(p, input, class_at(p, pons_draw_index(&input->draws, classes)),
                             extent, start);
    if (ignored > 0 && sampling_index_count(p, valid) > 0)
        return centre_on_set(p, input, valid, extent, start);
    return choose_uniform(p, input, extent, start, err);
}

/* MONAI's CenterSpatialCrop after SpatialPad. */
static pons_status choose_whole(const packed_case *p, sampler_input *input, const int64_t extent[3],
                                int64_t start[3], pons_error *err)
{
    for (int a = 0; a < 3; a++) {
        int64_t n = p->image.extent[a];
        start[a] = n < extent[a] ? centred_pad(n, extent[a]) : n / 2 - extent[a] / 2;
    }
    return PONS_OK;
}

pons_status sampler_choose(const packed_case *p, sampler_input *input, const int64_t extent[3],
                           int64_t start[3], pons_error *err)
{
    static sampler_rule *const rules[] = {
        [SAMPLING_UNIFORM] = choose_uniform, [SAMPLING_BALANCED] = choose_balanced,
        [SAMPLING_CLASSES] = choose_by_class, [SAMPLING_WHOLE] = choose_whole,
        [SAMPLING_FOREGROUND] = choose_foreground
    };

    return rules[input->settings->sampling](p, input, extent, start, err);
}
