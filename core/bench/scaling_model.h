/*
 * scaling_model.h - predict the time of a step on more devices, from a traced step and two
 * parameters of a network.
 *
 * Each device computes as the traced one did, with as many micro-batches. A sum starts when the
 * program reaches it; sums run one after another while the program continues. If the program waits
 * for an unfinished sum, all later work is delayed by the wait. With p devices, message latency a
 * and link bandwidth B, a sum of n bytes takes
 *
 *   ring   2 (p - 1) a + 2 (p - 1) / p  n / B     reduce-scatter and all-gather around a ring
 *                                                 (Patarasu and Yuan 2009, J. Parallel Distrib.
 *                                                 Comput. 69)
 *   tree   2 ceil(log2 p) a + 2 (p - 1) / p n / B recursive halving and doubling (Rabenseifner
 *                                                 2004; Thakur, Rabenseifner and Gropp 2005, Int.
 *                                                 J. High Perform. Comput. Appl. 19)
 *
 * With deterministic = yes bits must not depend on the split of a step. Every device then collects
 * the data of all others and adds it up itself:
 *
 *   ring   (p - 1) (a + n / B)
 *   tree   ceil(log2 p) a + (p - 1) n / B
 *
 * The model ignores the additions, differences between devices, and other traffic.
 */
#ifndef CORE_BENCH_SCALING_MODEL_H
#define CORE_BENCH_SCALING_MODEL_H

#include "replica/comm_trace.h"

typedef struct scaling_model_network {
    double latency;           /* seconds of an empty message                                      */
    double bandwidth;         /* bytes per second, in each direction                              */
    bool collected;           /* sums as with deterministic = yes                                 */
} scaling_model_network;

typedef enum scaling_model_algorithm { SCALING_MODEL_RING = 0, SCALING_MODEL_TREE,
    SCALING_MODEL_ALGORITHM_COUNT } scaling_model_algorithm;

double scaling_model_sum_seconds(const scaling_model_network *n, scaling_model_algorithm algorithm,
                                 int devices, int64_t size);

/*
 * Fit a network to the seconds of sums of given sizes on 'devices' devices in a ring (least
 * squares). False: no latency and bandwidth above 0 fit; nothing is written.
 */
bool scaling_model_fit(int count, const int64_t *size, const double *seconds, int devices,
                       scaling_model_network *n);

/* Predict the seconds of a step; s->compute divided by them is the efficiency. */
pons_status scaling_model_predict(const comm_trace_step *s, const scaling_model_network *n,
                                  scaling_model_algorithm algorithm,
                                  int devices, double *seconds, pons_error *err);

#endif
