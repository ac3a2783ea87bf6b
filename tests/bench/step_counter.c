/*
 * step_counter.c - the child stops itself by a signal before and after the counted code. Between
 * them the parent executes the child one instruction at a time.
 */
#include "bench/step_counter.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MARK = SIGUSR1, SKIPPED = 77 };

/* The child's description of its next count. */
static struct told {
    char name[64];
    int64_t elements;
} *told;

/* Wait for the next signal that stops the child; the parent exits if the child has ended. */
static int next_stop(pid_t child)
{
    int status;

    if (waitpid(child, &status, 0) != child)
        exit(1);
    if (WIFEXITED(status))
        exit(WEXITSTATUS(status));
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "step_counter: signal %d\n", WTERMSIG(status));
        exit(1);
    }
    return WSTOPSIG(status);
}

static void resume(pid_t child, bool one, int signal)
{
    if (ptrace(one ? PTRACE_SINGLESTEP : PTRACE_CONT, child, NULL, (void *)(intptr_t)signal) != 0)
        exit(1);
}

static int64_t count_steps(pid_t child)
{
    int64_t steps = 0;
    int signal = 0;

    for (;;) {
        resume(child, true, signal);
        signal = next_stop(child);
        if (signal == MARK)
            return steps;
        if (signal == SIGTRAP)
            signal = 0;
        steps++;
    }
}

void step_counter_follow(void)
{
    pid_t child;
    int signal;

    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    child = told != MAP_FAILED ? fork() : -1;
    if (child < 0)
        exit(1);
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(SKIPPED);
        raise(SIGSTOP);
        return;
    }
    for (signal = next_stop(child) == SIGSTOP ? 0 : SIGKILL;; ) {
        resume(child, false, signal);
        signal = next_stop(child);
        if (signal != MARK)
            continue;
        signal = 0;
        printf("%s %lld %lld\n", told->name, (long long)count_steps(child),
               (long long)told->elements);
        fflush(stdout);
    }
}

void step_counter_begin(const char *name, int64_t elements)
{
    snprintf(told->name, sizeof told->name, "%s", name);
    told->elements = elements;
    raise(MARK);
}

void step_counter_end(void)
{
    raise(MARK);
}
