/*
 * check_quote.c - outside text stays within its line in messages, logs and tables, and is one word
 * in commands.
 */
#include "support/suite.h"

#include "base/log.h"
#include "base/text/quote.h"
#include "base/text/shell_word.h"

#include <pons/plugin.h>
#include <string.h>

START_TEST(control_characters_of_an_argument_are_written_as_escapes)
{
    static const struct { const char *text, *quoted; } cases[] = {
        { "plain \xc3\xa4", "plain \xc3\xa4" }, { "a\nhint: b", "a\\nhint: b" },
        { "\t\r", "\\t\\r" }, { "\033[2J", "\\x1b[2J" }, { "\x7f", "\\x7f" },
        { "\xc2\x9b" "2J", "\\xc2\\x9b2J" }, { "\\n", "\\n" }
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pons_error err = PONS_ERROR_INIT;
        char expected[128];
        pons_fail(&err, PONS_DATA, "tensor '%s' of %d\nhint: none", cases[i].text, 3);
        snprintf(expected, sizeof expected, "tensor '%s' of 3\nhint: none", cases[i].quoted);
        ck_assert_str_eq(err.text, expected);
    }
}
END_TEST

START_TEST(a_message_that_is_passed_on_keeps_its_lines)
{
    pons_error inner = PONS_ERROR_INIT, outer = PONS_ERROR_INIT, whole = PONS_ERROR_INIT;

    pons_fail(&inner, PONS_DATA, "'%s' is missing\nhint: look", "a\nb");
    pons_fail(&outer, PONS_DATA, "case '%s': %s", "c\nd", inner.text);
    pons_fail(&whole, PONS_DATA, "%s", outer.text);
    ck_assert_str_eq(outer.text, "case 'c\\nd': 'a\\nb' is missing\nhint: look");
    ck_assert_str_eq(whole.text, outer.text);
}
END_TEST

START_TEST(a_long_quoted_text_is_cut_before_an_escape)
{
    pons_error err = PONS_ERROR_INIT;
    char long_text[3000];

    memset(long_text, '\n', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    pons_fail(&err, PONS_DATA, "'%s'", long_text);
    ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
    ck_assert_ptr_null(strchr(err.text, '\n'));
    ck_assert_int_eq(err.text[strlen(err.text) - 1], 'n');
}
END_TEST

START_TEST(tables_and_errors_of_a_command_are_quoted_alike)
{
    char table[256] = "", terminal[256] = "";
    FILE *to = fmemopen(table, sizeof table, "w");
    logger l = { .terminal = fmemopen(terminal, sizeof terminal, "w"), .level = LOG_NORMAL };

    quote_print(to, "%-4s|\t%d\n", "\033", 7);
    fclose(to);
    log_error(&l, "one\nhint: \033two");
    fclose(l.terminal);
    ck_assert_str_eq(table, "\\x1b   |\\t7\n");
    ck_assert_str_eq(terminal, "error: one\nhint: \\x1btwo\n");
}
END_TEST

START_TEST(a_shell_word_reads_back_as_the_text)
{
    static const char *const texts[] = { "plain", "", "it's", "'", "''", "a b",
                                         "a'\"$HOME`id`\\!*'",
                                         "~", "-n", "#", "a;b", "*", "\xc3\xa4" };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char word[2][64], command[256], back[64] = "";
        FILE *from;
        snprintf(command, sizeof command, "printf %%s. %s; printf %%s, %s",
                 shell_word(word[0], sizeof word[0], texts[i]),
                 shell_word_bare(word[1], sizeof word[1], texts[i]));
        ck_assert_ptr_nonnull(from = popen(command, "r"));
        fread(back, 1, sizeof back - 1, from);
        ck_assert_int_eq(pclose(from), 0);
        snprintf(command, sizeof command, "%s.%s,", texts[i], texts[i]);
        ck_assert_str_eq(back, command);
    }
}
END_TEST

START_TEST(a_shell_word_is_quoted_only_if_necessary)
{
    char word[64];

    ck_assert_str_eq(shell_word(word, sizeof word, "a/b.nii"), "'a/b.nii'");
    ck_assert_str_eq(shell_word(word, sizeof word, "it's"), "'it'\\''s'");
    ck_assert_str_eq(shell_word_bare(word, sizeof word, "a/b.nii"), "a/b.nii");
    ck_assert_str_eq(shell_word_bare(word, sizeof word, "a b"), "'a b'");
}
END_TEST

START_TEST(a_truncated_shell_word_has_no_closing_quote)
{
    static const char whole[] = "'a'\\''b'\\''c'";

    for (size_t size = 1; size <= sizeof whole; size++) {
        char word[sizeof whole];
        size_t quotes = 0;
        shell_word(word, size, "a'b'c");
        ck_assert_uint_lt(strlen(word), size);
        for (const char *c = word; *c != '\0'; c++)
            quotes += *c == '\'' && (c == word || c[-1] != '\\');
        ck_assert_int_eq(quotes % 2 == 0, size == 1 || size == sizeof whole);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("quote");
    tcase_add_test(c, control_characters_of_an_argument_are_written_as_escapes);
    tcase_add_test(c, a_message_that_is_passed_on_keeps_its_lines);
    tcase_add_test(c, a_long_quoted_text_is_cut_before_an_escape);
    tcase_add_test(c, tables_and_errors_of_a_command_are_quoted_alike);
    tcase_add_test(c, a_shell_word_reads_back_as_the_text);
    tcase_add_test(c, a_shell_word_is_quoted_only_if_necessary);
    tcase_add_test(c, a_truncated_shell_word_has_no_closing_quote);
    return suite_run();
}
