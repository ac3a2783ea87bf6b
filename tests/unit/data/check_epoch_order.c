/*
 * check_epoch_order.c - the order of cases in an epoch (R6) and the split.
 */
#include "data/dataset/split.h"
#include "data/loader/loader.h"

#include "data/loader/epoch_order.h"
#include "support/suite.h"

#include <string.h>

START_TEST(an_epoch_is_a_permutation)
{
    int64_t order[37], seen[37] = { 0 };

    epoch_order_permutation(5, 3, 37, order);
    for (int i = 0; i < 37; i++) {
        ck_assert_int_ge(order[i], 0);
        ck_assert_int_lt(order[i], 37);
        seen[order[i]]++;
    }
    for (int i = 0; i < 37; i++)
        ck_assert_int_eq(seen[i], 1);
}
END_TEST

START_TEST(epochs_and_seeds_give_different_orders)
{
    int64_t a[50], b[50], c[50];

    epoch_order_permutation(0, 0, 50, a);
    epoch_order_permutation(0, 1, 50, b);
    epoch_order_permutation(1, 0, 50, c);
    ck_assert_int_ne(memcmp(a, b, sizeof a), 0);
    ck_assert_int_ne(memcmp(a, c, sizeof a), 0);
    epoch_order_permutation(0, 0, 50, b);
    ck_assert_int_eq(memcmp(a, b, sizeof a), 0);
}
END_TEST

/*
 * Chi-squared over the 4! orders of 4 cases: for 23 degrees of freedom the 99.99 % quantile is 58.
 */
START_TEST(all_epoch_orders_are_equally_likely)
{
    int count[256] = { 0 }, orders = 0;
    double chi = 0;

    for (int64_t epoch = 0; epoch < 2400; epoch++) {
        int64_t order[4];
        epoch_order_permutation(9, epoch, 4, order);
        count[order[0] | order[1] << 2 | order[2] << 4 | order[3] << 6]++;
    }
    for (int i = 0; i < 256; i++) {
        orders += count[i] > 0;
        chi += count[i] > 0 ? (count[i] - 100.0) * (count[i] - 100.0) / 100 : 0;
    }
    ck_assert_int_eq(orders, 24);
    ck_assert_double_lt(chi, 58);
}
END_TEST

START_TEST(epochs_become_steps_rounded_up)
{
    ck_assert_int_eq(epoch_order_steps(1, 10, 4, 1), 3);
    ck_assert_int_eq(epoch_order_steps(2, 10, 4, 1), 5);
    ck_assert_int_eq(epoch_order_steps(300, 32, 2, 2), 2400);
    ck_assert_int_eq(epoch_order_epochs(2, 10, 4, 1), 0);
    ck_assert_int_eq(epoch_order_epochs(3, 10, 4, 1), 1);
    ck_assert_int_eq(epoch_order_epochs(5, 10, 4, 1), 2);
    ck_assert_int_eq(epoch_order_epochs(1, 1, 4, 2), 8);
}
END_TEST

/* ---- split ----------------------------------------------------------------------------------- */

enum { CASES = 11 };
static const char *const ids[CASES] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k" };

static pons_status split_made(const char *rule, uint64_t seed, int count, split_part *part,
                              pons_error *err)
{
    data_case cases[CASES];

    for (int i = 0; i < count; i++)
        cases[i] = (data_case){ .id = ids[i], .rank = i };
    return split_mark(&(split_rule){ rule, seed, NULL }, count, cases, part, err);
}

static int count_held(const char *rule, int count)
{
    pons_error err = PONS_ERROR_INIT;
    split_part held[CASES];
    int found = 0;

    ck_assert_msg(split_made(rule, 0, count, held, &err) == PONS_OK, "%s", err.text);
    for (int i = 0; i < count; i++)
        found += held[i] == SPLIT_VALIDATION;
    return found;
}

START_TEST(a_validation_share_is_rounded_and_leaves_both_sets_nonempty)
{
    ck_assert_int_eq(count_held("0.2", 11), 2);
    ck_assert_int_eq(count_held("random:0.2", 11), 2);
    ck_assert_int_eq(count_held("0.01", 11), 1);
    ck_assert_int_eq(count_held("0.99", 11), 10);
    ck_assert_int_eq(count_held("0.2", 1), 0);
    ck_assert_int_eq(count_held("0", 11), 0);
    ck_assert_int_eq(count_held("none", 11), 0);
}
END_TEST

START_TEST(a_random_split_follows_the_seed)
{
    pons_error err = PONS_ERROR_INIT;
    split_part first[CASES], again[CASES], held[CASES];
    int same = 0;

    split_made("0.5", 1, CASES, first, &err);
    split_made("0.5", 1, CASES, again, &err);
    ck_assert_int_eq(memcmp(first, again, sizeof first), 0);
    for (uint64_t seed = 2; seed < 12; seed++) {
        split_made("0.5", seed, CASES, held, &err);
        same += memcmp(first, held, sizeof first) == 0;
    }
    ck_assert_int_lt(same, 3);
}
END_TEST

START_TEST(folds_are_disjoint_and_cover_every_case)
{
    int seen[CASES] = { 0 };

    for (int fold = 0; fold < 3; fold++) {
        pons_error err = PONS_ERROR_INIT;
        char rule[16];
        split_part held[CASES];
        snprintf(rule, sizeof rule, "fold:%d/3", fold);
        ck_assert_int_eq(split_made(rule, 4, CASES, held, &err), PONS_OK);
        for (int i = 0; i < CASES; i++)
            seen[i] += held[i] == SPLIT_VALIDATION;
    }
    for (int i = 0; i < CASES; i++)
        ck_assert_int_eq(seen[i], 1);
}
END_TEST

START_TEST(last_and_names_select_the_held_out_cases)
{
    pons_error err = PONS_ERROR_INIT;
    split_part held[CASES];

    ck_assert_int_eq(split_made("last:3", 0, CASES, held, &err), PONS_OK);
    for (int i = 0; i < CASES; i++)
        ck_assert_int_eq(held[i] == SPLIT_VALIDATION, i >= 8);
    ck_assert_int_eq(split_made("names:k,a", 0, CASES, held, &err), PONS_OK);
    for (int i = 0; i < CASES; i++)
        ck_assert_int_eq(held[i] == SPLIT_VALIDATION, i == 0 || i == 10);
}
END_TEST

static const struct { const char *rule, *phrase; } broken_rules[] = {
    { "1", "expected a share from 0 to below 1" }, { "-0.1", "expected a share, 'none'" },
    { "0.2x", "expected a share from 0 to below 1" }, { "random:", "expected a share" },
    { "random:nan", "expected a share" }, { "last:", "expected last:COUNT" },
    { "last:-1", "expected last:COUNT" }, { "last:11", "there are 11 cases" },
    { "fold:3/3", "expected fold:K/N" }, { "fold:0/1", "expected fold:K/N" },
    { "fold:0", "expected fold:K/N" }, { "fold:0/12", "there are 11 cases" },
    { "names:a,z", "names 'z', which is no case" }, { "names:", "names '', which is no case" },
    { "names:a,b,c,d,e,f,g,h,i,j,k", "names all 11 cases" },
    { "some", "expected a share, 'none'" },
};

START_TEST(a_broken_rule_is_refused_and_named)
{
    pons_error err = PONS_ERROR_INIT;
    split_part held[CASES];

    ck_assert_int_eq(split_made(broken_rules[_i].rule, 0, CASES, held, &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, broken_rules[_i].phrase) != NULL, "'%s' lacks '%s'", err.text,
                  broken_rules[_i].phrase);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("stream");

    tcase_add_test(c, an_epoch_is_a_permutation);
    tcase_add_test(c, epochs_and_seeds_give_different_orders);
    tcase_add_test(c, all_epoch_orders_are_equally_likely);
    tcase_add_test(c, epochs_become_steps_rounded_up);
    tcase_add_test(c, a_validation_share_is_rounded_and_leaves_both_sets_nonempty);
    tcase_add_test(c, a_random_split_follows_the_seed);
    tcase_add_test(c, folds_are_disjoint_and_cover_every_case);
    tcase_add_test(c, last_and_names_select_the_held_out_cases);
    tcase_add_loop_test(c, a_broken_rule_is_refused_and_named, 0,
                        sizeof broken_rules / sizeof broken_rules[0]);
    return suite_run();
}
