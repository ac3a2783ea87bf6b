/*
 * check_subprocess.c - a stage of a child process is late if it only waits or has computed for its
 * limit, and not because the machine left it little time.
 */
#include "base/clock.h"
#include "base/system/subprocess.h"
#include "support/suite.h"

#include <string.h>
#include <time.h>

enum { LIMIT = 1 };

/* The work of a child: turns of computing and of waiting. */
typedef struct turns {
    int count;
    double computed, waited; /* seconds a turn */
} turns;

static void wait_for(double seconds)
{
    struct timespec rest = { (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) };

    nanosleep(&rest, NULL);
}

static void compute_for(double seconds)
{
    struct timespec used;
    double end;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    end = (double)used.tv_sec + 1e-9 * (double)used.tv_nsec + seconds;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while ((double)used.tv_sec + 1e-9 * (double)used.tv_nsec < end);
}

static pons_status take_turns(const void *context, subprocess_child *child, pons_error *err)
{
    const turns *t = context;

    subprocess_stage(child, "a stage");
    for (int i = 0; i < t->count; i++) {
        compute_for(t->computed);
        wait_for(t->waited);
    }
    return PONS_OK;
}

static double oldest; /* seconds of the stage at the last call of note_age */

static void note_age(const void *context, const char *stage, double seconds)
{
    if (strcmp(stage, "a stage") == 0)
        oldest = seconds;
}

static pons_status run(turns t, pons_error *err)
{
    return subprocess_run(take_turns, &t, &(subprocess_terms){ "work", LIMIT, true, note_age },
                          err);
}

START_TEST(a_stage_that_waits_for_its_limit_is_late)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(run((turns){ 1, 0, 60 }, &err), PONS_PLUGIN);
    ck_assert_str_eq(err.text, "work: a stage does not end within 1 s");
}
END_TEST

START_TEST(a_stage_that_computes_for_its_limit_is_late)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(run((turns){ 1, 60, 0 }, &err), PONS_PLUGIN);
    ck_assert_str_eq(err.text, "work: a stage does not end within 1 s");
}
END_TEST

/* A fifth of the time on a processor, as on a machine that five programs share. */
START_TEST(a_stage_that_computes_little_by_little_may_go_on)
{
    pons_error err = PONS_ERROR_INIT;
    double begin = seconds_now();

    ck_assert_msg(run((turns){ 15, 0.02, 0.08 }, &err) == PONS_OK, "%s", err.text);
    ck_assert_double_gt(seconds_now() - begin, LIMIT);
    ck_assert_double_gt(oldest, 0);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("subprocess");

    tcase_add_test(c, a_stage_that_waits_for_its_limit_is_late);
    tcase_add_test(c, a_stage_that_computes_for_its_limit_is_late);
    tcase_add_test(c, a_stage_that_computes_little_by_little_may_go_on);
    return suite_run();
}
