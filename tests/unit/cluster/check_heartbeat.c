/*
 * check_heartbeat.c - the conclusions of rank 0 from the heartbeats of all ranks, with a clock
 * that is a number.
 */
#include <string.h>

#include "cluster/watchdog/heartbeat.h"
#include "support/suite.h"

enum { RANKS = 3 };

#define TIMEOUT 5.0

/*
 * All ranks are at step 7, made their last heartbeat and progress at time 0, and wait in
 * collective 40.
 */
static void all_wait(heartbeat_row *row)
{
    for (int k = 0; k < RANKS; k++)
        row[k] = (heartbeat_row){ .last = { .serial = 9, .progress = 30, .step = 7, .number = 40,
                                            .size = 4096, .waiting = true, .kind = "all_reduce",
                                            .doing = "step" } };
}

/* Record a heartbeat at 'now', with or without progress. */
static void record_heartbeat(heartbeat_row *row, bool progress, double now)
{
    heartbeat b = row->last;

    b.serial++;
    b.progress += progress;
    heartbeat_record(row, &b, now, 0, now);
}

static const char *root_cause_of(const heartbeat_row *row, double now)
{
    static char line[512];

    return heartbeats_check(row, RANKS, now, TIMEOUT, line, sizeof line) ? line : "";
}

START_TEST(nothing_is_wrong_within_the_timeout)
{
    heartbeat_row row[RANKS];

    all_wait(row);
    ck_assert_str_eq(root_cause_of(row, TIMEOUT), "");
}
END_TEST

START_TEST(a_rank_without_heartbeats_has_stopped)
{
    heartbeat_row row[RANKS];

    all_wait(row);
    record_heartbeat(&row[0], true, 5.5);
    record_heartbeat(&row[2], true, 5.5);
    ck_assert_str_eq(root_cause_of(row, 6),
                     "rank 1 has stopped: nothing was heard from it for 6.0 s "
                     "(before: step 7, step, waits in collective 40 (all_reduce, 4096 bytes))");
}
END_TEST

START_TEST(a_repeated_heartbeat_is_no_sign_of_life)
{
    heartbeat_row row[RANKS];

    all_wait(row);
    for (int k = 0; k < RANKS; k++)
        record_heartbeat(&row[k], k != 1, 5.5);
    row[1] = (heartbeat_row){ .last = row[0].last };
    heartbeat_record(&row[1], &row[0].last, 5.5, 0, 5.5);
    ck_assert_msg(strncmp(root_cause_of(row, 6), "rank 1 has stopped", 18) == 0, "%s",
                  root_cause_of(row, 6));
}
END_TEST

START_TEST(a_process_that_runs_alone_is_not_called_a_rank)
{
    heartbeat_row row = { .last = { .serial = 9, .progress = 30, .step = 7, .number = -1,
                                    .doing = "data" } };
    char line[512] = "";

    record_heartbeat(&row, false, 4);
    ck_assert(!heartbeats_check(&row, 1, 5, TIMEOUT, line, sizeof line));
    record_heartbeat(&row, false, 6);
    ck_assert(heartbeats_check(&row, 1, 6, TIMEOUT, line, sizeof line));
    ck_assert_str_eq(line, "the run hangs: no progress for 6.0 s (step 7, data)\nhint: what takes "
                     "longer needs a larger [distribute] timeout_s");
}
END_TEST

START_TEST(a_rank_with_heartbeats_but_no_progress_hangs)
{
    heartbeat_row row[RANKS];

    all_wait(row);
    row[2].last.waiting = false;
    strcpy(row[2].last.doing, "data");
    for (int k = 0; k < RANKS; k++)
        record_heartbeat(&row[k], false, 5.5);
    ck_assert_str_eq(root_cause_of(row, 6),
                     "rank 2 hangs: no progress for 6.0 s (step 7, data, last "
                     "collective 40 (all_reduce, 4096 bytes))");
}
END_TEST

START_TEST(waiting_for_a_rank_that_makes_progress_is_no_fault)
{
    heartbeat_row row[RANKS];

    all_wait(row);
    row[2].last.waiting = false;
    for (double now = 1; now < 600; now++) {
        for (int k = 0; k < RANKS; k++)
            record_heartbeat(&row[k], k == 2, now);
        ck_assert_str_eq(root_cause_of(row, now + 0.5), "");
    }
}
END_TEST

START_TEST(a_slow_start_is_no_fault_until_others_wait)
{
    heartbeat_row row[RANKS];

    all_wait(row);
    for (int k = 0; k < RANKS; k++) {
        row[k].last.waiting = false;
        strcpy(row[k].last.doing, "start");
        record_heartbeat(&row[k], false, 60);
    }
    ck_assert_str_eq(root_cause_of(row, 60.5), "");
    row[0].last.waiting = true;
    ck_assert_msg(strncmp(root_cause_of(row, 60.5), "rank 1 hangs", 12) == 0, "%s",
                  root_cause_of(row, 60.5));
}
END_TEST

START_TEST(a_collective_that_all_ranks_started_must_end)
{
    heartbeat_row row[RANKS];

    all_wait(row);
    row[0].last.number = 41;
    for (int k = 0; k < RANKS; k++)
        record_heartbeat(&row[k], false, 5.5);
    ck_assert_str_eq(root_cause_of(row, 6),
                     "collective 40 (all_reduce, 4096 bytes) has not ended for "
                     "6.0 s, though all ranks have started it");
}
END_TEST

START_TEST(mismatched_collectives_are_reported_at_once)
{
    heartbeat_row row[RANKS];

    all_wait(row);
    row[1].last.size = 8192;
    ck_assert_str_eq(root_cause_of(row, 0.1), "ranks have started different collectives: rank 1 40 "
                     "(all_reduce, 8192 bytes), rank 0 40 (all_reduce, 4096 bytes)");
    row[1].last.number = 41;
    ck_assert_str_eq(root_cause_of(row, 0.1), "");
}
END_TEST

START_TEST(a_rank_that_has_left_is_not_missing)
{
    heartbeat_row row[RANKS];

    all_wait(row);
    for (int k = 0; k < RANKS; k++)
        row[k].last.left = true;
    ck_assert_str_eq(root_cause_of(row, 100), "");
}
END_TEST

START_TEST(the_heartbeat_table_is_cut_to_its_buffer)
{
    heartbeat_row row[RANKS];
    char all[512], some[128];

    all_wait(row);
    row[1].last.serial = 0;
    row[2].last.number = -1;
    heartbeats_print(row, RANKS, 0, all, sizeof all);
    ck_assert_str_eq(all,
                     "\n  rank 0: step 7, step, waits in collective 40 (all_reduce, 4096 bytes)"
                     "\n  rank 1: nothing known\n  rank 2: step 7, step");
    heartbeats_print(row, RANKS, 0, some, sizeof some);
    ck_assert_msg(strstr(some, "\n... and 2 more") != NULL, "%s", some);
}
END_TEST

/*
 * Rank 1 reports it at 2 s. Rank 0 reads it 0.25 s later and tells it at 4 s. Others read that at
 * 7 s.
 */
START_TEST(old_heartbeats_are_reported_with_their_age)
{
    heartbeat_row row[RANKS], other[RANKS];
    char all[512];

    all_wait(row);
    all_wait(other);
    for (int k = 0; k < RANKS; k++) {
        heartbeat b = row[k].last;
        b.serial++;
        heartbeat_record(&row[k], &b, 9, k == 1 ? 0.25 : 0, k == 1 ? 2.25 : 4);
    }
    heartbeats_print(row, RANKS, 4, all, sizeof all);
    ck_assert_str_eq(all,
                     "\n  rank 0: step 7, step, waits in collective 40 (all_reduce, 4096 bytes)"
                     "\n  rank 1: last heard 2.0 s ago, at step 7, step, waits in collective 40 "
                     "(all_reduce, 4096 bytes)"
                     "\n  rank 2: step 7, step, waits in collective 40 (all_reduce, 4096 bytes)");
    for (int k = 0; k < RANKS; k++) {
        heartbeat b = heartbeat_forward(&row[k], 4);
        heartbeat_record(&other[k], &b, 9, 0.5, 107); /* its clock has another origin */
        heartbeat_record(&other[k], &b, 9, 0.75, 207); /* the same heartbeat brings nothing new */
        other[k].last.number = -1;
    }
    heartbeats_print(other, RANKS, 107.5, all, sizeof all);
    ck_assert_str_eq(all, "\n  rank 0: last heard 1.0 s ago, at step 7, step"
                          "\n  rank 1: last heard 3.0 s ago, at step 7, step"
                          "\n  rank 2: last heard 1.0 s ago, at step 7, step");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("beat");

    tcase_add_test(c, nothing_is_wrong_within_the_timeout);
    tcase_add_test(c, a_rank_without_heartbeats_has_stopped);
    tcase_add_test(c, a_repeated_heartbeat_is_no_sign_of_life);
    tcase_add_test(c, a_process_that_runs_alone_is_not_called_a_rank);
    tcase_add_test(c, a_rank_with_heartbeats_but_no_progress_hangs);
    tcase_add_test(c, waiting_for_a_rank_that_makes_progress_is_no_fault);
    tcase_add_test(c, a_slow_start_is_no_fault_until_others_wait);
    tcase_add_test(c, a_collective_that_all_ranks_started_must_end);
    tcase_add_test(c, mismatched_collectives_are_reported_at_once);
    tcase_add_test(c, a_rank_that_has_left_is_not_missing);
    tcase_add_test(c, the_heartbeat_table_is_cut_to_its_buffer);
    tcase_add_test(c, old_heartbeats_are_reported_with_their_age);
    return suite_run();
}
