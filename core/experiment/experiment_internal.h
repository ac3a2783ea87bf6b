/*
 * experiment_internal.h - what the files that make an experiment ready share.
 */
#ifndef CORE_EXPERIMENT_EXPERIMENT_INTERNAL_H
#define CORE_EXPERIMENT_EXPERIMENT_INTERNAL_H

#include "experiment/experiment.h"

/* "file.ini:12", or "[section]" when the key was not given. */
const char *experiment_place(experiment *e, const char *section, const char *key);

/* experiment_devices.c */
/* The list of devices, and how many replicas it makes; nothing is opened. */
pons_status experiment_find_devices(experiment *e, const experiment_known *known,
                                    pons_error *err);
pons_status experiment_open_devices(experiment *e, const experiment_known *known, pons_error *err);
/* How many steps are asked for, and M. */
pons_status experiment_resolve_steps(experiment *e, pons_error *err);

#endif
