/*
 * check_random.c - Philox against the known answers of Random123 (kat_vectors), and the properties
 * of R5.
 */
#include "support/suite.h"

#include "base/random.h"
#include <pons/transform.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct { uint32_t counter[4], key[2], answer[4]; } known[] = {
    { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff }, { 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, { 0xa4093822, 0x299f31d0 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

START_TEST(philox_gives_the_known_answers)
{
    uint32_t out[4];

    philox(known[_i].counter, known[_i].key, out);
    ck_assert_mem_eq(out, known[_i].answer, sizeof out);
}
END_TEST

START_TEST(random_counters_are_packed_as_documented)
{
    uint64_t seed = UINT64_C(0x0123456789abcdef), stream = random_stream_hash("augment.flip");
    uint64_t both = seed ^ stream;
    uint32_t key[2] = { (uint32_t)both, (uint32_t)(both >> 32) };
    uint32_t graph[4] = { 5, 1, 7, 9 }, data[4] = { 3 * 4096 + 2, 0, 11, 13 };
    uint32_t out[4], expected[4];

    random_graph(seed, stream, 9, 7, (UINT64_C(1) << 32) + 5, out);
    philox(graph, key, expected);
    ck_assert_mem_eq(out, expected, sizeof out);
    random_data(seed, stream, 13, 11, 3, 2, out);
    philox(data, key, expected);
    ck_assert_mem_eq(out, expected, sizeof out);
}
END_TEST

START_TEST(every_key_coordinate_changes_the_random_numbers)
{
    uint32_t a[4], b[4];
    uint64_t s = random_stream_hash("a");

    random_graph(0, s, 0, 0, 0, a);
    for (int i = 0; i < 5; i++) {
        random_graph(i == 0, i == 1 ? random_stream_hash("b") : s, i == 2, i == 3, i == 4, b);
        ck_assert_mem_ne(a, b, sizeof a);
    }
}
END_TEST

START_TEST(normals_agree_with_double_precision_box_muller)
{
    double largest = 0;

    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t word[4];
        float out[2];
        double r, t;
        random_voxels(1, i, word);
        if (i == 0)
            word[0] = 0xffffffff;
        if (i == 1)
            word[0] = 0;
        random_normal(word[0], word[1], out);
        r = sqrt(-2 * log(((word[0] >> 8) + 1) * 0x1p-24));
        t = 2 * M_PI * (word[1] >> 8) * 0x1p-24;
        largest = fmax(largest, fmax(fabs(out[0] - r * cos(t)), fabs(out[1] - r * sin(t))));
    }
    ck_assert_double_lt(largest, 2e-6); /* 4 ulp of the largest normal, 5.8 */
}
END_TEST

START_TEST(uniform_numbers_have_mean_and_variance_of_a_uniform)
{
    enum { QUADS = 100000 };
    double sum = 0, square = 0, n = 4.0 * QUADS;

    for (uint32_t i = 0; i < QUADS; i++) {
        uint32_t word[4];
        random_voxels(random_stream_hash("u"), i, word);
        for (int k = 0; k < 4; k++) {
            float u = random_uniform(word[k]);
            ck_assert(u >= 0 && u < 1);
            sum += u;
            square += u * u;
        }
    }
    /* The bounds are five standard errors. */
    ck_assert_double_lt(fabs(sum / n - 0.5), 5 * sqrt(1 / 12.0 / n));
    ck_assert_double_lt(fabs(square / n - 1 / 3.0), 5 * sqrt(4 / 45.0 / n));
}
END_TEST

START_TEST(batched_normals_equal_single_ones)
{
    enum { COUNT = 700 };
    const uint64_t key = UINT64_C(0x9123456789abcdef), begin = (UINT64_C(1) << 34) - 300;
    float each[COUNT + 8], many[COUNT];

    for (uint64_t n = 0; n < COUNT + 8; n += 4)
        pons_voxel_normal(key, (begin + n) / 4, each + n);
    for (uint64_t first = 0; first < 8; first++)
        for (int64_t count = 1; count <= COUNT; count += 233) {
            pons_voxel_normals(key, begin + first, count, many);
            ck_assert_mem_eq(many, each + first, (size_t)count * sizeof *many);
        }
}
END_TEST

START_TEST(streams_of_similar_names_differ_in_about_half_their_bits)
{
    uint64_t all = 0;

    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "model.%d.conv", i);
        all |= random_stream_hash(name) ^ random_stream_hash("model.0.conv");
    }
    ck_assert_int_gt(__builtin_popcountll(all), 60);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("random");
    tcase_add_loop_test(c, philox_gives_the_known_answers, 0, 3);
    tcase_add_test(c, random_counters_are_packed_as_documented);
    tcase_add_test(c, every_key_coordinate_changes_the_random_numbers);
    tcase_add_test(c, normals_agree_with_double_precision_box_muller);
    tcase_add_test(c, uniform_numbers_have_mean_and_variance_of_a_uniform);
    tcase_add_test(c, batched_normals_equal_single_ones);
    tcase_add_test(c, streams_of_similar_names_differ_in_about_half_their_bits);
    return suite_run();
}
