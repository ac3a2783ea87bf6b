/*
 * written_run.c - see written_run.h.
 */
#include "support/run/written_run.h"

bool root_has(const char *name)
{
    return access(in_root(name), F_OK) == 0;
}

int64_t step_of_name(const char *text)
{
    const char *at = strstr(text, "step-");

    return at != NULL ? strtoll(at + 5, NULL, 10) : -1;
}

int64_t run_marked_step(const char *run, const char *mark)
{
    char name[128];

    snprintf(name, sizeof name, "runs/%s/checkpoints/%s", run, mark);
    return root_has(name) ? step_of_name(root_text(name)) : -1;
}

int64_t run_newest_checkpoint(const char *run)
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
        newest = step_of_name(path) > newest ? step_of_name(path) : newest;
    }
    pclose(list);
    return newest;
}

bool same_runs(const char *a, const char *b, const char *files)
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
