/*
 * check_ddp.c - the contract of the modes (R3) over processes. The same micro-batches on one
 * replica and divided among processes give the same weights and metrics. The processes of a run
 * make their decisions together.
 */
#include <config.h>

#include "base/clock.h"
#include "support/pause.h"
#include "support/process/free_port.h"
#include "support/process/process_state.h"
#include "support/run/run_modes.h"
#include "support/spoil.h"
#include "support/suite.h"

#include <signal.h>
#include <time.h>

enum { RANKS_MAX = 4, WORDS_MAX = 40 };

/* ---- ranks ----------------------------------------------------------------------------------- */

/* The processes of a run, and the differences of single ones. */
typedef struct ranks {
    int count;
    const char *own_word[RANKS_MAX]; /* one more --set for this rank, or NULL                     */
    const char *own_path[RANKS_MAX]; /* added before its PONS_PLUGIN_PATH, or NULL                */
    pid_t pid[RANKS_MAX];
    int code[RANKS_MAX];
} ranks;

static void set_number(const char *name, int number)
{
    char text[16];

    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

/* The output of the rank goes to root/said.RANK. */
static void exec_rank(const ranks *r, int rank, int port, const char *const *word)
{
    const char *argument[WORDS_MAX + 4] = { pons_program() };
    char name[32];
    int count = 1, out;

    while (*word != NULL && count < WORDS_MAX)
        argument[count++] = *word++;
    if (r->own_word[rank] != NULL) {
        argument[count++] = "--set";
        argument[count++] = r->own_word[rank];
    }
    if (r->own_path[rank] != NULL)
        search_first(r->own_path[rank]);
    set_number("RANK", rank);
    set_number("LOCAL_RANK", rank);
    set_number("WORLD_SIZE", r->count);
    set_number("LOCAL_WORLD_SIZE", r->count);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    set_number("MASTER_PORT", port);
    snprintf(name, sizeof name, "said.%d", rank);
    out = open(in_root(name), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(out, 1);
    dup2(out, 2);
    if (chdir(root) == 0)
        execv(argument[0], (char *const *)argument);
    _exit(99);
}

static void ranks_start(ranks *r, const char *const *word)
{
    int port = free_port();

    for (int k = 0; k < r->count; k++) {
        r->pid[k] = fork_child();
        if (r->pid[k] == 0)
            exec_rank(r, k, port, word);
    }
}

static void ranks_finish(ranks *r)
{
    for (int k = 0; k < r->count; k++)
        r->code[k] = process_finish(r->pid[k]);
}

static const char *output_of_rank(int rank)
{
    char name[32];

    snprintf(name, sizeof name, "said.%d", rank);
    return root_text(name);
}

static void expect_all_ended(ranks *r, int code, const char *phrase)
{
    ranks_finish(r);
    for (int k = 0; k < r->count; k++)
        ck_assert_msg(r->code[k] == code && (phrase == NULL || strstr(output_of_rank(k),
                                                                      phrase) != NULL),
                      "rank %d: code %d, expected %d and '%s': %s", k, r->code[k], code,
                      phrase != NULL ? phrase : "", output_of_rank(k));
}

#define RANKS_START(R, ...) ranks_start((R), (const char *const[]){ __VA_ARGS__, NULL })
/* Run RANKS: all ranks exit with CODE, and each of them prints PHRASE (unless NULL). */
#define RANKS(R, CODE, PHRASE, ...) do {                                                          \
        RANKS_START((R), __VA_ARGS__);                                                            \
        expect_all_ended((R), (CODE), (PHRASE));                                                  \
    } while (0)

/* ---- runs ------------------------------------------------------------------------------------ */

/* Twenty steps of M micro-batches; 0 ranks: a single process. */
typedef struct split {
    const char *name;
    int ranks, accumulate;
    const char *devices, *deterministic, *backend;
} split;

static void train_split(const split *s)
{
    char name[64], accumulate[64], devices[64], exact[64], backend[64];
    ranks r = { .count = s->ranks };

    snprintf(name, sizeof name, "experiment.name=%s", s->name);
    snprintf(accumulate, sizeof accumulate, "train.accumulate=%d", s->accumulate);
    snprintf(devices, sizeof devices, "distribute.devices=%s", s->devices);
    snprintf(exact, sizeof exact, "experiment.deterministic=%s", s->deterministic);
    snprintf(backend, sizeof backend, "distribute.backend=%s",
             s->backend != NULL ? s->backend : "auto");
    if (s->ranks > 0)
        RANKS(&r, 0, NULL, "train", "e.ini", "--set", name, "--set", accumulate, "--set", devices,
              "--set", exact, "--set", backend);
    else
        EXPECT(0, NULL, "train", "e.ini", "--set", name, "--set", accumulate, "--set", devices,
               "--set", exact);
}

START_TEST(four_micro_batches_give_the_same_bits_in_every_mode)
{
    const char *over_tcp = suite_has_plugin("comm/gloo") ? "gloo" : "auto";
    const split splits[] = {
        { "single", 0, 4, "cpu", "yes", NULL }, { "dp", 0, 2, "cpu:0,cpu:1", "yes", NULL },
        { "two", 2, 2, "cpu", "yes", over_tcp }, { "four", 4, 1, "auto", "yes", NULL },
        { "listed", 2, 2, "cpu:1,cpu:0", "yes", "auto" }
    };

    make_experiment();
    for (int i = 0; i < 5; i++)
        train_split(&splits[i]);
    for (int i = 1; i < 5; i++)
        same_run("single", splits[i].name);
    remove_root();
}
END_TEST

START_TEST(three_micro_batches_give_the_same_bits_on_one_and_three_ranks)
{
    static const split splits[] = {
        { "single", 0, 3, "cpu", "yes", NULL }, { "three", 3, 1, "cpu", "yes", NULL }
    };

    make_experiment();
    for (int i = 0; i < 2; i++)
        train_split(&splits[i]);
    same_run("single", "three");
    remove_root();
}
END_TEST

START_TEST(open_mpi_gives_the_same_bits)
{
    static const split single = { "single", 0, 4, "cpu", "yes", NULL };
    static const struct { const char *name; int ranks, accumulate; } splits[] = {
        { "two", 2, 2 }, { "four", 4, 1 }
    };
    char command[8192];

    make_experiment();
    train_split(&single);
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "cd %s && OMPI_ALLOW_RUN_AS_ROOT=1 "
                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 ASAN_OPTIONS=detect_leaks=0 mpirun "
                 "--oversubscribe -n %d %s train e.ini --set experiment.name=%s "
                 "--set train.accumulate=%d --set distribute.backend=mpi --set "
                 "distribute.devices=auto --set experiment.deterministic=yes >said.0 2>&1", root,
                 splits[i].ranks, pons_program(), splits[i].name, splits[i].accumulate);
        ck_assert_msg(system(command) == 0, "%s", output_of_rank(0));
        same_run("single", splits[i].name);
    }
    remove_root();
}
END_TEST

START_TEST(the_non_deterministic_mode_keeps_the_losses)
{
    static const split splits[] = {
        { "single", 0, 4, "cpu", "no", NULL }, { "two", 2, 2, "cpu", "no", NULL },
        { "four", 4, 1, "cpu", "no", NULL }
    };

    make_experiment();
    for (int i = 0; i < 3; i++)
        train_split(&splits[i]);
    same_metric("single", "two", "loss", 1e-5);
    same_metric("single", "four", "loss", 1e-5);
    remove_root();
}
END_TEST

/* No random numbers: their keys contain the number of the micro-batch. */
#define PLAIN "--set", "train.steps=6", "--set", "loss.batch=yes", "--set", "model.dropout=0",    \
              "--set", "augment.flip.probability=0", "--set",                                     \
              "augment.scale_intensity.probability=0", "--set",                                   \
              "augment.gaussian_noise.probability=0"

/*
 * Two ranks are one replica with the patches of both, as two replicas of a process are
 * (check_modes).
 */
START_TEST(ranks_with_joined_statistics_equal_one_with_a_larger_batch)
{
    static const struct { const char *name, *norms, *loss; } joins[] = {
        { "both", "distribute.sync_batchnorm=yes", "loss.sync=yes" },
        { "norms", "distribute.sync_batchnorm=yes", "loss.sync=no" },
        { "losses", "distribute.sync_batchnorm=no", "loss.sync=yes" },
    };
    double one[64], other[64];

    make_experiment();
    EXPECT(0, NULL, "train", "e.ini", "--set", "experiment.name=one", "--set", "train.batch=2",
           PLAIN);
    ck_assert_int_eq(read_metrics("one", "loss", one, 64), 6);
    for (int i = 0; i < 3; i++) {
        ranks two = { .count = 2 };
        char name[64];

        snprintf(name, sizeof name, "experiment.name=%s", joins[i].name);
        RANKS(&two, 0, NULL, "train", "e.ini", "--set", name, "--set", joins[i].norms, "--set",
              joins[i].loss, PLAIN);
        ck_assert_int_eq(read_metrics(joins[i].name, "loss", other, 64), 6);
        /* The control: each setting alone gives another run. */
        ck_assert_msg(i == 0 || fabs(one[0] - other[0]) > 1e-4 * one[0], "%s: %g and %g",
                      joins[i].name, one[0], other[0]);
    }
    same_metric("one", "both", "loss", 1e-5);
    same_metric("one", "both", "grad_norm", 1e-3);
    remove_root();
}
END_TEST

START_TEST(a_run_continues_with_another_number_of_ranks)
{
    static const split single = { "single", 0, 4, "cpu", "yes", NULL };
    static const split two = { "moved", 2, 2, "cpu", "yes", NULL };
    ranks four = { .count = 4 };

    make_experiment();
    train_split(&single);
    RANKS(&four, 0, NULL, "train", "e.ini", "--set", "experiment.name=moved", "--set",
          "experiment.deterministic=yes", "--set", "train.steps=10");
    train_split(&two);
    same_run("single", "moved");
    train_split(&two); /* finished: rank 0 tells all ranks */
    ck_assert_ptr_nonnull(strstr(output_of_rank(0), "is finished (step 20)"));
    remove_root();
}
END_TEST

/* ---- controls: these tests find a violation of the contract ---------------------------------- */

static void make_rank_key(const char *wrong)
{
    static const char steps[] = "gaussian_noise\n[";
    const char *at = strstr(modes_ini, steps);
    char text[8192];

    make_experiment();
    ck_assert_ptr_nonnull(at);
    add_plugin("transform", "rank_key");
    search_first(in_root("plugins"));
    snprintf(text, sizeof text, "%.*sgaussian_noise rank_key\n[augment.rank_key]\nwrong = %s\n%s",
             (int)(at - modes_ini), modes_ini, wrong, at + strlen(steps) - 1);
    write_text("e.ini", text);
}

static void train_rank_key(void)
{
    static const split single = { "single", 0, 2, "cpu", "yes", NULL };
    static const split two = { "two", 2, 1, "cpu", "yes", NULL };

    unsetenv("RANK");
    train_split(&single);
    train_split(&two);
}

START_TEST(a_random_key_with_the_rank_in_it_is_noticed)
{
    make_rank_key("no");
    train_rank_key();
    same_run("single", "two");
    remove_root();
    make_rank_key("yes");
    train_rank_key();
    ck_assert(!same_file("single", "two", "model.safetensors"));
    remove_root();
}
END_TEST

/* Loss of the first step with M micro-batches: their mean, each with the initial weights. */
static double first_loss(int micro_batches)
{
    split s = { .ranks = 0, .accumulate = micro_batches, .devices = "cpu", .deterministic = "no" };
    char name[16];
    double loss[64];

    snprintf(name, sizeof name, "m%d", micro_batches);
    s.name = name;
    train_split(&s);
    ck_assert_int_gt(read_metrics(name, "loss", loss, 64), 0);
    return loss[0];
}

START_TEST(uneven_shares_of_micro_batches_are_refused)
{
    ranks two = { .count = 2 };
    double one, both, three, last;

    make_experiment();
    RANKS(&two, 3, "micro_batches 3 cannot be shared out among 2 replicas", "train", "e.ini",
          "--set", "train.micro_batches=3");
    one = first_loss(1);
    both = first_loss(2);
    three = first_loss(3);
    last = 3 * three - 2 * both;
    ck_assert_double_ne(one, both);
    /* The difference is ten times the bound. */
    ck_assert_double_gt(fabs((both + last) / 2 - three), 1e-4 * fabs(three));
    remove_root();
}
END_TEST

/* ---- equal settings of all processes --------------------------------------------------------- */

/* Fifty options: the value in the file or the default, and that of the last rank. */
static const struct { const char *section, *key, *all, *own; } differing[] = {
    { "experiment", "name", "run", "other" }, { "experiment", "seed", "0", "1" },
    { "experiment", "deterministic", "no", "yes" },
    { "loss", "batch", "no", "yes" }, { "data", "validation", "last:3", "last:2" },
    { "preprocess", "steps", "normalize", "" },
    { "patch", "extent", "16 16 16", "16 16 8" }, { "patch", "per_case", "1", "2" },
    { "patch", "sampling", "balanced", "uniform" }, { "patch", "positive", "1", "2" },
    { "patch", "negative", "1", "2" }, { "patch", "pad", "zero", "edge" },
    { "augment.flip", "axes", "0 1 2", "0 1" }, { "augment.flip", "probability", "0.5", "0.25" },
    { "augment.scale_intensity", "factors", "0.1", "0.2" },
    { "augment.gaussian_noise", "probability", "0.5", "0.75" },
    { "model", "channels", "4 8 16", "4 8 12" }, { "model", "num_res_units", "2", "1" },
    { "model", "norm", "batch", "instance" }, { "model", "dropout", "0.2", "0.3" },
    { "loss", "plugin", "dice_ce", "dice" }, { "loss", "activation", "softmax", "sigmoid" },
    { "loss", "sync", "no", "yes" }, { "optimizer", "plugin", "adam", "sgd" },
    { "optimizer", "lr", "1e-2", "1e-3" }, { "schedule", "plugin", "constant", "cosine" },
    { "schedule", "warmup_steps", "0", "3" }, { "schedule", "warmup_multiplier", "0", "0.5" },
    { "schedule", "unit", "step", "epoch" }, { "train", "steps", "20", "21" },
    { "train", "batch", "1", "2" }, { "train", "accumulate", "1", "2" },
    { "train", "precision", "fp32", "bf16" }, { "train", "clip_norm", "0.5", "1" },
    { "train", "recompute", "no", "yes" }, { "train", "ema_decay", "0.9", "0.99" },
    { "train", "nonfinite", "stop", "skip" }, { "train", "validate_every", "1", "2" },
    { "train", "validate_steps", "10", "5" }, { "train", "checkpoint_every", "1", "2" },
    { "train", "grace_s", "10", "20" }, { "train", "early_stop", "0", "4" },
    { "distribute", "threads", "1", "2" }, { "distribute", "bucket", "4KiB", "8KiB" },
    { "distribute", "sync_batchnorm", "no", "yes" },
    { "distribute", "lr_scaling", "none", "sqrt" }, { "distribute", "timeout_s", "600", "30" },
    { "window", "overlap", "0.25", "0.5" }, { "window", "mode", "constant", "gaussian" },
    { "window", "batch", "4", "2" },
};

START_TEST(ranks_that_differ_are_refused_and_both_sides_named)
{
    int bad = 0;

    make_experiment();
    for (size_t i = 0; i < sizeof differing / sizeof *differing; i++) {
        int last = 1 + i % 8 / 7; /* with three ranks now and then */
        ranks r = { .count = last + 1 };
        char word[128], phrase[256];

        snprintf(word, sizeof word, "%s.%s=%s", differing[i].section, differing[i].key,
                 differing[i].own);
        snprintf(phrase, sizeof phrase, "[%s] %s: rank 0 has '%s', rank %d has '%s'",
                 differing[i].section, differing[i].key, differing[i].all, last, differing[i].own);
        r.own_word[last] = word;
        RANKS_START(&r, "train", "e.ini");
        ranks_finish(&r);
        for (int k = 0; k <= last; k++)
            if (r.code[k] != 3 || strstr(output_of_rank(k), phrase) == NULL) {
                fprintf(stderr, "not '%s', but rank %d: %d: %s\n", phrase, k, r.code[k],
                        output_of_rank(k));
                bad++;
            }
        if (access(in_root("runs/run/metrics.jsonl"), F_OK) == 0) {
            fprintf(stderr, "[%s] %s: it has begun\n", differing[i].section, differing[i].key);
            bad++;
        }
    }
    ck_assert_int_eq(bad, 0);
    remove_root();
}
END_TEST

START_TEST(ranks_with_other_cases_are_refused_but_paths_may_differ)
{
    ranks cases = { .count = 2, .own_word = { NULL, "data.source=others" } };
    ranks own = { .count = 2, .own_word = { NULL, "data.cache=none" } };

    make_experiment();
    EXPECT(0, NULL, "data", "phantom", "-o", "others", "--cases", "8", "--extent", "28,24,20");
    RANKS(&cases, 3, "the list of training cases: rank 0 has '4, hash ", "train", "e.ini");
    RANKS(&own, 0, NULL, "train", "e.ini", "--set", "train.steps=1");
    remove_root();
}
END_TEST

/* The file, a library and the mode are checked before a process joins the others. */
static const char *const refusals[] = { "train.batch=none", "distribute.backend=nccl",
                                        "distribute.mode=dp" };

START_TEST(a_rank_refused_before_joining_ends_the_others_at_once)
{
    make_experiment();
    for (int rank = 0; rank < 3; rank += 2) {
        ranks three = { .count = 3 };
        double begin = seconds_now();
        char phrase[64], timeout[64];

        snprintf(timeout, sizeof timeout, "distribute.timeout_s=%g", deadline_scaled(90));
        three.own_word[rank] = refusals[_i];
        RANKS_START(&three, "train", "e.ini", "--set", timeout);
        ranks_finish(&three);
        ck_assert_double_lt(seconds_now() - begin, deadline_scaled(60)); /* less than the timeout */
        snprintf(phrase, sizeof phrase, "rank %d failed (start): ", rank);
        for (int k = 0; k < 3; k++) {
            ck_assert_msg(three.code[k] == three.code[rank] && three.code[k] > 0, "rank %d: %d, %s",
                          k, three.code[k], output_of_rank(k));
            ck_assert_msg(k == rank || strstr(output_of_rank(k), phrase) != NULL, "rank %d: %s", k,
                          output_of_rank(k));
        }
    }
    remove_root();
}
END_TEST

START_TEST(a_plugin_that_differs_between_ranks_is_refused)
{
    const char *given = getenv("PONS_PLUGIN_PATH");
    char command[8192];
    ranks r = { .count = 2 };

    make_experiment();
    ck_assert_ptr_nonnull(given);
    snprintf(command, sizeof command, "mkdir -p %s/other/loss && cp %.*s/loss/dice_ce.so "
             "%s/other/loss && echo >> %s/other/loss/dice_ce.so", root, (int)strcspn(given, ":"),
             given, root, root);
    ck_assert_int_eq(system(command), 0);
    r.own_path[1] = in_root("other");
    RANKS(&r, 3, "plugin loss: rank 0 has 'dice_ce ", "train", "e.ini");
    remove_root();
}
END_TEST

/* Options, plugins and shapes are equal: only the bytes differ. */
START_TEST(a_wrong_bit_in_the_initial_weights_is_refused)
{
    static const split single = { "single", 0, 2, "cpu", "yes", NULL };
    static const split two = { "two", 2, 1, "cpu", "yes", "gloo" };
    char behind[4096];

    make_experiment();
    ck_assert_ptr_nonnull(realpath("stage/comm/gloo.so", behind));
    setenv("GLOO_BEHIND", behind, 1);
    add_plugin("comm", "gloo");
    search_first(in_root("plugins"));
    for (int rank = 0; rank < 3; rank += 2) {
        ranks three = { .count = 3 };
        char phrase[64];

        set_number("GLOO_DAMAGED", rank);
        snprintf(phrase, sizeof phrase, "rank %d has '", rank == 0 ? 1 : rank);
        RANKS(&three, 3, phrase, "train", "e.ini", "--set", "experiment.name=damaged",
              "--set", "distribute.backend=gloo");
        for (int k = 0; k < 3; k++)
            ck_assert_msg(strstr(output_of_rank(k), "the processes differ in part ") != NULL
                          && strstr(output_of_rank(k),
                                    " of the weights, states and slots: rank 0 has '")
                                 != NULL, "rank %d: %s", k, output_of_rank(k));
        ck_assert_int_ne(access(in_root("runs/damaged/metrics.jsonl"), F_OK), 0);
    }
    unsetenv("GLOO_DAMAGED"); /* the control: the replacement of gloo changes nothing else */
    train_split(&single);
    train_split(&two);
    same_run("single", "two");
    remove_root();
}
END_TEST

START_TEST(single_process_modes_are_refused_among_ranks)
{
    ranks two = { .count = 2 };

    make_experiment();
    RANKS(&two, 3, "mode = dp is one process, but", "train", "e.ini", "--set",
          "distribute.mode=dp");
    RANKS(&two, 3, "mode = single is one process, but", "train", "e.ini", "--set",
          "distribute.mode=single");
    RANKS(&two, 3, "lists 3, but this node has 2 processes", "train", "e.ini", "--set",
          "distribute.devices=cpu:0,1,2");
    remove_root();
}
END_TEST

/* ---- decisions of all processes -------------------------------------------------------------- */

START_TEST(a_non_finite_step_ends_all_ranks_with_the_same_cases)
{
    ranks two = { .count = 2 };
    char line[256];

    make_experiment();
    RANKS(&two, 1, "the gradient is not finite; first tensor '", "train", "e.ini", "--set",
          "optimizer.lr=1e30");
    /* The rank that receives the other one's error first may name that rank before the message. */
    snprintf(line, sizeof line, "%.200s", strstr(output_of_rank(0), "the gradient is not finite"));
    line[strcspn(line, "\n")] = '\0';
    ck_assert_msg(strstr(output_of_rank(1), line) != NULL, "not '%s': %s", line, output_of_rank(1));
    two = (ranks){ .count = 2 };
    RANKS(&two, 0, NULL, "train", "e.ini", "--set", "optimizer.lr=1e30", "--set",
          "train.nonfinite=skip", "--fresh");
    ck_assert_ptr_nonnull(strstr(output_of_rank(0), "is skipped"));
    remove_root();
}
END_TEST

static bool has_steps(const char *run, int count)
{
    char path[256], line[4096];
    int found = 0;

    snprintf(path, sizeof path, "%s/runs/%s/metrics.jsonl", root, run);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    while (fgets(line, sizeof line, file) != NULL)
        found++;
    fclose(file);
    return found >= count;
}

START_TEST(a_signal_to_one_rank_stops_all_after_the_same_step)
{
    static const split single = { "single", 0, 2, "cpu", "yes", NULL };
    static const split again = { "stopped", 2, 1, "cpu", "yes", NULL };
    const struct timespec pause = { 0, 2000000 };

    make_experiment();
    train_split(&single);
    for (int rank = 0; rank < 2; rank++) {
        ranks two = { .count = 2 };

        /* On a slow machine the run may finish first. The test is then repeated. */
        for (int tries = 0; two.code[0] + two.code[1] != 2 * 75 && tries < 5; tries++) {
            shell("rm -rf runs/stopped");
            RANKS_START(&two, "train", "e.ini", "--set", "experiment.name=stopped", "--set",
                        "experiment.deterministic=yes");
            while (!has_steps("stopped", 3))
                nanosleep(&pause, NULL);
            kill(two.pid[rank], rank == 0 ? SIGTERM : SIGUSR1);
            ranks_finish(&two);
        }
        for (int k = 0; k < 2; k++)
            ck_assert_msg(two.code[k] == 75, "rank %d: %d: %s", k, two.code[k], output_of_rank(k));
        train_split(&again);
        same_run("single", "stopped");
    }
    remove_root();
}
END_TEST

/* Rank 0 saves the state before the step, whichever rank gets the signal. */
START_TEST(a_step_longer_than_the_grace_period_is_abandoned_by_all)
{
    const struct timespec pause = { 0, 2000000 };

    make_experiment();
    for (int rank = 0; rank < 2; rank++) {
        ranks two = { .count = 2 };

        RANKS_START(&two, "train", "e.ini", "--fresh", "--set", "train.accumulate=4000", "--set",
                    "train.validate_steps=1000", "--set", "train.grace_s=0.2");
        while (!has_steps("run", 1) || strstr(root_text("runs/run/metrics.jsonl"), "\n") == NULL)
            nanosleep(&pause, NULL);
        process_wait_work(two.pid[rank], 0.05); /* inside of a step */
        kill(two.pid[rank], SIGTERM);
        expect_all_ended(&two, 75, NULL);
        ck_assert_ptr_nonnull(strstr(output_of_rank(0), "step 2 was given up, step 1 is saved"));
        ck_assert_ptr_nonnull(strstr(root_text("runs/run/checkpoints/last"), "step-00000001"));
        ck_assert_int_eq(rename(in_root("runs/run"), in_root(rank == 0 ? "a" : "b")), 0);
    }
    remove_root();
}
END_TEST

START_TEST(a_case_unreadable_on_one_rank_ends_all_with_that_cause)
{
    ranks two = { .count = 2, .own_word = { NULL, "data.source=damaged" } };

    make_experiment();
    shell("cp -r phantom damaged && for f in damaged/imagesTr/*; do head -c 2000 \"$f\" > part; "
          "mv part \"$f\"; break; done");
    RANKS_START(&two, "train", "e.ini");
    ranks_finish(&two);
    ck_assert_msg(two.code[0] == 4 && two.code[1] == 4, "%d and %d: %s", two.code[0], two.code[1],
                  output_of_rank(0));
    ck_assert_msg(strstr(output_of_rank(0), "rank 1 failed") != NULL, "%s", output_of_rank(0));
    ck_assert_ptr_nonnull(strstr(output_of_rank(0), "phantom_000"));
    ck_assert_int_ne(access(in_root("runs/run/metrics.jsonl"), F_OK), 0);
    remove_root();
}
END_TEST

START_TEST(a_non_finite_case_on_one_rank_ends_all_with_its_file)
{
    static const struct { const char *file; float value; } files[] = {
        { "imagesTr/phantom_000.nii.gz", INFINITY }, { "labelsTr/phantom_000.nii.gz", NAN },
    };
    char file[128];

    make_experiment();
    for (int i = 0; i < 2; i++) {
        ranks two = { .count = 2, .own_word = { NULL, "data.source=damaged" } };

        shell("rm -rf damaged && cp -r phantom damaged");
        snprintf(file, sizeof file, "damaged/%s", files[i].file);
        spoil_voxel(file, 14 * 24 * 20 + 12 * 20 + 10, files[i].value);
        RANKS(&two, 4, files[i].file, "train", "e.ini");
        ck_assert_msg(strstr(output_of_rank(0), "rank 1 failed") != NULL, "%s", output_of_rank(0));
        ck_assert_int_ne(access(in_root("runs/run/metrics.jsonl"), F_OK), 0);
    }
    remove_root();
}
END_TEST

START_TEST(only_rank_0_writes_and_prints)
{
    ranks two = { .count = 2 };

    make_experiment();
    RANKS(&two, 0, NULL, "train", "e.ini", "--set", "train.steps=2");
    ck_assert_ptr_nonnull(strstr(output_of_rank(0), "mode ddp: ranks in the environment"));
    ck_assert_ptr_nonnull(strstr(output_of_rank(0), "joined by shm"));
    ck_assert_str_eq(output_of_rank(1), "");
    ck_assert_ptr_nonnull(strstr(root_text("runs/run/resolved.ini"), "backend = shm"));
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("ddp");

    tcase_add_test(c, four_micro_batches_give_the_same_bits_in_every_mode);
    tcase_add_test(c, three_micro_batches_give_the_same_bits_on_one_and_three_ranks);
    suite_add_test_if(c, suite_has_plugin("comm/mpi"), "mpi", open_mpi_gives_the_same_bits);
    tcase_add_test(c, the_non_deterministic_mode_keeps_the_losses);
    tcase_add_test(c, ranks_with_joined_statistics_equal_one_with_a_larger_batch);
    tcase_add_test(c, a_run_continues_with_another_number_of_ranks);
    tcase_add_test(c, a_random_key_with_the_rank_in_it_is_noticed);
    tcase_add_test(c, uneven_shares_of_micro_batches_are_refused);
    tcase_add_test(c, ranks_that_differ_are_refused_and_both_sides_named);
    tcase_add_test(c, ranks_with_other_cases_are_refused_but_paths_may_differ);
    tcase_add_loop_test(c, a_rank_refused_before_joining_ends_the_others_at_once, 0,
                        sizeof refusals / sizeof *refusals);
    tcase_add_test(c, a_plugin_that_differs_between_ranks_is_refused);
    suite_add_test_if(c, suite_has_plugin("comm/gloo"), "gloo",
                      a_wrong_bit_in_the_initial_weights_is_refused);
    tcase_add_test(c, single_process_modes_are_refused_among_ranks);
    tcase_add_test(c, a_non_finite_step_ends_all_ranks_with_the_same_cases);
    tcase_add_test(c, a_signal_to_one_rank_stops_all_after_the_same_step);
    tcase_add_test(c, a_step_longer_than_the_grace_period_is_abandoned_by_all);
    tcase_add_test(c, a_case_unreadable_on_one_rank_ends_all_with_that_cause);
    tcase_add_test(c, a_non_finite_case_on_one_rank_ends_all_with_its_file);
    tcase_add_test(c, only_rank_0_writes_and_prints);
    return suite_run();
}
