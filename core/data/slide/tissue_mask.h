/*
 * tissue_mask.h - the tissue of a stained slide on its bright background.
 */
#ifndef CORE_DATA_SLIDE_TISSUE_MASK_H
#define CORE_DATA_SLIDE_TISSUE_MASK_H

#include <pons/plugin.h>

/*
 * Mark tissue as MONAI's ForegroundMask with Otsu's thresholds of red, green, blue and of the
 * saturation: a pixel is tissue if one of its colours is at most the colour's threshold, and its
 * saturation (of HSV) is above that of the saturation. A threshold of 0 marks nothing. The
 * saturation's histogram has 256 bins between its smallest and largest value. 'rgb' is
 * [count][3], 'mask' [count] of 0 and 1.
 */
void tissue_mask_make(const uint8_t *rgb, int64_t count, uint8_t *mask);

#endif
