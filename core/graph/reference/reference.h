/*
 * reference.h - the reference device: one kernel per node, the oracle of all other devices.
 */
#ifndef CORE_GRAPH_REFERENCE_REFERENCE_H
#define CORE_GRAPH_REFERENCE_REFERENCE_H

#include "graph/storage/device_handle.h"

void device_reference(device *d, bool wide); /* 'wide' computes in double */

#endif
