/*
 * nnunet_postprocess.h - the postprocessing.json of a model folder of nnU-Net: labels of which only
 * the largest part is kept.
 */
#ifndef CORE_NNUNET_NNUNET_POSTPROCESS_H
#define CORE_NNUNET_NNUNET_POSTPROCESS_H

#include "base/arena.h"

#include <pons/transform.h>

typedef struct nnunet_postprocess {
    const char *file;         /* the file of the rules; NULL: there is none                      */
    int count;
    struct nnunet_postprocess_rule {
        int id_count;
        const int *id;        /* their union is one mask                                          */
    } *rule;                  /* applied in order                                                 */
} nnunet_postprocess;

/*
 * Read the rules of a model folder: its own postprocessing.json, that of crossval_results_folds_F,
 * where F is 'folds' ("0_1_2"), or that of its only such folder. Without any file there are no
 * rules. PONS_CONFIG: several files, or a rule is not understood; PONS_DATA: no JSON.
 */
pons_status nnunet_postprocess_read(nnunet_postprocess *out, arena *memory, const char *model,
                                    const char *folds, pons_error *err);
/*
 * Set ids (I32, one channel) to 0 where they are in a rule's mask but not in its largest component;
 * of several equally large ones all are kept. Voxels are connected by faces, edges and corners.
 */
pons_status nnunet_postprocess_apply(const nnunet_postprocess *p, pons_volume *ids,
                                     pons_error *err);

#endif
