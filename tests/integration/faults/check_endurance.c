/*
 * check_endurance.c - trainings of two ranks with random faults, through memory and, where gloo is,
 * over a network that has faults too. Each run must end with the bits of an undisturbed process. In
 * an hour with a fault a minute (SOAK) little time may be lost. make check runs it for seconds.
 *
 * SOAK_SECONDS, SOAK_FAULT (mean time between faults in seconds) and SOAK_SEED set other values.
 */
#include "support/process/proxy.h"
#include "support/run/ranks.h"
#include "support/soak.h"
#include "support/suite.h"

#include <math.h>

static proxy *network;
static pid_t launcher;
static unsigned first_seed, seed;

/* Number of steps of a run, large enough for several faults in a run if faults are frequent. */
static char steps_word[32];

static double number_of_variable(const char *name, double fallback)
{
    const char *text = getenv(name);

    return text != NULL && text[0] != '\0' ? atof(text) : fallback;
}

static double random_share(void)
{
    return (double)(rand_r(&seed) % 10000) / 10000;
}

/* ---- faults: each function returns when the fault is over ------------------------------------ */

static pid_t some_rank(void)
{
    return find_rank(launcher, (int)(random_share() * 2));
}

static void signal_rank(int number)
{
    pid_t rank = some_rank();

    if (rank > 0)
        kill(rank, number);
}

static void kill_rank(void)
{
    static const int numbers[] = { SIGKILL, SIGSEGV, SIGABRT, SIGBUS };

    signal_rank(numbers[(int)(random_share() * 4)]);
}

static void hang_rank(void)
{
    signal_rank(SIGSTOP);
}

static void pause_rank(void)
{
    pid_t rank = some_rank();

    if (rank <= 0)
        return;
    kill(rank, SIGSTOP);
    pause_for(0.5);
    kill(rank, SIGCONT);
}

static void interrupt_rank(void)
{
    signal_rank(random_share() < 0.5 ? SIGUSR1 : SIGTERM);
}

static void interrupt_all(void)
{
    kill(launcher, SIGTERM);
}

static void interrupt_twice(void)
{
    kill(launcher, SIGTERM);
    pause_for(0.01 * random_share());
    kill(launcher, SIGUSR1);
}

static void kill_launcher(void)
{
    kill(launcher, SIGKILL);
}

static void slow_network(void)
{
    proxy_delay(network, 0.01);
    pause_for(1);
    proxy_delay(network, 0);
}

static void cut_network(void)
{
    proxy_cut(network, true);
    pause_for(1);
    proxy_cut(network, false);
}

static void reset_network(void)
{
    proxy_reset(network);
}

static struct { const char *name; void (*act)(void); int count; } faults[] = {
    { "rank killed", kill_rank, 0 },
    { "rank hung", hang_rank, 0 },
    { "rank paused", pause_rank, 0 },
    { "rank interrupted", interrupt_rank, 0 },
    { "all interrupted", interrupt_all, 0 },
    { "interrupted twice", interrupt_twice, 0 },
    { "launcher killed", kill_launcher, 0 },
    /* only of ranks that meet over a network */
    { "network slow", slow_network, 0 },
    { "network cut", cut_network, 0 },
    { "network reset", reset_network, 0 },
};
enum { FAULTS = sizeof faults / sizeof *faults, NETWORK_FAULTS = 3 };

/* ---- a run ----------------------------------------------------------------------------------- */

static int open_files(pid_t process)
{
    char path[64];
    int count = 0;

    snprintf(path, sizeof path, "/proc/%d/fd", process);
    DIR *files = opendir(path);
    for (struct dirent *e; files != NULL && (e = readdir(files)) != NULL; )
        count += e->d_name[0] != '.';
    if (files != NULL)
        closedir(files);
    return count;
}

static long resident_kib(pid_t process)
{
    char path[64];
    long pages = 0;

    snprintf(path, sizeof path, "/proc/%d/statm", process);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Open files and memory of launchers: the first values of a launcher, and the largest ones. */
static int most_files, first_files;
static long most_kib, first_kib;

/* Measure the launcher while both ranks run and it waits for them, not while it starts them. */
static void look_at_launcher(void)
{
    pid_t rank[8];

    if (find_ranks(launcher, rank, 8) < 2 || process_state(launcher) != 'S')
        return;
    int files = open_files(launcher);
    long kib = resident_kib(launcher);

    first_files = first_files == 0 ? files : first_files;
    first_kib = first_kib == 0 ? kib : first_kib;
    most_files = files > most_files ? files : most_files;
    most_kib = kib > most_kib ? kib : most_kib;
}

/*
 * Part of the time of all runs. A poll that is later than this came after a pause of the machine.
 */
#define PAUSE_S 1.0
static double paused_s;

/* Whether the launcher has ended. It may end at any time, but only with these exit codes. */
static bool has_ended(const launch_words *l, bool *done)
{
    int status, code;

    if (waitpid(launcher, &status, WNOHANG) != launcher)
        return false;
    code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    *done = code == 0;
    /* A rank that fails while all ranks are being interrupted is not started again. */
    bool stopping = strstr(root_text("said"), "a second signal ends at once") != NULL
                    && (code == PONS_COMMUNICATION || code > 128);
    /*
     * A launcher that gets a signal before its handlers are installed has no message and no ranks.
     */
    bool early = (code == 1000 + SIGTERM || code == 1000 + SIGUSR1) && root_text("said")[0] == '\0';
    ck_assert_msg(code == 0 || code == PONS_INTERRUPTED || code == 1000 + SIGKILL || stopping
                  || early, "seed %u, run '%s', code %d: %s", first_seed, l->name, code,
                  root_text("said"));
    return true;
}

/*
 * Wait until the launcher has ended or the next fault is due. A pause of the machine pauses every
 * process.
 */
static bool wait_fault(const launch_words *l, double until, bool *done)
{
    for (double last = seconds_now(); last < until; ) {
        if (has_ended(l, done))
            return true;
        pause_for(0.02);
        double now = seconds_now();
        paused_s += fmax(now - last - PAUSE_S, 0);
        last = now;
    }
    look_at_launcher();
    return has_ended(l, done);
}

static int disturb_run(const launch_words *l, double mean_s)
{
    int kinds = network != NULL ? FAULTS : FAULTS - NETWORK_FAULTS;
    bool done = false;
    int count = 0;

    while (!done) {
        pid_t rank[8];
        int ranks = 0;
        launcher = start_launch(l);
        while (!wait_fault(l, seconds_now() - mean_s * log(1 - random_share()), &done)) {
            int which = (int)(random_share() * kinds);
            ranks = find_ranks(launcher, rank, 8);
            faults[which].act();
            faults[which].count++;
            count++;
        }
        expect_processes_gone(rank, ranks, 5);
    }
    return count;
}

/* ---- time ------------------------------------------------------------------------------------ */

#define USEFUL_LEAST 0.9 /* for faults about once a minute                                        */
#define HELD_UP_S 0.3    /* a longer step waited for the end of a fault; others take milliseconds */

/* Time of the steps of the finished run: a step that was repeated after a fault counts once. */
static double step_seconds(const char *run)
{
    static const char key[] = "\"seconds\":";
    FILE *file = fopen(in_run(run, "metrics.jsonl"), "r");
    char *line = NULL;
    size_t room = 0;
    double sum = 0;

    ck_assert_ptr_nonnull(file);
    while (getline(&line, &room, file) > 0) {
        const char *found = strstr(line, key);
        double seconds = found != NULL ? atof(found + strlen(key)) : 0;
        if (strncmp(line, "{\"kind\":\"step\"", 14) == 0 && seconds < HELD_UP_S)
            sum += seconds;
    }
    free(line);
    fclose(file);
    return sum;
}

/* The part of a run's time that its steps take, in an undisturbed run and in all others. */
typedef struct share_of_time {
    double steps_s, took_s;
} share_of_time;

static double useful_share(share_of_time plain, share_of_time disturbed)
{
    return disturbed.steps_s / disturbed.took_s / (plain.steps_s / plain.took_s);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void use_network(void)
{
    network = proxy_open();
    ck_assert_ptr_nonnull(network);
    ck_assert(proxy_surround(network));
}

static void leave_network(void)
{
    unsetenv("LD_PRELOAD");
    proxy_close(network);
    network = NULL;
}

static void print_report(int runs, int count, share_of_time plain, share_of_time disturbed)
{
    printf("seed %u: %d runs, %d faults in %.0f s; %.2f s a run, undisturbed %.2f s; %.1f %% of "
           "the time was useful\n", first_seed, runs, count, disturbed.took_s,
           disturbed.took_s / runs, plain.took_s, 100 * useful_share(plain, disturbed));
    for (int i = 0; i < FAULTS; i++)
        printf("%6d %s\n", faults[i].count, faults[i].name);
    printf("launcher: %d files, at most %d; %ld KiB, at most %ld\n", first_files, most_files,
           first_kib, most_kib);
    fflush(stdout);
}

static void compare_with_undisturbed_run(bool over_network)
{
    double seconds = number_of_variable("SOAK_SECONDS", soak_times(8, 3600));
    double mean_s = number_of_variable("SOAK_FAULT", soak_times(1, 60));
    launch_words two = { "plain-two", 2, { NULL }, { steps_word } };
    share_of_time plain, disturbed = { 0, 0 };
    int runs = 0, count = 0;

    most_files = first_files = 0; /* SOAK runs all tests in one process */
    most_kib = first_kib = 0;
    seed = (unsigned)number_of_variable("SOAK_SEED", fmod(seconds_now() * 1e3, 1e5));
    first_seed = seed;
    make_root();
    make_phantom();
    snprintf(steps_word, sizeof steps_word, "train.steps=%d", (int)(400 * fmin(mean_s, 10)));
    EXPECT(0, NULL, "train", "ranks.ini", "--set", "experiment.name=plain", "--set",
           "distribute.mode=single", "--set", steps_word);
    if (over_network)
        use_network();
    double begin = seconds_now();
    ck_assert_int_eq(process_finish(start_launch(&two)), 0);
    plain = (share_of_time){ step_seconds("plain-two"), seconds_now() - begin };
    mean_s = fmax(mean_s, plain.took_s / 8); /* a slow machine has fewer faults */
    expect_same_state("plain", "plain-two");
    while (disturbed.took_s < seconds || count == 0 || first_files == 0) {
        char name[32];
        snprintf(name, sizeof name, "run-%d", runs);
        launch_words l = { name, 2, { "--restarts=1000000" },
                           { steps_word, "distribute.timeout_s=4" } };
        begin = seconds_now();
        count += disturb_run(&l, mean_s);
        disturbed.took_s += seconds_now() - begin - paused_s;
        paused_s = 0;
        disturbed.steps_s += step_seconds(name);
        expect_same_state("plain", name);
        runs++;
    }
    print_report(runs, count, plain, disturbed);
    ck_assert_int_le(most_files, first_files + 2); /* pipes that are just being made */
    ck_assert_int_le(most_kib, first_kib + 1024);
    if (mean_s >= 60)
        ck_assert_double_ge(useful_share(plain, disturbed), USEFUL_LEAST);
    if (over_network)
        leave_network();
    remove_root();
}

START_TEST(runs_with_faults_have_the_bits_of_undisturbed_runs)
{
    compare_with_undisturbed_run(false);
}
END_TEST

START_TEST(runs_with_faults_over_a_network_have_the_bits_of_undisturbed_runs)
{
    compare_with_undisturbed_run(true);
}
END_TEST

int main(void)
{
    /* Check stores the time of a child in 31 bits of microseconds, 36 minutes, and then fails. */
    if (getenv("SOAK") != NULL)
        setenv("CK_FORK", "no", 1);
    TCase *c = suite_new("endurance");

    tcase_set_timeout(c, 0); /* every wait has its own timeout */
    tcase_add_test(c, runs_with_faults_have_the_bits_of_undisturbed_runs);
    suite_add_test_if(c, suite_has_plugin("comm/gloo"), "gloo",
                      runs_with_faults_over_a_network_have_the_bits_of_undisturbed_runs);
    return suite_run();
}
