/*
 * nnunet_model.h - a trained folder of nnU-Net (version 2): plans.json, dataset.json and
 * fold_K/checkpoint_final.pth.
 */
#ifndef CORE_NNUNET_NNUNET_MODEL_H
#define CORE_NNUNET_NNUNET_MODEL_H

#include "base/log.h"
#include "config/config.h"
#include "graph/storage/storage.h"

enum { NNUNET_FOLDS_MAX = 64 };

/* The folds of a folder that have a checkpoint, by name and in order: "fold_0". */
typedef struct nnunet_folds {
    int count;
    char name[NNUNET_FOLDS_MAX][32];
} nnunet_folds;

/* Whether a folder is such a model, and whether it is one fold of it. */
bool nnunet_is_model(const char *path);
bool nnunet_is_fold(const char *path);
/*
 * Refuse a folder that is part of such a model or holds some: PONS_CONFIG names the missing file,
 * or the models. PONS_OK: it is a model or a fold, or has nothing of nnU-Net.
 */
pons_status nnunet_refuse_part(const char *path, pons_error *err);
/* The numbered folds, else fold_all. PONS_CONFIG: there is none. */
pons_status nnunet_folds_find(const char *path, nnunet_folds *out, pons_error *err);

/* A fold: its checkpoint, and the configuration that the plans make. */
typedef struct nnunet_model nnunet_model;

/*
 * 'fold' is FOLDER/fold_K. PONS_CONFIG names a key of the plans that is missing or not understood;
 * PONS_DATA says why a file is damaged.
 */
pons_status nnunet_model_open(const char *fold, nnunet_model **out, pons_error *err);
void nnunet_model_close(nnunet_model *m);
/* The configuration, changed by 'set' as by config_open. */
pons_status nnunet_model_config(const nnunet_model *m, int set_count, const char *const *set,
                                config **out, pons_error *err);
int nnunet_model_channels(const nnunet_model *m); /* of the images                                */
/*
 * The configuration whose labels are further channels of the network, one for each of 'id', in
 * their order; NULL: there is none.
 */
const char *nnunet_model_previous(const nnunet_model *m, int *count, const int **id);
/* Fill parameters and states of the network, with progress. 'wide': the storage holds doubles. */
pons_status nnunet_model_read(const nnunet_model *m, storage *s, bool wide, logger *l,
                              pons_error *err);

#endif
