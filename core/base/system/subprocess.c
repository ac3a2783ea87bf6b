/*
 * subprocess.c - fork a child for the work, and share memory in which it leaves its result.
 */
#include "base/system/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "base/system/signal_name.h"

/* Result of the child, in memory that both processes share. */
struct subprocess_child {
    bool given;
    int seconds;
    char stage[128];
    pons_error err;
};

typedef pons_status subprocess_work(const void *context, subprocess_child *child, pons_error *err);

/* ---- child ----------------------------------------------------------------------------------- */

void subprocess_stage(subprocess_child *child, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(child->stage, sizeof child->stage, format, list);
    va_end(list);
    alarm((unsigned)child->seconds);
}

/*
 * Give SIGALRM its default action, so that it ends a late child whatever this process does with it.
 */
static void enable_alarm(void)
{
    sigset_t set;

    signal(SIGALRM, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Drop output and core files: a child that fails is an expected result. */
static void silence_output(void)
{
    const struct rlimit none = { 0, 0 };
    const int nothing = open("/dev/null", O_WRONLY);

    setrlimit(RLIMIT_CORE, &none);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
}

static _Noreturn void run_child(subprocess_work *work, const void *context,
                                const subprocess_terms *terms, subprocess_child *c)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (terms->quiet)
        silence_output();
    if (terms->seconds > 0)
        enable_alarm();
    subprocess_stage(c, "the start");
    work(context, c, &c->err);
    errno = 0;
    if (!terms->quiet && (fflush(stdout) != 0 || ferror(stdout)))
        pons_fail(&c->err, PONS_FAILURE, "cannot write to the standard output: %s",
                  errno != 0 ? strerror(errno) : "it was closed");
    c->given = true;
    if (terms->quiet)
        _exit((int)c->err.status);
    exit((int)c->err.status); /* functions registered with atexit are part of the work */
}

/* ---- parent ---------------------------------------------------------------------------------- */

static pons_status judge_exit(const subprocess_child *c, int code, const subprocess_terms *terms,
                              pons_error *err)
{
    if (WIFSIGNALED(code) && WTERMSIG(code) == SIGALRM && terms->seconds > 0)
        return pons_fail(err, PONS_PLUGIN, "%s: %s does not end within %d s", terms->who, c->stage,
                         terms->seconds);
    if (WIFSIGNALED(code))
        return pons_fail(err, PONS_PLUGIN, "%s: it ends the process by %s", terms->who,
                         signal_name(WTERMSIG(code)));
    if (!c->given)
        return pons_fail(err, PONS_PLUGIN, "%s: it ends the process, with status %d", terms->who,
                         WEXITSTATUS(code));
    if (WEXITSTATUS(code) != (int)c->err.status)
        return pons_fail(err, PONS_PLUGIN, "%s: the process ends with status %d behind it",
                         terms->who, WEXITSTATUS(code));
    return c->err.status == PONS_OK ? PONS_OK : pons_fail(err, c->err.status, "%s", c->err.text);
}

static pons_status wait_for_child(pid_t child, const subprocess_child *c,
                                  const subprocess_terms *terms, pons_error *err)
{
    int code;

    while (waitpid(child, &code, 0) < 0)
        if (errno != EINTR)
            return pons_fail(err, PONS_FAILURE, "%s: cannot wait for its process: %s", terms->who,
                             strerror(errno));
    return judge_exit(c, code, terms, err);
}

pons_status subprocess_run(subprocess_work *work, const void *context,
                           const subprocess_terms *terms, pons_error *err)
{
    subprocess_child *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                               -1, 0);
    pid_t child;

    if (c == MAP_FAILED)
        return pons_fail(err, PONS_DEVICE, "%s: no memory for an answer: %s", terms->who,
                         strerror(errno));
    c->seconds = terms->seconds;
    fflush(NULL); /* else parent and child would both write buffered output */
    child = fork();
    if (child == 0)
        run_child(work, context, terms, c);
    if (child < 0)
        pons_fail(err, errno_status(errno, PONS_FAILURE), "%s: cannot start a process: %s",
                  terms->who, strerror(errno));
    else
        wait_for_child(child, c, terms, err);
    munmap(c, sizeof *c);
    return err->status;
}
