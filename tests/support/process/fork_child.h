/*
 * fork_child.h - a process that a test may end at any moment, even before it runs its program.
 */
#ifndef TESTS_FORK_CHILD_H
#define TESTS_FORK_CHILD_H

#include <signal.h>
#include <unistd.h>

/*
 * fork() without Check's handlers of SIGINT and SIGTERM. These pass the signal on to all processes
 * of the test, and the child would keep them until it runs another program.
 */
pid_t fork_child(void);

#endif
