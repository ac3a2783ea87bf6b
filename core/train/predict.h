/*
 * predict.h - a trained network, or several, applied to a case's files: classes on the files' grid.
 */
#ifndef CORE_TRAIN_PREDICT_H
#define CORE_TRAIN_PREDICT_H

#include "base/log.h"
#include "config/config.h"
#include "data/volume.h"
#include "train/experiment.h"

typedef struct predictor predictor;

/* Where a network comes from, and what its INI file is. */
typedef struct predict_source {
    const char *run;          /* a run folder, a checkpoint folder or a weights file              */
    const char *config;       /* --config; NULL: the run's resolved.ini                           */
    int set_count;
    const char *const *set;   /* --set                                                            */
    int image_channels;       /* of the images to come; 0: not known                              */
} predict_source;

pons_status predictor_open(const predict_source *source, logger *l, predictor **out,
                           pons_error *err);
void predictor_close(predictor *p);
const experiment *predictor_experiment(const predictor *p);

/* What is wanted of a case; volumes that were not asked for stay empty. */
typedef struct predict_result {
    bool want_logits, want_probabilities;
    volume_grid grid;         /* of the first file                                                */
    volume classes;           /* U8: class index, or 0 and 1 per region                           */
    volume logits, probabilities; /* F32, a channel per class                                     */
} predict_result;

/*
 * 'count' predictors (an ensemble: their probabilities are averaged; they must preprocess alike)
 * on one case of 'file_count' files. The caller clears the volumes.
 */
pons_status predict_case(int count, predictor *const *p, int file_count, const char *const *file,
                         const char *name, predict_result *result, pons_error *err);
void predict_result_clear(predict_result *r);

#endif
