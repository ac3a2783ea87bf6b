/*
 * rank_process.c - a rank for tests of the launcher, which carries out the actions of its
 * arguments in order.
 *
 *   rank_process FOLDER WHO:ACTION,ACTION... ...      WHO: a rank, or * for all others
 *
 * Its process number goes to FOLDER/RANK.pid, that of its child to FOLDER/RANK.child.
 */
#include "cluster/watchdog/status_page.h"
#include "support/pause.h"
#include "support/process/process_state.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *folder;
static int rank, size;
static status_page_slot *seat;

static void write_number(const char *kind, int number)
{
    char path[512], part[540];

    snprintf(path, sizeof path, "%s/%d.%s", folder, rank, kind);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "w");
    fprintf(file, "%d", number);
    fclose(file);
    rename(part, path);
}

static int read_number(int of, const char *kind)
{
    char path[512];
    int number = 0;

    snprintf(path, sizeof path, "%s/%d.%s", folder, of, kind);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%d", &number) != 1)
        number = 0;
    fclose(file);
    return number;
}

static _Noreturn void end(int status, const char *text)
{
    status_page_report(seat, status, text);
    exit(status);
}

/* ---- actions: each gets the text after its colon --------------------------------------------- */

/*
 * Run steps until another rank has gone, as collectives would detect, or until this process is
 * killed.
 */
static void work(const char *value)
{
    char text[64];

    for (int step = 1; ; step++) {
        status_page_note(seat, step, "step");
        status_page_collective(seat, 10 * step, "all_reduce", 4096);
        pause_for(0.002);
        for (int i = 0; i < size; i++) {
            int other = read_number(i, "pid");
            snprintf(text, sizeof text, "rank %d is gone", i);
            if (other > 0 && process_is_gone(other))
                end(PONS_COMMUNICATION, text);
        }
    }
}

static void note(const char *value)
{
    status_page_note(seat, atoi(value), "step");
    status_page_collective(seat, 10 * atoi(value), "all_reduce", 4096);
}

static void wait_seconds(const char *value)
{
    pause_for(atof(value));
}

static void deliver(const char *value)
{
    raise(atoi(value));
}

static void leave(const char *value)
{
    _exit(atoi(value));
}

/* The value "3=text" is an exit code and a line. */
static void tell(const char *value)
{
    const char *text = strchr(value, '=');

    status_page_report(seat, atoi(value), text != NULL ? text + 1 : "");
}

static void finish(const char *value)
{
    tell(value);
    exit(atoi(value));
}

static void ignore_signals(const char *value)
{
    signal(SIGTERM, SIG_IGN);
}

static void leave_at_signal(int number)
{
    _exit(number == SIGUSR2 ? 0 : PONS_INTERRUPTED);
}

static void listen_to(const char *value)
{
    signal(atoi(value), leave_at_signal);
}

static void start_child(const char *value)
{
    pid_t child = fork();

    if (child == 0) {
        signal(SIGTERM, SIG_IGN);
        for (;;)
            pause();
    }
    write_number("child", child);
}

/* Print lines in pieces, so that lines of two ranks would mix without the launcher's ordering. */
static void print_lines(const char *value)
{
    for (int i = 0; i < atoi(value); i++) {
        char text[128];
        int length = snprintf(text, sizeof text, "line %d of rank %d %s\n", i, rank,
                              "................................................");
        for (int at = 0; at < length; at += 7) {
            size_t piece = (size_t)(length - at < 7 ? length - at : 7);
            if (write(i % 2 == 0 ? 1 : 2, text + at, piece) != (ssize_t)piece)
                _exit(98);
        }
    }
}

static void say(const char *value)
{
    fprintf(stderr, "%s\n", value);
}

static void count_start(const char *value)
{
    write_number("starts", read_number(rank, "starts") + 1);
}

/* The value "2" skips the rest of the list from the second start on. */
static bool skips(const char *value)
{
    return read_number(rank, "starts") >= atoi(value);
}

/* Wait until the test lets this many starts go on. */
static void wait_to_go(const char *value)
{
    while (read_number(0, "go") < read_number(rank, "starts"))
        pause_for(0.002);
}

static void show_files(const char *value)
{
    DIR *files = opendir("/proc/self/fd");

    for (struct dirent *e; (e = readdir(files)) != NULL; )
        if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(files))
            printf("file %s\n", e->d_name);
    closedir(files);
    fflush(stdout);
}

static void show_environment(const char *value)
{
    static const char *const names[] = {
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
        "PONS_JOB_TOKEN", "PONS_STORE_SOCKET"
    };
    int listens = 0;
    socklen_t room = sizeof listens;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        printf("%s=%s\n", names[i], getenv(names[i]) != NULL ? getenv(names[i]) : "");
    if (getenv("PONS_STORE_SOCKET") != NULL
        && getsockopt(atoi(getenv("PONS_STORE_SOCKET")), SOL_SOCKET, SO_ACCEPTCONN, &listens,
                      &room) == 0)
        printf("listens=%d\n", listens);
    fflush(stdout);
}

/* ---- words ----------------------------------------------------------------------------------- */

static const struct { const char *name; void (*act)(const char *value); } actions[] = {
    { "work", work }, { "note", note }, { "wait", wait_seconds }, { "signal", deliver },
    { "leave", leave }, { "tell", tell }, { "end", finish }, { "deaf", ignore_signals },
    { "listen", listen_to }, { "child", start_child }, { "lines", print_lines }, { "say", say },
    { "count", count_start }, { "go", wait_to_go }, { "files", show_files },
    { "environment", show_environment },
};

static void act(const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, name) == 0) {
            actions[i].act(value);
            return;
        }
    _exit(97);
}

static void act_all(char *list)
{
    for (char *next, *word = list; word != NULL; word = next) {
        next = strchr(word, ',');
        if (next != NULL)
            *next++ = '\0';
        char *value = strchr(word, ':');
        if (value != NULL)
            *value++ = '\0';
        if (strcmp(word, "until") == 0) { /* the rest of the list is for earlier starts */
            if (skips(value))
                break;
            continue;
        }
        act(word, value != NULL ? value : "");
    }
}

int main(int argc, char **argv)
{
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would turn the signal into an exit */
    signal(SIGABRT, SIG_DFL);
    folder = argv[1];
    rank = atoi(getenv("RANK"));
    size = atoi(getenv("WORLD_SIZE"));
    seat = status_page_attach(getenv(STATUS_PAGE_VARIABLE));
    write_number("pid", getpid());
    for (int i = 2; i < argc; i++) {
        bool mine = argv[i][0] == '*' || atoi(argv[i]) == rank;
        if (mine) {
            act_all(strchr(argv[i], ':') + 1);
            break;
        }
    }
    end(0, "");
}
