/*
 * fork_child.h - a process that a test may end at any moment, also before it runs its program.
 */
#ifndef TESTS_FORK_CHILD_H
#define TESTS_FORK_CHILD_H

#include <signal.h>
#include <unistd.h>

/*
 * fork() without Check's handlers of SIGINT and SIGTERM, which pass the signal on to all processes
 * of the test: the child would have them until it runs another program.
 */
static inline pid_t fork_child(void)
{
    sigset_t all, before;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return child;
}

#endif
