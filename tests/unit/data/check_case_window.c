/*
 * check_case_window.c - the windows of a smart cache: MONAI's sequence (tests/golden).
 */
#include "base/file/file.h"
#include "base/file/json.h"
#include "data/cache/case_window.h"
#include "support/run/run_pons.h"
#include "support/suite.h"

#include <stdlib.h>
#include <string.h>

static int number_of(const json_t *object, const char *key)
{
    return (int)json_integer_value(json_object_get(object, key));
}

static int item(const json_t *list, int i)
{
    return (int)json_integer_value(json_array_get(list, (size_t)i));
}

/* Our share and MONAI's number of cached cases say the same. */
static case_window window_of(const json_t *one)
{
    int total = number_of(one, "items"), cache = number_of(one, "cache");

    return case_window_part(total, (double)cache / total,
                            json_number_value(json_object_get(one, "rate")), 1);
}

static void assert_epochs(const json_t *one)
{
    const json_t *epochs = json_object_get(one, "epochs"), *order = json_object_get(one, "order");
    case_window w = window_of(one);

    ck_assert_int_eq(w.count, number_of(one, "cache"));
    ck_assert_int_eq(w.replaced, number_of(one, "replaced"));
    for (int e = 0; e < (int)json_array_size(epochs); e++) {
        const json_t *expected = json_array_get(epochs, (size_t)e);

        ck_assert_int_eq((int)json_array_size(expected), w.count);
        for (int i = 0; i < w.count; i++) {
            int place = case_window_place(&w, case_window_first(&w, e) + i);
            ck_assert_msg(item(order, place) == item(expected, i), "%s, epoch %d, case %d: %d",
                          json_string_value(json_object_get(one, "name")), e, i, place);
        }
    }
}

START_TEST(windows_are_those_of_monai)
{
    json_t *all = golden_json("smartcache.json"), *one;
    size_t i;
    int seen = 0;

    json_array_foreach(all, i, one) {
        if (strcmp(json_string_value(json_object_get(one, "kind")), "smart") != 0)
            continue;
        assert_epochs(one);
        seen++;
    }
    ck_assert_int_eq(seen, 8);
    json_decref(all);
}
END_TEST

START_TEST(a_window_of_four_of_five_moves_by_one)
{
    static const int expected[][4] = { { 1, 2, 3, 4 }, { 2, 3, 4, 5 }, { 3, 4, 5, 1 },
                                       { 4, 5, 1, 2 } };
    case_window w = case_window_part(5, 0.8, 0.25, 1);

    for (int e = 0; e < 4; e++)
        for (int i = 0; i < 4; i++)
            ck_assert_int_eq(case_window_place(&w, case_window_first(&w, e) + i) + 1,
                             expected[e][i]);
    ck_assert(case_window_keeps_all(&w));
}
END_TEST

START_TEST(a_share_is_rounded_and_holds_a_case)
{
    ck_assert_int_eq(case_window_part(40, 0.75, 0.2, 1).count, 30);
    ck_assert_int_eq(case_window_part(40, 0.75, 0.2, 1).replaced, 6);
    ck_assert_int_eq(case_window_part(100, 0.29, 0, 1).count, 29);
    ck_assert_int_eq(case_window_part(7, 0, 1, 1).count, 1);
    ck_assert_int_eq(case_window_part(7, 0, 1, 1).replaced, 1);
    ck_assert_int_eq(case_window_part(0, 0.5, 0.5, 1).count, 0);
}
END_TEST

START_TEST(all_cases_that_fit_stay)
{
    case_window all = case_window_part(6, 1, 0.3, 1), whole = case_window_whole(6);

    ck_assert_int_eq(all.count, 6);
    ck_assert_int_eq(all.replaced, 0);
    ck_assert_int_eq(memcmp(&all, &whole, sizeof all), 0);
    ck_assert_int_eq(case_window_first(&all, 1000), 0);
    ck_assert(case_window_keeps_all(&all));
    all = case_window_part(12, 5.0 / 12, 0.5, 1);
    ck_assert(!case_window_keeps_all(&all));
}
END_TEST

/* Each case takes part in the same number of epochs, within one window. */
START_TEST(every_case_has_its_turn)
{
    case_window w = case_window_part(11, 0.4, 0.3, 1);
    int seen[11] = { 0 };

    for (int e = 0; e < 11; e++)
        for (int i = 0; i < w.count; i++)
            seen[case_window_place(&w, case_window_first(&w, e) + i)]++;
    for (int i = 0; i < 11; i++)
        ck_assert_int_eq(seen[i], w.count);
}
END_TEST

/* MONAI's partition_dataset gives rank r the cases r, r + ranks, ... (golden kind 'partition'). */
START_TEST(lanes_are_the_parts_of_ranks)
{
    case_window w = case_window_part(40, 0.75, 0.2, 2);

    ck_assert_int_eq(w.count, 30);
    ck_assert_int_eq(w.replaced, 6);
    for (int lane = 0; lane < 2; lane++)
        for (int e = 0; e < 9; e++)
            for (int i = 0; i < 15; i++) {
                int part = (3 * e + i) % 20; /* of the 20 cases of a rank, 3 are replaced */
                int place = case_window_place(&w, case_window_turn(&w, e, lane, i));
                ck_assert_int_eq(place, 2 * part + lane);
            }
}
END_TEST

START_TEST(lanes_divide_every_window)
{
    case_window w = case_window_part(11, 0.6, 0.3, 3);

    ck_assert_int_eq(w.count, 6);
    for (int e = 0; e < 20; e++) {
        int64_t first = case_window_first(&w, e);
        bool seen[6] = { false };

        for (int lane = 0; lane < 3; lane++)
            for (int i = 0; i < 2; i++) {
                int64_t turn = case_window_turn(&w, e, lane, i);
                ck_assert_int_eq(turn % 3, lane);
                ck_assert(turn >= first && turn < first + 6 && !seen[turn - first]);
                seen[turn - first] = true;
            }
    }
    ck_assert_int_eq(case_window_part(11, 0.1, 0.3, 3).count, 3);
    ck_assert_int_eq(case_window_part(11, 1, 0.3, 3).count, 9);
    ck_assert_int_eq(case_window_part(11, 1, 0.3, 3).replaced, 2);
    ck_assert_int_eq(case_window_part(2, 1, 0.3, 3).count, 0);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("case_window");

    tcase_add_test(c, windows_are_those_of_monai);
    tcase_add_test(c, a_window_of_four_of_five_moves_by_one);
    tcase_add_test(c, a_share_is_rounded_and_holds_a_case);
    tcase_add_test(c, all_cases_that_fit_stay);
    tcase_add_test(c, every_case_has_its_turn);
    tcase_add_test(c, lanes_are_the_parts_of_ranks);
    tcase_add_test(c, lanes_divide_every_window);
    return suite_run();
}
