/*
 * overlay.h - draw label and prediction as outlines on three middle slices.
 */
#ifndef CORE_REPORT_OVERLAY_H
#define CORE_REPORT_OVERLAY_H

#include "data/volume/volume.h"

/*
 * Write three panels side by side, across i, j and k, in true proportions. They go through the
 * centre of what the label marks, else the prediction, else of the volume. Outlines: label green,
 * prediction red, both yellow.
 *
 * 'label' and 'prediction' are U8 or I32 with equal extents and channels: one channel of class
 * indices, or a 0/1 channel for each region, drawn darker from one to the next. 'image' (F32, same
 * extent, first channel) may be NULL. PONS_CONFIG in a build without libpng.
 */
pons_status overlay_write(const char *path, const volume *label, const volume *prediction,
                          const volume *image, pons_error *err);

#endif
