/*
 * check_resume.c - the behaviour of 'pons train': repeated, killed and continued, interrupted,
 * refused and renamed runs. Every run is a process of its own.
 */
#include <config.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/json.h"
#include "base/hash/sha256.h"
#include "checkpoint/checkpoint.h"
#include "data/volume/volume.h"

#include "data/nifti/nifti_write.h"
#include "support/process/process_state.h"
#include "support/run/run_pons.h"
#include "support/suite.h"

#include <math.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

/* ---- a small dataset and its experiment ------------------------------------------------------ */

static void write_case(int number)
{
    const int64_t extent[3] = { 20, 18, 22 };
    pons_error err = PONS_ERROR_INIT;
    volume image, label;
    char path[128];
    uint32_t noise = (uint32_t)number + 1;

    memset(&image, 0, sizeof image);
    memset(&label, 0, sizeof label);
    ck_assert_int_eq(pons_volume_init(&image, PONS_F32, 1, extent, &err), PONS_OK);
    ck_assert_int_eq(pons_volume_init(&label, PONS_I32, 1, extent, &err), PONS_OK);
    for (int64_t n = 0; n < pons_volume_count(&image); n++) {
        int64_t i = n / 22 / 18 - 8 - number % 3, j = n / 22 % 18 - 9, k = n % 22 - 9 - number % 2;
        noise = noise * 1664525u + 1013904223u;
        bool inside = i * i + j * j + k * k < 36;
        ((int32_t *)label.voxels)[n] = inside;
        ((float *)image.voxels)[n] = (inside ? 1.0f : 0.0f) + (float)(noise >> 8) * 0x1p-25f;
    }
    snprintf(path, sizeof path, "%s/images/c%d.nii.gz", root, number);
    ck_assert_msg(nifti_write(path, &image, NULL, &err) == PONS_OK, "%s", err.text);
    snprintf(path, sizeof path, "%s/labels/c%d.nii.gz", root, number);
    ck_assert_msg(nifti_write(path, &label, NULL, &err) == PONS_OK, "%s", err.text);
    pons_volume_clear(&image);
    pons_volume_clear(&label);
}

static const char ini[] =
    "[experiment]\nname = first\n"
    "[data]\nimage = images/*.nii.gz\nlabel = labels/*.nii.gz\nlabels = background:0 ball:1\n"
    "validation = last:1\nloader_threads = 1\n"
    "[preprocess]\nsteps = normalize\n"
    "[patch]\nextent = 8 8 8\nper_case = 2\nsampling = balanced\n"
    "[augment]\nsteps = flip rotate90 scale_intensity shift_intensity gaussian_noise\n"
    "[augment.flip]\naxes = 0 1 2\nprobability = 0.5\n"
    "[augment.rotate90]\nprobability = 0.5\n"
    "[augment.scale_intensity]\nprobability = 0.5\nfactors = 0.1\n"
    "[augment.shift_intensity]\nprobability = 0.5\noffsets = 0.1\n"
    "[augment.gaussian_noise]\nprobability = 0.5\n"
    "[model]\nplugin = unet\nchannels = 4 8\nstrides = 2\nnum_res_units = 1\nnorm = batch\n"
    "dropout = 0.2\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\nlr = 1e-2\n"
    "[schedule]\nplugin = cosine\n"
    "[train]\nsteps = 40\nbatch = 1\naccumulate = 4\nprecision = fp32\nema_decay = 0.9\n"
    "[distribute]\nthreads = 2\n";

static void make_experiment(void)
{
    make_root();
    ck_assert_int_eq(mkdir(in_root("images"), 0777), 0);
    ck_assert_int_eq(mkdir(in_root("labels"), 0777), 0);
    for (int i = 0; i < 4; i++)
        write_case(i);
    write_text("e.ini", ini);
}

/* ---- processes ------------------------------------------------------------------------------- */

#define TRAIN(...) PONS("train", "e.ini", __VA_ARGS__)

static void expect_ran(int status, const char *phrase)
{
    ck_assert_msg(phrase == NULL ? status == 0 : strstr(root_text("said"), phrase) != NULL,
                  "status %d, said: %s", status, root_text("said"));
}

static bool file_exists_in_root(const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", root, name);
    return access(path, F_OK) == 0;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Hash of the tensors in a run's last checkpoint. */
static const char *last_hash(const char *run, char hex[65])
{
    static const char *const files[] = { "model", "optimizer", "ema" };
    pons_error err = PONS_ERROR_INIT;
    char folder[256], path[512], one[65], *checkpoint = NULL;
    sha256 hash;

    snprintf(folder, sizeof folder, "%s/runs/%s/checkpoints", root, run);
    ck_assert_msg(checkpoint_newest(folder, NULL, &checkpoint, &err) == PONS_OK, "%s", err.text);
    ck_assert_ptr_nonnull(checkpoint);
    sha256_init(&hash);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s.safetensors", checkpoint, files[i]);
        ck_assert_msg(sha256_file(path, one, &err) == PONS_OK, "%s", err.text);
        sha256_add(&hash, one, 64);
    }
    sha256_finish(&hash, hex);
    free(checkpoint);
    return hex;
}

static bool is_timing(const char *key)
{
    return strcmp(key, "seconds") == 0 || strcmp(key, "data_seconds") == 0
        || strcmp(key, "memory") == 0;
}

static void add_value(FILE *to, json_t *v)
{
    const char *key;
    json_t *m;

    json_object_foreach(v, key, m) {
        if (is_timing(key))
            continue;
        fprintf(to, "%s=", key);
        add_value(to, m);
    }
    if (json_is_string(v))
        fprintf(to, "%s ", json_string_value(v));
    else if (json_is_number(v))
        fprintf(to, "%.17g ", json_number_value(v));
    else if (!json_is_object(v))
        fputs("null ", to);
}

/* The text of metrics.jsonl without timings; the caller frees it. */
static char *metrics_of(const char *run)
{
    char path[256], *text = NULL, *out = NULL;
    size_t size = 0, out_size = 0;
    pons_error err = PONS_ERROR_INIT;
    FILE *to = open_memstream(&out, &out_size);

    snprintf(path, sizeof path, "%s/runs/%s/metrics.jsonl", root, run);
    ck_assert_int_eq(file_read(path, 1 << 24, &text, &size, PONS_DATA, &err), PONS_OK);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *d = NULL;
        ck_assert_msg(json_parse(line, strlen(line), path, PONS_DATA, &d, &err) == PONS_OK, "%s",
                      err.text);
        add_value(to, d);
        fputc('\n', to);
        json_decref(d);
    }
    fclose(to);
    free(text);
    return out;
}

static void same_results(const char *a, const char *b)
{
    char x[65], y[65];
    char *m = metrics_of(a), *n = metrics_of(b);

    ck_assert_str_eq(last_hash(a, x), last_hash(b, y));
    ck_assert_str_eq(m, n);
    free(m);
    free(n);
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(two_runs_and_any_number_of_loader_threads_give_equal_bits)
{
    expect_ran(TRAIN("--set", "experiment.name=a"), NULL);
    for (int threads = 0; threads <= 4; threads += 2) {
        char name[64], loaders[64];
        snprintf(name, sizeof name, "experiment.name=b%d", threads);
        snprintf(loaders, sizeof loaders, "data.loader_threads=%d", threads);
        expect_ran(TRAIN("--set", name, "--set", loaders), NULL);
        same_results("a", strchr(name, '=') + 1);
    }
}
END_TEST

/* Wait until a run has saved its first checkpoint, with most steps still to come. */
static void wait_for_checkpoint(const char *run)
{
    char name[64];

    snprintf(name, sizeof name, "runs/%s/checkpoints/last", run);
    for (int i = 0; i < 20000 && !file_exists_in_root(name); i++)
        usleep(1000);
}

START_TEST(killed_run_goes_on_to_the_same_bits)
{
    static const char *const loaders[] = { "data.loader_threads=0", "data.loader_threads=1",
                                           "data.loader_threads=4" };
    unsigned state = (unsigned)getpid();
    int kills = 0;

    expect_ran(TRAIN("--set", "experiment.name=a"), NULL);
    for (int round = 0; round < 3; round++) {
        char name[64];
        int status = 1;
        snprintf(name, sizeof name, "experiment.name=k%d", round);
        for (int attempt = 0; attempt < 200 && status != 0; attempt++) {
            pid_t child = START("train", "e.ini", "--set", name, "--set", loaders[round]);
            state = state * 1664525u + 1013904223u;
            if (attempt == 0)
                wait_for_checkpoint(strchr(name, '=') + 1);
            else
                usleep(20000 + (state >> 12) % 200000);
            if (attempt < 6)
                kill(child, SIGKILL);
            status = process_finish(child);
            kills += status == 1000 + SIGKILL;
        }
        ck_assert_msg(status == 0, "%s", root_text("said"));
        same_results("a", strchr(name, '=') + 1);
    }
    ck_assert_int_gt(kills, 0);
}
END_TEST

START_TEST(interrupted_run_exits_75_and_goes_on_to_the_same_bits)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGUSR1 };
    int interrupted = 0;

    expect_ran(TRAIN("--set", "experiment.name=a"), NULL);
    for (int round = 0; round < 3; round++) {
        char name[64];
        snprintf(name, sizeof name, "experiment.name=s%d", round);
        for (int attempt = 0; attempt < 3; attempt++) {
            pid_t child = START("train", "e.ini", "--set", name);
            if (attempt == 0)
                wait_for_checkpoint(strchr(name, '=') + 1);
            else
                usleep(80000 + 40000 * (unsigned)attempt);
            kill(child, signals[round]);
            int status = process_finish(child);
            /* A slow start may receive the signal before its handler exists. */
            ck_assert_msg(status == 75 || status == 0 || status == 1000 + signals[round],
                          "status %d: %s", status, root_text("said"));
            interrupted += status == 75;
        }
        expect_ran(TRAIN("--set", name), NULL);
        same_results("a", strchr(name, '=') + 1);
    }
    ck_assert_int_gt(interrupted, 0);
}
END_TEST

#define BIG_STEPS "--set", "patch.extent=48 48 48", "--set", "train.checkpoint_every=0", \
                  "--set", "train.validate_every=0"

/* Seconds of a run's shortest step; the others share the processor. */
static double step_seconds(const char *run)
{
    static const char key[] = "\"seconds\":";
    double least = INFINITY;
    char name[64];

    snprintf(name, sizeof name, "runs/%s/metrics.jsonl", run);
    for (const char *at = root_text(name); (at = strstr(at, key)) != NULL; at += sizeof key)
        least = fmin(least, strtod(at + sizeof key - 1, NULL));
    return least;
}

/*
 * Wait until the first step has its record and the second one has computed for 'work' seconds. A
 * process that has only written the record would see the signal before that step.
 */
static void wait_for_second_step(pid_t child, const char *run, double work)
{
    char name[64];

    snprintf(name, sizeof name, "runs/%s/metrics.jsonl", run);
    for (int i = 0; i < 60000 && (!file_exists_in_root(name) || strchr(root_text(name),
                                                                       '\n') == NULL); i++)
        usleep(1000);
    process_wait_work(child, work);
}

/* On a busy machine the signal may fall between two steps, or the clock may be read too late. */
enum { INTERRUPTED_ROUNDS = 5 };

/* The interrupted run has given up a step and saved the one before. */
static bool has_given_up(const char *run)
{
    const char *said = strstr(root_text("said"), "interrupted; step ");
    char name[64], line[96];
    int given_up, saved;

    if (said == NULL) {
        ck_assert_msg(strstr(root_text("said"), "interrupted after step ") != NULL
                      || strstr(root_text("said"), "error: interrupted twice") != NULL, "%s",
                      root_text("said"));
        return false;
    }
    ck_assert_int_eq(sscanf(said, "interrupted; step %d was given up, step %d", &given_up, &saved),
                     2);
    ck_assert_int_eq(saved, given_up - 1);
    snprintf(line, sizeof line, "interrupted; step %d was given up, step %d is saved\n", given_up,
             saved);
    ck_assert_str_eq(said, line);
    snprintf(name, sizeof name, "runs/%s/checkpoints/last", run);
    snprintf(line, sizeof line, "step-%08d\n", saved);
    ck_assert_str_eq(root_text(name), line);
    return true;
}

static void ask_once(pid_t child)
{
    kill(child, SIGTERM);
}

static void ask_twice(pid_t child)
{
    kill(child, SIGTERM);
    kill(child, SIGINT);
}

/* Interrupt one run in its second step. True: it has given up that step or a later one. */
static bool gives_up(int round, double grace, double work, void (*ask)(pid_t child))
{
    char run[32], name[64], grace_word[64];

    snprintf(run, sizeof run, "run-%d", round);
    snprintf(name, sizeof name, "experiment.name=%s", run);
    snprintf(grace_word, sizeof grace_word, "train.grace_s=%.4f", grace);
    pid_t child = START("train", "e.ini", BIG_STEPS, "--set", grace_word, "--set", name);
    wait_for_second_step(child, run, work);
    double begin = seconds_now();
    ask(child);
    ck_assert_int_eq(process_finish(child), 75);
    if (!has_given_up(run))
        return false;
    /* The run waits for at least half of the grace; the checkpoint may take the rest. */
    ck_assert(ask != ask_once || seconds_now() - begin >= grace / 2 - 0.001);
    return true;
}

/*
 * The grace is an eighth of the measured step. A step that has just begun cannot end in it, not
 * even on two threads.
 */
START_TEST(step_longer_than_the_grace_is_given_up)
{
    int round = 0;

    expect_ran(TRAIN(BIG_STEPS, "--set", "experiment.name=measured", "--set", "train.steps=3"),
               NULL);
    double seconds = step_seconds("measured") / 8;
    ck_assert_double_gt(seconds, 0.005);
    while (!gives_up(round, seconds, seconds, ask_once))
        ck_assert_int_lt(++round, INTERRUPTED_ROUNDS);
}
END_TEST

START_TEST(second_signal_ends_the_grace)
{
    int round = 0;

    while (!gives_up(round, 600, 0.01, ask_twice))
        ck_assert_int_lt(++round, INTERRUPTED_ROUNDS);
}
END_TEST

START_TEST(finished_run_says_so_and_touches_nothing)
{
    expect_ran(TRAIN("--set", "train.steps=2"), NULL);
    static const char list[] = "find runs -type f -exec sha256sum {} + -exec stat -c '%n %Y' {} + "
                               "| sort";
    shell("%s >before", list);
    sleep(1);
    expect_ran(TRAIN("--set", "train.steps=2"), "is finished");
    shell("%s | cmp - before", list);
    /* A run may get more steps; another value of a fixed option is refused with both values. */
    ck_assert_int_eq(TRAIN("--set", "train.steps=3", "--set", "optimizer.lr=0.5"), 3);
    expect_ran(3, "[optimizer] lr is '0.5'");
    expect_ran(3, "'1e-2'");
    expect_ran(TRAIN("--set", "train.steps=3", "--set", "optimizer.lr=0.01"),
               "going on after step 2");
    ck_assert_int_eq(TRAIN("--set", "train.steps=3", "--set", "train.accumulate=2"), 3);
    expect_ran(3, "4");
    /* The earlier run stays with --fresh. */
    expect_ran(TRAIN("--fresh", "--set", "train.steps=1", "--set", "optimizer.lr=0.5"), "first.1");
    ck_assert(file_exists_in_root("runs/first.1/checkpoints/last"));
    ck_assert(file_exists_in_root("runs/first/checkpoints/step-00000001"));
}
END_TEST

START_TEST(resolved_file_repeats_the_run)
{
    expect_ran(TRAIN("--set", "experiment.name=a", "--set", "train.steps=3"), NULL);
    shell("cp runs/a/resolved.ini e.ini");
    expect_ran(TRAIN("--set", "experiment.name=b"), NULL);
    same_results("a", "b");
}
END_TEST

/*
 * Elsewhere ' ;' begins a comment; relative paths, defaults and the origin all contain this
 * folder.
 */
START_TEST(resolved_file_of_a_folder_with_a_semicolon_repeats_the_run)
{
    shell("mkdir -p 'o \"d ;d/old' elsewhere && mv images labels e.ini 'o \"d ;d/old' && ln -s 'o "
          "\"d ;d/old/runs' runs");
    expect_ran(PONS("train", "o \"d ;d/old/e.ini", "--set", "experiment.name=a", "--set",
                    "train.steps=2"), NULL);
    shell("mv runs/a/resolved.ini elsewhere/again.ini && ! grep -F \"$PWD\" elsewhere/again.ini | "
          "grep -v 'o \"*d ;d/old'");
    expect_ran(PONS("train", "elsewhere/again.ini", "--set", "experiment.name=b"), NULL);
    same_results("a", "b");
    ck_assert_int_eq(PONS("train", "elsewhere/again.ini", "--set", "data.label=x ;y"), 2);
    expect_ran(2, "in double quotes");
    ck_assert_int_eq(PONS("train", "elsewhere/again.ini", "--set", "data.label=\"x ;y/*\""), 4);
    expect_ran(4, "x ;y/*");
    shell("mv 'o \"d ;d' \"$(printf 'o\\nd')\"");
    ck_assert_int_eq(PONS("train", "o\nd/old/e.ini"), 3);
    expect_ran(3, "[experiment] output: the path has the control character 0x0a");
}
END_TEST

/*
 * Install another file of the optimizer ahead of the built one: the same code with one more byte.
 */
static void change_optimizer(void)
{
    char command[1024];

    snprintf(command, sizeof command, "set -e; mkdir -p %s/plugins/optimizer; "
             "f=%s/plugins/optimizer/adam.so; cat stage/optimizer/adam.so >$f; printf x >>$f", root,
             root);
    ck_assert_int_eq(system(command), 0);
    search_first(in_root("plugins"));
}

static void expect_fact(const json_t *facts, const char *name, const char *phrase)
{
    const char *fact = json_string_value(json_object_get(facts, name));

    ck_assert_msg(fact != NULL, "no fact '%s'", name);
    ck_assert_msg(strstr(fact, phrase) != NULL, "%s is '%s'", name, fact);
}

START_TEST(manifest_says_what_made_the_checkpoint_and_a_change_is_told)
{
    static const char told[] = "the run goes on in another environment than it began in; "
                               "results may differ: plugin optimizer was 'adam ";
    pons_error err = PONS_ERROR_INIT;
    json_t *manifest;
    char hash[65];

    expect_ran(TRAIN("--set", "train.steps=1"), NULL);
    ck_assert_int_eq(checkpoint_manifest(in_root("runs/first/checkpoints/step-00000001"), &manifest,
                                         &err), PONS_OK);
    const json_t *facts = json_object_get(manifest, CHECKPOINT_FACTS);
    ck_assert_int_eq(sha256_file("stage/optimizer/adam.so", hash, &err), PONS_OK);
    expect_fact(facts, "plugin optimizer", hash);
    expect_fact(facts, "plugin model", "unet ");
    expect_fact(facts, "plugin loss", "dice_ce ");
    expect_fact(facts, "plugin schedule", "cosine ");
    expect_fact(facts, "plugin device", "cpu ");
    expect_fact(facts, "plugin preprocess.normalize", "normalize ");
    expect_fact(facts, "plugin augment.flip", "flip ");
    expect_fact(facts, "pons", PACKAGE_VERSION);
    expect_fact(facts, "libraries", "glibc");
    expect_fact(facts, "processor features", "");
    expect_fact(facts, "kernel threads", "2");
    json_decref(manifest);
    expect_ran(TRAIN("--set", "train.steps=2"), NULL);
    ck_assert_ptr_null(strstr(root_text("said"), "something else"));
    expect_ran(TRAIN("--set", "train.steps=1", "--set", "experiment.name=exact", "--set",
                     "experiment.deterministic=yes"), NULL);
    change_optimizer();
    expect_ran(TRAIN("--set", "train.steps=3"), told);
    ck_assert_int_eq(TRAIN("--set", "train.steps=3", "--set", "experiment.name=exact", "--set",
                           "experiment.deterministic=yes"), 3);
    expect_ran(3, "deterministic = yes cannot be kept: plugin optimizer was 'adam ");
}
END_TEST

#define MORE_STEPS "--set", "train.steps=4"

/* c3 is the last case, which is held out for validation. */
START_TEST(a_run_continues_only_with_its_original_cases)
{
    expect_ran(TRAIN("--set", "train.steps=2"), NULL);
    write_case(4);
    ck_assert_int_eq(TRAIN(MORE_STEPS), 3);
    expect_ran(3, "case 'c3' is trained on, but the run to be continued validates it; found 4 "
                  "cases to train on and 1 to validate, expected 3 and 1\nhint: --fresh");
    ck_assert_int_eq(TRAIN(MORE_STEPS, "--set", "experiment.name=other", "--resume", "runs/first"),
                     3);
    remove(in_root("images/c4.nii.gz"));
    remove(in_root("labels/c4.nii.gz"));
    write_case(10);
    ck_assert_int_eq(TRAIN(MORE_STEPS), 3);
    expect_ran(3, "case 'c10' is trained on, but the run to be continued does not know it");
    remove(in_root("images/c10.nii.gz"));
    remove(in_root("labels/c10.nii.gz"));
    rename(in_root("images/c0.nii.gz"), in_root("c0.nii.gz"));
    rename(in_root("labels/c0.nii.gz"), in_root("c0_label.nii.gz"));
    ck_assert_int_eq(TRAIN(MORE_STEPS), 3);
    expect_ran(3, "case 'c0' is not there, but the run to be continued trains on it");
    rename(in_root("c0.nii.gz"), in_root("images/c0.nii.gz"));
    rename(in_root("c0_label.nii.gz"), in_root("labels/c0.nii.gz"));
    expect_ran(TRAIN("--set", "train.steps=3"), "going on after step 2");
    ck_assert_ptr_null(strstr(root_text("said"), "has changed"));
    rename(in_root("images/c2.nii.gz"), in_root("images/c1.nii.gz"));
    write_case(2);
    expect_ran(TRAIN(MORE_STEPS), "case 'c1' has changed: its files do not hold what they held");
}
END_TEST

#define PLAIN(FOLDER, STEPS) "--set", "data.image=" FOLDER "/*.nii", "--set", "train.steps=" STEPS

/* The last bits of a case's last voxel change; size and time of the file stay. */
START_TEST(a_case_with_changed_content_is_reported)
{
    shell("mkdir plain && for c in 0 1 2 3; do gunzip -c images/c$c.nii.gz >plain/c$c.nii || "
          "exit 1; done");
    expect_ran(TRAIN(PLAIN("plain", "1")), NULL);
    shell("cp -r plain moved && touch moved/*");
    expect_ran(TRAIN(PLAIN("moved", "2")), "going on after step 1");
    ck_assert_ptr_null(strstr(root_text("said"), "has changed"));
    shell("f=plain/c1.nii && touch -r $f time && printf '\\125' | dd of=$f bs=1 conv=notrunc "
          "seek=$(($(stat -c %%s $f) - 4)) 2>/dev/null && touch -r time $f");
    expect_ran(TRAIN(PLAIN("plain", "3")), "case 'c1' has changed");
    ck_assert_ptr_nonnull(strstr(root_text("runs/first/log.txt"), "case 'c1' has changed"));
    expect_ran(TRAIN(PLAIN("plain", "4")), "going on after step 3");
    ck_assert_ptr_null(strstr(root_text("said"), "has changed"));
}
END_TEST

#define AUTO "--set", "train.precision=auto"

/* The checkpoint appears to come from a GPU without bf16. */
START_TEST(a_checkpoint_of_an_unsupported_precision_is_refused)
{
    expect_ran(TRAIN(AUTO, "--set", "train.steps=1"), NULL);
    shell("cd runs/first/checkpoints/step-00000001 && f=trainer.safetensors && "
          "old=$(sha256sum <$f | cut -c 1-64) && grep -aq '\"precision\":\"' $f && "
          "LC_ALL=C sed -i 's/\"precision\":\"[a-z0-9]*\"/\"precision\":\"fp16\"/' $f && "
          "new=$(sha256sum <$f | cut -c 1-64) && head -c -78 manifest.json >text && "
          "sed -i s/$old/$new/ text && sum=$(sha256sum <text | cut -c 1-64) && "
          "{ cat text; printf ',\"sha256\":\"%%s\"}\\n' $sum; } >manifest.json && rm text");
    ck_assert_int_eq(TRAIN(AUTO, "--set", "train.steps=2"), 3);
    expect_ran(3,
               "[train] precision fp16, the checkpoint's, does not exist on a cpu\nhint: --fresh");
}
END_TEST

/* The folders hold foreign files, or a run without its checkpoints. */
START_TEST(existing_files_in_a_run_folder_are_never_overwritten)
{
    static const char *const names[] = { "metrics.jsonl", "metrics.csv", "resolved.ini" };
    char path[64];

    ck_assert_int_eq(mkdir(in_root("runs"), 0777), 0);
    ck_assert_int_eq(mkdir(in_root("runs/first"), 0777), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "runs/first/%s", names[i]);
        write_text(path, "mine\n");
        expect_ran(TRAIN("--set", "train.steps=1"), "but no checkpoint to go on from");
        snprintf(path, sizeof path, "runs/first.%d/%s", i + 1, names[i]);
        ck_assert_str_eq(root_text(path), "mine\n");
        ck_assert_int_eq(rename(in_root("runs/first"), in_root(names[i])), 0);
        ck_assert_int_eq(mkdir(in_root("runs/first"), 0777), 0);
    }
    expect_ran(TRAIN("--set", "train.steps=1"), NULL);
    ck_assert_msg(!file_exists_in_root("runs/first.4"), "an empty folder was put aside");
    ck_assert_int_eq(rename(in_root("runs/first/checkpoints/step-00000001"), in_root("away")), 0);
    expect_ran(TRAIN("--set", "train.steps=1"), "/last' names step 1, which is not there");
    ck_assert(file_exists_in_root("runs/first.4/metrics.jsonl"));
    /* A run that was killed before its first checkpoint starts again in its folder. */
    ck_assert_int_eq(rename(in_root("runs/first/checkpoints"), in_root("kept")), 0);
    expect_ran(TRAIN("--set", "train.steps=1"), NULL);
    ck_assert_msg(!file_exists_in_root("runs/first.5"), "the beginning of a run was put aside");
}
END_TEST

START_TEST(a_run_written_by_another_process_is_not_read)
{
    expect_ran(TRAIN("--set", "train.steps=1"), NULL);
    ck_assert_int_eq(rename(in_root("runs/first/checkpoints/step-00000001/model.safetensors"),
                            in_root("model.safetensors")), 0);
    int folder = open(in_root("runs/first"), O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(flock(folder, LOCK_EX | LOCK_NB), 0);
    ck_assert_int_eq(TRAIN("--set", "train.steps=2"), 3);
    expect_ran(3, "another process is training in");
    ck_assert_ptr_null(strstr(root_text("said"), "model.safetensors"));
    ck_assert_int_eq(TRAIN("--fresh"), 3);
    close(folder);
}
END_TEST

/* The lock of a killed process exists for a moment longer. */
START_TEST(a_run_continues_once_its_ending_process_has_gone)
{
    expect_ran(TRAIN("--set", "train.steps=1"), NULL);
    int folder = open(in_root("runs/first"), O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(flock(folder, LOCK_EX | LOCK_NB), 0);
    pid_t ending = fork();
    if (ending == 0) {
        usleep(300000);
        _exit(0);
    }
    close(folder);
    expect_ran(TRAIN("--set", "train.steps=2"), NULL);
    ck_assert_int_eq(waitpid(ending, NULL, 0), ending);
}
END_TEST

START_TEST(debug_is_a_short_run_with_checks_in_a_folder_of_its_own)
{
    expect_ran(TRAIN("--debug"), "step 4/4");
    ck_assert(file_exists_in_root("runs/first-debug/checkpoints/step-00000004"));
    ck_assert(!file_exists_in_root("runs/first"));
    expect_ran(TRAIN("--debug"), "is finished (step 4)");
    expect_ran(TRAIN("--debug", "--fresh"), "first-debug.1");
    expect_ran(TRAIN("--set", "train.steps=5"), "step 5/5");
    ck_assert_ptr_null(strstr(root_text("said"), "going on"));
}
END_TEST

START_TEST(debug_run_is_not_continued_without_debug)
{
    expect_ran(TRAIN("--debug"), NULL);
    ck_assert_int_eq(TRAIN("--set", "experiment.name=first-debug"), 3);
    expect_ran(3, "this run is without --debug but the run to be continued is with --debug\n"
               "hint: --fresh");
    ck_assert_int_eq(TRAIN("--resume", "runs/first-debug"), 3);
    expect_ran(3, "in its place --set 'train.pretrained=/");
}
END_TEST

START_TEST(an_ignored_change_of_a_fixed_value_is_reported)
{
    expect_ran(TRAIN("--set", "train.steps=1"), NULL);
    expect_ran(TRAIN("--set", "train.steps=2"), NULL);
    ck_assert_ptr_null(strstr(root_text("said"), "is not taken"));
    expect_ran(TRAIN("--set", "train.steps=3", "--set", "distribute.threads=1"),
               "threads = 1 is not taken: the run goes on with 2");
    ck_assert_ptr_nonnull(strstr(root_text("runs/first/log.txt"), "threads = 1 is not taken"));
    expect_ran(TRAIN("--set", "train.steps=4", "--set", "train.pretrained=other.safetensors"),
               "other.safetensors' is not taken: ");
}
END_TEST

/* The validated steps as a text like "3 6 9". */
static const char *validated_steps(const char *run, char text[256])
{
    char name[64], *lines, *at;

    snprintf(name, sizeof name, "runs/%s/metrics.jsonl", run);
    lines = root_text(name);
    text[0] = '\0';
    while ((at = strstr(lines, "\"validation\",\"step\":")) != NULL) {
        lines = at + 20;
        sprintf(text + strlen(text), "%s%ld", text[0] != '\0' ? " " : "", strtol(lines, NULL, 10));
    }
    return text;
}

START_TEST(epochs_steps_and_patience_schedule_validation)
{
    char text[256];

    /*
     * With three training cases and four a step, epochs end in steps 1, 2, 3 (two at once), 4, ...
     */
    expect_ran(TRAIN("--set", "experiment.name=e", "--set", "train.steps=6"), NULL);
    ck_assert_str_eq(validated_steps("e", text), "1 2 3 4 5 6");
    expect_ran(TRAIN("--set", "experiment.name=s", "--set", "train.steps=6", "--set",
                     "train.validate_steps=4"), NULL);
    ck_assert_str_eq(validated_steps("s", text), "4");
    expect_ran(TRAIN("--set", "experiment.name=n", "--set", "train.steps=6", "--set",
                     "train.validate_every=0"), NULL);
    ck_assert_str_eq(validated_steps("n", text), "");
    /* The rate is too small to change a voxel, so that the first validation stays the best. */
    expect_ran(TRAIN("--set", "experiment.name=p", "--set", "train.early_stop=2", "--set",
                     "optimizer.lr=1e-12"), "training ends early");
    ck_assert_str_eq(validated_steps("p", text), "1 2 3");
    ck_assert(file_exists_in_root("runs/p/checkpoints/step-00000001")); /* the best */
    expect_ran(TRAIN("--set", "experiment.name=p", "--set", "train.early_stop=2", "--set",
                     "optimizer.lr=1e-12"), "is finished");
}
END_TEST

/* Two epochs of three cases, four a step: the second step takes two cases beyond them. */
START_TEST(no_step_counts_to_an_epoch_beyond_the_last)
{
    char text[sizeof ini + 16];
    const char *steps = strstr(ini, "steps = 40");

    snprintf(text, sizeof text, "%.*sepochs = 2%s", (int)(steps - ini), ini,
             steps + strlen("steps = 40"));
    write_text("e.ini", text);
    expect_ran(TRAIN("-q"), NULL);
    const char *lines = root_text("runs/first/metrics.jsonl");
    ck_assert_ptr_nonnull(strstr(lines, "\"step\":2,\"epoch\":2,"));
    ck_assert_ptr_null(strstr(lines, "\"epoch\":3"));
}
END_TEST

START_TEST(pretrained_weights_are_where_training_starts)
{
    char hash[65], other[65];

    expect_ran(TRAIN("--set", "experiment.name=a", "--set", "train.steps=1", "--set",
                     "train.validate_every=0"), NULL);
    expect_ran(TRAIN("--set", "experiment.name=b", "--set", "train.steps=1", "--set",
                     "train.validate_every=0", "--set", "optimizer.lr=1e-30", "--set",
                     "train.pretrained=runs/a/checkpoints/step-00000001/model.safetensors"), NULL);
    /* Running statistics change and weights do not: the slopes of both files are equal. */
    pons_error err = PONS_ERROR_INIT;
    safetensors *x = NULL, *y = NULL;
    ck_assert_int_eq(safetensors_open(in_root("runs/a/checkpoints/step-00000001/model.safetensors"),
                                      &x, &err), PONS_OK);
    ck_assert_int_eq(safetensors_open(in_root("runs/b/checkpoints/step-00000001/model.safetensors"),
                                      &y, &err), PONS_OK);
    int compared = 0;
    for (int i = 0; i < safetensors_count(x); i++) {
        const safetensor *t = safetensors_item(x, i), *u = safetensors_find(y, t->name);
        ck_assert_ptr_nonnull(u);
        if (strstr(t->name, "running") != NULL || strstr(t->name, "tracked") != NULL)
            continue;
        ck_assert_mem_eq(t->data, u->data, t->size);
        compared++;
    }
    ck_assert_int_gt(compared, 5);
    safetensors_close(x);
    safetensors_close(y);
    ck_assert_str_ne(last_hash("a", hash), last_hash("b", other));
    ck_assert_int_eq(TRAIN("--set", "experiment.name=c", "--set",
                           "train.pretrained=runs/a/checkpoints/step-00000001/model.safetensors",
                           "--set", "model.channels=4 16"), 3);
    expect_ran(3, "has shape [");
    ck_assert_msg(!file_exists_in_root("runs/c"), "a run that cannot begin left a folder");
    ck_assert_int_eq(TRAIN("--set", "experiment.name=c", "--set", "log.sinks=mlflw"), 3);
    ck_assert(!file_exists_in_root("runs/c/metrics.jsonl"));
}
END_TEST

START_TEST(gradient_that_is_not_finite_stops_or_skips)
{
    ck_assert_int_eq(TRAIN("--set", "experiment.name=a", "--set", "optimizer.lr=1e30"), 1);
    expect_ran(1, "the gradient is not finite; first tensor 'model.");
    expect_ran(1, "cases c");
    expect_ran(TRAIN("--set", "experiment.name=b", "--set", "optimizer.lr=1e30", "--set",
                     "train.nonfinite=skip"), "is skipped");
}
END_TEST

START_TEST(a_run_continues_from_another_run)
{
    expect_ran(TRAIN("--set", "experiment.name=a", "--set", "schedule.plugin=constant"), NULL);
    expect_ran(TRAIN("--set", "experiment.name=half", "--set", "train.steps=6", "--set",
                     "schedule.plugin=constant"), NULL);
    expect_ran(TRAIN("--set", "experiment.name=other", "--set", "schedule.plugin=constant",
                     "--resume", "runs/half"), "going on after step 6");
    char x[65], y[65];
    ck_assert_str_eq(last_hash("a", x), last_hash("other", y));
    ck_assert_int_eq(TRAIN("--set", "experiment.name=new", "--resume", "runs/none"), 3);
}
END_TEST

/* Tensors of the optimizer in a checkpoint of a run. */
static safetensors *optimizer_of(const char *run, int step)
{
    pons_error err = PONS_ERROR_INIT;
    safetensors *file = NULL;
    char path[256];

    snprintf(path, sizeof path, "%s/runs/%s/checkpoints/step-%08d/optimizer.safetensors", root, run,
             step);
    ck_assert_msg(safetensors_open(path, &file, &err) == PONS_OK, "%s", err.text);
    return file;
}

/* A loss of 0 leaves 0.9 of each first moment of Adam, whatever the rate. */
static void expect_kept_moments(const char *run, int step, const char *before, int step_before)
{
    safetensors *file = optimizer_of(run, step), *taken = optimizer_of(before, step_before);
    int compared = 0;

    for (int i = 0; i < safetensors_count(file); i++) {
        const safetensor *x = safetensors_item(file, i), *y = safetensors_find(taken, x->name);
        ck_assert_ptr_nonnull(y);
        if (strcmp(x->name + strlen(x->name) - 2, ".m") != 0)
            continue;
        for (size_t n = 0; n < x->size / sizeof(float); n++) {
            float a = ((const float *)x->data)[n], b = ((const float *)y->data)[n];
            ck_assert_float_eq(a, 0.9f * b);
            compared += b != 0;
        }
    }
    ck_assert_int_gt(compared, 100);
    safetensors_close(file);
    safetensors_close(taken);
}

#define RESUME_STEERED(...) \
    TRAIN("--set", "experiment.name=steered", "--resume", "runs/half", __VA_ARGS__)

START_TEST(a_run_continues_from_another_run_with_another_rate_and_loss)
{
    expect_ran(TRAIN("--set", "experiment.name=half", "--set", "train.steps=3", "--set",
                     "schedule.plugin=constant"), NULL);
    expect_ran(RESUME_STEERED("--set", "train.steps=4", "--set", "optimizer.lr=5e-3", "--set",
                              "schedule.plugin=poly", "--set", "schedule.power=2", "--set",
                              "loss.lambda_dice=0", "--set", "loss.lambda_ce=0", "--set",
                              "augment.flip.probability=0.25"),
               "going on after step 3");
    expect_ran(0, "differs from the run before: [optimizer] lr = 5e-3 (before: 1e-2)\n");
    expect_ran(0, "differs from the run before: [schedule] plugin = poly (before: constant)\n");
    expect_ran(0, "differs from the run before: [schedule] power = 2 (before: none)\n");
    expect_ran(0, "differs from the run before: [loss] lambda_ce = 0 (before: 1)\n");
    expect_ran(0, "differs from the run before: [augment.flip] probability = 0.25 (before: 0.5)");
    ck_assert_ptr_nonnull(strstr(root_text("runs/steered/log.txt"), "lr = 5e-3 (before: 1e-2)"));
    /* The fourth of four steps of a square: 5e-3 (1 - 3/4)^2. */
    ck_assert_ptr_nonnull(strstr(root_text("runs/steered/metrics.jsonl"), "\"lr\":0.0003125"));
    expect_kept_moments("steered", 4, "half", 3);
    /* The run of its own goes on with its own values, and changes none. */
    expect_ran(TRAIN("--set", "experiment.name=steered", "--set", "train.steps=5"),
               "[optimizer] lr is '1e-2' but the run to be continued has '5e-3'");
}
END_TEST

START_TEST(another_network_or_optimizer_does_not_continue_a_run)
{
    expect_ran(TRAIN("--set", "experiment.name=half", "--set", "train.steps=2"), NULL);
    shell("sed 's/^channels = 4 8/channels = 4 16/' e.ini >wide.ini");
    ck_assert_int_eq(PONS("train", "wide.ini", "--set", "experiment.name=steered", "--resume",
                          "runs/half"), 3);
    expect_ran(3, "wide.ini:32: [model] channels is '4 16' but the run to be continued has '4 8'");
    ck_assert_int_eq(RESUME_STEERED("--set", "optimizer.plugin=adamw"), 3);
    expect_ran(3, "--set: [optimizer] plugin is 'adamw' but the run to be continued has 'adam'");
    ck_assert_int_eq(RESUME_STEERED("--set", "optimizer.beta1=0.8"), 3);
    expect_ran(3, "hint: --resume may change [loss], [schedule], [augment] and [optimizer] lr; ");
    ck_assert_msg(!file_exists_in_root("runs/steered"), "a run that cannot begin left a folder");
}
END_TEST

/* Count the starts from the run and from its checkpoint that end with 'status'. */
static int starts_that_end(int status)
{
    static const char *const from[] = { "runs/half", "runs/half/checkpoints/step-00000002" };
    int count = 0;

    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "experiment.name=from%d-%d", i, status);
        count += TRAIN("--set", name, "--set", "train.steps=3", "--resume", from[i]) == status;
    }
    return count;
}

START_TEST(a_run_written_by_another_process_is_not_continued)
{
    expect_ran(TRAIN("--set", "experiment.name=half", "--set", "train.steps=2"), NULL);
    int folder = open(in_root("runs/half"), O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(flock(folder, LOCK_EX | LOCK_NB), 0);
    ck_assert_int_eq(starts_that_end(3), 2);
    expect_ran(3, "another process is training in");
    ck_assert_msg(!file_exists_in_root("runs/from0-3"), "a run that cannot begin left a folder");
    /* A shared lock admits other readers and refuses a writer. */
    ck_assert_int_eq(flock(folder, LOCK_SH | LOCK_NB), 0);
    ck_assert_int_eq(starts_that_end(0), 2);
    ck_assert_int_eq(TRAIN("--set", "experiment.name=half", "--set", "train.steps=3"), 3);
    expect_ran(3, "or about to go on from it");
    close(folder);
    shell("mkdir -p runs/own/kept && cp -r runs/half/checkpoints/step-00000002 runs/own/kept");
    expect_ran(TRAIN("--set", "experiment.name=own", "--set", "train.steps=3", "--resume",
                     "runs/own/kept/step-00000002"), "going on after step 2");
    ck_assert_int_eq(TRAIN("--set", "experiment.name=bare", "--resume", "runs/bare"), 3);
    shell("mkdir runs/bare");
    ck_assert_int_eq(TRAIN("--set", "experiment.name=bare", "--resume", "runs/bare"), 3);
    expect_ran(3, "is neither a run with checkpoints");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("resume");

    tcase_add_checked_fixture(c, make_experiment, remove_root);
    tcase_add_test(c, two_runs_and_any_number_of_loader_threads_give_equal_bits);
    tcase_add_test(c, killed_run_goes_on_to_the_same_bits);
    tcase_add_test(c, interrupted_run_exits_75_and_goes_on_to_the_same_bits);
    tcase_add_test(c, step_longer_than_the_grace_is_given_up);
    tcase_add_test(c, second_signal_ends_the_grace);
    tcase_add_test(c, finished_run_says_so_and_touches_nothing);
    tcase_add_test(c, resolved_file_repeats_the_run);
    tcase_add_test(c, resolved_file_of_a_folder_with_a_semicolon_repeats_the_run);
    tcase_add_test(c, manifest_says_what_made_the_checkpoint_and_a_change_is_told);
    tcase_add_test(c, a_run_continues_only_with_its_original_cases);
    tcase_add_test(c, a_case_with_changed_content_is_reported);
    tcase_add_test(c, a_checkpoint_of_an_unsupported_precision_is_refused);
    tcase_add_test(c, existing_files_in_a_run_folder_are_never_overwritten);
    tcase_add_test(c, a_run_written_by_another_process_is_not_read);
    tcase_add_test(c, a_run_continues_once_its_ending_process_has_gone);
    tcase_add_test(c, debug_is_a_short_run_with_checks_in_a_folder_of_its_own);
    tcase_add_test(c, debug_run_is_not_continued_without_debug);
    tcase_add_test(c, an_ignored_change_of_a_fixed_value_is_reported);
    tcase_add_test(c, epochs_steps_and_patience_schedule_validation);
    tcase_add_test(c, no_step_counts_to_an_epoch_beyond_the_last);
    tcase_add_test(c, pretrained_weights_are_where_training_starts);
    tcase_add_test(c, gradient_that_is_not_finite_stops_or_skips);
    tcase_add_test(c, a_run_continues_from_another_run);
    tcase_add_test(c, a_run_continues_from_another_run_with_another_rate_and_loss);
    tcase_add_test(c, another_network_or_optimizer_does_not_continue_a_run);
    tcase_add_test(c, a_run_written_by_another_process_is_not_continued);
    return suite_run();
}
