/*
 * predict_parts.h - what the files of prediction share.
 */
#ifndef CORE_TRAIN_PREDICT_PARTS_H
#define CORE_TRAIN_PREDICT_PARTS_H

#include "train/predict.h"
#include "train/processes.h"
#include "train/replicas.h"

struct predictor {
    config *config;
    processes processes;      /* of the first network of an ensemble                              */
    experiment *experiment;
    replicas replicas;
    logger *log;
};

/*
 * predict_back.c: classes, and where they are wanted logits and probabilities, of the preprocessed
 * grid on that of the file, out->grid; 'logits' may be NULL.
 */
pons_status predict_bring_back(const experiment *e, const volume *probabilities,
                               const volume *logits, bool want_probabilities, predict_result *out,
                               pons_error *err);

#endif
