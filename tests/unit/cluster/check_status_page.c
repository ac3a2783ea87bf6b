/*
 * check_status_page.c - the status page that a launcher shares with its ranks.
 */
#include "cluster/watchdog/status_page.h"

#include "base/clock.h"
#include "support/pause.h"
#include "support/suite.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static status_page *page;
static char value[64];

static void open_page(void)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(status_page_new(3, &page, &err), PONS_OK);
    snprintf(value, sizeof value, "%d 1", status_page_descriptor(page));
}

START_TEST(a_new_status_page_has_no_entries)
{
    status_page_entry e;

    open_page();
    status_page_read(page, 2, &e);
    ck_assert_int_eq(e.step, -1);
    ck_assert_int_eq(e.collective, -1);
    ck_assert_str_eq(e.doing, "");
    ck_assert(e.noted == 0);
    ck_assert(!e.ended);
    status_page_free(page);
}
END_TEST

START_TEST(entries_of_a_killed_process_remain_on_the_status_page)
{
    status_page_entry e;
    int status;

    open_page();
    double begin = seconds_now();
    pid_t child = fork();
    if (child == 0) {
        status_page_slot *s = status_page_attach(value);
        status_page_note(s, 17, "checkpoint");
        pause_for(0.1);
        status_page_collective(s, 412, "all_reduce_and_more", 1 << 20);
        raise(SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    status_page_read(page, 1, &e);
    ck_assert_int_eq(e.step, 17);
    ck_assert_str_eq(e.doing, "checkpoint");
    ck_assert_int_eq(e.collective, 412);
    ck_assert_int_eq(e.size, 1 << 20);
    ck_assert_str_eq(e.kind, "all_reduce_and_");
    ck_assert(e.noted >= begin + 0.1 && e.noted <= seconds_now());
    ck_assert(!e.ended);
    status_page_read(page, 0, &e);
    ck_assert_int_eq(e.step, -1);
    status_page_free(page);
}
END_TEST

START_TEST(the_status_page_records_exit_code_time_and_line)
{
    status_page_entry e;
    char text[4096];

    open_page();
    status_page_slot *s = status_page_attach(value), *again = status_page_attach(value);
    ck_assert_ptr_nonnull(s);
    ck_assert_ptr_nonnull(again);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    status_page_report(again, 7, text);
    status_page_detach(again);
    status_page_read(page, 1, &e);
    ck_assert(e.ended);
    ck_assert_int_eq(e.status, 7);
    ck_assert(e.when > 0);
    ck_assert_uint_eq(strlen(e.text), sizeof e.text - 1);
    status_page_report(s, 0, "later");
    status_page_read(page, 1, &e);
    ck_assert_int_eq(e.status, 7);
    status_page_detach(s);
    status_page_free(page);
}
END_TEST

START_TEST(only_a_valid_file_is_attached_as_a_status_page)
{
    static const char *const wrong[] = { "", "x", "0", "-1 0", "99 0", "0 0 ", "0 0x" };
    char text[64];
    FILE *file = tmpfile();

    ck_assert_ptr_null(status_page_attach(NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_ptr_null(status_page_attach(wrong[i]));
    ck_assert_int_eq(ftruncate(fileno(file), 1 << 20), 0);
    for (int size = 0; size < 8192; size++) { /* files of any size */
        ck_assert_int_eq(ftruncate(fileno(file), size), 0);
        snprintf(text, sizeof text, "%d 0", fileno(file));
        ck_assert_ptr_null(status_page_attach(text));
    }
    fclose(file);
    open_page();
    snprintf(text, sizeof text, "%d 3", status_page_descriptor(page));
    ck_assert_ptr_null(status_page_attach(text));
    snprintf(text, sizeof text, "%d -1", status_page_descriptor(page));
    ck_assert_ptr_null(status_page_attach(text));
    status_page_free(page);
    status_page_note(NULL, 1, "step");
    status_page_collective(NULL, 1, "barrier", 0);
    status_page_report(NULL, 0, "");
    status_page_detach(NULL);
}
END_TEST

START_TEST(no_rank_can_truncate_the_status_page)
{
    open_page();
    ck_assert_int_ne(ftruncate(status_page_descriptor(page), 0), 0);
    ck_assert(fcntl(status_page_descriptor(page), F_GETFD) & FD_CLOEXEC);
    status_page_free(page);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("board");

    tcase_add_test(c, a_new_status_page_has_no_entries);
    tcase_add_test(c, entries_of_a_killed_process_remain_on_the_status_page);
    tcase_add_test(c, the_status_page_records_exit_code_time_and_line);
    tcase_add_test(c, only_a_valid_file_is_attached_as_a_status_page);
    tcase_add_test(c, no_rank_can_truncate_the_status_page);
    return suite_run();
}
