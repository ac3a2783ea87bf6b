/*
 * check_stops.c - a run is stopped after any step and continued, on as many replicas as the step's
 * micro-batches allow. It gives the numbers of the undisturbed run. The control shows that every
 * piece of a checkpoint is needed for that.
 */
#include <config.h>

#include "support/run/tiny_run.h"
#include "support/soak.h"
#include "support/suite.h"

/* An optimizer that counts its updates and one that does not. */
typedef struct variant {
    const char *name, *optimizer;
} variant;

static const variant variants[] = { { "adam", "optimizer.plugin=adam" },
                                    { "sgd", "optimizer.plugin=sgd" } };

/* The same four micro-batches, divided among replicas of a process or among processes. */
typedef struct split {
    const char *ranks;       /* number for 'pons launch'; NULL: one process                       */
    const char *devices, *accumulate;
} split;

enum { SPLITS = 3, STEPS = 40, PLACES = 2 };

static const split splits[PLACES][SPLITS] = {
    { { NULL, "distribute.devices=cpu", "train.accumulate=4" },
      { NULL, "distribute.devices=cpu:0,cpu:0", "train.accumulate=2" },
      { NULL, "distribute.devices=cpu:0,cpu:0,cpu:0,cpu:0", "train.accumulate=1" } },
    { { NULL, "distribute.devices=cpu", "train.accumulate=4" },
      { "2", "distribute.devices=cpu", "train.accumulate=2" },
      { "4", "distribute.devices=cpu", "train.accumulate=1" } },
};

/* The sink that stops a run is in the plugin path beside the built ones. */
static void make_run(void)
{
    make_tiny_run();
    add_plugin("sink", "alarm");
    search_first(in_root("plugins"));
}

/* Train as 'name' on a split, until step 'stop' if it is positive. The result is the exit code. */
static int train_split(const variant *v, const char *name, const split *s, int stop)
{
    char set[64], alarm[32];
    const char *const words[] = { "launch", "-n", s->ranks, "--", "train", "e.ini", "--set", set,
                                  "--set", v->optimizer, "--set", s->devices, "--set",
                                  s->accumulate, "--set", "experiment.deterministic=yes", "--set",
                                  "log.sinks=alarm csv", NULL };

    snprintf(set, sizeof set, "experiment.name=%s", name);
    snprintf(alarm, sizeof alarm, "step %d stop", stop);
    setenv("CHECK_ALARM", alarm, 1);
    int code = process_finish(process_start(s->ranks != NULL ? words : words + 4));
    unsetenv("CHECK_ALARM");
    return code;
}

static void remove_run(const char *name)
{
    shell("rm -rf runs/%s", name);
}

static void expect_same_run(const variant *v, const char *name, int step, int split)
{
    ck_assert_msg(same_runs("whole", name, TENSOR_FILES), "%s stopped after step %d, then "
                  "on split %d: see the differences above", v->name, step, split);
    shell("cd runs; for r in whole %s; do grep -v 'seconds\\|memory' $r/metrics.csv >../$r.csv; "
          "done; cmp ../whole.csv ../%s.csv", name, name);
}

/*
 * Ranks agree on a stop in a step. They stop after the current step of rank 0 or after the next
 * one. After the last step the run finishes instead.
 */
static void stop_run_after(const variant *v, const split *s, int step)
{
    int code = train_split(v, "run", s, step);
    int64_t last = run_marked_step("run", "last");

    ck_assert_msg(code == (last < STEPS ? 75 : 0), "code %d: %s", code, root_text("said"));
    ck_assert_int_ge(last, step);
    ck_assert_int_le(last, step + (s->ranks != NULL));
}

static void continue_run(const variant *v, const split *s)
{
    int code = train_split(v, "run", s, 0);

    ck_assert_msg(code == 0, "code %d: %s", code, root_text("said"));
}

/*
 * Some of the forty steps, others for each optimizer, or all of them with SOAK. The splits take
 * turns.
 */
START_TEST(a_run_stopped_after_any_step_continues_to_the_same_bits)
{
    const variant *v = &variants[_i % 2];
    const split *s = splits[_i / 2];
    int every = soak_times(_i / 2 == 0 ? 11 : 19, 1);

    make_run();
    ck_assert_int_eq(train_split(v, "whole", &s[0], 0), 0);
    for (int step = soak_times(3 + 2 * _i, 1); step <= STEPS; step += every) {
        int first = step % SPLITS, then = (step / SPLITS + 1) % SPLITS;
        stop_run_after(v, &s[first], step);
        continue_run(v, &s[then]);
        expect_same_run(v, "run", step, then);
        remove_run("run");
    }
    remove_root();
}
END_TEST

/* The run is stopped as soon as possible. The number of replicas changes with every stop. */
START_TEST(a_run_stopped_after_every_step_continues_to_the_same_bits)
{
    const variant *v = &variants[0];
    const split *s = splits[_i];
    int steps = soak_times(_i == 0 ? 12 : 3, STEPS), stops = 0;

    make_run();
    ck_assert_int_eq(train_split(v, "whole", &s[0], 0), 0);
    for (int64_t step = 1; step <= steps; step = run_marked_step("run", "last") + 1)
        stop_run_after(v, &s[++stops % SPLITS], (int)step);
    continue_run(v, &s[1]);
    expect_same_run(v, "run", steps, 1);
    remove_root();
}
END_TEST

/* ---- control: every piece of a checkpoint is needed ------------------------------------------ */

static const char *const file_names[4] = { "model.safetensors", "optimizer.safetensors",
                                           "ema.safetensors", "trainer.safetensors" };

enum { MODEL = 1, OPTIMIZER = 2, AVERAGES = 4, TRAINER = 8 };

/*
 * A piece of a checkpoint: the tensors whose names end with 'end', and the change of their values.
 */
typedef struct piece {
    int files;               /* bits of the files; states are in two of them                      */
    const char *end;
    double factor, offset;
} piece;

static void change_tensor(const piece *p, const safetensor *t)
{
    size_t size = strlen(t->name), end = strlen(p->end);

    if (size < end || strcmp(t->name + size - end, p->end) != 0)
        return;
    for (int64_t i = 0; i < t->count; i++) {
        if (t->type == SAFETENSORS_I64)
            ((int64_t *)t->data)[i] += (int64_t)p->offset;
        else if (t->type == SAFETENSORS_F64)
            ((double *)t->data)[i] += p->offset;
        else
            ((float *)t->data)[i] = (float)(((float *)t->data)[i] * p->factor + p->offset);
    }
}

/* Write a run's newest checkpoint again, with one piece changed. */
static void spoil_checkpoint(const char *run, const piece *p)
{
    static const char *pairs[512][2];
    static safetensor items[4][256];
    pons_error err = PONS_ERROR_INIT;
    char path[1024], folder[256], *checkpoint = NULL;
    safetensors *file[4];
    checkpoint_file files[4];

    snprintf(folder, sizeof folder, "%s/runs/%s/checkpoints", root, run);
    ck_assert_int_eq(checkpoint_newest(folder, NULL, &checkpoint, &err), PONS_OK);
    for (int f = 0; f < 4; f++) {
        int pair = 0;
        snprintf(path, sizeof path, "%s/%s", checkpoint, file_names[f]);
        ck_assert_int_eq(safetensors_open(path, &file[f], &err), PONS_OK);
        files[f] = (checkpoint_file){ file_names[f], { .count = safetensors_count(file[f]),
                                                       .item = items[f] } };
        for (int i = 0; i < files[f].content.count; i++) {
            items[f][i] = *safetensors_item(file[f], i);
            if (p->files >> f & 1)
                change_tensor(p, &items[f][i]);
        }
        while (f == 3 && safetensors_metadata_at(file[f], pair, &pairs[pair][0], &pairs[pair][1]))
            pair++;
        files[f].content.metadata_count = pair;
        files[f].content.metadata = (const char *const (*)[2])pairs;
    }
    const checkpoint_list content = { .file_count = 4, .file = files };
    ck_assert_int_eq(checkpoint_write(folder, step_of_name(strrchr(checkpoint, '/')), &content,
                                      &err),
                     PONS_OK);
    for (int f = 0; f < 4; f++)
        safetensors_close(file[f]);
    free(checkpoint);
}

static const piece pieces[] = {
    { MODEL, "conv.weight", 1.001, 0 },
    { MODEL | AVERAGES, "running_mean", 0, 0 },
    { MODEL | AVERAGES, "running_var", 0, 1 },
    { OPTIMIZER, ".m", 0, 0 },
    { OPTIMIZER, ".v", 1.001, 0 },
    { AVERAGES, "conv.weight", 1.001, 0 },
    { TRAINER, "step", 0, -1 },    /* position in the epoch order and in the schedule             */
    { TRAINER, "applied", 0, -1 }, /* number of updates                                           */
    { TRAINER, "best", 0, 2 },     /* score that no later validation exceeds                      */
};

/* The rewritten checkpoint has no facts in its manifest, so the run is not checked against them. */
static int train_spoilt_run(const char *name, int stop)
{
    char set[64], alarm[32];

    snprintf(set, sizeof set, "experiment.name=%s", name);
    snprintf(alarm, sizeof alarm, "step %d stop", stop);
    setenv("CHECK_ALARM", alarm, 1);
    int code = PONS("train", "e.ini", "--set", set, "--set", "log.sinks=alarm");
    unsetenv("CHECK_ALARM");
    return code;
}

START_TEST(every_piece_of_a_checkpoint_is_needed)
{
    static const piece none = { TRAINER, "step", 1, 0 };

    make_run();
    ck_assert_int_eq(train_spoilt_run("whole", 0), 0);
    ck_assert_int_eq(train_spoilt_run("half", 10), 75);
    for (int i = -1; i < (int)(sizeof pieces / sizeof pieces[0]); i++) {
        shell("cp -r runs/half runs/run");
        spoil_checkpoint("run", i < 0 ? &none : &pieces[i]);
        ck_assert_int_eq(train_spoilt_run("run", 0), 0);
        bool same = same_runs("whole", "run", TENSOR_FILES);
        ck_assert_msg(same == (i < 0), "%s", i < 0 ? "nothing was changed" : pieces[i].end);
        remove_run("run");
    }
    remove_root();
}
END_TEST

/* ---- damaged checkpoints --------------------------------------------------------------------- */

/* Shell commands in the folder of checkpoints. N is the newest checkpoint, O the one before. */
static const char *const damages[] = {
    "rm $N/model.safetensors", "rm $N/manifest.json", ": >$N/manifest.json",
    ": >$N/optimizer.safetensors", "truncate -s 100 $N/ema.safetensors",
    "truncate -s -1 $N/trainer.safetensors", "truncate -s -1 $N/manifest.json",
    "printf x >>$N/model.safetensors", "printf x >>$N/manifest.json",
    "cp $O/model.safetensors $N/", "cp $O/manifest.json $N/",
    "cp $N/model.safetensors $N/ema.safetensors",
    "rm -r $N; mkdir $N", "rm -r $N; : >$N", "rm $N/model.safetensors; mkdir $N/model.safetensors",
    "rm $N/manifest.json; ln -s nowhere $N/manifest.json", "rm -r $N; ln -s nowhere $N",
    "dd if=/dev/zero of=$N/optimizer.safetensors bs=512 seek=2 count=1 conv=notrunc 2>/dev/null",
    "sed -i 's/\"step\":[0-9]*/\"step\":7/' $N/manifest.json", "mv $N $N.part",
    "printf 'step-99999999\\n' >last", ": >last", "rm last best",
};

START_TEST(a_damaged_checkpoint_is_skipped_without_changing_the_run)
{
    char command[1024];

    make_run();
    ck_assert_int_eq(train_split(&variants[0], "whole", splits[0], 0), 0);
    ck_assert_int_eq(train_split(&variants[0], "half", splits[0], 24), 75);
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        snprintf(command, sizeof command, "cp -r %s/runs/half %s/runs/run; cd "
                 "%s/runs/run/checkpoints; N=step-00000024 O=step-00000023; %s", root, root, root,
                 damages[i]);
        ck_assert_msg(system(command) == 0, "%s", damages[i]);
        ck_assert_msg(train_split(&variants[0], "run", splits[0], 0) == 0, "%s: %s", damages[i],
                      root_text("said"));
        bool passed_over = strstr(root_text("said"), "going on after step 23,") != NULL;
        bool told = strstr(root_text("said"), "trying another checkpoint") != NULL;
        bool gone = strncmp(damages[i], "mv", 2) == 0, mark = strstr(damages[i], "last") != NULL;
        ck_assert_msg(passed_over == !mark && told == (!mark && !gone), "%s: %s", damages[i],
                      root_text("said"));
        ck_assert_msg(same_runs("whole", "run", TENSOR_FILES), "%s", damages[i]);
        remove_run("run");
    }
    remove_root();
}
END_TEST

/* ---- repeated runs --------------------------------------------------------------------------- */

START_TEST(runs_with_equal_kernel_threads_are_equal)
{
    static const char *const loaders[] = { "data.loader_threads=0", "data.loader_threads=1",
                                           "data.loader_threads=4" };
    const char *threads = _i == 0 ? "distribute.threads=1" : "distribute.threads=2";

    make_run();
    EXPECT(0, NULL, "train", "e.ini", "--set", threads, "--set", "experiment.name=whole");
    for (int i = 0; i < soak_times(3, 20); i++) {
        EXPECT(0, NULL, "train", "e.ini", "--set", threads, "--set", loaders[i % 3]);
        ck_assert(same_runs("whole", "run", TENSOR_FILES));
        remove_run("run");
    }
    EXPECT(0, NULL, "train", "e.ini", "--set", threads, "--set", "experiment.seed=1");
    ck_assert(!same_runs("whole", "run", TENSOR_FILES));
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("stops");

    tcase_add_loop_test(c, a_run_stopped_after_any_step_continues_to_the_same_bits, 0,
                        2 * PLACES);
    tcase_add_loop_test(c, a_run_stopped_after_every_step_continues_to_the_same_bits, 0, PLACES);
    tcase_add_test(c, every_piece_of_a_checkpoint_is_needed);
    tcase_add_test(c, a_damaged_checkpoint_is_skipped_without_changing_the_run);
    tcase_add_loop_test(c, runs_with_equal_kernel_threads_are_equal, 0, 2);
    return suite_run();
}
