/*
 * fork_child.c - see fork_child.h.
 */
#include "support/process/fork_child.h"

pid_t fork_child(void)
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
