/*
 * pairwise_sum.h - R2's sum over buffers: sum(a, n) = sum(a, p) + sum(a + p, n - p), p the largest
 * power of two below n. The bits depend on nothing but the buffers.
 */
#ifndef CORE_BASE_PAIRWISE_SUM_H
#define CORE_BASE_PAIRWISE_SUM_H

#include <stdbool.h>
#include <stdint.h>

enum { TREE_TILE = 512 }; /* elements at a time, at most                                          */

/* Elements at .. at + count - 1 of 'n' buffers (double where 'wide', else float) into 'out'. */
void tree_sum(void *const *buffer, int n, bool wide, int64_t at, int count, void *out);

#endif
