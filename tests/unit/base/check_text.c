/*
 * check_text.c - numbers are read whole or refused; misspelt names are recognised; a stream in
 * memory keeps all that is printed, or says that it does not.
 */
#include "support/process/decimal_comma.h"
#include "support/suite.h"

#include "base/text/text.h"
#include "base/text/text_stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool limits_memory = false;
#else
static const bool limits_memory = true;
#endif

START_TEST(integers_are_parsed_and_other_text_is_refused)
{
    static const char *const bad[] = { "", " 1", "1 ", "1,5", "0x10", "inf", "nan", "1e999",
                                       "1.5.2", "--1", "1e", "abc" };
    double d = 42;

    ck_assert(text_real("1e-4", &d) && d == 1e-4);
    ck_assert(text_real("-.5", &d) && d == -0.5);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        d = 42;
        ck_assert_msg(!text_real(bad[i], &d), "'%s' was read", bad[i]);
        ck_assert(d == 42);
    }
}
END_TEST

START_TEST(integers_beyond_64_bits_are_refused)
{
    int64_t i = 42;

    ck_assert(text_integer("-9223372036854775808", &i) && i == INT64_MIN);
    ck_assert(!text_integer("9223372036854775808", &i));
    ck_assert(!text_integer("1.0", &i));
    ck_assert(!text_integer("0x1", &i));
    ck_assert(!text_integer("", &i));
    ck_assert(!text_integer("-", &i));
    ck_assert(i == INT64_MIN);
}
END_TEST

START_TEST(sizes_take_binary_units)
{
    int64_t size;

    ck_assert(text_size("4096", &size) && size == 4096);
    ck_assert(text_size("4MiB", &size) && size == 4 << 20);
    ck_assert(text_size("1.5KiB", &size) && size == 1536);
    ck_assert(!text_size("4MB", &size));
    ck_assert(!text_size("4 MiB", &size));
    ck_assert(!text_size("0.5", &size));
    ck_assert(!text_size("1e30GiB", &size));
}
END_TEST

START_TEST(numbers_do_not_depend_on_the_locale)
{
    char text[16];
    double d;

    if (!decimal_comma_begin("numbers_do_not_depend_on_the_locale"))
        return;
    ck_assert(text_real("1.5", &d) && d == 1.5);
    ck_assert(!text_real("1,5", &d));
    locale_t before = text_locale_begin();
    snprintf(text, sizeof text, "%.1f", 1.5);
    ck_assert_str_eq(text, "1.5");
    text_locale_end(before);
    snprintf(text, sizeof text, "%.1f", 1.5);
    ck_assert_str_eq(text, "1,5");
    decimal_comma_end();
}
END_TEST

START_TEST(distance_counts_edits_and_swaps)
{
    ck_assert_int_eq(text_distance("", ""), 0);
    ck_assert_int_eq(text_distance("kitten", "sitting"), 3);
    ck_assert_int_eq(text_distance("ab", "ba"), 1);
    ck_assert_int_eq(text_distance("", "abc"), 3);
}
END_TEST

START_TEST(misspelt_names_get_a_suggestion_and_unrelated_ones_none)
{
    text_guess g = text_guess_for("chanels");

    text_guess_try(&g, "strides");
    text_guess_try(&g, "channels");
    text_guess_try(&g, "cache");
    ck_assert_str_eq(g.best, "channels");
    g = text_guess_for("zebra");
    text_guess_try(&g, "channels");
    ck_assert_ptr_null(g.best);
}
END_TEST

START_TEST(amounts_have_three_digits_and_a_prefix)
{
    static const struct { double number; const char *text; } rows[] = {
        { 0, "0 B" }, { 7, "7 B" }, { 999.4, "999 B" }, { 999.6, "1.00 kB" }, { 9994, "9.99 kB" },
        { 12345, "12.3 kB" }, { 99960, "100 kB" }, { 3.77e9, "3.77 GB" }, { 5e15, "5000 TB" }
    };
    char out[32];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_str_eq(text_amount(rows[i].number, "B", out), rows[i].text);
}
END_TEST

/* The control of the next test: as many numbers, with enough memory. */
START_TEST(a_text_stream_keeps_all_that_is_printed)
{
    text_stream s;
    char *at;

    ck_assert(text_stream_open(&s));
    ck_assert_str_eq(s.text, "");
    for (int i = 0; i < 100000; i++)
        ck_assert_int_gt(fprintf(s.to, "%d ", i), 0);
    ck_assert(text_stream_flush(&s));
    ck_assert_uint_eq(strlen(s.text), s.size);
    fputc('\0', s.to);
    ck_assert(text_stream_close(&s));
    ck_assert_uint_eq(strlen(s.text) + 1, s.size);
    at = s.text;
    for (int i = 0; i < 100000; i++)
        ck_assert_int_eq(strtol(at, &at, 10), i);
    ck_assert_str_eq(at, " ");
    free(s.text);
}
END_TEST

/* The memory that is missing for a while is there again when the stream is closed. */
START_TEST(a_text_stream_that_lacked_memory_says_so)
{
    static char piece[1 << 20];
    struct rlimit before, limit;
    text_stream s;
    int failed = 0;

    if (!suite_has("a_text_stream_that_lacked_memory_says_so", limits_memory,
                   "a build that runs in little memory"))
        return;
    ck_assert(text_stream_open(&s));
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    limit = before;
    limit.rlim_cur = 256 << 20;
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    for (int i = 0; i < 512 && failed == 0; i++)
        failed += fwrite(piece, 1, sizeof piece, s.to) != sizeof piece;
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
    ck_assert_int_eq(failed, 1);
    fputs("behind the gap", s.to);
    ck_assert(!text_stream_flush(&s));
    ck_assert(!text_stream_close(&s));
    ck_assert_ptr_null(s.text);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("text");
    tcase_add_test(c, integers_are_parsed_and_other_text_is_refused);
    tcase_add_test(c, integers_beyond_64_bits_are_refused);
    tcase_add_test(c, sizes_take_binary_units);
    tcase_add_test(c, numbers_do_not_depend_on_the_locale);
    tcase_add_test(c, distance_counts_edits_and_swaps);
    tcase_add_test(c, misspelt_names_get_a_suggestion_and_unrelated_ones_none);
    tcase_add_test(c, amounts_have_three_digits_and_a_prefix);
    tcase_add_test(c, a_text_stream_keeps_all_that_is_printed);
    tcase_add_test(c, a_text_stream_that_lacked_memory_says_so);
    return suite_run();
}
