/*
 * infer_internal.h - what the files of prediction share.
 */
#ifndef CORE_INFER_INFER_INTERNAL_H
#define CORE_INFER_INFER_INTERNAL_H

#include "data/dataset/case_geometry.h"
#include "infer/predict.h"
#include "experiment/processes.h"
#include "replica/replicas.h"

struct predictor {
    config *config;
    processes processes;      /* of the first network of an ensemble                              */
    experiment *experiment;
    replicas replicas;
    bool compares;            /* the checkpoint holds 'seen'                                      */
    case_geometry seen;       /* in training, after preprocessing                                 */
    logger *log;
};

/* Network 'at' of the networks that predict together. */
typedef struct predict_member {
    int count, at;
    predictor *const *all;
} predict_member;

/*
 * predict_foreign.c: an image after preprocessing against what the training of a network saw. An
 * image outside of that is a warning to 'l', with the step that would mend it, and *said is set.
 * An orientation that training never saw is PONS_DATA unless 'force', with what would do for all
 * networks. 'said' before: no second warning.
 */
pons_status predict_foreign(const predict_member *m, const pons_case *c, bool force, bool *said,
                            logger *l, pons_error *err);

/*
 * restore_grid.c: a prediction on the grid of the file, from planes along i of the preprocessed
 * grid as they come (volume.h). 'from' is where the preprocessed image lies, with the network's
 * classes for channels.
 */
typedef struct predict_back predict_back;

typedef struct predict_wish {
    bool logits, probabilities; /* beside classes                                                 */
} predict_wish;

pons_status predict_back_open(const experiment *e, const predict_wish *wish, const volume *from,
                              const volume_grid *grid, predict_back **out, pons_error *err);
void predict_back_close(predict_back *b);
/*
 * Planes first .. end - 1, in order. 'fill' writes voxels 'at' .. at + count - 1 of the image, each
 * once and some at the same time: probabilities [count][classes], and logits unless NULL.
 */
pons_status predict_back_planes(predict_back *b, int64_t first, int64_t end,
                                void (*fill)(void *context, int64_t at, int64_t count,
                                             float *probabilities, float *logits),
                                void *context, pons_error *err);
/* After the last plane; the volumes are the caller's. */
pons_status predict_back_finish(predict_back *b, predict_result *out, pons_error *err);

#endif
