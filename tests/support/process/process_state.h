/*
 * process_state.h - state, signals and CPU time of another process.
 */
#ifndef TESTS_PROCESS_STATE_H
#define TESTS_PROCESS_STATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* R, S, T and so on, as in proc(5); X: the process does not exist. */
char process_state(pid_t process);

/* The number after a word in a file of /proc; 0: the word is absent. */
int64_t process_number(const char *file, const char *word);

/* The process has ended, though its parent may not have collected its exit code. */
bool process_is_gone(pid_t process);

/*
 * The set of signals holds 'number'. "SigBlk" is the set that the first thread blocks; "ShdPnd" has
 * the signals that no thread of the process has taken.
 */
bool process_has_signal(pid_t process, const char *set, int number);

/* Send a signal, and wait until a thread has taken it: a later signal does not merge with it. */
void process_signal(pid_t process, int number);

/* Wait until the process has used that many more CPU seconds, or has ended. */
void process_wait_work(pid_t process, double seconds);

#endif
