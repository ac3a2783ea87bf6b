/*
 * epoch_order.h - the order of training cases, epoch after epoch (R6).
 */
#ifndef CORE_DATA_LOADER_EPOCH_ORDER_H
#define CORE_DATA_LOADER_EPOCH_ORDER_H

#include <stdint.h>

/* The steps of 'epochs' epochs: ceil(epochs x cases / (batch x micro_batches)). */
int64_t epoch_order_steps(int64_t epochs, int64_t cases, int64_t batch, int64_t micro_batches);
/* The number of epochs that 'steps' steps complete. */
int64_t epoch_order_epochs(int64_t steps, int64_t cases, int64_t batch, int64_t micro_batches);
/* The order of an epoch: a permutation of 0 .. cases - 1, keyed by seed and epoch. */
void epoch_order_permutation(uint64_t seed, int64_t epoch, int64_t cases, int64_t *order);
/* The order of a lane's cases in an epoch (case_window.h); lane 0 has the order above. */
void epoch_order_of_lane(uint64_t seed, int64_t epoch, int lane, int64_t cases, int64_t *order);

#endif
