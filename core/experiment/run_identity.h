/*
 * run_identity.h - the name that a run draws when it begins, in its resolved.ini and its
 * checkpoints.
 *
 * It stays when the run goes on, and in a copy of its folder. The run of an older pons has none.
 */
#ifndef CORE_EXPERIMENT_RUN_IDENTITY_H
#define CORE_EXPERIMENT_RUN_IDENTITY_H

#include <pons/plugin.h>

enum { RUN_IDENTITY_SIZE = 33 }; /* 32 hexadecimal digits; "": none                               */

void run_identity_draw(char out[RUN_IDENTITY_SIZE]);
/* That of a checkpoint's run. */
pons_status run_identity_read(const char *checkpoint, char out[RUN_IDENTITY_SIZE],
                              pons_error *err);
/* PONS_DATA where the resolved.ini at 'path' is another run's; either may say none. */
pons_status run_identity_check(const char *checkpoint, const char *path, pons_error *err);

#endif
