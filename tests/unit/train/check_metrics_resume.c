/*
 * check_metrics_resume.c - a continued run loses no record that it keeps, whatever damage the
 * lines between them have.
 */
#include "support/root.h"
#include "support/suite.h"

#include "base/file/file.h"
#include "report/metrics_resume.h"

#include <string.h>
#include <unistd.h>

#define STEP(n) "{\"kind\":\"step\",\"step\":" #n ",\"loss\":1}\n"
#define VALIDATION(n) "{\"kind\":\"validation\",\"step\":" #n "}\n"

static char warnings[1024];

/* Resume from the file 'before' and return its new text. */
static const char *resume_metrics(const char *before, pons_sink_kept keep, bool expect_replaced)
{
    static char after[4096];
    pons_error err = PONS_ERROR_INIT;
    FILE *lines = fmemopen(warnings, sizeof warnings, "w"), *file;
    logger l = { .terminal = lines, .level = LOG_NORMAL };
    bool replaced;

    unlink(in_root("m.damaged"));
    write_text("m", before);
    file = fopen(in_root("m"), "a+");
    ck_assert_msg(metrics_resume(file, in_root("m"), keep, &l, &replaced, &err) == PONS_OK, "%s",
                  err.text);
    fclose(file);
    fclose(lines);
    ck_assert_int_eq(replaced, expect_replaced);
    file = fopen(in_root("m"), "r");
    after[fread(after, 1, sizeof after - 1, file)] = '\0';
    fclose(file);
    return after;
}

static const pons_sink_kept kept = { 3, 2 };

START_TEST(records_behind_the_checkpoint_are_removed)
{
    ck_assert_str_eq(resume_metrics(STEP(1) VALIDATION(2) STEP(3) VALIDATION(3) STEP(4), kept,
                                    false),
                     STEP(1) VALIDATION(2) STEP(3));
    ck_assert_str_eq(resume_metrics(STEP(1) STEP(4) "{\"kind\":\"st", kept, false), STEP(1));
    ck_assert_str_eq(resume_metrics("", kept, false), "");
    ck_assert_str_eq(resume_metrics(STEP(1) "nonsense\n", (pons_sink_kept){ -1, -1 }, false), "");
    ck_assert_str_eq(warnings, "");
}
END_TEST

START_TEST(a_damaged_line_is_set_aside_and_named)
{
    static const char *const damaged[] = {
        "X\"kind\":\"step\",\"step\":2}\n", "\n", "{\"kind\":\"step\",\"step\":-2}\n", "[1]\n",
        "{\"step\":2}\n", "{\"kind\":\"step\",\"step\":2\n"
    };

    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        char before[512], *aside;
        pons_error err = PONS_ERROR_INIT;
        size_t size;

        snprintf(before, sizeof before, STEP(1) "%s" STEP(3) STEP(4), damaged[i]);
        ck_assert_str_eq(resume_metrics(before, kept, true), STEP(1) STEP(3));
        ck_assert_ptr_nonnull(strstr(warnings, "line 2 is no record; it is kept in"));
        ck_assert_int_eq(file_read(in_root("m.damaged"), 512, &aside, &size, PONS_DATA, &err),
                         PONS_OK);
        ck_assert_str_eq(aside, damaged[i]);
        free(aside);
        /* The last line may belong to a record that is cut. */
        snprintf(before, sizeof before, STEP(1) STEP(4) "%s", damaged[i]);
        ck_assert_str_eq(resume_metrics(before, kept, true), STEP(1));
        ck_assert_ptr_nonnull(strstr(warnings, "line 3 is no record"));
    }
    ck_assert_str_eq(resume_metrics("a\n" STEP(1) "b\nc\n" STEP(2), kept, true), STEP(1) STEP(2));
    ck_assert_ptr_nonnull(strstr(warnings, "3 lines are no records, the first is line 1"));
}
END_TEST

START_TEST(a_record_without_a_newline_gets_one)
{
    char before[128] = STEP(1) STEP(2);

    before[strlen(before) - 1] = '\0';
    ck_assert_str_eq(resume_metrics(before, kept, true), STEP(1) STEP(2));
    ck_assert_str_eq(warnings, "");
}
END_TEST

/* The text of the file of damaged lines, to be freed. */
static char *text_aside(void)
{
    pons_error err = PONS_ERROR_INIT;
    char *text = NULL;
    size_t size;

    ck_assert_int_eq(file_read(in_root("m.damaged"), 512, &text, &size, PONS_DATA, &err), PONS_OK);
    return text;
}

START_TEST(a_later_record_between_kept_ones_is_set_aside)
{
    char *aside;

    ck_assert_str_eq(resume_metrics(STEP(1) STEP(9) STEP(2), kept, true), STEP(1) STEP(2));
    ck_assert_ptr_nonnull(strstr(warnings, "line 2 has a step beyond that of a later line; it is "
                                 "kept in"));
    aside = text_aside();
    ck_assert_str_eq(aside, STEP(9));
    free(aside);
}
END_TEST

START_TEST(later_records_at_the_end_are_removed_despite_disorder)
{
    char *aside;

    ck_assert_str_eq(resume_metrics(STEP(1) STEP(8) "x\n" VALIDATION(9) STEP(3) STEP(4) STEP(5),
                                    kept, true), STEP(1) STEP(3));
    ck_assert_ptr_nonnull(strstr(warnings, "line 3 is no record"));
    ck_assert_ptr_nonnull(strstr(warnings, "2 lines have steps beyond that of a later line, the "
                                 "first is line 2"));
    aside = text_aside();
    ck_assert_str_eq(aside, STEP(8) "x\n" VALIDATION(9));
    free(aside);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("metrics resume");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, records_behind_the_checkpoint_are_removed);
    tcase_add_test(c, a_damaged_line_is_set_aside_and_named);
    tcase_add_test(c, a_record_without_a_newline_gets_one);
    tcase_add_test(c, a_later_record_between_kept_ones_is_set_aside);
    tcase_add_test(c, later_records_at_the_end_are_removed_despite_disorder);
    return suite_run();
}
