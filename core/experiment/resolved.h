/*
 * resolved.h - whether a run's resolved.ini is as the run wrote it.
 *
 * A checkpoint's manifest holds the file's sha256. A run that goes on writes the file anew, with
 * what may change meanwhile (R31), so the hash of an older checkpoint is not that of the file: then
 * the seal at the file's end is checked, and its values are compared with the checkpoint's.
 */
#ifndef CORE_EXPERIMENT_RESOLVED_H
#define CORE_EXPERIMENT_RESOLVED_H

#include "config/config.h"

/*
 * PONS_DATA where 'path' is neither as 'checkpoint' says nor sealed. *same: it is as the checkpoint
 * says, or that says nothing, as one of an older pons.
 */
pons_status resolved_check(const char *checkpoint, const char *path, bool *same, pons_error *err);

#endif
