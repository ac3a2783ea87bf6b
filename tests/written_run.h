/*
 * written_run.h - what a run has written so far: which of its checkpoints are whole and which it
 * names, and whether its numbers are those of another run. A run's folder is root/runs/NAME.
 */
#ifndef TESTS_WRITTEN_RUN_H
#define TESTS_WRITTEN_RUN_H

#include "checkpoint/checkpoint.h"

#include "run_pons.h"

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
