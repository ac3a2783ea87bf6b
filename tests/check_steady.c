/*
 * check_steady.c - a training that goes on as it begins: no step waits for patches that could have
 * been made during the one before, and a thousand steps take no more memory than the first hundred.
 *
 * What takes time here takes none of a processor, so that a busy machine makes little difference.
 */
#include "run_pons.h"
#include "suite.h"
#include "tiny_run.h"

#include <math.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

enum { STEPS_MAX = 1000 };

/* Numbers of 'key' of the run's steps. */
static int numbers_of_steps(const char *key, double *out)
{
    char *rest = text_of("runs/run/metrics.jsonl"), *line;
    int count = 0;

    while ((line = strsep(&rest, "\n")) != NULL) {
        json_document d = { NULL, NULL };
        pons_error err = PONS_ERROR_INIT;
        if (strstr(line, "\"kind\":\"step\"") == NULL)
            continue;
        ck_assert_msg(json_parse(line, strlen(line), "metrics.jsonl", PONS_DATA, &d, &err)
                      == PONS_OK, "%s", err.text);
        ck_assert_int_lt(count, STEPS_MAX);
        out[count++] = json_member(d.root, key)->number;
        json_free(&d);
    }
    return count;
}

static int larger(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
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

/* What the middle step waits for its patch, which takes a third of a step to make. */
static double wait_for_patches(const char *threads)
{
    double waited[STEPS_MAX];
    int count;

    EXPECT(0, NULL, "train", "slow.ini", "--fresh", "--set", threads);
    count = numbers_of_steps("data_seconds", waited);
    ck_assert_int_eq(count, 20);
    qsort(waited, (size_t)count, sizeof *waited, larger);
    return waited[count / 2];
}

START_TEST(no_step_waits_for_patches_that_are_made_during_another)
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
    /* Who makes them itself waits, and this test sees it. */
    ck_assert_double_ge(wait_for_patches("data.loader_threads=0"), PATCH_SECONDS);
    remove_root();
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/* Bytes from about the hundredth step to behind the 900th; less than a hundred a step. */
#define GROWTH (64 * 1024.0)

/* Bytes of a process that lie in memory now; 0: it has gone. */
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
 * By how much a process grows from its hundredth step to one behind its 900th; NaN: nobody looked
 * then.
 */
static double growth_of_a_run(void)
{
    pid_t child = START("train", "e.ini", "--fresh", "--set", "train.steps=1000", "--set",
                        "schedule.plugin=slow_step", "--set", "schedule.seconds=0.001");
    siginfo_t ended = { .si_pid = 0 };
    double early = 0, late = 0, now;
    int steps = 0;

    while (ended.si_pid == 0) {
        steps = steps_recorded("run");
        now = bytes_of(child);
        if (steps >= 100 && steps < 200 && early == 0)
            early = now;
        if (steps >= 900 && now > 0)
            late = now;
        usleep(5000);
        ck_assert_int_eq(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    }
    ck_assert_msg(finish(child) == 0, "%s", text_of("said"));
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
    tcase_add_test(c, no_step_waits_for_patches_that_are_made_during_another);
    tcase_add_test(c, a_thousand_steps_take_no_more_memory_than_a_hundred);
    return suite_run();
}
