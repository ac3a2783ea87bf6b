/*
 * infer_internal.h - the struct of a predictor, and functions shared by the files of prediction.
 */
#ifndef CORE_INFER_INFER_INTERNAL_H
#define CORE_INFER_INFER_INTERNAL_H

#include "data/packed/case_geometry.h"
#include "infer/predict.h"
#include "experiment/processes.h"
#include "replica/replicas.h"

struct predictor {
    config *config;
    processes processes;      /* the first network of an ensemble has them                        */
    experiment *experiment;
    replicas replicas;
    bool nnunet;              /* a model of nnU-Net                                               */
    char *previous;           /* first stage of a cascade, whose labels are channels; NULL: none  */
    int previous_count;       /* their ids                                                        */
    int *previous_id;
    bool compares;            /* the checkpoint has 'seen'                                        */
    case_geometry seen;       /* geometry of the training images after preprocessing              */
    logger *log;
};

/* Network 'at' of an ensemble. */
typedef struct predict_member {
    int count, at;
    predictor *const *all;
} predict_member;

/*
 * predict_foreign.c: compare a preprocessed image with the images of the network's training. A
 * difference is a warning in 'l' with the step that removes it, and sets *said; if *said is set
 * before, no warning is repeated. An orientation that training never saw is PONS_DATA unless
 * 'force', with a hint that suits all networks.
 */
pons_status predict_foreign(const predict_member *m, const pons_case *c, bool force, bool *said,
                            logger *l, pons_error *err);

/*
 * predict_memory.c: tell with -v the peak of memory while a preprocessed case is predicted, without
 * memory of GPUs. *process: the bytes of the process without the case; 0: measure them.
 */
void predict_memory_tell(int count, predictor *const *p, const predict_work *w, const pons_case *c,
                         const volume_grid *grid, double *process);

/*
 * restore_grid.c: resample a prediction to the file's grid, from planes along i of the
 * preprocessed grid in order (inverse_resample.h). 'from' has extent, affine and inside box of the
 * preprocessed image, and the network's classes as channels.
 */
typedef struct restore_grid restore_grid;

typedef struct predict_outputs {
    bool logits, probabilities; /* outputs besides the classes                                    */
} predict_outputs;

pons_status restore_grid_open(const experiment *e, const predict_outputs *outputs,
                              const volume *from,
                              const volume_grid *grid, restore_grid **out, pons_error *err);
void restore_grid_close(restore_grid *b);
/*
 * Add planes first .. end - 1. 'fill' writes voxels 'at' .. at + count - 1 of the image:
 * probabilities [count][classes], and logits unless NULL. It is called once for each voxel, from
 * several threads.
 */
pons_status restore_grid_planes(restore_grid *b, int64_t first, int64_t end,
                                void (*fill)(void *context, int64_t at, int64_t count,
                                             float *probabilities, float *logits),
                                void *context, pons_error *err);
/* Take the volumes after the last plane; the caller clears them. */
pons_status restore_grid_finish(restore_grid *b, predict_result *out, pons_error *err);

/* Read the image of a case, from memory or its files. */
pons_status predict_read(const predict_input *input, volume *image, volume_grid *grid,
                         pons_error *err);
/* Whether the prediction is to stop; other processes learn of its progress. */
bool predict_stop_due(const predict_work *work, group *g);
/*
 * predict_previous.c: read the labels of a cascade's first stage as U8: 0, or 1 + the number of an
 * id in p->previous_id. 'image' and 'grid' are those of the case as it was read. PONS_DATA: there
 * is no file, its grid is another, or it has another id. The caller clears 'out'.
 */
pons_status predict_previous_read(const predictor *p, const predict_input *input,
                                  const volume *image, const volume_grid *grid, volume *out,
                                  pons_error *err);
/* Append a channel of 0 and 1 to a preprocessed image for each of these labels. */
pons_status predict_previous_append(const predictor *p, pons_case *c, pons_error *err);

/* predict_run of the tasks synthesis and classification. */
pons_status predict_synthesis(int count, predictor *const *p, const predict_work *work,
                              pons_error *err);
pons_status predict_classification(int count, predictor *const *p, const predict_work *work,
                                   pons_error *err);
/* predict_synthesis.c: the error of processes that were given different cases. */
pons_status predict_compare_names(group *g, const predict_work *w, pons_error *err);

/*
 * uncertainty.c: add to the squares of deviations from the mean (Welford 1962). 'x' has the 'count'
 * probabilities of sample 'sample' of 'samples'; 'sum' holds the sum of the samples before it,
 * divided by 'samples'.
 */
void uncertainty_add(int sample, int samples, int64_t count, const float *sum, float *squares,
                     const float *x);
/* Compute entropy and variance, and resample them to the file's grid; the caller clears both. */
pons_status uncertainty_restore(const experiment *e, int samples, const volume *probabilities,
                                const volume *squares, const volume_grid *grid, volume *entropy,
                                volume *variance, pons_error *err);

#endif
