/*
 * check_watch.c - the watch of a process that is alone, in processes that end or hang.
 */
#include "cluster/watchdog/watchdog.h"
#include "run_pons.h"
#include "suite.h"

/* Leaves with that status, and closes its watch after so many seconds. */
static void leave(pons_status status, unsigned seconds)
{
    const watch_settings alone = { .size = 1, .timeout_s = 600 };
    pons_error failure = PONS_ERROR_INIT, err = PONS_ERROR_INIT;
    watch *w;

    if (watch_open(&alone, &w, &err) != PONS_OK)
        _exit(98);
    watch_note(w, 7, "step");
    if (status != PONS_OK)
        pons_fail(&failure, status, "a card has failed");
    watch_leave_alone(w, &failure);
    sleep(seconds);
    watch_close(w);
    _exit(42);
}

static int leave_in_child(pons_status status, unsigned seconds, char *said, size_t room)
{
    int ends[2];
    pid_t child;
    ssize_t size;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        leave(status, seconds);
    }
    close(ends[1]);
    size = read(ends[0], said, room - 1);
    said[size > 0 ? size : 0] = '\0';
    close(ends[0]);
    return finish(child);
}

START_TEST(a_process_that_has_failed_and_does_not_end_is_ended_with_its_failure)
{
    char said[512];

    ck_assert_int_eq(leave_in_child(PONS_COMMUNICATION, 300, said, sizeof said),
                     PONS_COMMUNICATION);
    ck_assert_str_eq(said, "error: a card has failed\n");
}
END_TEST

START_TEST(a_process_that_has_failed_ends_by_itself_where_it_does)
{
    char said[512];

    ck_assert_int_eq(leave_in_child(PONS_COMMUNICATION, 0, said, sizeof said), 42);
    ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(a_process_that_has_not_failed_ends_when_it_does)
{
    static const pons_status statuses[] = { PONS_OK, PONS_INTERRUPTED };
    char said[512];

    ck_assert_int_eq(leave_in_child(statuses[_i], 6, said, sizeof said), 42);
    ck_assert_str_eq(said, "");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("watch");

    tcase_add_test(c, a_process_that_has_failed_and_does_not_end_is_ended_with_its_failure);
    tcase_add_test(c, a_process_that_has_failed_ends_by_itself_where_it_does);
    tcase_add_loop_test(c, a_process_that_has_not_failed_ends_when_it_does, 0, 2);
    return suite_run();
}
