/*
 * scaling_model.h - the time of a step on more devices than there are, from a traced step and two
 * numbers of a network.
 *
 * Each device computes as the traced one did and has as many micro-batches; sums begin when the
 * program comes to them and run one after another in that order, while it goes on; where it waits
 * for one that is not done it stands still, and everything behind is later by as much. With p
 * devices, latency a of a message and bandwidth B of a device's link a sum of n bytes takes
 *
 *   ring   2 (p - 1) a + 2 (p - 1) / p  n / B     reduce-scatter and all-gather around a ring
 *                                                 (Patarasu and Yuan 2009, J. Parallel Distrib.
 *                                                 Comput. 69)
 *   tree   2 ceil(log2 p) a + 2 (p - 1) / p n / B recursive halving and doubling (Rabenseifner
 *                                                 2004; Thakur, Rabenseifner and Gropp 2005, Int.
 *                                                 J. High Perform. Comput. Appl. 19)
 *
 * and where bits must not depend on the split of a step (deterministic = yes), so that every device
 * collects what all others have and adds it up itself,
 *
 *   ring   (p - 1) (a + n / B)
 *   tree   ceil(log2 p) a + (p - 1) n / B
 *
 * Left out: adding up, the difference between devices of one kind, and other traffic.
 */
#ifndef CORE_BENCH_SCALING_MODEL_H
#define CORE_BENCH_SCALING_MODEL_H

#include "replica/comm_trace.h"

typedef struct scaling_network {
    double latency;           /* seconds of a message without content                             */
    double bandwidth;         /* bytes per second, in each direction                              */
    bool collected;           /* the sums of deterministic = yes                                  */
} scaling_network;

typedef enum scaling_way { SCALING_RING = 0, SCALING_TREE, SCALING_WAY_COUNT } scaling_way;

double scaling_sum_seconds(const scaling_network *n, scaling_way way, int devices, int64_t size);

/*
 * The network on which sums of these sizes would take these seconds on 'devices' devices around a
 * ring: least squares. False, and nothing is written, where no latency and bandwidth above 0 do.
 */
bool scaling_fit(int count, const int64_t *size, const double *seconds, int devices,
                 scaling_network *n);

/* Of a step; s->compute over it is the efficiency. */
pons_status scaling_predict(const trace_step *s, const scaling_network *n, scaling_way way,
                            int devices, double *seconds, pons_error *err);

#endif
