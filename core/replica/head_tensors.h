/*
 * head_tensors.h - the tensors of a network that depend on its number of classes.
 */
#ifndef CORE_REPLICA_HEAD_TENSORS_H
#define CORE_REPLICA_HEAD_TENSORS_H

#include "base/arena.h"
#include "experiment/experiment.h"

/*
 * The names of parameters and states whose shape changes when the network is built with one class
 * more, NULL at the end; memory of the arena.
 */
pons_status head_tensors_list(const experiment *e, arena *a, const char *const **out,
                              pons_error *err);

#endif
