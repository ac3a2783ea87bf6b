/*
 * ranks.c - see ranks.h.
 */
#include "support/run/ranks.h"

/*
 * Options for a build with sanitizers, which turn a signal into an exit and require to be loaded
 * first.
 */
static void tame_sanitizers(void)
{
    const char *given = getenv("ASAN_OPTIONS");
    char options[4096];

    snprintf(options, sizeof options, "%s:handle_segv=0:handle_sigbus=0:handle_abort=0"
             ":verify_asan_link_order=0", given != NULL ? given : "");
    setenv("ASAN_OPTIONS", options, 1);
}

void make_phantom(void)
{
    tame_sanitizers();
    EXPECT(0, NULL, "data", "phantom", "-o", "heads", "--cases", "4", "--extent", "28", "--classes",
           "3");
    write_text("ranks.ini",
               "[experiment]\nname = ranks\ndeterministic = yes\n"
               "[data]\nsource = heads\nvalidation = last:1\n"
               "[preprocess]\nsteps = normalize\n"
               "[patch]\nextent = 24\n"
               "[augment]\nsteps = flip gaussian_noise\n"
               "[augment.flip]\naxes = 1 2\nprobability = 0.5\n"
               "[augment.gaussian_noise]\nprobability = 0.5\n"
               "[model]\nplugin = unet\nchannels = 8 16\nstrides = 2\nnorm = batch\ndropout = 0.1\n"
               "[loss]\nplugin = dice_ce\n"
               "[optimizer]\nplugin = adam\nlr = 1e-3\n"
               "[schedule]\nplugin = cosine\n"
               "[train]\nsteps = 120\nmicro_batches = 4\nprecision = fp32\nema_decay = 0.9\n"
               "validate_every = 4\ncheckpoint_every = 10\n"
               "[distribute]\nmode = ddp\nbackend = auto\ndevices = cpu\nthreads = 1\n"
               "timeout_s = 30\n");
}

void make_plain_run(void)
{
    EXPECT(0, NULL, "train", "ranks.ini", "--set", "experiment.name=plain", "--set",
           "distribute.mode=single");
}

pid_t start_launch_saying(const char *said, const launch_words *l)
{
    static char ranks[16], name[128];
    const char *word[40] = { "launch", "-n", ranks };
    int n = 3;

    snprintf(ranks, sizeof ranks, "%d", l->ranks);
    snprintf(name, sizeof name, "experiment.name=%s", l->name);
    for (int i = 0; i < 8 && l->flag[i] != NULL; i++)
        word[n++] = l->flag[i];
    word[n++] = "--";
    word[n++] = "train";
    word[n++] = "ranks.ini";
    word[n++] = "--set";
    word[n++] = name;
    for (int i = 0; i < 8 && l->set[i] != NULL; i++) {
        word[n++] = "--set";
        word[n++] = l->set[i];
    }
    return process_start_to(said, word);
}

pid_t start_launch(const launch_words *l)
{
    return start_launch_saying("said", l);
}

void expect_exit_code(pid_t launcher, int code)
{
    int found = process_finish(launcher);

    ck_assert_msg(found == code, "code %d, expected %d: %s", found, code, root_text("said"));
}

const char *numbered_name(const char *name, int i)
{
    static char text[32];

    snprintf(text, sizeof text, "%s-%d", name, i);
    return text;
}

int find_ranks(pid_t launcher, pid_t *rank, int room)
{
    DIR *processes = opendir("/proc");
    int count = 0;

    for (struct dirent *e; (e = readdir(processes)) != NULL; ) {
        char path[300], name[64];
        int parent;
        if (atoi(e->d_name) <= 0)
            continue;
        snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue;
        if (fscanf(file, "%*d (%63[^)]) %*c %d", name, &parent) == 2 && parent == launcher
            && strstr(name, "pons") != NULL && count < room)
            rank[count++] = atoi(e->d_name);
        fclose(file);
    }
    closedir(processes);
    return count;
}

pid_t find_rank(pid_t launcher, int number)
{
    pid_t rank[64];
    int count = find_ranks(launcher, rank, 64);

    for (int i = 0; i < count; i++) {
        char path[64], *text = NULL, wanted[32];
        size_t room = 0;
        bool found = false;
        snprintf(path, sizeof path, "/proc/%d/environ", rank[i]);
        snprintf(wanted, sizeof wanted, "RANK=%d", number);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue;
        while (!found && getdelim(&text, &room, '\0', file) > 0)
            found = strcmp(text, wanted) == 0;
        free(text);
        fclose(file);
        if (found)
            return rank[i];
    }
    return 0;
}

void expect_processes_gone(const pid_t *rank, int count, double within)
{
    int left = (int)(within * 100);

    for (int i = 0; i < count; i++) {
        while (!process_is_gone(rank[i]) && left-- > 0)
            pause_for(0.01);
        ck_assert_msg(process_is_gone(rank[i]), "rank %d is still there", i);
    }
}

const char *in_run(const char *run, const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "runs/%s/%s", run, name);
    return in_root(path);
}

int steps_of(const char *run)
{
    FILE *file = fopen(in_run(run, "metrics.jsonl"), "r");
    char *line = NULL;
    size_t room = 0;
    int steps = 0;

    while (file != NULL && getline(&line, &room, file) > 0)
        steps += strncmp(line, "{\"kind\":\"step\"", 14) == 0;
    free(line);
    if (file != NULL)
        fclose(file);
    return steps;
}

bool wait_steps(pid_t launcher, const char *run, int steps)
{
    while (steps_of(run) < steps) {
        if (process_is_gone(launcher))
            return steps_of(run) >= steps;
        pause_for(0.005);
    }
    return true;
}

void expect_same_state(const char *a, const char *b)
{
    ck_assert_msg(same_runs(a, b, TENSOR_FILES), "'%s' and '%s': see the differences above", a, b);
}

int count_in(const char *text, const char *phrase)
{
    int count = 0;

    for (const char *p = text; (p = strstr(p, phrase)) != NULL; p += strlen(phrase))
        count++;
    return count;
}
