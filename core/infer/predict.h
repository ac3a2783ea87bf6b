/*
 * predict.h - apply one or several trained networks to cases, on the grid of their files.
 */
#ifndef CORE_INFER_PREDICT_H
#define CORE_INFER_PREDICT_H

#include "base/log.h"
#include "config/config.h"
#include "data/volume/volume.h"
#include "experiment/experiment.h"
#include "replica/replicas.h"

typedef struct predictor predictor;

/* The origin of a network: weights and INI file. */
typedef struct predict_source {
    const char *run;          /* a run folder, a checkpoint folder or a weights file              */
    const char *config;       /* --config; NULL: the run's resolved.ini                           */
    int set_count;
    const char *const *set;   /* --set                                                            */
    int image_channels;       /* channels of the images; 0: unknown                               */
    bool any;                 /* use another checkpoint if the best one is damaged                */
    bool dropout;             /* its dropout acts; PONS_CONFIG: it has none                       */
    bool alone;               /* other processes are not joined, whatever the environment says    */
} predict_source;

/*
 * 'beside' (may be NULL): the first network of an ensemble, whose devices are shared; closed last.
 */
pons_status predictor_open(const predict_source *source, const predictor *beside, logger *l,
                           predictor **out, pons_error *err);
/* If 'failure' is not PONS_OK, other processes of this prediction end with it. */
void predictor_close(predictor *p, const pons_error *failure);
const experiment *predictor_experiment(const predictor *p);
/* Its network on the devices of this process. */
const replicas *predictor_replicas(const predictor *p);
/* True for a model of nnU-Net, whose files end in the number of their channel. */
bool predictor_is_nnunet(const predictor *p);
/* The name of a cascade's first stage, whose labels the network wants as well; NULL: none. */
const char *predictor_previous(const predictor *p);
/* The number of channels of a case's images. */
int predictor_image_channels(const predictor *p);
/* The rank of this process in the prediction. */
int predictor_rank(const predictor *p);
/*
 * Make the failure of any process that of all, so that all of them go on or none. All call it; of
 * several failures the first by rank is told, but a process keeps its own.
 */
pons_status predictor_share(const predictor *p, pons_error *err);

/* The prediction of a case; volumes that were not requested are empty. */
typedef struct predict_result {
    volume_grid grid;         /* grid of the case's first file                                    */
    volume classes;           /* U8: class index, or 0 and 1 per region                           */
    /* F32, one channel per class. task = classification: one voxel, and no other volume. */
    volume logits, probabilities;
    volume entropy, variance; /* F32, one channel (uncertainty.c)                                 */
    volume image;             /* F32, one channel: the modality that task = synthesis makes       */
} predict_result;

/* The files of a case. */
typedef struct predict_input {
    const char *name;
    int file_count;
    const char *const *file;
    const idx_file *stack;    /* image 'slice' of it has the name 'file'; NULL: files are volumes */
    int64_t slice;
    const slide_patch *patch; /* the image is this patch of a slide; NULL: it is none             */
    /*
     * Reads the image in place of files: F32, finite, with its grid. Called once for each network
     * or less, by any thread. NULL: files have the image.
     */
    pons_status (*read)(void *context, volume *image, volume_grid *grid, pons_error *err);
    void *context;
    const char *previous;     /* labels of a cascade's first stage; NULL: none                    */
    int target;               /* task = synthesis: the modality to make, whose file may be NULL   */
} predict_input;

/*
 * Set 'previous' of each input: CASE.nii.gz or CASE.nii in the folder 'path', or the file 'path' of
 * a single case. PONS_DATA: a case has no labels there.
 */
pons_status predict_find_previous(arena *memory, const char *path, int count,
                                  predict_input *input, pons_error *err);

typedef struct predict_work {
    int count;
    const predict_input *input;
    bool logits, probabilities; /* requested outputs                                              */
    /*
     * Entropy and variance are requested: over the networks, or over the flips of [window] mirror
     * of a single network, which then predicts each flip once more. PONS_CONFIG: neither.
     */
    bool uncertainty;
    /*
     * Entropy and variance of a single network are over this number of passes of 'dropped' instead,
     * the same network opened with 'dropout'; 0: NULL. Windows of these passes are not flipped.
     */
    int dropout_passes;
    const predictor *dropped;
    bool force;               /* accept an image whose orientation training never saw             */
    bool familiar;            /* images are not compared with those of the training               */
    size_t record_size;       /* bytes that 'take' passes to 'tell'                               */
    /*
     * Called once for each case, in one of the processes, in order of its cases, on one thread
     * that may not be the caller's. The volumes of 'result' are cleared afterwards; 'take' may keep
     * one and leave an empty one. 'result' is NULL if the files are no case or logits are not
     * finite; 'problem' (PONS_DATA) says why. 'record' is zeroed. An error ends the prediction.
     */
    pons_status (*take)(void *context, int number, predict_result *result,
                        const pons_error *problem, void *record, pons_error *err);
    /* Called for each case after 'take', in all processes, in order of cases. */
    pons_status (*tell)(void *context, int number, const void *record, pons_error *err);
    /* Called before each batch, by any device; true: PONS_INTERRUPTED. May be NULL. */
    bool (*stop)(void *context);
    /*
     * Called as parts of the cases are done, by one thread at a time; 'share' is that of case
     * 'number', from 0 to 1, and 'voxels' those of its image, 0 where they are unknown. May be
     * NULL.
     */
    void (*progress)(void *context, int number, double share, int64_t voxels);
    void *context;
} predict_work;

/*
 * Predict cases by the task of the networks. A synthesis has a single network and no other output.
 * A classification has the probabilities of each image, and predicts all cases before the first
 * call of 'tell'.
 *
 * Segment cases with 'count' networks, on the devices of this process and of processes that were
 * started together. The probabilities of an ensemble are averaged; its networks must preprocess
 * alike. Processes divide the cases, or the windows of each case if there are fewer cases than
 * processes.
 *
 * Memory holds, of one case, the planes in work (window_blend.h) and the decided part; of the next
 * case its image; of the previous case the volumes being written (window_scheduler.h). An ensemble
 * also holds the sums of probabilities, and of logits if requested, over the preprocessed grid.
 * With 'uncertainty' there are the sums of probabilities and of squares.
 */
pons_status predict_run(int count, predictor *const *p, const predict_work *work, pons_error *err);

#endif
