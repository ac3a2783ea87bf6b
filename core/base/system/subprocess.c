/*
 * subprocess.c - a child that does the work, and the memory in which it leaves its answer.
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

/* In memory that both processes see. */
struct apart_child {
    bool given;
    int seconds;
    char stage[128];
    pons_error err;
};

typedef pons_status apart_work(const void *context, apart_child *child, pons_error *err);

/* ---- child ----------------------------------------------------------------------------------- */

void apart_stage(apart_child *child, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(child->stage, sizeof child->stage, format, list);
    va_end(list);
    alarm((unsigned)child->seconds);
}

/* A late child ends by the signal, whatever this process does with it. */
static void heed_alarm(void)
{
    sigset_t set;

    signal(SIGALRM, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* No core file either: a child that fails is an answer. */
static void be_quiet(void)
{
    const struct rlimit none = { 0, 0 };
    const int nothing = open("/dev/null", O_WRONLY);

    setrlimit(RLIMIT_CORE, &none);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
}

static _Noreturn void answer_and_leave(apart_work *work, const void *context,
                                       const apart_terms *terms, apart_child *c)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (terms->quiet)
        be_quiet();
    if (terms->seconds > 0)
        heed_alarm();
    apart_stage(c, "the start");
    work(context, c, &c->err);
    errno = 0;
    if (!terms->quiet && (fflush(stdout) != 0 || ferror(stdout)))
        pons_fail(&c->err, PONS_FAILURE, "cannot write to the standard output: %s",
                  errno != 0 ? strerror(errno) : "it was closed");
    c->given = true;
    if (terms->quiet)
        _exit((int)c->err.status);
    exit((int)c->err.status); /* what is called at the exit is part of the work */
}

/* ---- parent ---------------------------------------------------------------------------------- */

static pons_status judge(const apart_child *c, int code, const apart_terms *terms, pons_error *err)
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

static pons_status wait_for(pid_t child, const apart_child *c, const apart_terms *terms,
                            pons_error *err)
{
    int code;

    while (waitpid(child, &code, 0) < 0)
        if (errno != EINTR)
            return pons_fail(err, PONS_FAILURE, "%s: cannot wait for its process: %s", terms->who,
                             strerror(errno));
    return judge(c, code, terms, err);
}

pons_status apart_run(apart_work *work, const void *context, const apart_terms *terms,
                      pons_error *err)
{
    apart_child *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                          0);
    pid_t child;

    if (c == MAP_FAILED)
        return pons_fail(err, PONS_DEVICE, "%s: no memory for an answer: %s", terms->who,
                         strerror(errno));
    c->seconds = terms->seconds;
    fflush(NULL); /* else both would write what is not yet written */
    child = fork();
    if (child == 0)
        answer_and_leave(work, context, terms, c);
    if (child < 0)
        pons_fail(err, errno_status(errno, PONS_FAILURE), "%s: cannot start a process: %s",
                  terms->who, strerror(errno));
    else
        wait_for(child, c, terms, err);
    munmap(c, sizeof *c);
    return err->status;
}
