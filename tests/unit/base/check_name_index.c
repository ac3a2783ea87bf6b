/*
 * check_name_index.c - names keep the number that they were given first.
 */
#include "support/suite.h"

#include "base/hash/name_index.h"

#include <stdio.h>

START_TEST(a_name_keeps_the_number_that_it_got_first)
{
    name_index x = { NULL };

    ck_assert_int_eq(name_index_find(&x, "a", "b"), -1);
    ck_assert_int_eq(name_index_add(&x, "a", "b", 7), 7);
    ck_assert_int_eq(name_index_add(&x, "a", "b", 8), 7);
    ck_assert_int_eq(name_index_find(&x, "a", "b"), 7);
    name_index_clear(&x);
    ck_assert_int_eq(name_index_find(&x, "a", "b"), -1);
    ck_assert_int_eq(name_index_add(&x, "a", "b", 9), 9);
    name_index_clear(&x);
}
END_TEST

START_TEST(equal_names_in_two_groups_are_distinct)
{
    name_index x = { NULL };

    ck_assert_int_eq(name_index_add(&x, "a", "bc", 1), 1);
    ck_assert_int_eq(name_index_add(&x, "ab", "c", 2), 2);
    ck_assert_int_eq(name_index_add(&x, "c", "bc", 3), 3);
    ck_assert_int_eq(name_index_find(&x, "a", "bc"), 1);
    ck_assert_int_eq(name_index_find(&x, "ab", "c"), 2);
    name_index_clear(&x);
}
END_TEST

START_TEST(sorted_names_are_found_as_fast_as_others)
{
    enum { COUNT = 200000 };
    static char name[COUNT][8];
    name_index x = { NULL };

    for (int i = 0; i < COUNT; i++) {
        snprintf(name[i], sizeof name[i], "%07d", i);
        ck_assert_int_eq(name_index_add(&x, "", name[i], i), i);
    }
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(name_index_find(&x, "", name[i]), i);
    name_index_clear(&x);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("name index");
    tcase_add_test(c, a_name_keeps_the_number_that_it_got_first);
    tcase_add_test(c, equal_names_in_two_groups_are_distinct);
    tcase_add_test(c, sorted_names_are_found_as_fast_as_others);
    return suite_run();
}
