/*
 * check_board.c - the page that a launcher shares with its ranks.
 */
#include "cluster/watchdog/status_page.h"

#include "base/clock.h"
#include "pause.h"
#include "suite.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static board *page;
static char value[64];

static void open_page(void)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(board_new(3, &page, &err), PONS_OK);
    snprintf(value, sizeof value, "%d 1", board_descriptor(page));
}

START_TEST(a_new_page_says_that_nothing_is_known)
{
    board_entry e;

    open_page();
    board_read(page, 2, &e);
    ck_assert_int_eq(e.step, -1);
    ck_assert_int_eq(e.collective, -1);
    ck_assert_str_eq(e.doing, "");
    ck_assert(e.noted == 0);
    ck_assert(!e.ended);
    board_free(page);
}
END_TEST

START_TEST(what_a_killed_process_wrote_stays)
{
    board_entry e;
    int status;

    open_page();
    double begin = seconds_now();
    pid_t child = fork();
    if (child == 0) {
        board_seat *s = board_sit(value);
        board_note(s, 17, "checkpoint");
        pause_for(0.1);
        board_collective(s, 412, "all_reduce_and_more", 1 << 20);
        raise(SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    board_read(page, 1, &e);
    ck_assert_int_eq(e.step, 17);
    ck_assert_str_eq(e.doing, "checkpoint");
    ck_assert_int_eq(e.collective, 412);
    ck_assert_int_eq(e.size, 1 << 20);
    ck_assert_str_eq(e.kind, "all_reduce_and_");
    ck_assert(e.noted >= begin + 0.1 && e.noted <= seconds_now());
    ck_assert(!e.ended);
    board_read(page, 0, &e);
    ck_assert_int_eq(e.step, -1);
    board_free(page);
}
END_TEST

START_TEST(the_end_has_a_code_a_time_and_a_line)
{
    board_entry e;
    char text[4096];

    open_page();
    board_seat *s = board_sit(value), *again = board_sit(value);
    ck_assert_ptr_nonnull(s);
    ck_assert_ptr_nonnull(again);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    board_end(again, 7, text);
    board_leave(again);
    board_read(page, 1, &e);
    ck_assert(e.ended);
    ck_assert_int_eq(e.status, 7);
    ck_assert(e.when > 0);
    ck_assert_uint_eq(strlen(e.text), sizeof e.text - 1);
    board_end(s, 0, "later");
    board_read(page, 1, &e);
    ck_assert_int_eq(e.status, 7);
    board_leave(s);
    board_free(page);
}
END_TEST

START_TEST(nothing_else_is_taken_for_a_page)
{
    static const char *const wrong[] = { "", "x", "0", "-1 0", "99 0", "0 0 ", "0 0x" };
    char text[64];
    FILE *file = tmpfile();

    ck_assert_ptr_null(board_sit(NULL));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_ptr_null(board_sit(wrong[i]));
    ck_assert_int_eq(ftruncate(fileno(file), 1 << 20), 0);
    for (int size = 0; size < 8192; size++) { /* of any size */
        ck_assert_int_eq(ftruncate(fileno(file), size), 0);
        snprintf(text, sizeof text, "%d 0", fileno(file));
        ck_assert_ptr_null(board_sit(text));
    }
    fclose(file);
    open_page();
    snprintf(text, sizeof text, "%d 3", board_descriptor(page));
    ck_assert_ptr_null(board_sit(text));
    snprintf(text, sizeof text, "%d -1", board_descriptor(page));
    ck_assert_ptr_null(board_sit(text));
    board_free(page);
    board_note(NULL, 1, "step");
    board_collective(NULL, 1, "barrier", 0);
    board_end(NULL, 0, "");
    board_leave(NULL);
}
END_TEST

START_TEST(no_rank_can_shorten_the_page)
{
    open_page();
    ck_assert_int_ne(ftruncate(board_descriptor(page), 0), 0);
    ck_assert(fcntl(board_descriptor(page), F_GETFD) & FD_CLOEXEC);
    board_free(page);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("board");

    tcase_add_test(c, a_new_page_says_that_nothing_is_known);
    tcase_add_test(c, what_a_killed_process_wrote_stays);
    tcase_add_test(c, the_end_has_a_code_a_time_and_a_line);
    tcase_add_test(c, nothing_else_is_taken_for_a_page);
    tcase_add_test(c, no_rank_can_shorten_the_page);
    return suite_run();
}
