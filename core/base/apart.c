/*
 * apart.c - a child that does the work, and the memory in which it leaves its answer.
 */
#include <config.h>

#include "base/apart.h"

#include "base/signal_name.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In memory that both processes see. */
typedef struct answer {
    bool given;
    pons_error err;
} answer;

static _Noreturn void answer_and_leave(pons_status (*work)(const void *context, pons_error *err),
                                       const void *context, answer *a)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    work(context, &a->err);
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout))
        pons_fail(&a->err, PONS_FAILURE, "cannot write to the standard output: %s",
                  errno != 0 ? strerror(errno) : "it was closed");
    a->given = true;
    exit((int)a->err.status); /* what is called at the exit is part of the work */
}

static pons_status judge(const answer *a, int code, const char *who, pons_error *err)
{
    if (WIFSIGNALED(code))
        return pons_fail(err, PONS_PLUGIN, "%s: it ends the process by %s", who,
                         signal_name(WTERMSIG(code)));
    if (!a->given)
        return pons_fail(err, PONS_PLUGIN, "%s: it ends the process, with status %d", who,
                         WEXITSTATUS(code));
    if (WEXITSTATUS(code) != (int)a->err.status)
        return pons_fail(err, PONS_PLUGIN, "%s: the process ends with status %d behind it", who,
                         WEXITSTATUS(code));
    return a->err.status == PONS_OK ? PONS_OK : pons_fail(err, a->err.status, "%s", a->err.text);
}

static pons_status wait_for(pid_t child, const answer *a, const char *who, pons_error *err)
{
    int code;

    while (waitpid(child, &code, 0) < 0)
        if (errno != EINTR)
            return pons_fail(err, PONS_FAILURE, "%s: cannot wait for its process: %s", who,
                             strerror(errno));
    return judge(a, code, who, err);
}

pons_status apart_run(pons_status (*work)(const void *context, pons_error *err),
                      const void *context, const char *who, pons_error *err)
{
    answer *a = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child;

    if (a == MAP_FAILED)
        return pons_fail(err, PONS_FAILURE, "%s: no memory for an answer: %s", who,
                         strerror(errno));
    fflush(NULL); /* else both would write what is not yet written */
    child = fork();
    if (child == 0)
        answer_and_leave(work, context, a);
    if (child < 0)
        pons_fail(err, PONS_FAILURE, "%s: cannot start a process: %s", who, strerror(errno));
    else
        wait_for(child, a, who, err);
    munmap(a, sizeof *a);
    return err->status;
}
