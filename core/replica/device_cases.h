/*
 * device_cases.h - preprocessed cases in the memory of devices that cut patches themselves.
 */
#ifndef CORE_REPLICA_DEVICE_CASES_H
#define CORE_REPLICA_DEVICE_CASES_H

#include "replica/replicas.h"

/*
 * Keep the cases of [data] cache = device in host memory if they do not fit into the memory of the
 * devices of any process. [data] cache of 'e' is then memory, with a warning, and *moved is true.
 * The caller builds the network again for patches cut by the host, which have the same bits.
 */
pons_status device_cases_choose(replicas *r, experiment *e, const cache *held, int count,
                                bool *moved, pons_error *err);
/*
 * With [data] cache = device, the first 'count' training cases into the memory of
 * each replica's device, where its training program reads them.
 */
pons_status device_cases_load(replicas *r, const cache *held, int count, pons_error *err);
void device_cases_drop(replica *r);

#endif
