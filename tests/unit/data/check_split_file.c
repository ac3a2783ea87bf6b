/*
 * check_split_file.c - 'validation = file:F': a case name a line, or the folds of nnU-Net's
 * splits_final.json, with a gallery of broken files. 'validation = nnunet': the folds that nnU-Net
 * draws.
 */
#include "data/dataset/split.h"

#include <jansson.h>

#include "support/root.h"
#include "support/run/run_pons.h"
#include "support/suite.h"

enum { CASES = 5 };
static const data_case cases[CASES] = {
    { .id = "a", .rank = 0 }, { .id = "b", .rank = 1 }, { .id = "c", .rank = 2 },
    { .id = "d 1", .rank = 3 }, { .id = "e", .rank = 4 },
};

static pons_status mark_cases(const char *text, const int64_t *fold, split_part *part,
                              pons_error *err)
{
    char validation[256];
    const split_rule rule = { validation, 0, fold };

    write_text("split", text);
    snprintf(validation, sizeof validation, "file:%s", in_root("split"));
    return split_mark(&rule, CASES, cases, part, err);
}

/* 'expected' has a letter for each case: t, v, or - for neither part. */
static void assert_parts(const char *text, const int64_t *fold, const char *expected)
{
    pons_error err = PONS_ERROR_INIT;
    char found[CASES + 1] = "";
    split_part part[CASES];

    ck_assert_msg(mark_cases(text, fold, part, &err) == PONS_OK, "%s", err.text);
    for (int i = 0; i < CASES; i++)
        found[i] = "tv-"[part[i]];
    ck_assert_str_eq(found, expected);
}

START_TEST(the_named_cases_are_held_out)
{
    assert_parts("b\n", NULL, "tvttt");
    assert_parts("e", NULL, "ttttv");
    assert_parts("\xef\xbb\xbf" "a\r\n\r\n  d 1\t\r\n", NULL, "vttvt");
}
END_TEST

#define FOLDS "[{\"train\": [\"a\", \"b\", \"c\"], \"val\": [\"d 1\", \"e\"]}, " \
              "{\"val\": [\"a\"], \"train\": [\"e\", \"c\"]}, {\"train\": [\"a\"], \"val\": []}]"

START_TEST(a_fold_of_splits_final_is_chosen_by_its_number)
{
    assert_parts(FOLDS, NULL, "tttvv");
    assert_parts(FOLDS, &(int64_t){ 0 }, "tttvv");
    assert_parts("\n " FOLDS, &(int64_t){ 1 }, "v-t-t");
    assert_parts(FOLDS, &(int64_t){ 2 }, "t----");
}
END_TEST

static const struct { const char *text; int64_t fold; pons_status status; const char *phrase; }
broken[] = { /* fold -1: not given                                                                */
    { "", -1, PONS_DATA, "names no case, expected one a line" },
    { "a\nx\n", -1, PONS_DATA, "split' line 2: 'x' is no case of the dataset" },
    { "a\n\na\n", -1, PONS_DATA, "split' line 3: 'a' is named twice" },
    { "a\nb\nc\nd 1\ne\n", -1, PONS_DATA, "names all 5 cases" },
    { "a\n", 0, PONS_CONFIG, "'fold' is 0, but '" },
    { "[", -1, PONS_DATA, "split" },
    { "[]", -1, PONS_DATA, "is an empty list, expected a list with an object" },
    { "{\"train\": [], \"val\": []}", -1, PONS_DATA, "is an object, expected a list" },
    { "[3]", -1, PONS_DATA, "'[0].train' is missing, expected a list of case names" },
    { "[{\"train\": [\"a\"]}]", -1, PONS_DATA, "'[0].val' is missing" },
    { "[{\"train\": 1, \"val\": []}]", -1, PONS_DATA, "'[0].train' is no list" },
    { "[{\"train\": [\"a\"], \"val\": [2]}]", -1, PONS_DATA,
      "'[0].val[0]' is no text, expected a case name" },
    { "[{\"train\": [\"a\"], \"val\": [\"x\"]}]", -1, PONS_DATA, "'[0].val[0]': 'x' is no case" },
    { "[{\"train\": [\"a\", \"b\"], \"val\": [\"b\"]}]", -1, PONS_DATA,
      "'[0].val[0]': 'b' is named twice" },
    { FOLDS, 3, PONS_CONFIG, "'fold' is 3, but '" },
    { FOLDS, 3, PONS_CONFIG, "has 3 folds, expected 0 to 2" },
};

START_TEST(a_broken_split_file_is_refused_and_named)
{
    pons_error err = PONS_ERROR_INIT;
    split_part part[CASES];
    const int64_t *fold = broken[_i].fold < 0 ? NULL : &broken[_i].fold;

    ck_assert_int_eq(mark_cases(broken[_i].text, fold, part, &err), broken[_i].status);
    ck_assert_msg(strstr(err.text, broken[_i].phrase) != NULL, "'%s' lacks '%s'", err.text,
                  broken[_i].phrase);
}
END_TEST

START_TEST(a_missing_split_file_is_named)
{
    pons_error err = PONS_ERROR_INIT;
    split_part part[CASES];
    const split_rule rule = { "file:/nowhere/split", 0, NULL };

    ck_assert_int_eq(split_mark(&rule, CASES, cases, part, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "/nowhere/split"));
}
END_TEST

START_TEST(a_fold_needs_a_rule_with_folds)
{
    pons_error err = PONS_ERROR_INIT;
    split_part part[CASES];
    const split_rule rule = { "0.2", 0, &(int64_t){ 1 } };

    ck_assert_int_eq(split_mark(&rule, CASES, cases, part, &err), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "'fold' is 1, but 'validation' is '0.2'"));
}
END_TEST

START_TEST(drawn_folds_are_those_of_nnunet)
{
    json_t *golden = golden_json("nnunet/folds.json");

    ck_assert_uint_eq(json_array_size(golden), 33);
    for (size_t row = 0; row < json_array_size(golden); row++) {
        const json_t *one = json_array_get(golden, row), *expected = json_object_get(one, "val");
        int count = (int)json_integer_value(json_object_get(one, "count"));
        int64_t fold = json_integer_value(json_object_get(one, "fold"));
        const split_rule rule = { "nnunet", 7, fold > 0 ? &fold : NULL };
        split_part part[484];
        pons_error err = PONS_ERROR_INIT;
        size_t held = 0;
        ck_assert_msg(split_mark(&rule, count, NULL, part, &err) == PONS_OK, "%s", err.text);
        for (int i = 0; i < count; i++) {
            if (part[i] == SPLIT_VALIDATION)
                ck_assert_int_eq(i, json_integer_value(json_array_get(expected, held++)));
            else
                ck_assert_int_eq(part[i], SPLIT_TRAINING);
        }
        ck_assert_uint_eq(held, json_array_size(expected));
    }
    json_decref(golden);
}
END_TEST

START_TEST(fewer_cases_than_folds_are_refused)
{
    pons_error err = PONS_ERROR_INIT;
    split_part part[CASES];
    const split_rule rule = { "nnunet", 0, NULL };

    ck_assert_int_eq(split_mark(&rule, 4, cases, part, &err), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "'validation' is 'nnunet' but there are 4 cases, "
                                           "expected at least 5"));
}
END_TEST

int main(void)
{
    TCase *c = suite_new("split file");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, the_named_cases_are_held_out);
    tcase_add_test(c, a_fold_of_splits_final_is_chosen_by_its_number);
    tcase_add_loop_test(c, a_broken_split_file_is_refused_and_named, 0,
                        sizeof broken / sizeof broken[0]);
    tcase_add_test(c, a_missing_split_file_is_named);
    tcase_add_test(c, a_fold_needs_a_rule_with_folds);
    tcase_add_test(c, drawn_folds_are_those_of_nnunet);
    tcase_add_test(c, fewer_cases_than_folds_are_refused);
    return suite_run();
}
