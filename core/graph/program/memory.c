/*
 * memory.c - assign offsets in one arena to blocks with known lifetimes.
 *
 * Blocks are placed one by one, each in the smallest gap that is free during its whole lifetime
 * (best fit), else above all blocks that it overlaps in time. The order matters: three orders are
 * tried, and the smallest arena is kept. Planning may be slow.
 */
#include "graph/program/memory.h"

#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b)
{
    const memory_block *x = *(memory_block *const *)a, *y = *(memory_block *const *)b;

    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    if (x->last - x->first != y->last - y->first)
        return x->last - x->first < y->last - y->first ? 1 : -1;
    return x < y ? -1 : x > y;
}

static int by_area(const void *a, const void *b)
{
    const memory_block *x = *(memory_block *const *)a, *y = *(memory_block *const *)b;
    double p = (double)x->size * (x->last - x->first + 1);
    double q = (double)y->size * (y->last - y->first + 1);

    return p != q ? (p < q ? 1 : -1) : by_size(a, b);
}

static int by_life(const void *a, const void *b)
{
    const memory_block *x = *(memory_block *const *)a, *y = *(memory_block *const *)b;
    int p = x->last - x->first, q = y->last - y->first;

    return p != q ? (p < q ? 1 : -1) : by_size(a, b);
}

static bool blocks_meet(const memory_block *a, const memory_block *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The best offset for 'x' among 'placed', which are sorted by offset. */
static size_t find_gap(const memory_block *x, memory_block *const *placed, int count)
{
    size_t size = memory_round(x->size), end = 0, best = 0, best_gap = SIZE_MAX;

    for (int i = 0; i < count; i++) {
        const memory_block *y = placed[i];

        if (!blocks_meet(x, y))
            continue;
        if (y->offset > end && y->offset - end >= size && y->offset - end < best_gap) {
            best_gap = y->offset - end;
            best = end;
        }
        if (y->offset + memory_round(y->size) > end)
            end = y->offset + memory_round(y->size);
    }
    return best_gap == SIZE_MAX ? end : best;
}

/* Place the blocks in the order of 'order'. 'placed' has room for all of them. */
static size_t place_all(memory_block *const *order, int count, memory_block **placed)
{
    size_t arena = 0;
    int n = 0;

    for (int i = 0; i < count; i++) {
        memory_block *x = order[i];
        int at = n;

        x->offset = 0;
        if (x->size == 0)
            continue;
        x->offset = find_gap(x, placed, n);
        while (at > 0 && placed[at - 1]->offset > x->offset)
            at--;
        memmove(placed + at + 1, placed + at, (size_t)(n - at) * sizeof *placed);
        placed[at] = x;
        n++;
        if (x->offset + memory_round(x->size) > arena)
            arena = x->offset + memory_round(x->size);
    }
    return arena;
}

static size_t place_apart(memory_block *block, int count)
{
    size_t arena = 0;

    for (int i = 0; i < count; i++) {
        block[i].offset = arena;
        arena += memory_round(block[i].size);
    }
    return arena;
}

size_t memory_plan(memory_block *block, int count, bool reuse)
{
    static int (*const orders[])(const void *, const void *) = { by_size, by_area, by_life };
    memory_block **order, **placed;
    size_t best = SIZE_MAX, last = 0;
    int chosen = 0;

    if (!reuse || count == 0)
        return place_apart(block, count);
    order = malloc((size_t)count * sizeof *order);
    placed = malloc((size_t)count * sizeof *placed);
    if (order == NULL || placed == NULL) {
        free(order);
        free(placed);
        return place_apart(block, count);
    }
    for (int i = 0; i < 3 + 1; i++) { /* the fourth round repeats the best order */
        for (int j = 0; j < count; j++)
            order[j] = block + j;
        qsort(order, (size_t)count, sizeof *order, orders[i < 3 ? i : chosen]);
        last = place_all(order, count, placed);
        if (i < 3 && last < best) {
            best = last;
            chosen = i;
        }
    }
    free(order);
    free(placed);
    return last;
}

size_t memory_alive(const memory_block *block, int count, int step)
{
    size_t sum = 0;

    for (int i = 0; i < count; i++)
        if (block[i].first <= step && step <= block[i].last)
            sum += memory_round(block[i].size);
    return sum;
}
