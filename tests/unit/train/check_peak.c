/*
 * check_peak.c - the peak memory that 'pons explain' predicts against the system's count for 'pons
 * train', for the U-Net of the spleen with two patches of 96^3, and the memory of 'pons predict'
 * for a long image.
 */
#include <config.h>

#include "bench/measure.h"
#include "plugin/plugin_load.h"

#include <pons/comm.h>

#include "support/root.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Shadow memory and redzones of a sanitizer are not the program's, so that only the sum is
 * checked.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool counts_are_ours = false;
#else
static const bool counts_are_ours = true;
#endif

static char pons[4096];

static const char ini[] =
    "[experiment]\nname = peak\n"
    "[data]\nsource = phantom\nvalidation = none\n"
    "[preprocess]\nsteps = normalize\n"
    "[patch]\nextent = 96 96 96\n"
    "[model]\nplugin = unet\nchannels = 16 32 64 128 256\nstrides = 2 2 2 2\n"
    "num_res_units = 2\nnorm = batch\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\nlr = 1e-4\n"
    "[train]\nsteps = 5\nbatch = 2\n";

static const char *text_of(const char *name)
{
    static char text[4096];
    FILE *file = fopen(in_root(name), "r");

    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/*
 * Run the program or mpirun in the folder; the output goes to root/said, its log to root/log. The
 * result is its peak in bytes, or that of its largest child.
 */
static double run_measured(const char *const *word)
{
    const char *argument[32] = { pons };
    struct rusage usage;
    int count = strcmp(*word, "mpirun") != 0, status;

    while (*word != NULL)
        argument[count++] = *word++;
    pid_t child = fork();
    if (child == 0) {
        if (chdir(root) != 0)
            _exit(99);
        dup2(open("said", O_WRONLY | O_CREAT | O_TRUNC, 0666), 1);
        dup2(open("log", O_WRONLY | O_CREAT | O_TRUNC, 0666), 2);
        execvp(argument[0], (char *const *)argument);
        _exit(99);
    }
    ck_assert_int_eq(wait4(child, &status, 0, &usage), child);
    ck_assert_msg(status == 0, "status %d: %s", status, text_of("log"));
    return 1024.0 * (double)usage.ru_maxrss;
}

#define RUN(...) run_measured((const char *const[]){ __VA_ARGS__, NULL })

static void setup(void)
{
    make_root();
    ck_assert_ptr_nonnull(realpath("pons", pons));
    write_text("peak.ini", ini);
    RUN("data", "phantom", "-o", "phantom", "--cases", "2", "--extent", "96,96,96", "-q");
}

/* A number in the output of explain. */
static double explained_number(const char *name)
{
    const char *text = text_of("said");
    char key[64];

    snprintf(key, sizeof key, "\"%s\":", name);
    ck_assert_msg(strstr(text, key) != NULL, "no %s in %s", key, text);
    return strtod(strstr(text, key) + strlen(key), NULL);
}

static double predicted_peak(const char *precision, const char *threads)
{
    static const char *const parts[] = { "arena", "parameters", "scratch", "libraries", "cache",
                                         "loader" };
    double sum = 0;

    RUN("explain", "peak.ini", "--json", "--set", precision, "--set", threads);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        sum += explained_number(parts[i]);
    ck_assert_double_eq(sum, explained_number("peak"));
    return sum;
}

static const struct { const char *precision, *threads; } cases[] = {
    { "train.precision=fp32", "distribute.threads=1" },
    { "train.precision=fp32", "distribute.threads=2" },
    { "train.precision=bf16", "distribute.threads=1" },
    { "train.precision=bf16", "distribute.threads=2" },
    { "train.precision=fp32", "distribute.devices=cpu:0,cpu:1" },
    { "train.precision=bf16", "distribute.devices=cpu:0,cpu:1" },
};

enum { SINGLES = 4, ALL = 6 };

START_TEST(explain_predicts_the_training_peak)
{
    double peak = predicted_peak(cases[_i].precision, cases[_i].threads);

    if (!suite_has("explain_predicts_the_training_peak", counts_are_ours, "no sanitizer"))
        return;
    double found = RUN("train", "peak.ini", "--fresh", "-q", "--set", cases[_i].precision, "--set",
                       cases[_i].threads);
    printf("%s, %s: foretold %.1f MB, found %.1f MB\n", cases[_i].precision, cases[_i].threads,
           1e-6 * peak, 1e-6 * found);
    ck_assert(fabs(found / peak - 1) < PEAK_RELATIVE);
}
END_TEST

START_TEST(the_arena_is_at_most_three_fifths_of_all_tensors)
{
    predicted_peak(cases[_i].precision, cases[_i].threads);
    ck_assert_double_le(explained_number("arena"),
                        ARENA_SHARE * explained_number("sum_of_tensors"));
}
END_TEST

/* The second of two replicas adds as much as the first, and at most one set of buckets. */
START_TEST(a_second_replica_takes_the_memory_of_a_single_one)
{
    const char *precision = cases[SINGLES + _i].precision;

    RUN("explain", "peak.ini", "--json");
    double buckets = 4 * explained_number("parameter_count");
    double single = RUN("train", "peak.ini", "--fresh", "-q", "--set", precision, "--set",
                        "distribute.threads=1");
    double both = RUN("train", "peak.ini", "--fresh", "-q", "--set", precision, "--set",
                      cases[SINGLES + _i].threads);
    printf("%s: one replica %.1f MB, two %.1f MB\n", precision, 1e-6 * single, 1e-6 * both);
    if (counts_are_ours)
        ck_assert_double_le(both - single, REPLICA_RELATIVE * single + buckets);
}
END_TEST

static bool has_comm(const char *name)
{
    pons_error err = PONS_ERROR_INIT;
    const plugin *comm;

    return plugin_load(PONS_KIND_COMM, name, sizeof(pons_comm_operations), NULL, &comm, &err)
        == PONS_OK;
}

static const struct { const char *precision, *deterministic, *backend; } rank_cases[] = {
    { "train.precision=fp32", "experiment.deterministic=no", "distribute.backend=gloo" },
    { "train.precision=bf16", "experiment.deterministic=yes", "distribute.backend=gloo" },
    { "train.precision=bf16", "experiment.deterministic=yes", "distribute.backend=mpi" },
};

enum { GLOO_CASES = 2, RANK_CASES = 3 };

/*
 * The larger of two ranks takes the memory of a single process and at most one set of buckets. A
 * process with two replicas is the control.
 */
#define RANK_WORDS "--fresh", "-q", "--set", precision, "--set", exact, "--set",                 \
                   "train.steps=2", "--set", "distribute.threads=1", "--set", rank_cases[_i].backend

START_TEST(one_of_two_ranks_takes_the_memory_of_one_process)
{
    const char *precision = rank_cases[_i].precision, *exact = rank_cases[_i].deterministic;

    if (_i >= GLOO_CASES)
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* Open MPI leaks memory */
    RUN("explain", "peak.ini", "--json");
    double buckets = 4 * explained_number("parameter_count");
    double single = RUN("train", "peak.ini", "--fresh", "-q", "--set", precision, "--set",
                        "train.steps=2", "--set", "distribute.threads=1");
    double limit = RANK_RELATIVE * single + buckets;
    double rank = _i < GLOO_CASES
                  ? RUN("launch", "-n", "2", "--", "train", "peak.ini", RANK_WORDS)
                  : RUN("mpirun", "--oversubscribe", "-n", "2", pons, "train", "peak.ini",
                        RANK_WORDS);
    double both = RUN("train", "peak.ini", "--fresh", "-q", "--set", precision, "--set",
                      "train.steps=2", "--set", cases[SINGLES].threads);
    printf("%s, %s, %s: single %.1f MB, the larger of two ranks %.1f MB, at most %.1f MB\n",
           precision, exact, rank_cases[_i].backend, 1e-6 * single, 1e-6 * rank, 1e-6 * limit);
    if (!suite_has("one_of_two_ranks_takes_the_memory_of_one_process", counts_are_ours,
                   "no sanitizer"))
        return;
    ck_assert_double_le(rank, limit);
    ck_assert_double_gt(both, limit);
}
END_TEST

/* Run a step of a program without memory reuse, in a process of its own. */
static void step_without_reuse(void)
{
    static measured result;
    experiment_overrides known = { 0 };
    experiment *e = NULL;
    config *c = NULL;
    logger log = { .terminal = stderr, .level = LOG_QUIET };
    pons_error err = PONS_ERROR_INIT;
    const char *set[] = { "train.precision=fp32", "distribute.threads=2" };

    if (chdir(root) == 0 && config_open("peak.ini", 2, set, &c, &err) == PONS_OK
        && experiment_open(c, EXPERIMENT_TRAIN, &known, &log, &e, &err) == PONS_OK) {
        e->testing.no_reuse = true;
        measure_steps(e, &(measure_settings){ .steps = 1, .reference = true }, &result, &err);
    }
    if (err.status != PONS_OK)
        fprintf(stderr, "%s\n", err.text);
    _exit(err.status != PONS_OK);
}

START_TEST(without_memory_reuse_the_predicted_peak_is_exceeded)
{
    double peak = predicted_peak("train.precision=fp32", "distribute.threads=2");
    struct rusage usage;
    int status;
    pid_t child = fork();

    if (child == 0)
        step_without_reuse();
    ck_assert_int_eq(wait4(child, &status, 0, &usage), child);
    ck_assert_int_eq(status, 0);
    ck_assert_double_gt(1024.0 * (double)usage.ru_maxrss / peak - 1, PEAK_RELATIVE);
}
END_TEST

/* ---- prediction ------------------------------------------------------------------------------ */

static const char many_classes[] =
    "[experiment]\nname = classes\n"
    "[data]\nsource = short\nvalidation = none\n"
    "[preprocess]\nsteps = normalize\n"
    "[patch]\nextent = 16 16 16\n"
    "[model]\nplugin = unet\nchannels = 4 8\nstrides = 2\nnorm = batch\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\nlr = 1e-3\n"
    "[train]\nsteps = 1\nprecision = fp32\n"
    "[distribute]\nthreads = 1\n";

/*
 * The planes of a second window: 16 planes of 64 x 64 voxels and 40 classes. They take memory only
 * where the writer of the first window is late.
 */
static const double second_window = 16 * 64.0 * 64 * 40 * sizeof(float);

/*
 * The peak of a prediction. The log foretells the largest one; of two that differ in the planes of
 * a second window, the smaller one is within the tolerance, too.
 */
static double peak_of_image(const char *image, const char *set)
{
    static const char phrase[] = "memory about ";
    double found = RUN("predict", "runs/classes", image, "-o", "out.nii.gz", "-v", "--set", set);
    const char *log = text_of("log"), *told = strstr(log, phrase);

    ck_assert_msg(told != NULL, "no '%s' in %s", phrase, log);
    told += strlen(phrase);
    double foretold = 1e9 * strtod(told, NULL);
    if (counts_are_ours)
        ck_assert_msg(found <= 1.05 * foretold
                      && foretold - second_window <= (1 + PEAK_RELATIVE) * found,
                      "%.1f MB, foretold %.6s GB", 1e-6 * found, told);
    return found;
}

/*
 * The images have 64 and 256 planes; windows are blended into the planes of one window and the
 * next.
 */
START_TEST(the_prediction_peak_does_not_grow_with_the_image)
{
    static const char *const sets[] = { "window.overlap=0.25", "predict.resample=labels" };
    const double logits = (256 - 64) * 64.0 * 64 * 40 * sizeof(float);

    write_text("classes.ini", many_classes);
    RUN("data", "phantom", "-o", "short", "--cases", "1", "--extent", "64,64,64", "--classes", "40",
        "-q");
    RUN("data", "phantom", "-o", "long", "--cases", "1", "--extent", "256,64,64", "--classes", "40",
        "-q");
    RUN("train", "classes.ini", "-q");
    for (int n = 0; n < 2 && counts_are_ours; n++) {
        double less = peak_of_image("short/imagesTr/phantom_000.nii.gz", sets[n]);
        double more = peak_of_image("long/imagesTr/phantom_000.nii.gz", sets[n]);
        printf("%s: %.1f MB, %.1f MB\n", sets[n], 1e-6 * less, 1e-6 * more);
        ck_assert_double_lt(more - less, logits / 3);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("peak");

    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    tcase_add_checked_fixture(c, setup, remove_root);
    tcase_add_loop_test(c, explain_predicts_the_training_peak, 0, ALL);
    tcase_add_loop_test(c, the_arena_is_at_most_three_fifths_of_all_tensors, 0, SINGLES);
    tcase_add_loop_test(c, a_second_replica_takes_the_memory_of_a_single_one, 0, ALL - SINGLES);
    if (has_comm("gloo"))
        tcase_add_loop_test(c, one_of_two_ranks_takes_the_memory_of_one_process, 0, GLOO_CASES);
    if (has_comm("mpi") && system("command -v mpirun >/dev/null") == 0)
        tcase_add_loop_test(c, one_of_two_ranks_takes_the_memory_of_one_process, GLOO_CASES,
                            RANK_CASES);
    tcase_add_test(c, without_memory_reuse_the_predicted_peak_is_exceeded);
    tcase_add_test(c, the_prediction_peak_does_not_grow_with_the_image);
    return suite_run();
}
