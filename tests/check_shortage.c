/*
 * check_shortage.c - trainings that lack memory, on one rank of two or for two replicas in one
 * process: however much there is, all end together, with the code for it and one line that says
 * which rank wanted what, and what to turn.
 */
#include "ranks.h"
#include "soak.h"
#include "suite.h"

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

/* A module of tests/plugins into what is started from here on, beside those that are. */
static void preload(const char *name)
{
    const char *before = getenv("LD_PRELOAD");
    char path[4096], list[16384], file[256];

    snprintf(file, sizeof file, "tests/plugins/.libs/%s.so", name);
    ck_assert_msg(realpath(file, path) != NULL, "no %s", file);
    snprintf(list, sizeof list, "%s%s%s", path, before != NULL ? ":" : "",
             before != NULL ? before : "");
    setenv("LD_PRELOAD", list, 1);
}

/* To what is started from here on: of 'what' limit.c names. */
static void leave(int rank, int kib, const char *what)
{
    char text[64];

    unsetenv("LD_PRELOAD");
    preload("limit");
    snprintf(text, sizeof text, "%d %d %s", rank, kib, what);
    setenv("MEMORY_LIMIT", text, 1);
}

static void leave_memory(int rank, int kib) { leave(rank, kib, "data"); }
static void leave_all(void) { unsetenv("LD_PRELOAD"); }

#define SAID(PHRASE) (strstr(text_of("said"), PHRASE) != NULL)

/*
 * Two libraries end the process in a thread whose data they cannot get, a few in a thousand of all
 * amounts of memory: the C library (exit code 127) and libgomp, below the library of convolutions
 * (1). Their own line is all that there is then.
 */
static bool a_library_ended_it(void)
{
    return SAID("cannot allocate memory for thread-local data") || SAID("libgomp: Out of memory");
}

static void expect_told(int kib, int code, const char *who)
{
    const char *said = text_of("said");

    if (SAID("libgomp: Out of memory")) { /* has no code of its own */
        ck_assert_msg(code != 0 && count_in(said, "error: ") == 1 && SAID(who), "%d KiB: code %d: "
                      "%s", kib, code, said);
        return;
    }
    ck_assert_msg(code == PONS_DEVICE, "%d KiB: code %d: %s", kib, code, said);
    ck_assert_msg(count_in(said, "error: ") == 1, "%d KiB: %s", kib, said);
    ck_assert_msg(SAID(who) && SAID("out of memory"), "%d KiB: %s", kib, said);
    ck_assert_msg(SAID("\nhint: ") && SAID("[train]") && SAID("[patch]"), "%d KiB: %s", kib, said);
}

/* From little to enough. */
static int next_kib(int kib)
{
    return kib + soak_times(3000, 1000);
}

/* Whether memory can be limited so: a sanitizer's own takes more. */
static bool can_limit(void)
{
    leave_memory(-1, MOST_KIB);
    int code = PONS("train", "ranks.ini", "--set", "experiment.name=limited", "--set",
                    "distribute.mode=single", "--set", "train.steps=1");
    if (code != 0)
        printf("no run within %d KiB in this build (code %d): skipped\n", MOST_KIB, code);
    leave_all();
    return code == 0;
}

/* ---- one rank of two ------------------------------------------------------------------------- */

static int launch_within(const launch_words *l, int rank, int kib, double *took)
{
    pid_t launcher, process[8];
    double before = seconds_now();

    leave_memory(rank, kib);
    launcher = start_launch(l);
    int count = find_ranks(launcher, process, 8);
    int code = finish(launcher);
    *took = seconds_now() - before;
    expect_processes_gone(process, count, 0);
    leave_all();
    return code;
}

START_TEST(memory_that_one_rank_lacks_ends_all_with_one_line)
{
    char timeout[64];
    launch_words l = { _i == 0 ? "first" : "second", 2, { NULL },
                       { few_steps, "train.validate_every=3", timeout } };
    int failed = 0, code = 1;
    double took;
    char who[16];

    if (!can_limit())
        return;
    snprintf(who, sizeof who, "rank %d", _i);
    snprintf(timeout, sizeof timeout, "distribute.timeout_s=%g", patient(60));
    for (int kib = 5000; code != 0 && kib < MOST_KIB; kib = next_kib(kib)) {
        code = launch_within(&l, _i, kib, &took);
        if (code == 0)
            break;
        expect_told(kib, code, who);
        ck_assert_double_lt(took, patient(60)); /* none waited for the other */
        failed++;
    }
    ck_assert_int_eq(code, 0);
    ck_assert_int_gt(failed, 5);
    expect_same_state("plain", l.name); /* that which memory ended has gone on */
}
END_TEST

/* The control: the same launches without a limit, and a limit for a rank that is not there. */
START_TEST(memory_that_is_there_ends_nothing)
{
    launch_words l = { "control", 2, { NULL }, { few_steps, "train.validate_every=3" } };
    double took;

    ck_assert_int_eq(launch_within(&l, 2, 5000, &took), 0);
    expect_same_state("plain", "control");
}
END_TEST

/* ---- two replicas ---------------------------------------------------------------------------- */

/*
 * Within data, and within addresses where oneDNN takes the processor for one with AVX2 alone: for
 * those it has kernels that it makes while they run, and a shortage then ends the process by a
 * signal.
 */
static const struct {
    const char *what, *module, *name, *enough; /* of runs */
    int first;                                 /* KiB: the program starts */
} shortages[] = { { "data", NULL, "replicas", "plain", 9000 },
                  { "addresses", "smaller", "smaller", "enough", 60000 } };

static int train_two(int i, int kib, const char *name)
{
    char set[64];

    snprintf(set, sizeof set, "experiment.name=%s", name);
    if (kib > 0)
        leave(-1, kib, shortages[i].what);
    if (shortages[i].module != NULL)
        preload(shortages[i].module);
    int code = PONS("train", "ranks.ini", "--set", set, "--set", "distribute.mode=dp", "--set",
                    "distribute.devices=cpu:0,cpu:1", "--set", few_steps, "--set",
                    "train.validate_every=3");
    leave_all();
    return code;
}

START_TEST(memory_that_a_process_lacks_ends_its_replicas_with_one_line)
{
    int failed = 0, libraries = 0, code = 1;

    if (!can_limit())
        return;
    ck_assert_int_eq(train_two(_i, 0, shortages[_i].enough), 0); /* plain is there */
    for (int kib = shortages[_i].first; code != 0 && kib < MOST_KIB; kib = next_kib(kib)) {
        code = train_two(_i, kib, shortages[_i].name);
        if (code == 0)
            break;
        ck_assert_msg(a_library_ended_it() || (code == PONS_DEVICE && SAID("out of memory")
                      && count_in(text_of("said"), "error: ") == 1), "%d KiB, code %d: %s", kib,
                      code, text_of("said"));
        libraries += a_library_ended_it();
        failed++;
    }
    ck_assert_int_eq(code, 0);
    ck_assert_int_gt(failed, 3);
    ck_assert_int_le(libraries, 1 + failed / 10);
    expect_same_state(shortages[_i].enough, shortages[_i].name);
}
END_TEST

/* ---- the hint -------------------------------------------------------------------------------- */

START_TEST(knobs_that_are_turned_already_are_not_named)
{
    sections s = { .train = { .batch = 1, .precision = 3, .recompute = true },
                   .patch = { .per_case = 4 }, .window = { .batch = 1 },
                   .data = { .cache = CACHE_DISK } };
    pons_error err = PONS_ERROR_INIT;

    pons_fail(&err, PONS_DEVICE, "out of memory for a test");
    shortage_hint(&s, SHORTAGE_TRAIN, &err);
    ck_assert_str_eq(err.text, "out of memory for a test\nhint: what needs less memory: [patch] a "
                     "smaller per_case (now 4); [patch] a smaller extent; 'pons explain' says how "
                     "much");
    shortage_hint(&s, SHORTAGE_TRAIN, &err); /* once */
    ck_assert_int_eq(count_in(err.text, "hint: "), 1);
}
END_TEST

/* What auto has chosen stands in the sections of an experiment. */
START_TEST(a_prediction_names_what_a_prediction_has)
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
        shortage_hint(&s, SHORTAGE_PREDICT, &err);
        ck_assert_str_eq(err.text, hints[i].expected);
    }
}
END_TEST

START_TEST(explain_does_not_name_itself)
{
    sections s = { .train = { .batch = 2, .precision = 3, .recompute = true },
                   .patch = { .per_case = 1 }, .window = { .batch = 1 },
                   .data = { .cache = CACHE_DISK } };
    pons_error err = PONS_ERROR_INIT;

    pons_fail(&err, PONS_DEVICE, "out of memory");
    shortage_hint(&s, SHORTAGE_EXPLAIN, &err);
    ck_assert_str_eq(err.text, "out of memory\nhint: what needs less memory: [train] a smaller "
                     "batch (now 2); [patch] a smaller extent");
}
END_TEST

START_TEST(other_failures_get_no_such_hint)
{
    pons_error err = PONS_ERROR_INIT, device = PONS_ERROR_INIT;

    pons_fail(&err, PONS_CONFIG, "out of memory is what this key is called");
    shortage_hint(NULL, SHORTAGE_TRAIN, &err);
    ck_assert_int_eq(count_in(err.text, "hint: "), 0);
    pons_fail(&device, PONS_DEVICE, "no kernel for this");
    shortage_hint(NULL, SHORTAGE_TRAIN, &device);
    ck_assert_int_eq(count_in(device.text, "hint: "), 0);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("shortage");

    tcase_add_unchecked_fixture(c, setup, remove_root);
    tcase_add_loop_test(c, memory_that_one_rank_lacks_ends_all_with_one_line, 0, 2);
    tcase_add_test(c, memory_that_is_there_ends_nothing);
    tcase_add_loop_test(c, memory_that_a_process_lacks_ends_its_replicas_with_one_line, 0,
                        sizeof shortages / sizeof *shortages);
    tcase_add_test(c, knobs_that_are_turned_already_are_not_named);
    tcase_add_test(c, a_prediction_names_what_a_prediction_has);
    tcase_add_test(c, explain_does_not_name_itself);
    tcase_add_test(c, other_failures_get_no_such_hint);
    return suite_run();
}
