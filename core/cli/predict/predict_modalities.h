/*
 * predict_modalities.h - the files of a case by modality, and the one that pons predict makes.
 */
#ifndef CORE_CLI_PREDICT_PREDICT_MODALITIES_H
#define CORE_CLI_PREDICT_PREDICT_MODALITIES_H

#include "infer/predict.h"

/* The length of a stem like 'case-t1c' without the end that names a modality; else the whole. */
size_t predict_modalities_stem(const experiment *e, const char *stem);

/*
 * Order the files of a case by modality, by the ends of their names, or as they are if there is one
 * for each, where NULL is none. A 4D file has all. 'target' is the modality to make; NULL: the one
 * without a file. PONS_USAGE: no modality has that name, or none is missing. PONS_DATA: another one
 * is missing, or a file cannot be read.
 */
pons_status predict_modalities_arrange(const experiment *e, arena *memory, const char *target,
                                       predict_input *c, pons_error *err);

#endif
