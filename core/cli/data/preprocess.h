/*
 * preprocess.h - write every case after the deterministic transforms.
 */
#ifndef CORE_CLI_DATA_PREPROCESS_H
#define CORE_CLI_DATA_PREPROCESS_H

#include "base/log.h"
#include "config/config.h"
#include "data/dataset/dataset.h"

/*
 * Read a case with its target, or with the file's ids (below 256) where no list of labels maps
 * them. case_clear ends it.
 */
pons_status preprocess_read(const dataset *d, int rank, pons_case *out, pons_error *err);
/*
 * Write FOLDER/CASE/image.nii.gz (float32, 4D with several channels) and label.nii.gz. The label
 * has class indices, or the file's ids without a list of labels. Sections of 'c' other than [data]
 * and [preprocess] are skipped.
 */
pons_status preprocess_write(config *c, const char *folder, logger *l, pons_error *err);
/*
 * Write all cases to the disk cache, for runs with the same [data], [preprocess] and [patch]
 * sampling.
 */
pons_status preprocess_cache(config *c, logger *l, pons_error *err);

#endif
