/*
 * sampler.c - choose where a patch lies: uniform, balanced, by classes, whole.
 *
 * 'balanced' is MONAI's RandCropByPosNegLabel after a symmetric SpatialPad: with probability
 * positive / (positive + negative) a foreground voxel, else a background voxel, becomes the centre;
 * the box is then shifted into the case. An empty set gives way to the other one.
 */
#include "data/loader/sampler.h"

#include <inttypes.h>

#include "data/loader/patch_extract.h"
#include "data/packed/sampling_index.h"

typedef pons_status find_rule(const packed_case *p, patch_place *place, const int64_t extent[3],
                              int64_t start[3], pons_error *err);

/* Along an axis of n voxels where a box of e does not fit: the odd voxel of padding comes last. */
static int64_t centred_pad(int64_t n, int64_t e)
{
    return -((e - n) / 2);
}

static pons_status find_uniform(const packed_case *p, patch_place *place, const int64_t extent[3],
                                int64_t start[3], pons_error *err)
{
    for (int a = 0; a < 3; a++) {
        int64_t n = p->image.extent[a], free_voxels = n - extent[a];
        int64_t drawn = pons_draw_index(&place->draws, free_voxels > 0 ? free_voxels + 1 : 1);
        start[a] = free_voxels >= 0 ? drawn : centred_pad(n, extent[a]);
    }
    return PONS_OK;
}

static void centre_on(const packed_case *p, int64_t voxel, const int64_t extent[3],
                      int64_t start[3])
{
    const int64_t *n = p->image.extent;
    int64_t at[3] = { voxel / (n[1] * n[2]), voxel / n[2] % n[1], voxel % n[2] };

    for (int a = 0; a < 3; a++) {
        int64_t last = n[a] - extent[a];
        int64_t wanted = at[a] - extent[a] / 2;
        start[a] = last < 0 ? centred_pad(n[a], extent[a])
                   : wanted < 0 ? 0 : wanted > last ? last : wanted;
    }
}

static pons_status find_balanced(const packed_case *p, patch_place *place,
                                 const int64_t extent[3], int64_t start[3], pons_error *err)
{
    const loader_settings *s = place->settings;
    double share = s->positive / (s->positive + s->negative);
    int set = (double)pons_draw_uniform(&place->draws) < share ? 0 : 1;

    if (packed_set_size(p, set) == 0)
        set = 1 - set;
    if (packed_set_size(p, set) == 0)
        return pons_fail(err, PONS_DATA, "there is no foreground voxel and no background voxel "
                         "above %g to centre a patch on", p->background_above);
    int64_t n = pons_draw_index(&place->draws, packed_set_size(p, set));
    centre_on(p, packed_set_voxel(p, set, n), extent, start);
    return PONS_OK;
}

static double weight_of(const packed_case *p, const loader_settings *s, int set)
{
    if (packed_set_size(p, set) == 0)
        return 0;
    return s->class_weight_count > 0 ? s->class_weights[set] : 1;
}

static pons_status find_classes(const packed_case *p, patch_place *place, const int64_t extent[3],
                                int64_t start[3], pons_error *err)
{
    double total = 0, drawn;
    int chosen = -1;

    for (int set = 0; set < p->set_count; set++)
        total += weight_of(p, place->settings, set);
    drawn = pons_draw_range(&place->draws, 0, total);
    for (int set = 0; set < p->set_count && drawn >= 0; set++) {
        if (weight_of(p, place->settings, set) > 0)
            chosen = set;
        drawn -= weight_of(p, place->settings, set);
    }
    if (chosen < 0)
        return pons_fail(err, PONS_DATA, "there is no voxel of a class with a weight above 0");
    int64_t n = pons_draw_index(&place->draws, packed_set_size(p, chosen));
    centre_on(p, packed_set_voxel(p, chosen, n), extent, start);
    return PONS_OK;
}

/* MONAI's CenterSpatialCrop after SpatialPad. */
static pons_status find_whole(const packed_case *p, patch_place *place, const int64_t extent[3],
                              int64_t start[3], pons_error *err)
{
    for (int a = 0; a < 3; a++) {
        int64_t n = p->image.extent[a];
        start[a] = n < extent[a] ? centred_pad(n, extent[a]) : n / 2 - extent[a] / 2;
    }
    return PONS_OK;
}

pons_status patch_find(const packed_case *p, patch_place *place, const int64_t extent[3],
                       int64_t start[3], pons_error *err)
{
    static find_rule *const rules[] = {
        [SAMPLING_UNIFORM] = find_uniform, [SAMPLING_BALANCED] = find_balanced,
        [SAMPLING_CLASSES] = find_classes, [SAMPLING_WHOLE] = find_whole
    };

    return rules[place->settings->sampling](p, place, extent, start, err);
}
