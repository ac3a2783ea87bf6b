/*
 * predict_patches.h - patches of slides as images of a classification, for pons predict.
 */
#ifndef CORE_CLI_PREDICT_PREDICT_PATCHES_H
#define CORE_CLI_PREDICT_PREDICT_PATCHES_H

#include "infer/predict.h"

/* Whether the network was trained on patches of slides; then 'out' says how they are read. */
bool predict_patches_known(const experiment *e, slide_settings *out);
/*
 * PONS_USAGE if the file of a case is a slide where one image is expected. Slides are files that
 * OpenSlide alone reads, or are larger than the patches that the network knows.
 */
pons_status predict_patches_check(const experiment *e, const predict_input *c, pons_error *err);

#endif
