/*
 * resolved.h - check that a run's resolved.ini is as the run wrote it.
 *
 * The manifest of a checkpoint holds the sha256 of the file. A resumed run writes the file again
 * with changed options (R31), so an older checkpoint has another hash. Then the seal at the file's
 * end is checked instead, and the caller compares its values with the checkpoint's.
 */
#ifndef CORE_EXPERIMENT_RESOLVED_H
#define CORE_EXPERIMENT_RESOLVED_H

#include "config/config.h"

/*
 * PONS_DATA if the file has neither the hash of 'checkpoint' nor a valid seal. *same: the hash is
 * equal, or the manifest has none.
 */
pons_status resolved_check(const char *checkpoint, const char *path, bool *same, pons_error *err);

/*
 * Where 'err' says that a plugin is not found, add to its hint the file that the comments of
 * 'resolved' have, as "; loss mine is /home/u/own/loss/mine.so", and the PONS_PLUGIN_PATH that
 * finds it. Files without such a comment, and NULL, change nothing. The file is never loaded for
 * it: a run's folder may come from somebody else.
 */
void resolved_hint_plugins(const char *resolved, pons_error *err);

#endif
