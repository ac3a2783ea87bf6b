/*
 * check_out_of_memory.c - trainings with too little memory, on one rank of two or for two replicas
 * of a process. For every limit all processes end together, with the exit code for it. One line
 * names the rank, the size and the options that need less memory.
 */
#include "support/run/ranks.h"
#include "support/soak.h"
#include "support/suite.h"

#include "config/memory_hints.h"

enum { MOST_KIB = 2 << 20 };

static const char few_steps[] = "train.steps=12";

static void setup(void)
{
    make_root();
    make_phantom();
    EXPECT(0, NULL, "train", "ranks.ini", "--set", "experiment.name=plain", "--set",
           "distribute.mode=single", "--set", few_steps, "--set", "train.validate_every=3");
}

/* Later processes load a module of tests/plugins, in addition to the preloaded ones. */
static void preload_module(const char *name)
{
    const char *before = getenv("LD_PRELOAD");
    char path[4096], list[16384], file[256];

    snprintf(file, sizeof file, "tests/plugins/.libs/%s.so", name);
    ck_assert_msg(realpath(file, path) != NULL, "no %s", file);
    snprintf(list, sizeof list, "%s%s%s", path, before != NULL ? ":" : "",
             before != NULL ? before : "");
    setenv("LD_PRELOAD", list, 1);
}

/* The limit for later processes; 'what' is one of the names in limit.c. */
static void limit_memory(int rank, int kib, const char *what)
{
    char text[64];

    unsetenv("LD_PRELOAD");
    preload_module("limit");
    snprintf(text, sizeof text, "%d %d %s", rank, kib, what);
    setenv("MEMORY_LIMIT", text, 1);
}

static void limit_data(int rank, int kib) { limit_memory(rank, kib, "data"); }
static void remove_limit(void) { unsetenv("LD_PRELOAD"); }

#define SAID(PHRASE) (strstr(root_text("said"), PHRASE) != NULL)

/*
 * For a few limits in a thousand, a library ends the process when it cannot allocate the data of a
 * thread. The C library exits with 127, libgomp, which oneDNN uses, with 1. The library's line is
 * then the only one.
 */
static bool was_ended_by_library(void)
{
    return SAID("cannot allocate memory for thread-local data") || SAID("libgomp: Out of memory");
}

static void expect_memory_error(int kib, int code, const char *who)
{
    const char *said = root_text("said");

    if (SAID("libgomp: Out of memory")) { /* has no exit code of its own */
        ck_assert_msg(code != 0 && count_in(said, "error: ") == 1 && SAID(who), "%d KiB: code %d: "
                      "%s", kib, code, said);
        return;
    }
    ck_assert_msg(code == PONS_DEVICE, "%d KiB: code %d: %s", kib, code, said);
    ck_assert_msg(count_in(said, "error: ") == 1, "%d KiB: %s", kib, said);
    ck_assert_msg(SAID(who) && SAID("out of memory"), "%d KiB: %s", kib, said);
    ck_assert_msg(SAID("\nhint: ") && SAID("[train]") && SAID("[patch]"), "%d KiB: %s", kib, said);
}

/* The next limit, from too little to enough. */
static int next_kib(int kib)
{
    return kib + soak_times(3000, 1000);
}

/* Whether memory can be limited in 'test': a sanitizer needs more than the largest limit. */
static bool can_limit_memory(const char *test)
{
    limit_data(-1, MOST_KIB);
    int code = PONS("train", "ranks.ini", "--set", "experiment.name=limited", "--set",
                    "distribute.mode=single", "--set", "train.steps=1");
    remove_limit();
    return suite_has(test, code == 0, "a build that runs in little memory");
}

/* ---- one rank of two ------------------------------------------------------------------------- */

static int launch_within_limit(const launch_words *l, int rank, int kib, double *took)
{
    pid_t launcher, process[8];
    double before = seconds_now();

    limit_data(rank, kib);
    launcher = start_launch(l);
    int count = find_ranks(launcher, process, 8);
    int code = process_finish(launcher);
    *took = seconds_now() - before;
    expect_processes_gone(process, count, 0);
    remove_limit();
    return code;
}

START_TEST(a_rank_out_of_memory_ends_all_with_one_line)
{
    char timeout[64];
    launch_words l = { _i == 0 ? "first" : "second", 2, { NULL },
                       { few_steps, "train.validate_every=3", timeout } };
    int failed = 0, code = 1;
    double took;
    char who[16];

    if (!can_limit_memory("a_rank_out_of_memory_ends_all_with_one_line"))
        return;
    snprintf(who, sizeof who, "rank %d", _i);
    snprintf(timeout, sizeof timeout, "distribute.timeout_s=%g", deadline_scaled(60));
    for (int kib = 5000; code != 0 && kib < MOST_KIB; kib = next_kib(kib)) {
        code = launch_within_limit(&l, _i, kib, &took);
        if (code == 0)
            break;
        expect_memory_error(kib, code, who);
        ck_assert_double_lt(took, deadline_scaled(60)); /* no rank waited for the other */
        failed++;
    }
    ck_assert_int_eq(code, 0);
    ck_assert_int_gt(failed, 5);
    expect_same_state("plain", l.name); /* the run that lacked memory has continued */
}
END_TEST

/* The control: launches without a limit, and with a limit for a rank that does not exist. */
START_TEST(enough_memory_ends_no_run)
{
    launch_words l = { "control", 2, { NULL }, { few_steps, "train.validate_every=3" } };
    double took;

    ck_assert_int_eq(launch_within_limit(&l, 2, 5000, &took), 0);
    expect_same_state("plain", "control");
}
END_TEST

/* ---- two replicas ---------------------------------------------------------------------------- */

/*
 * Limits of data, and limits of addresses with oneDNN restricted to AVX2. oneDNN has kernels for
 * AVX2 that it generates at run time, and a shortage then ends the process with a signal.
 */
static const struct {
    const char *what, *module, *name, *enough; /* enough: a run without a limit */
    int first;                                 /* KiB: the program starts */
} shortages[] = { { "data", NULL, "replicas", "plain", 9000 },
                  { "addresses", "smaller", "smaller", "enough", 60000 } };

static int train_two_replicas(int i, int kib, const char *name)
{
    char set[64];

    snprintf(set, sizeof set, "experiment.name=%s", name);
    if (kib > 0)
        limit_memory(-1, kib, shortages[i].what);
    if (shortages[i].module != NULL)
        preload_module(shortages[i].module);
    int code = PONS("train", "ranks.ini", "--set", set, "--set", "distribute.mode=dp", "--set",
                    "distribute.devices=cpu:0,cpu:1", "--set", few_steps, "--set",
                    "train.validate_every=3");
    remove_limit();
    return code;
}

START_TEST(a_process_out_of_memory_ends_its_replicas_with_one_line)
{
    int failed = 0, libraries = 0, code = 1;

    if (!can_limit_memory("a_process_out_of_memory_ends_its_replicas_with_one_line"))
        return;
    ck_assert_int_eq(train_two_replicas(_i, 0, shortages[_i].enough), 0); /* the plain run exists */
    for (int kib = shortages[_i].first; code != 0 && kib < MOST_KIB; kib = next_kib(kib)) {
        code = train_two_replicas(_i, kib, shortages[_i].name);
        if (code == 0)
            break;
        ck_assert_msg(was_ended_by_library() || (code == PONS_DEVICE && SAID("out of memory")
                      && count_in(root_text("said"), "error: ") == 1), "%d KiB, code %d: %s", kib,
                      code, root_text("said"));
        libraries += was_ended_by_library();
        failed++;
    }
    ck_assert_int_eq(code, 0);
    ck_assert_int_gt(failed, 3);
    ck_assert_int_le(libraries, 1 + failed / 10);
    expect_same_state(shortages[_i].enough, shortages[_i].name);
}
END_TEST

/* ---- the hint -------------------------------------------------------------------------------- */

START_TEST(options_that_cannot_be_lowered_are_not_suggested)
{
    sections s = { .train = { .batch = 1, .precision = 3, .recompute = true },
                   .patch = { .per_case = 4 }, .window = { .batch = 1 },
                   .data = { .cache = CACHE_DISK } };
    pons_error err = PONS_ERROR_INIT;

    pons_fail(&err, PONS_DEVICE, "out of memory for a test");
    memory_hints_add(&s, MEMORY_HINTS_TRAIN, &err);
    ck_assert_str_eq(err.text, "out of memory for a test\nhint: what needs less memory: [patch] a "
                     "smaller per_case (now 4); [patch] a smaller extent; 'pons explain' says how "
                     "much");
    memory_hints_add(&s, MEMORY_HINTS_TRAIN, &err); /* added once */
    ck_assert_int_eq(count_in(err.text, "hint: "), 1);
}
END_TEST

/* The sections of an experiment contain the values that auto has selected. */
START_TEST(a_prediction_suggests_options_of_predictions)
{
    const struct { int precision, batch; const char *expected; } hints[] = {
        { 3, 1, "out of memory\nhint: what needs less memory: [window] a smaller extent" },
        { 1, 4, "out of memory\nhint: what needs less memory: [train] precision = bf16; [window] a "
                "smaller batch (now 4); [window] a smaller extent" },
    };

    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        sections s = { .train = { .batch = 8, .precision = hints[i].precision },
                       .window = { .batch = hints[i].batch } };
        pons_error err = PONS_ERROR_INIT;

        pons_fail(&err, PONS_DEVICE, "out of memory");
        memory_hints_add(&s, MEMORY_HINTS_PREDICT, &err);
        ck_assert_str_eq(err.text, hints[i].expected);
    }
}
END_TEST

START_TEST(a_smart_cache_may_be_smaller)
{
    sections s = { .train = { .batch = 1, .precision = 3, .recompute = true },
                   .patch = { .per_case = 1 }, .window = { .batch = 1 },
                   .data = { .cache = CACHE_SMART } };
    pons_error err = PONS_ERROR_INIT;

    pons_fail(&err, PONS_DEVICE, "out of memory");
    memory_hints_add(&s, MEMORY_HINTS_EXPLAIN, &err);
    ck_assert_str_eq(err.text, "out of memory\nhint: what needs less memory: [patch] a smaller "
                     "extent; [data] a smaller smart_share; [data] a cache_limit, or cache = disk");
}
END_TEST

START_TEST(explain_does_not_suggest_explain)
{
    sections s = { .train = { .batch = 2, .precision = 3, .recompute = true },
                   .patch = { .per_case = 1 }, .window = { .batch = 1 },
                   .data = { .cache = CACHE_DISK } };
    pons_error err = PONS_ERROR_INIT;

    pons_fail(&err, PONS_DEVICE, "out of memory");
    memory_hints_add(&s, MEMORY_HINTS_EXPLAIN, &err);
    ck_assert_str_eq(err.text, "out of memory\nhint: what needs less memory: [train] a smaller "
                     "batch (now 2); [patch] a smaller extent");
}
END_TEST

START_TEST(other_failures_get_no_memory_hint)
{
    pons_error err = PONS_ERROR_INIT, device = PONS_ERROR_INIT;

    pons_fail(&err, PONS_CONFIG, "out of memory is what this key is called");
    memory_hints_add(NULL, MEMORY_HINTS_TRAIN, &err);
    ck_assert_int_eq(count_in(err.text, "hint: "), 0);
    pons_fail(&device, PONS_DEVICE, "no kernel for this");
    memory_hints_add(NULL, MEMORY_HINTS_TRAIN, &device);
    ck_assert_int_eq(count_in(device.text, "hint: "), 0);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("shortage");

    tcase_add_unchecked_fixture(c, setup, remove_root);
    tcase_add_loop_test(c, a_rank_out_of_memory_ends_all_with_one_line, 0, 2);
    tcase_add_test(c, enough_memory_ends_no_run);
    tcase_add_loop_test(c, a_process_out_of_memory_ends_its_replicas_with_one_line, 0,
                        sizeof shortages / sizeof *shortages);
    tcase_add_test(c, options_that_cannot_be_lowered_are_not_suggested);
    tcase_add_test(c, a_prediction_suggests_options_of_predictions);
    tcase_add_test(c, a_smart_cache_may_be_smaller);
    tcase_add_test(c, explain_does_not_suggest_explain);
    tcase_add_test(c, other_failures_get_no_memory_hint);
    return suite_run();
}
