/*
 * check_watchdog.c - the watchdog of a process that runs alone, in processes that end or hang.
 */
#include "cluster/watchdog/watchdog.h"
#include "support/run/run_pons.h"
#include "support/suite.h"

/* End with that status; the watchdog is closed after 'seconds'. */
static void leave(pons_status status, unsigned seconds)
{
    const watchdog_settings alone = { .size = 1, .timeout_s = 600 };
    pons_error failure = PONS_ERROR_INIT, err = PONS_ERROR_INIT;
    watchdog *w;

    if (watchdog_open(&alone, &w, &err) != PONS_OK)
        _exit(98);
    watchdog_note(w, 7, "step");
    if (status != PONS_OK)
        pons_fail(&failure, status, "a card has failed");
    watchdog_announce_exit_alone(w, &failure);
    sleep(seconds);
    watchdog_close(w);
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
    return process_finish(child);
}

START_TEST(a_failed_process_that_hangs_is_ended_with_its_error)
{
    char said[512];

    ck_assert_int_eq(leave_in_child(PONS_COMMUNICATION, 300, said, sizeof said),
                     PONS_COMMUNICATION);
    ck_assert_str_eq(said, "error: a card has failed\n");
}
END_TEST

START_TEST(a_failed_process_may_end_by_itself)
{
    char said[512];

    ck_assert_int_eq(leave_in_child(PONS_COMMUNICATION, 0, said, sizeof said), 42);
    ck_assert_str_eq(said, "");
}
END_TEST

START_TEST(the_watchdog_never_ends_a_process_without_a_failure)
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

    tcase_add_test(c, a_failed_process_that_hangs_is_ended_with_its_error);
    tcase_add_test(c, a_failed_process_may_end_by_itself);
    tcase_add_loop_test(c, the_watchdog_never_ends_a_process_without_a_failure, 0, 2);
    return suite_run();
}
