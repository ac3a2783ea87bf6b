/*
 * check_steady.c - a training keeps its pace and memory. No step waits for patches that could have
 * been made during the step before, and a thousand steps take no more memory than the first
 * hundred.
 *
 * The delays in this test sleep, so that a busy machine matters little.
 */
#include "base/number_order.h"
#include "support/run/run_pons.h"
#include "support/run/tiny_run.h"
#include "support/suite.h"

#include <math.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

enum { STEPS_MAX = 1000 };

/* Values of 'key' in the records of the run's steps. */
static int numbers_of_steps(const char *key, double *out)
{
    char *rest = root_text("runs/run/metrics.jsonl"), *line;
    int count = 0;

    while ((line = strsep(&rest, "\n")) != NULL) {
        json_t *d = NULL;
        pons_error err = PONS_ERROR_INIT;
        if (strstr(line, "\"kind\":\"step\"") == NULL)
            continue;
        ck_assert_msg(json_parse(line, strlen(line), "metrics.jsonl", PONS_DATA, &d, &err)
                      == PONS_OK, "%s", err.text);
        ck_assert_int_lt(count, STEPS_MAX);
        out[count++] = json_number_value(json_object_get(d, key));
        json_decref(d);
    }
    return count;
}

/* ---- patches --------------------------------------------------------------------------------- */

#define PATCH_SECONDS 0.01

static const char slow_ini[] =
    "[experiment]\nname = run\n"
    "[data]\nsource = data\nvalidation = none\n"
    "[patch]\nextent = 8 8 8\n"
    "[augment]\nsteps = slow_patch\n"
    "[augment.slow_patch]\nseconds = 0.01\n"
    "[model]\nplugin = unet\nchannels = 4 8\nstrides = 2\nnum_res_units = 1\nnorm = batch\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\n"
    "[schedule]\nplugin = slow_step\nseconds = 0.03\n"
    "[train]\nsteps = 20\nbatch = 1\nprecision = fp32\n";

/* The wait of the median step for its patch, which takes a third of a step to make. */
static double wait_for_patches(const char *threads)
{
    double waited[STEPS_MAX];
    int count;

    EXPECT(0, NULL, "train", "slow.ini", "--fresh", "--set", threads);
    count = numbers_of_steps("data_seconds", waited);
    ck_assert_int_eq(count, 20);
    qsort(waited, (size_t)count, sizeof *waited, order_doubles);
    return waited[count / 2];
}

START_TEST(steps_do_not_wait_for_patches_made_in_advance)
{
    double waited = 1e9;

    make_tiny_run();
    write_text("slow.ini", slow_ini);
    add_plugin("transform", "slow_patch");
    add_plugin("schedule", "slow_step");
    search_first(in_root("plugins"));
    for (int round = 0; round < 3 && waited > PATCH_SECONDS / 4; round++)
        waited = fmin(waited, wait_for_patches("data.loader_threads=1"));
    ck_assert_msg(waited <= PATCH_SECONDS / 4, "%.2f ms", 1e3 * waited);
    /* Without loader threads the step waits for its patch, and this test detects it. */
    ck_assert_double_ge(wait_for_patches("data.loader_threads=0"), PATCH_SECONDS);
    remove_root();
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/*
 * Limit of the growth in bytes from about step 100 to after step 900; it is less than a hundred a
 * step.
 */
#define GROWTH (64 * 1024.0)

/* Resident bytes of a process; 0: it has ended. */
static double bytes_of(pid_t process)
{
    char name[64];
    long all, held = 0;
    FILE *file;

    snprintf(name, sizeof name, "/proc/%d/statm", (int)process);
    file = fopen(name, "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld %ld", &all, &held) != 2)
        held = 0;
    fclose(file);
    return (double)held * (double)sysconf(_SC_PAGESIZE);
}

/*
 * The growth of a process from its hundredth step to one after its 900th; NaN: no sample was
 * taken.
 */
static double growth_of_a_run(void)
{
    pid_t child = START("train", "e.ini", "--fresh", "--set", "train.steps=1000", "--set",
                        "schedule.plugin=slow_step", "--set", "schedule.seconds=0.001");
    siginfo_t ended = { .si_pid = 0 };
    double early = 0, late = 0, now;
    int steps = 0;

    while (ended.si_pid == 0) {
        now = bytes_of(child);
        steps = steps_recorded("run"); /* no earlier, so that 'now' is before the last step */
        if (steps >= 100 && steps < 200 && early == 0)
            early = now;
        if (steps >= 900 && steps < 1000 && now > 0)
            late = now; /* the page of the end is not of a step */
        usleep(5000);
        ck_assert_int_eq(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    }
    ck_assert_msg(process_finish(child) == 0, "%s", root_text("said"));
    printf("early %.0f KiB, late %.0f KiB\n", early / 1024, late / 1024);
    return early > 0 && late > 0 ? late - early : NAN;
}

START_TEST(a_thousand_steps_take_no_more_memory_than_a_hundred)
{
    double growth = NAN;

    make_tiny_run();
    add_plugin("schedule", "slow_step");
    search_first(in_root("plugins"));
    for (int round = 0; round < 5 && isnan(growth) && !sanitized; round++)
        growth = growth_of_a_run();
    ck_assert_msg(sanitized || growth <= GROWTH, "%.0f KiB", growth / 1024);
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("steady");

    pons_program();
    tcase_add_test(c, steps_do_not_wait_for_patches_made_in_advance);
    tcase_add_test(c, a_thousand_steps_take_no_more_memory_than_a_hundred);
    return suite_run();
}
