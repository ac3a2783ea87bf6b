/*
 * experiment_internal.h - functions shared by the files that open an experiment.
 */
#ifndef CORE_EXPERIMENT_EXPERIMENT_INTERNAL_H
#define CORE_EXPERIMENT_EXPERIMENT_INTERNAL_H

#include "experiment/experiment.h"

/* "file.ini:12", or "[section]" if the key is not given. */
const char *experiment_location(experiment *e, const char *section, const char *key);

/* experiment_remarks.c: add the comments of resolved.ini, once devices and plugins are open. */
void experiment_add_remarks(experiment *e);

/* ---- experiment_devices.c -------------------------------------------------------------------- */
/* Choose the devices and count the replicas; nothing is opened. */
pons_status experiment_find_devices(experiment *e, const experiment_overrides *known,
                                    pons_error *err);
pons_status experiment_open_devices(experiment *e, const experiment_overrides *known,
                                    pons_error *err);
/* Check steps and epochs, and resolve M. */
pons_status experiment_resolve_steps(experiment *e, pons_error *err);

#endif
