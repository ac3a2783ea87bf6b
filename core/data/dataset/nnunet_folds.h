/*
 * nnunet_folds.h - the split that nnU-Net draws where no splits_final.json says one.
 */
#ifndef CORE_DATA_DATASET_NNUNET_FOLDS_H
#define CORE_DATA_DATASET_NNUNET_FOLDS_H

#include "data/dataset/split.h"

enum { NNUNET_FOLDS = 5 };

/*
 * Set part[0..count) of cases that are sorted by id, count >= NNUNET_FOLDS. Folds 0 to 4 are those
 * of scikit-learn's KFold(5, shuffle=True, random_state=12345); a larger number holds out a fifth
 * of its own, and these may overlap. PONS_DEVICE: out of memory.
 */
pons_status nnunet_folds_mark(int64_t fold, int count, split_part *part, pons_error *err);

#endif
