/*
 * predict_members.h - open the networks that RUN names: runs, folds of a cross-validation or of a
 * folder of nnU-Net, checkpoints, weights files.
 */
#ifndef CORE_INFER_PREDICT_MEMBERS_H
#define CORE_INFER_PREDICT_MEMBERS_H

#include "infer/predict.h"

#define PREDICT_MEMBERS_MAX 64

/* The folds to open of a folder that has some, and those that were opened. */
typedef struct predict_folds {
    int64_t fold;             /* OPTION_AUTO: all                                                 */
    const char *list;         /* of nnU-Net, such as "0,1"; NULL: all                             */
    arena *memory;            /* of the paths                                                     */
    const char *opened;       /* set when networks are opened: folds of nnU-Net, "0_1"; "": none  */
} predict_folds;

/*
 * Open the networks of source->run, which may be a comma list. source->run becomes the path of the
 * last one. 'beside' (may be NULL): the first network opens on its devices. *count is set after an
 * error too; the caller closes the networks in reverse order.
 */
pons_status predict_members_open(predict_source *source, predict_folds *folds,
                                 const predictor *beside, logger *l,
                                 predictor *member[PREDICT_MEMBERS_MAX], int *count,
                                 pons_error *err);

#endif
