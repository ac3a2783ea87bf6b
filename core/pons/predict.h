/*
 * predict.h - predict images with trained networks, from a program.
 *
 *     pons_error err = PONS_ERROR_INIT;
 *     pons_predictor_settings settings = { .size = sizeof settings, .run = "runs/spleen" };
 *     pons_predictor *p;
 *     pons_prediction *result;
 *
 *     if (pons_predictor_open(&settings, &p, &err) != PONS_OK)
 *         ...
 *     pons_image image = { .size = sizeof image, .type = PONS_VOXEL_I16, .channels = 1,
 *                          .extent = { 256, 256, 80 }, .affine = { ... }, .voxels = voxels };
 *     pons_predict_request request = { .size = sizeof request, .image = &image };
 *     if (pons_predictor_run(p, &request, &result, &err) == PONS_OK)
 *         labels = pons_prediction_volume(result, PONS_RESULT_CLASSES);
 *     pons_prediction_free(result);
 *     pons_predictor_close(p);
 *
 * A prediction from memory has the bits of one from a file with the same values and affine, and
 * those of 'pons predict'.
 *
 * Threads. A predictor computes on threads of its own. Any thread may call it; calls for one
 * predictor wait for each other, calls for several run at the same time. Callbacks come from
 * threads of the predictor, one at a time, and call no function of the same predictor.
 *
 * The process. No function ends the process, writes to its standard streams, changes its signals
 * or environment, or joins other processes of a launcher. Exceptions are in docs/embedding.md.
 *
 * Errors. A call writes its own outcome to 'err', whatever it held: PONS_OK and no text after a
 * success. So one pons_error serves all calls of a program's thread; NULL is allowed.
 *
 * Structs begin with their size, which the caller sets; members are only ever appended. A member
 * that this library does not know must be zero, else the call is PONS_USAGE.
 */
#ifndef CORE_PONS_PREDICT_H
#define CORE_PONS_PREDICT_H

#include <pons/transform.h>

PONS_C_BEGIN

/* ---- open ------------------------------------------------------------------------------------ */

typedef struct pons_predictor pons_predictor;

typedef struct pons_predictor_settings {
    uint32_t size;
    /*
     * As RUN of 'pons predict': a run folder, one of a cross-validation (all finished folds), a
     * checkpoint folder, a folder of nnU-Net or one of its folds, a weights file with 'config'; or
     * a comma list of them. The probabilities of several networks are averaged.
     */
    const char *run;
    const char *config;       /* INI file of a weights file; NULL: the run's own                  */
    int set_count;            /* values that replace those of the file: "window.overlap=0.5"      */
    const char *const *set;
    int image_channels;       /* for a weights file whose INI has no [data] image; 0: unknown     */
    /* Called with each line that 'pons predict' writes to a terminal. May be NULL. */
    void (*line)(void *context, const char *line);
    void *context;
} pons_predictor_settings;

/*
 * Read weights and prepare kernels, which takes seconds at most. Strings are copied or read before
 * it returns. PONS_USAGE, PONS_CONFIG: the run or a value of it cannot work; PONS_DATA: a file is
 * damaged; PONS_DEVICE: memory, or no device; PONS_PLUGIN. *out is written on success alone.
 */
pons_status pons_predictor_open(const pons_predictor_settings *settings, pons_predictor **out,
                                pons_error *err);
/* Waits for a call under way. NULL is allowed. */
void pons_predictor_close(pons_predictor *p);

int pons_predictor_channels(const pons_predictor *p); /* of an image; a synthesis counts all      */
/* Classes, the background included; or regions, of which a voxel may have several. */
int pons_predictor_classes(const pons_predictor *p);
bool pons_predictor_has_regions(const pons_predictor *p);
/*
 * The name of a class, from 0; *id, unless NULL, is its value in a label file. NULL: there is no
 * such class. The name lives as long as the predictor.
 */
const char *pons_predictor_class(const pons_predictor *p, int number, int *id);

/* ---- predict --------------------------------------------------------------------------------- */

typedef enum pons_voxel_type {
    PONS_VOXEL_U8 = 1, PONS_VOXEL_I8, PONS_VOXEL_U16, PONS_VOXEL_I16, PONS_VOXEL_U32,
    PONS_VOXEL_I32, PONS_VOXEL_F32, PONS_VOXEL_F64
} pons_voxel_type;

/* An image in memory. The caller owns the voxels and leaves them as they are during the call. */
typedef struct pons_image {
    uint32_t size;
    pons_voxel_type type;
    int channels;
    int64_t extent[3];        /* voxels along i, j, k                                             */
    /*
     * Bytes from a voxel to the next along i, j, k, and to the next channel, as strides of NumPy
     * are; may be negative. All 0: [i, j, k, channel] without gaps, the channel fastest.
     */
    int64_t stride[4];
    double affine[3][4];      /* centre of voxel (i, j, k, 1) -> millimetres, RAS+ as in NIfTI    */
    const void *voxels;       /* of voxel 0 0 0, channel 0; in the scanner's units                */
} pons_image;

typedef struct pons_predict_request {
    uint32_t size;
    const char *name;         /* of the case, in messages; NULL: "image"                          */
    const pons_image *image;  /* NULL: it is in files                                             */
    int file_count;           /* one file, or one for each channel                                */
    const char *const *file;  /* NIfTI, or pictures; NULL for the target of a synthesis           */
    int target;               /* synthesis: the modality to make, whose channel is not read       */
    bool logits, probabilities; /* further results                                                */
    bool uncertainty;         /* entropy and variance over networks, or flips of [window] mirror  */
    bool force;               /* accept an orientation that training never saw                    */
    /* Called before each batch of windows; true: give up with PONS_INTERRUPTED. May be NULL. */
    bool (*stop)(void *context);
    /* Called as parts of the image are done, with their share from 0 to 1. May be NULL. */
    void (*progress)(void *context, double share);
    void *context;
} pons_predict_request;

typedef struct pons_prediction pons_prediction;

/*
 * Predict one image. PONS_DATA: the image cannot be read, has a value that is not finite, or does
 * not suit the network; PONS_INTERRUPTED: 'stop' said so; PONS_CONFIG: a request that the network
 * cannot serve; PONS_DEVICE: memory. The predictor is usable after any of them. *out is written on
 * success alone, and belongs to the caller.
 */
pons_status pons_predictor_run(pons_predictor *p, const pons_predict_request *request,
                               pons_prediction **out, pons_error *err);
void pons_prediction_free(pons_prediction *r); /* NULL is allowed                                 */

/* Results, on the grid of the image: [i, j, k, channel], the channel fastest. */
typedef enum pons_result {
    PONS_RESULT_CLASSES = 0,  /* U8, 1 channel: number of a class; regions: 0 or 1, one each      */
    PONS_RESULT_LOGITS,       /* F32, one channel a class, before any activation                  */
    /* F32, one channel a class. Of a classification: one voxel, and the only result. */
    PONS_RESULT_PROBABILITIES,
    PONS_RESULT_ENTROPY,      /* F32, nats                                                        */
    PONS_RESULT_VARIANCE,     /* F32                                                              */
    PONS_RESULT_IMAGE         /* F32: what a synthesis makes, its only result                     */
} pons_result;

/* NULL: the result was not requested, or the network has none of this kind. */
const pons_volume *pons_prediction_volume(const pons_prediction *r, pons_result result);

PONS_C_END

#endif
