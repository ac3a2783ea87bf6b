/*
 * random_number.h - the random number of scale_intensity and shift_intensity.
 *
 * With a given probability a number is drawn, uniform in a range, for a patch or for each of its
 * channels.
 */
#ifndef PLUGINS_TRANSFORMS_RANDOM_NUMBER_H
#define PLUGINS_TRANSFORMS_RANDOM_NUMBER_H

#include <pons/transform.h>

typedef struct random_record {
    bool wanted;
    uint64_t key; /* key of the channels' numbers */
} random_record;

/* Draw the record of a patch. */
pons_status random_number_plan(double probability, pons_rng *draws, random_record *out);

/* Change 'count' values x[0], x[step], ... by a number. */
typedef void random_number_use(float *x, int64_t count, int64_t step, float number);

/*
 * Change the scope's channels of a patch, or of a part of one, as the record says. 'ends' has the
 * two ends of the range, or F for the range -F F.
 */
pons_status random_number_apply(const pons_reals *ends, bool channel_wise,
                                const pons_transform_scope *scope, const random_record *record,
                                pons_patch *patch, random_number_use *use);

/* Give a device the number of each channel. The number 'unchanged' leaves a channel as it is. */
void random_number_params(const pons_reals *ends, bool channel_wise,
                          const pons_transform_scope *scope, const random_record *record,
                          float unchanged, pons_sample_params *out);

#endif
