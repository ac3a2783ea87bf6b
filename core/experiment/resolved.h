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
 * Complete the hint of a plugin that is not found. The file 'resolved' may name the plugin's path,
 * as "; loss mine is /home/u/own/loss/mine.so". The hint then names it and the PONS_PLUGIN_PATH
 * that finds it. Another error, another comment and NULL change nothing. The plugin is not loaded:
 * the folder of a run may come from somebody else.
 */
void resolved_hint_plugins(const char *resolved, pons_error *err);

#endif
