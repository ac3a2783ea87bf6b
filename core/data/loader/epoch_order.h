/*
 * epoch_order.h - the order in which training takes its cases, epoch after epoch (R6).
 */
#ifndef CORE_DATA_LOADER_EPOCH_ORDER_H
#define CORE_DATA_LOADER_EPOCH_ORDER_H

#include <stdint.h>

/* ceil(epochs x cases / (batch x micro_batches)) */
int64_t stream_steps(int64_t epochs, int64_t cases, int64_t batch, int64_t micro_batches);
/* Epochs whose last case has been consumed after 'steps' steps. */
int64_t stream_epochs(int64_t steps, int64_t cases, int64_t batch, int64_t micro_batches);
/* The order of an epoch's cases: a permutation of 0 .. cases - 1, keyed by seed and epoch. */
void stream_order(uint64_t seed, int64_t epoch, int64_t cases, int64_t *order);

#endif
