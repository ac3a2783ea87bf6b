/*
 * run_pons.h - the built program as a process, in a folder of the test's own (root.h).
 */
#ifndef TESTS_RUN_PONS_H
#define TESTS_RUN_PONS_H

#include "base/clock.h"
#include "fork_child.h"
#include "root.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Asked for before the first change of the working folder. */
static inline const char *pons_program(void)
{
    static char path[4096];

    if (path[0] == '\0')
        ck_assert_ptr_nonnull(realpath("pons", path));
    return path;
}

/* Start pons with words, NULL at the end; its output goes to root/out and root/NAME. */
static inline pid_t start_saying(const char *name, const char *const *word)
{
    const char *argument[64] = { pons_program() };
    int count = 1;

    while (*word != NULL && count < 63)
        argument[count++] = *word++;
    int out = open(in_root("out"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int said = open(in_root(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    pid_t child = fork_child();
    if (child == 0) {
        dup2(out, 1);
        dup2(said, 2);
        if (chdir(root) == 0)
            execv(argument[0], (char *const *)argument);
        _exit(99);
    }
    close(out);
    close(said);
    return child;
}

static inline pid_t start(const char *const *word)
{
    return start_saying("said", word);
}

/* Exit code, or 1000 and a signal's number. */
static inline int finish(pid_t child)
{
    int status;

    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/*
 * The same, and the seconds until then. A machine that is suspended, or all of whose processes are
 * stopped, stops this one too: a nap that took longer than it can on a machine that runs counts for
 * what it can take.
 */
static inline int finish_counting(pid_t child, double *seconds)
{
    double before = seconds_now();
    siginfo_t ended = { .si_pid = 0 };

    *seconds = 0;
    while (ended.si_pid == 0) {
        usleep(2000);
        double now = seconds_now();
        *seconds += now - before < 0.25 ? now - before : 0.25;
        before = now;
        ck_assert_int_eq(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    }
    return finish(child);
}

#define START(...) start((const char *const[]){ __VA_ARGS__, NULL })
#define PONS(...) finish(START(__VA_ARGS__))

static inline char *text_of(const char *name)
{
    static char text[1 << 20];
    FILE *file = fopen(in_root(name), "r");

    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* The code is as expected and the phrase (unless NULL) among what was said. */
#define EXPECT(CODE, PHRASE, ...) do {                                                            \
        int found_ = PONS(__VA_ARGS__);                                                           \
        const char *phrase_ = (PHRASE);                                                           \
        ck_assert_msg(found_ == (CODE), "code %d, expected %d: %s", found_, (CODE),               \
                      text_of("said"));                                                           \
        ck_assert_msg(phrase_ == NULL || strstr(text_of("said"), phrase_) != NULL,                \
                      "'%s' is not in: %s", phrase_, text_of("said"));                            \
    } while (0)

/* Plugins are looked for there before anywhere else. */
static inline void search_first(const char *folder)
{
    const char *given = getenv("PONS_PLUGIN_PATH");
    char folders[8192];

    snprintf(folders, sizeof folders, "%s%s%s", folder, given != NULL ? ":" : "",
             given != NULL ? given : "");
    setenv("PONS_PLUGIN_PATH", folders, 1);
}

/* A plugin of tests/plugins into root/plugins. */
static inline void add_plugin(const char *kind, const char *name)
{
    char command[512];

    snprintf(command, sizeof command, "mkdir -p %s/plugins/%s && cp tests/plugins/.libs/%s.so "
             "%s/plugins/%s", root, kind, name, root, kind);
    ck_assert_int_eq(system(command), 0);
}

static inline const char *golden_path(const char *name)
{
    static char path[8192];
    const char *folder = getenv("srcdir");
    char joined[4096];

    snprintf(joined, sizeof joined, "%s/tests/golden/%s", folder != NULL ? folder : ".", name);
    ck_assert_msg(realpath(joined, path) != NULL, "no %s", joined);
    return path;
}

#endif
