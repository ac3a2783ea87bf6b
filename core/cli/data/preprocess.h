/*
 * preprocess.h - write every case as it is after the deterministic transforms.
 */
#ifndef CORE_CLI_DATA_PREPROCESS_H
#define CORE_CLI_DATA_PREPROCESS_H

#include "base/log.h"
#include "config/config.h"

/*
 * FOLDER/CASE/image.nii.gz (float32, 4D where there are several channels) and label.nii.gz (class
 * indices; the file's ids where nothing lists labels). Reads [data] and [preprocess] of 'c' and
 * skips all other sections.
 */
pons_status preprocess_write(config *c, const char *folder, logger *l, pons_error *err);
/* All cases into the disk cache, for runs of the same [data], [preprocess] and [patch] sampling. */
pons_status preprocess_cache(config *c, logger *l, pons_error *err);

#endif
