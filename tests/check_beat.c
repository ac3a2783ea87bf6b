/*
 * check_beat.c - what rank 0 concludes from the beats of all ranks, with a clock that is a number.
 */
#include <string.h>

#include "cluster/watchdog/heartbeat.h"
#include "suite.h"

enum { RANKS = 3 };

#define TIMEOUT 5.0

/* All at step 7, heard of and moved at time 0, and waiting in collective 40. */
static void all_wait(beat_row *row)
{
    for (int k = 0; k < RANKS; k++)
        row[k] = (beat_row){ .last = { .serial = 9, .progress = 30, .step = 7, .number = 40,
                                       .size = 4096, .waiting = true, .kind = "all_reduce",
                                       .doing = "step" } };
}

/* A beat at 'now', with progress or without. */
static void hear(beat_row *row, bool progress, double now)
{
    beat b = row->last;

    b.serial++;
    b.progress += progress;
    beat_take(row, &b, now, 0, now);
}

static const char *judge(const beat_row *row, double now)
{
    static char line[512];

    return beats_judge(row, RANKS, now, TIMEOUT, line, sizeof line) ? line : "";
}

START_TEST(nothing_is_wrong_within_the_timeout)
{
    beat_row row[RANKS];

    all_wait(row);
    ck_assert_str_eq(judge(row, TIMEOUT), "");
}
END_TEST

START_TEST(a_rank_that_is_not_heard_of_has_stopped)
{
    beat_row row[RANKS];

    all_wait(row);
    hear(&row[0], true, 5.5);
    hear(&row[2], true, 5.5);
    ck_assert_str_eq(judge(row, 6), "rank 1 has stopped: nothing was heard from it for 6.0 s "
                     "(before: step 7, step, waits in collective 40 (all_reduce, 4096 bytes))");
}
END_TEST

START_TEST(the_same_beat_read_again_is_no_sign_of_life)
{
    beat_row row[RANKS];

    all_wait(row);
    for (int k = 0; k < RANKS; k++)
        hear(&row[k], k != 1, 5.5);
    row[1] = (beat_row){ .last = row[0].last };
    beat_take(&row[1], &row[0].last, 5.5, 0, 5.5);
    ck_assert_msg(strncmp(judge(row, 6), "rank 1 has stopped", 18) == 0, "%s", judge(row, 6));
}
END_TEST

START_TEST(a_process_that_is_alone_is_no_rank)
{
    beat_row row = { .last = { .serial = 9, .progress = 30, .step = 7, .number = -1,
                               .doing = "data" } };
    char line[512] = "";

    hear(&row, false, 4);
    ck_assert(!beats_judge(&row, 1, 5, TIMEOUT, line, sizeof line));
    hear(&row, false, 6);
    ck_assert(beats_judge(&row, 1, 6, TIMEOUT, line, sizeof line));
    ck_assert_str_eq(line, "the run hangs: no progress for 6.0 s (step 7, data)\nhint: what takes "
                     "longer needs a larger [distribute] timeout_s");
}
END_TEST

START_TEST(a_rank_that_lives_without_progress_hangs)
{
    beat_row row[RANKS];

    all_wait(row);
    row[2].last.waiting = false;
    strcpy(row[2].last.doing, "data");
    for (int k = 0; k < RANKS; k++)
        hear(&row[k], false, 5.5);
    ck_assert_str_eq(judge(row, 6), "rank 2 hangs: no progress for 6.0 s (step 7, data, last "
                     "collective 40 (all_reduce, 4096 bytes))");
}
END_TEST

START_TEST(waiting_for_a_rank_that_makes_progress_is_no_fault)
{
    beat_row row[RANKS];

    all_wait(row);
    row[2].last.waiting = false;
    for (double now = 1; now < 600; now++) {
        for (int k = 0; k < RANKS; k++)
            hear(&row[k], k == 2, now);
        ck_assert_str_eq(judge(row, now + 0.5), "");
    }
}
END_TEST

START_TEST(a_start_may_take_its_time_until_others_wait_for_it)
{
    beat_row row[RANKS];

    all_wait(row);
    for (int k = 0; k < RANKS; k++) {
        row[k].last.waiting = false;
        strcpy(row[k].last.doing, "start");
        hear(&row[k], false, 60);
    }
    ck_assert_str_eq(judge(row, 60.5), "");
    row[0].last.waiting = true;
    ck_assert_msg(strncmp(judge(row, 60.5), "rank 1 hangs", 12) == 0, "%s", judge(row, 60.5));
}
END_TEST

START_TEST(a_collective_that_all_wait_for_must_end)
{
    beat_row row[RANKS];

    all_wait(row);
    row[0].last.number = 41;
    for (int k = 0; k < RANKS; k++)
        hear(&row[k], false, 5.5);
    ck_assert_str_eq(judge(row, 6), "collective 40 (all_reduce, 4096 bytes) has not ended for "
                     "6.0 s, though all ranks have started it");
}
END_TEST

START_TEST(different_collectives_of_one_number_are_told_at_once)
{
    beat_row row[RANKS];

    all_wait(row);
    row[1].last.size = 8192;
    ck_assert_str_eq(judge(row, 0.1), "ranks have started different collectives: rank 1 40 "
                     "(all_reduce, 8192 bytes), rank 0 40 (all_reduce, 4096 bytes)");
    row[1].last.number = 41;
    ck_assert_str_eq(judge(row, 0.1), "");
}
END_TEST

START_TEST(who_has_left_is_not_missed)
{
    beat_row row[RANKS];

    all_wait(row);
    for (int k = 0; k < RANKS; k++)
        row[k].last.left = true;
    ck_assert_str_eq(judge(row, 100), "");
}
END_TEST

START_TEST(a_table_has_as_many_ranks_as_there_is_room_for)
{
    beat_row row[RANKS];
    char all[512], some[128];

    all_wait(row);
    row[1].last.serial = 0;
    row[2].last.number = -1;
    beats_tell(row, RANKS, 0, all, sizeof all);
    ck_assert_str_eq(all,
                     "\n  rank 0: step 7, step, waits in collective 40 (all_reduce, 4096 bytes)"
                     "\n  rank 1: nothing known\n  rank 2: step 7, step");
    beats_tell(row, RANKS, 0, some, sizeof some);
    ck_assert_msg(strstr(some, "\n... and 2 more") != NULL, "%s", some);
}
END_TEST

/* Rank 1 says it at 2 s, rank 0 reads it 0.25 s later and tells at 4 s; others read that at 7 s. */
START_TEST(what_is_not_new_is_told_with_its_age)
{
    beat_row row[RANKS], other[RANKS];
    char all[512];

    all_wait(row);
    all_wait(other);
    for (int k = 0; k < RANKS; k++) {
        beat b = row[k].last;
        b.serial++;
        beat_take(&row[k], &b, 9, k == 1 ? 0.25 : 0, k == 1 ? 2.25 : 4);
    }
    beats_tell(row, RANKS, 4, all, sizeof all);
    ck_assert_str_eq(all,
                     "\n  rank 0: step 7, step, waits in collective 40 (all_reduce, 4096 bytes)"
                     "\n  rank 1: last heard 2.0 s ago, at step 7, step, waits in collective 40 "
                     "(all_reduce, 4096 bytes)"
                     "\n  rank 2: step 7, step, waits in collective 40 (all_reduce, 4096 bytes)");
    for (int k = 0; k < RANKS; k++) {
        beat b = beat_hand_on(&row[k], 4);
        beat_take(&other[k], &b, 9, 0.5, 107); /* its clock began at another time */
        beat_take(&other[k], &b, 9, 0.75, 207); /* the same one says nothing new */
        other[k].last.number = -1;
    }
    beats_tell(other, RANKS, 107.5, all, sizeof all);
    ck_assert_str_eq(all, "\n  rank 0: last heard 1.0 s ago, at step 7, step"
                          "\n  rank 1: last heard 3.0 s ago, at step 7, step"
                          "\n  rank 2: last heard 1.0 s ago, at step 7, step");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("beat");

    tcase_add_test(c, nothing_is_wrong_within_the_timeout);
    tcase_add_test(c, a_rank_that_is_not_heard_of_has_stopped);
    tcase_add_test(c, the_same_beat_read_again_is_no_sign_of_life);
    tcase_add_test(c, a_process_that_is_alone_is_no_rank);
    tcase_add_test(c, a_rank_that_lives_without_progress_hangs);
    tcase_add_test(c, waiting_for_a_rank_that_makes_progress_is_no_fault);
    tcase_add_test(c, a_start_may_take_its_time_until_others_wait_for_it);
    tcase_add_test(c, a_collective_that_all_wait_for_must_end);
    tcase_add_test(c, different_collectives_of_one_number_are_told_at_once);
    tcase_add_test(c, who_has_left_is_not_missed);
    tcase_add_test(c, a_table_has_as_many_ranks_as_there_is_room_for);
    tcase_add_test(c, what_is_not_new_is_told_with_its_age);
    return suite_run();
}
