/*
 * tiny_run.h - a training that takes half a millisecond a step and has everything in it that a
 * checkpoint must bring back: augmentation, dropout, running statistics, accumulation, averages,
 * validation, epochs that end inside a step. To be included behind run_pons.h.
 */
#ifndef TESTS_TINY_RUN_H
#define TESTS_TINY_RUN_H

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "train/checkpoint.h"

#include "run_pons.h"


static const char tiny_ini[] =
    "[experiment]\nname = run\n"
    "[data]\nsource = data\nvalidation = last:1\nloader_threads = 1\n"
    "[patch]\nextent = 8 8 8\n"
    "[augment]\nsteps = flip gaussian_noise scale_intensity\n"
    "[augment.flip]\naxes = 0 1 2\nprobability = 0.5\n"
    "[augment.gaussian_noise]\nprobability = 0.5\n"
    "[augment.scale_intensity]\nprobability = 0.5\nfactors = 0.1\n"
    "[model]\nplugin = unet\nchannels = 4 8\nstrides = 2\nnum_res_units = 1\nnorm = batch\n"
    "dropout = 0.2\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\nlr = 1e-2\n"
    "[schedule]\nplugin = cosine\n"
    "[train]\nsteps = 40\nbatch = 1\naccumulate = 4\nprecision = fp32\nema_decay = 0.9\n"
    "validate_steps = 7\n"
    "[distribute]\nthreads = 1\n";

/* Four cases, three of them to train on. */
static inline void make_tiny_run(void)
{
    make_root();
    EXPECT(0, NULL, "data", "phantom", "-o", "data", "--cases", "4", "--extent", "12,11,10");
    write_text("e.ini", tiny_ini);
}

static inline bool exists(const char *name)
{
    return access(in_root(name), F_OK) == 0;
}

/* The step in 'step-00000012', of a file's first line or a folder's path; -1: there is none. */
static inline int64_t step_in(const char *text)
{
    const char *at = strstr(text, "step-");

    return at != NULL ? strtoll(at + 5, NULL, 10) : -1;
}

static inline int64_t marked(const char *run, const char *mark)
{
    char name[128];

    snprintf(name, sizeof name, "runs/%s/checkpoints/%s", run, mark);
    return exists(name) ? step_in(text_of(name)) : -1;
}

/* Records of steps that a run has written so far. */
static inline int steps_recorded(const char *run)
{
    char name[128];
    int count = 0;

    snprintf(name, sizeof name, "runs/%s/metrics.jsonl", run);
    if (!exists(name))
        return 0;
    for (const char *at = text_of(name); (at = strstr(at, "\"kind\":\"step\"")) != NULL; at++)
        count++;
    return count;
}

/* Every checkpoint that has its name is whole; the newest one's step, -1: none. */
static inline int64_t newest_whole(const char *run)
{
    pons_error err = PONS_ERROR_INIT;
    char folder[256], command[512], path[512];
    int64_t newest = -1;

    snprintf(folder, sizeof folder, "%s/runs/%s/checkpoints", root, run);
    snprintf(command, sizeof command, "ls -d %s/step-???????? 2>/dev/null", folder);
    FILE *list = popen(command, "r");
    ck_assert_ptr_nonnull(list);
    while (fgets(path, sizeof path, list) != NULL) {
        path[strcspn(path, "\n")] = '\0';
        ck_assert_msg(checkpoint_verify(path, &err) == PONS_OK, "%s", err.text);
        newest = step_in(path) > newest ? step_in(path) : newest;
    }
    pclose(list);
    return newest;
}

/*
 * Whether the numbers of both runs are the same but for times and memory: metrics.jsonl, and the
 * files named of the checkpoints that 'last' names. The first difference is printed.
 */
static inline bool same_runs(const char *a, const char *b, const char *files)
{
    char command[2048];

    snprintf(command, sizeof command,
             "set -e; cd %s/runs; numbers() { sed 's/\"\\(data_\\)*seconds\":[^,}]*//g; "
             "s/\"memory\":[^,}]*//' $1/metrics.jsonl; }; numbers %s >../a.json; "
             "numbers %s >../b.json; cmp ../a.json ../b.json; "
             "cmp %s/checkpoints/last %s/checkpoints/last; "
             "s=$(cat %s/checkpoints/last); "
             "[ ! -e %s/checkpoints/best ] || cmp %s/checkpoints/best %s/checkpoints/best; "
             "for f in %s; do "
             "cmp %s/checkpoints/$s/$f.safetensors %s/checkpoints/$s/$f.safetensors; "
             "done", root, a, b, a, b, a, a, a, b, files, a, b);
    return system(command) == 0;
}

#define TENSOR_FILES "model optimizer ema"

#endif
