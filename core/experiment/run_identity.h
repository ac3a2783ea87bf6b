/*
 * run_identity.h - the identity that a run draws when it begins, in its resolved.ini and
 * checkpoints.
 *
 * It stays the same when the run resumes, and in a copy of its folder. A run may have none.
 */
#ifndef CORE_EXPERIMENT_RUN_IDENTITY_H
#define CORE_EXPERIMENT_RUN_IDENTITY_H

#include <pons/plugin.h>

enum { RUN_IDENTITY_SIZE = 33 }; /* 32 hexadecimal digits and a NUL; "": none                     */

void run_identity_draw(char out[RUN_IDENTITY_SIZE]);
/* The identity in a checkpoint's manifest. */
pons_status run_identity_read(const char *checkpoint, char out[RUN_IDENTITY_SIZE],
                              pons_error *err);
/*
 * PONS_DATA if the resolved.ini at 'path' is another run's. No identity on either side is
 * accepted.
 */
pons_status run_identity_check(const char *checkpoint, const char *path, pons_error *err);

#endif
