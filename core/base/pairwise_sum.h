/*
 * pairwise_sum.h - R2's sum over buffers: sum(a, n) = sum(a, p) + sum(a + p, n - p), p the largest
 * power of two below n. The bits depend only on the buffers.
 */
#ifndef CORE_BASE_PAIRWISE_SUM_H
#define CORE_BASE_PAIRWISE_SUM_H

#include <stdbool.h>
#include <stdint.h>

enum { PAIRWISE_SUM_TILE = 512 }; /* largest 'count' of pairwise_sum                              */

/*
 * Sum elements at .. at + count - 1 of 'n' buffers into 'out': doubles where 'wide', else floats.
 */
void pairwise_sum(void *const *buffer, int n, bool wide, int64_t at, int count, void *out);

#endif
