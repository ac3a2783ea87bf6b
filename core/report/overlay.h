/*
 * overlay.h - label and prediction as outlines on three middle slices.
 */
#ifndef CORE_REPORT_OVERLAY_H
#define CORE_REPORT_OVERLAY_H

#include "data/volume/volume.h"

/*
 * Three panels side by side, across i, j and k, through the middle of what label and prediction
 * mark (of the volume where they mark nothing), in true proportions. Outlines: label green,
 * prediction red, both yellow. 'label' and 'prediction' are U8 or I32 of equal extents and
 * channels: one channel of class ids, or one of 0 and 1 for each region, drawn darker from one to
 * the next. 'image' (F32, same extent, its first channel is shown) may be NULL. A build without
 * libpng: PONS_CONFIG, "'--overlay' needs libpng, ...".
 */
pons_status overlay_write(const char *path, const volume *label, const volume *prediction,
                          const volume *image, pons_error *err);

#endif
