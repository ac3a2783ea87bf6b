/*
 * check_memory.c - memory offsets from lifetimes: properties over random blocks, and the distance
 * of plans from the lower bound.
 */
#include <string.h>

#include "graph/program/memory.h"
#include "support/suite.h"

enum { BLOCKS = 160, STEPS = 120 };

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void random_blocks(memory_block *b, int count, unsigned seed)
{
    for (int i = 0; i < count; i++) {
        b[i].first = (int)(next_random(&seed) % STEPS);
        b[i].last = b[i].first + (int)(next_random(&seed) % (i % 5 == 0 ? STEPS : 4));
        b[i].size = 1 + next_random(&seed) % (i % 3 == 0 ? 100000 : 3000);
        b[i].offset = SIZE_MAX;
    }
}

static bool overlap(const memory_block *a, const memory_block *b)
{
    return a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static bool alive_together(const memory_block *a, const memory_block *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The largest sum of sizes alive at one step, a lower bound of any plan. */
static size_t largest_sum(const memory_block *block, int count)
{
    size_t largest = 0;

    for (int i = 0; i < count; i++)
        if (memory_alive(block, count, block[i].first) > largest)
            largest = memory_alive(block, count, block[i].first);
    return largest;
}

START_TEST(blocks_with_overlapping_lifetimes_never_share_memory)
{
    memory_block b[BLOCKS];

    random_blocks(b, BLOCKS, (unsigned)_i + 1);
    size_t arena = memory_plan(b, BLOCKS, true);
    for (int i = 0; i < BLOCKS; i++) {
        ck_assert_uint_eq(b[i].offset % MEMORY_ALIGNMENT, 0);
        ck_assert_uint_le(b[i].offset + b[i].size, arena);
        for (int j = 0; j < i; j++)
            ck_assert(!(alive_together(b + i, b + j) && overlap(b + i, b + j)));
    }
}
END_TEST

START_TEST(memory_plans_stay_near_the_lower_bound)
{
    memory_block b[BLOCKS];

    random_blocks(b, BLOCKS, (unsigned)_i + 100);
    size_t arena = memory_plan(b, BLOCKS, true), bound = largest_sum(b, BLOCKS);
    ck_assert_uint_ge(arena, bound);
    ck_assert_msg(arena <= bound + bound / 5, "arena %zu, bound %zu", arena, bound);
}
END_TEST

START_TEST(the_plan_of_forward_and_backward_reaches_the_bound)
{
    /* Activation i is written at step i and read last at step 2n - 1 - i. */
    enum { N = 40 };
    memory_block b[N];

    for (int i = 0; i < N; i++)
        b[i] = (memory_block){ (size_t)(64 * (1 + i * 7 % 13)), i, 2 * N - 1 - i, 0 };
    ck_assert_uint_eq(memory_plan(b, N, true), largest_sum(b, N));
}
END_TEST

START_TEST(the_memory_of_a_chain_is_two_blocks)
{
    enum { N = 30 };
    memory_block b[N];

    for (int i = 0; i < N; i++)
        b[i] = (memory_block){ 4096, i, i + 1, 0 };
    ck_assert_uint_eq(memory_plan(b, N, true), 2 * 4096);
}
END_TEST

START_TEST(without_reuse_all_blocks_are_disjoint)
{
    memory_block b[BLOCKS];
    size_t sum = 0;

    random_blocks(b, BLOCKS, 7);
    size_t arena = memory_plan(b, BLOCKS, false);
    for (int i = 0; i < BLOCKS; i++) {
        sum += memory_round(b[i].size);
        for (int j = 0; j < i; j++)
            ck_assert(!overlap(b + i, b + j));
    }
    ck_assert_uint_eq(arena, sum);
}
END_TEST

START_TEST(equal_blocks_give_equal_memory_plans)
{
    memory_block a[BLOCKS], b[BLOCKS];

    random_blocks(a, BLOCKS, 3);
    random_blocks(b, BLOCKS, 3);
    ck_assert_uint_eq(memory_plan(a, BLOCKS, true), memory_plan(b, BLOCKS, true));
    ck_assert_int_eq(memcmp(a, b, sizeof a), 0);
}
END_TEST

START_TEST(no_blocks_take_no_memory)
{
    memory_block b = { 0, 0, 9, 1 };

    ck_assert_uint_eq(memory_plan(NULL, 0, true), 0);
    ck_assert_uint_eq(memory_plan(&b, 1, true), 0);
    ck_assert_uint_eq(memory_alive(&b, 1, 5), 0);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("memory");

    tcase_add_loop_test(c, blocks_with_overlapping_lifetimes_never_share_memory, 0, 20);
    tcase_add_loop_test(c, memory_plans_stay_near_the_lower_bound, 0, 20);
    tcase_add_test(c, the_plan_of_forward_and_backward_reaches_the_bound);
    tcase_add_test(c, the_memory_of_a_chain_is_two_blocks);
    tcase_add_test(c, without_reuse_all_blocks_are_disjoint);
    tcase_add_test(c, equal_blocks_give_equal_memory_plans);
    tcase_add_test(c, no_blocks_take_no_memory);
    return suite_run();
}
