/*
 * epoch_order.c - the sequence of training cases (R6): the permutations of the epochs, one after
 * another.
 *
 * A step takes the next batch x M cases, across epoch borders, so each case occurs once per epoch
 * for any batch size. The order depends on the seed, the epoch and the number of cases alone.
 */
#include "data/loader/epoch_order.h"

#include "base/integer.h"
#include "base/random.h"

int64_t epoch_order_steps(int64_t epochs, int64_t cases, int64_t batch, int64_t micro_batches)
{
    int64_t taken = batch * micro_batches;

    return ceil_div_i64(epochs * cases, taken);
}

int64_t epoch_order_epochs(int64_t steps, int64_t cases, int64_t batch, int64_t micro_batches)
{
    return steps * batch * micro_batches / cases;
}

/* Fisher-Yates shuffle from the end: index i is exchanged with one of 0 .. i. */
void epoch_order_of_lane(uint64_t seed, int64_t epoch, int lane, int64_t cases, int64_t *order)
{
    uint64_t stream = random_stream_hash("data.order");

    for (int64_t i = 0; i < cases; i++)
        order[i] = i;
    for (int64_t i = cases - 1; i > 0; i--) {
        uint32_t u[4];
        random_data(seed, stream, (uint64_t)epoch, (uint64_t)lane, (uint64_t)i, 0, u);
        int64_t j = (int64_t)(((uint64_t)u[0] * (uint64_t)(i + 1)) >> 32);
        int64_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

void epoch_order_permutation(uint64_t seed, int64_t epoch, int64_t cases, int64_t *order)
{
    epoch_order_of_lane(seed, epoch, 0, cases, order);
}
