/*
 * lesions.c - count the lesions of two masks.
 */
#include "metric/lesions.h"

#include <math.h>

#include "metric/connected_components.h"
#include "metric/surface_distance.h"

pons_status lesions_count(const uint8_t *masks, const int64_t extent[3], lesion_values *out,
                          pons_error *err)
{
    int64_t of_label[2], of_prediction[2];
    double parts;

    if (connected_components_count(masks, extent, MASK_LABEL, MASK_PREDICTION, of_label, err)
            != PONS_OK
        || connected_components_count(masks, extent, MASK_PREDICTION, MASK_LABEL, of_prediction,
                                      err) != PONS_OK)
        return err->status;
    *out = (lesion_values){ .found = (double)of_label[1], .missed = (double)of_label[0],
                            .false_ones = (double)of_prediction[0] };
    parts = 2 * out->found + out->missed + out->false_ones;
    out->f1 = parts > 0 ? 2 * out->found / parts : NAN;
    return PONS_OK;
}
