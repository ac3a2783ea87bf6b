/*
 * show.h - pictures of cases and of patches.
 */
#ifndef CORE_CLI_DATA_SHOW_H
#define CORE_CLI_DATA_SHOW_H

#include "base/log.h"
#include "config/config.h"

/*
 * Write FOLDER/CASE.png for the named cases, or for all: the upper rows as in the files, one row
 * per channel, the lower rows after [preprocess]. FOLDER/captions.txt has the colours of the
 * classes and a line for each picture.
 */
pons_status show_cases(config *c, int name_count, const char *const *name, const char *folder,
                       logger *l, pons_error *err);
/* Write FOLDER/patches.png with 'count' augmented patches of the named or all training cases. */
pons_status show_patches(config *c, int name_count, const char *const *name, const char *folder,
                         int count, logger *l, pons_error *err);

#endif
