/*
 * check_evaluation.c - Wilcoxon's test, lesions, intervals of means and comparisons: values of
 * SciPy, brute force on small cases, and properties.
 */
#include <config.h>

#include "base/random.h"
#include "evaluate/comparison/comparison.h"
#include "metric/lesions.h"
#include "metric/paired_test.h"
#include "metric/surface_distance.h"

#include "support/suite.h"

#include <math.h>
#include <string.h>

static uint32_t draw(uint64_t number)
{
    uint32_t word[4];

    random_voxels(3, number, word);
    return word[0];
}

/* ---- Wilcoxon's test ------------------------------------------------------------------------- */

static double wilcoxon(int count, const double *difference)
{
    pons_error err = PONS_ERROR_INIT;
    double p = -1;

    ck_assert_int_eq(wilcoxon_signed_rank(count, difference, &p, &err), PONS_OK);
    return p;
}

/* The sum of the ranks of differences whose bit in 'signs' is set; ties share their mean rank. */
static double rank_sum(int count, const double *difference, unsigned signs)
{
    double sum = 0;

    for (int i = 0; i < count; i++) {
        double rank = 0.5;

        for (int k = 0; k < count; k++)
            rank += fabs(difference[k]) < fabs(difference[i]) ? 1
                    : fabs(difference[k]) == fabs(difference[i]) ? 0.5 : 0;
        sum += signs >> i & 1 ? rank : 0;
    }
    return sum;
}

/* The share of all choices of signs that are at least as far from the middle. */
static double enumerated_p(int count, const double *difference)
{
    double middle = count * (count + 1) / 4.0, far;
    unsigned found = 0, extreme = 0;

    for (int i = 0; i < count; i++)
        found |= difference[i] > 0 ? 1u << i : 0;
    far = fabs(rank_sum(count, difference, found) - middle);
    for (unsigned signs = 0; signs < 1u << count; signs++)
        extreme += fabs(rank_sum(count, difference, signs) - middle) >= far - 1e-9;
    return extreme / (double)(1u << count);
}

START_TEST(exact_p_is_the_share_of_all_sign_choices)
{
    for (uint64_t trial = 0; trial < 60; trial++) {
        int count = 1 + (int)(trial % 10);
        double difference[10];

        for (int i = 0; i < count; i++) { /* few magnitudes, so that some are tied */
            uint32_t word = draw(trial * 16 + (uint64_t)i);
            difference[i] = (1 + word % 6) * (word & 64 ? 1 : -1);
        }
        ck_assert_double_eq_tol(wilcoxon(count, difference), enumerated_p(count, difference),
                                1e-12);
    }
}
END_TEST

START_TEST(p_equals_scipy)
{
    static const double few[] = { 0.5, -0.25, 1.5, 2, 0.75, 0 };
    double many[60];

    ck_assert_double_eq(wilcoxon(6, few), 0.125); /* without the 0 */
    for (int i = 0; i < 60; i++)
        many[i] = ((i * 37) % 101 - 40) / 64.0;
    ck_assert_double_eq_tol(wilcoxon(60, many), 0.02263320893600752, 1e-12);
    for (int i = 0; i < 50; i++)
        many[i] = ((i * 7919) % 1009 - 450) / 64.0;
    ck_assert_double_eq_tol(wilcoxon(50, many), 0.16293225736063377, 1e-12);
    ck_assert_double_eq(wilcoxon(2, (double[]){ 0, 0 }), 1);
    ck_assert_double_eq(wilcoxon(0, many), 1);
}
END_TEST

/* ---- lesions --------------------------------------------------------------------------------- */

enum { SIDE = 7, VOXELS = SIDE * SIDE * SIDE };

/* Spread 'mark' over the component of voxel n; whether it has a voxel with bit 'with'. */
static bool spread(const uint8_t *bits, uint8_t of, uint8_t with, int n, bool *seen)
{
    bool touched = (bits[n] & with) != 0;

    seen[n] = true;
    for (int m = 0; m < VOXELS; m++) {
        int i = abs(m / (SIDE * SIDE) - n / (SIDE * SIDE));
        int j = abs(m / SIDE % SIDE - n / SIDE % SIDE), k = abs(m % SIDE - n % SIDE);

        if (i <= 1 && j <= 1 && k <= 1 && (bits[m] & of) != 0 && !seen[m])
            touched |= spread(bits, of, with, m, seen);
    }
    return touched;
}

static void count_by_spreading(const uint8_t *bits, uint8_t of, uint8_t with, double count[2])
{
    bool seen[VOXELS] = { false };

    count[0] = count[1] = 0;
    for (int n = 0; n < VOXELS; n++)
        if ((bits[n] & of) != 0 && !seen[n])
            count[spread(bits, of, with, n, seen)]++;
}

START_TEST(lesions_of_random_masks_equal_flood_filling)
{
    static const int64_t extent[3] = { SIDE, SIDE, SIDE };

    for (uint64_t trial = 0; trial < 200; trial++) {
        pons_error err = PONS_ERROR_INIT;
        uint32_t density = 2 + trial % 60;
        double of_label[2], of_prediction[2];
        uint8_t bits[VOXELS];
        lesion_values v;

        for (int n = 0; n < VOXELS; n++) {
            uint32_t word = draw(trial << 16 | (uint64_t)n);
            bits[n] = (uint8_t)((word % density == 0 ? MASK_LABEL : 0)
                                | ((word >> 16) % density == 0 ? MASK_PREDICTION : 0));
        }
        ck_assert_int_eq(lesions_count(bits, extent, &v, &err), PONS_OK);
        count_by_spreading(bits, MASK_LABEL, MASK_PREDICTION, of_label);
        count_by_spreading(bits, MASK_PREDICTION, MASK_LABEL, of_prediction);
        ck_assert_double_eq(v.found, of_label[1]);
        ck_assert_double_eq(v.missed, of_label[0]);
        ck_assert_double_eq(v.false_ones, of_prediction[0]);
        if (v.found + v.missed + v.false_ones > 0)
            ck_assert_double_eq(v.f1, 2 * v.found / (2 * v.found + v.missed + v.false_ones));
        else
            ck_assert(isnan(v.f1));
    }
}
END_TEST

/* ---- evaluations ----------------------------------------------------------------------------- */

static const data_class classes[] = { { .name = "one" }, { .name = "two" } };

/* Open an evaluation of cases with these values of Dice for two classes. */
static void open_with(evaluation *e, int count, const double dice[][2])
{
    pons_error err = PONS_ERROR_INIT;
    char name[16];

    ck_assert_int_eq(evaluation_open(e, &err), PONS_OK);
    e->metrics = 1u << METRIC_DICE;
    e->class_count = 2;
    e->classes = classes;
    for (int i = 0; i < count; i++) {
        class_score score[2] = { class_score_of_counts((metric_count){ 1, 1, 1, 2 }),
                                 class_score_of_counts((metric_count){ 1, 1, 1, 2 }) };

        for (int c = 0; c < 2; c++)
            score[c].value[METRIC_DICE] = dice[i][c];
        snprintf(name, sizeof name, "case-%d", i);
        ck_assert_int_eq(evaluation_add_scores(e, name, score, &err), PONS_OK);
    }
}

static mean_interval interval[3 * METRIC_KIND_COUNT];

static void intervals_of(int count, const double dice[][2])
{
    pons_error err = PONS_ERROR_INIT;
    evaluation e;

    open_with(&e, count, dice);
    ck_assert_int_eq(evaluation_intervals(&e, interval, &err), PONS_OK);
    evaluation_close(&e);
}

static mean_interval of_class(int class)
{
    return interval[class * METRIC_KIND_COUNT + METRIC_DICE];
}

/* The interval of a mean of n normal values is close to mean +- 1.96 sd / sqrt(n). */
START_TEST(intervals_agree_with_the_normal_distribution)
{
    enum { COUNT = 400 };
    static double dice[COUNT][2];
    double sum = 0, squares = 0, mean, half;

    for (int i = 0; i < COUNT; i++) {
        uint32_t word[4];
        float pair[2];

        random_voxels(9, (uint64_t)i, word);
        random_normal(word[0], word[1], pair);
        dice[i][0] = 0.8 + 0.05 * pair[0];
        dice[i][1] = 0.5;
        sum += dice[i][0];
        squares += dice[i][0] * dice[i][0];
    }
    mean = sum / COUNT;
    half = 1.96 * sqrt((squares / COUNT - mean * mean) / COUNT);
    intervals_of(COUNT, dice);
    ck_assert_double_eq_tol(of_class(0).low, mean - half, 0.1 * half);
    ck_assert_double_eq_tol(of_class(0).high, mean + half, 0.1 * half);
    ck_assert_double_eq(of_class(1).low, 0.5);
    ck_assert_double_eq(of_class(1).high, 0.5);
    ck_assert_double_eq_tol(of_class(2).low, (mean - half + 0.5) / 2, 0.05 * half);
}
END_TEST

START_TEST(undefined_values_do_not_count_in_intervals)
{
    static const double dice[][2] = { { 0.4, NAN }, { NAN, NAN }, { 0.8, NAN } };
    mean_interval first;

    intervals_of(3, dice);
    first = of_class(0);
    ck_assert_double_eq_tol(first.low, 0.4, 1e-12);
    ck_assert_double_eq_tol(first.high, 0.8, 1e-12);
    ck_assert(isnan(of_class(1).low) && isnan(of_class(1).high));
    ck_assert_double_eq(of_class(2).low, first.low);
    intervals_of(3, dice);
    ck_assert_mem_eq(&first, &interval[METRIC_DICE], sizeof first);
}
END_TEST

START_TEST(a_comparison_pairs_cases_that_both_define)
{
    static const double dice[2][4][2] = {
        { { 0.5, 0.25 }, { 0.5, NAN }, { 0.75, 0.5 }, { 1, 1 } },
        { { 0.75, 0.25 }, { 0.25, 0.5 }, { 1, NAN }, { 1, 0.5 } }
    };
    pons_error err = PONS_ERROR_INIT;
    evaluation e[2];
    comparison c;

    for (int n = 0; n < 2; n++)
        open_with(&e[n], 4, dice[n]);
    ck_assert_int_eq(comparison_make(&e[0], &e[1], &c, &err), PONS_OK);
    const paired_metric *one = &c.metric[METRIC_DICE], *two = one + METRIC_KIND_COUNT;
    ck_assert_int_eq(one->cases * 100 + one->better * 10 + one->worse, 421);
    ck_assert_double_eq(one->mean_a, 0.6875);
    ck_assert_double_eq(one->difference, 0.0625);
    ck_assert_double_eq(one->p, 1); /* three equal magnitudes, two of them positive */
    ck_assert_int_eq(two->cases * 100 + two->better * 10 + two->worse, 201);
    ck_assert_double_eq(two->difference, -0.25);
    evaluation_close(&e[0]);
    evaluation_close(&e[1]);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("evaluation");

    tcase_add_test(c, exact_p_is_the_share_of_all_sign_choices);
    tcase_add_test(c, p_equals_scipy);
    tcase_add_test(c, lesions_of_random_masks_equal_flood_filling);
    tcase_add_test(c, intervals_agree_with_the_normal_distribution);
    tcase_add_test(c, undefined_values_do_not_count_in_intervals);
    tcase_add_test(c, a_comparison_pairs_cases_that_both_define);
    return suite_run();
}
