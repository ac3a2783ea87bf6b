/*
 * check_log.c - what the terminal and the file get.
 */
#include "suite.h"

#include "base/log.h"

#include <string.h>

static char terminal[4096], file[4096];
static logger l;

static void open_both(void)
{
    memset(terminal, 0, sizeof terminal);
    memset(file, 0, sizeof file);
    l = (logger){ fmemopen(terminal, sizeof terminal, "w"), fmemopen(file, sizeof file, "w"),
                  LOG_NORMAL, false, true, 0 };
}

static void close_both(void)
{
    fclose(l.terminal);
    fclose(l.file);
}

START_TEST(control_characters_reach_neither_terminal_nor_file)
{
    log_line(&l, "case '%s'", "a\033[2Jb\r");
    ck_assert_str_eq(terminal, "case 'a\\x1b[2Jb\\r'\n");
    ck_assert_str_eq(file, "case 'a\\x1b[2Jb\\r'\n");
}
END_TEST

START_TEST(progress_is_redrawn_on_a_terminal_and_absent_from_the_file)
{
    log_progress(&l, "step %d", 10);
    log_progress(&l, "step %d", 9);
    log_line(&l, "done");
    ck_assert_str_eq(file, "done\n");
    ck_assert_ptr_nonnull(strstr(terminal, "\rstep 10\rstep 9 "));
    ck_assert_ptr_nonnull(strstr(terminal, "\rdone\n"));
}
END_TEST

START_TEST(quiet_hides_lines_but_not_warnings_and_details_need_verbose)
{
    l.level = LOG_QUIET;
    log_line(&l, "line");
    log_detail(&l, "detail");
    log_warning(&l, "%d classes are empty", 2);
    ck_assert_str_eq(terminal, "warning: 2 classes are empty\n");
    ck_assert_str_eq(file, "line\nwarning: 2 classes are empty\n");
    l.level = LOG_VERBOSE;
    log_detail(&l, "detail");
    ck_assert_ptr_nonnull(strstr(terminal, "detail\n"));
}
END_TEST

int main(void)
{
    TCase *c = suite_new("log");
    tcase_add_checked_fixture(c, open_both, close_both);
    tcase_add_test(c, control_characters_reach_neither_terminal_nor_file);
    tcase_add_test(c, progress_is_redrawn_on_a_terminal_and_absent_from_the_file);
    tcase_add_test(c, quiet_hides_lines_but_not_warnings_and_details_need_verbose);
    return suite_run();
}
