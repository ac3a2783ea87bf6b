/*
 * predict.h - a trained network, or several, applied to the files of cases: classes on their grid.
 */
#ifndef CORE_INFER_PREDICT_H
#define CORE_INFER_PREDICT_H

#include "base/log.h"
#include "config/config.h"
#include "data/volume/volume.h"
#include "experiment/experiment.h"

typedef struct predictor predictor;

/* Where a network comes from, and what its INI file is. */
typedef struct predict_source {
    const char *run;          /* a run folder, a checkpoint folder or a weights file              */
    const char *config;       /* --config; NULL: the run's resolved.ini                           */
    int set_count;
    const char *const *set;   /* --set                                                            */
    int image_channels;       /* of the images to come; 0: not known                              */
    bool any;                 /* another checkpoint where the best one is damaged                 */
} predict_source;

/* beside: the first network of an ensemble, closed last, whose devices this one shares; or NULL. */
pons_status predictor_open(const predict_source *source, const predictor *beside, logger *l,
                           predictor **out, pons_error *err);
/* 'failure': why it is closed; other processes of this prediction end with it. */
void predictor_close(predictor *p, const pons_error *failure);
const experiment *predictor_experiment(const predictor *p);
/* This process among those that predict together, 0 where it is alone. */
int predictor_rank(const predictor *p);

/* What there is of a case; volumes that were not asked for are empty. */
typedef struct predict_result {
    volume_grid grid;         /* of the first file                                                */
    volume classes;           /* U8: class index, or 0 and 1 per region                           */
    volume logits, probabilities; /* F32, a channel per class                                     */
} predict_result;

/* The files of a case. */
typedef struct predict_input {
    const char *name;
    int file_count;
    const char *const *file;
} predict_input;

typedef struct predict_work {
    int count;
    const predict_input *input;
    bool logits, probabilities; /* are wanted                                                     */
    bool force;               /* an image whose orientation training never saw is taken as it is  */
    size_t record_size;       /* of what 'take' leaves for 'tell'                                 */
    /*
     * Called once for every case, in one of the processes, in order of its cases and on one thread
     * that may not be the caller's; the volumes are cleared afterwards. result: NULL where the
     * files are no case or logits are not finite, 'problem' (PONS_DATA) says why. record: zeros. A
     * failure ends it all.
     */
    pons_status (*take)(void *context, int number, const predict_result *result,
                        const pons_error *problem, void *record, pons_error *err);
    /* Called for every case after that, in all processes, in order of cases. */
    pons_status (*tell)(void *context, int number, const void *record, pons_error *err);
    void *context;
} predict_work;

/*
 * 'count' predictors (an ensemble: their probabilities are averaged; they must preprocess alike)
 * on cases, spread over the devices of this process, or over processes that were started together:
 * they share the cases out, or the windows of each where there are fewer cases. In memory are, of
 * one case, the planes that windows are blended into (window_blend.h) and what is decided so far;
 * of the next, its image; of the last, what is being written (window_scheduler.h). Of an ensemble
 * also the sums of probabilities, and of logits where they are wanted, over the whole preprocessed
 * grid.
 */
pons_status predict_run(int count, predictor *const *p, const predict_work *work, pons_error *err);

#endif
