/*
 * process_state.h - what the system says of another process.
 */
#ifndef TESTS_PROCESS_STATE_H
#define TESTS_PROCESS_STATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* R, S, T and so on, as proc(5) has them; X: there is no such process. */
static inline char process_state(pid_t process)
{
    char path[64], state = 'X';

    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return state;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'X';
    fclose(file);
    return state;
}

/* It has ended, though its parent may not have asked for its code. */
static inline bool process_is_gone(pid_t process)
{
    char state = process_state(process);

    return state == 'Z' || state == 'X';
}

/*
 * Whether a set of signals of it holds this one: "SigBlk" those that its first thread blocks,
 * "ShdPnd" those that have been sent to it and that none of its threads has taken.
 */
static inline bool process_has_signal(pid_t process, const char *set, int number)
{
    char path[64], name[16], line[128];
    unsigned long long bits = 0;

    snprintf(path, sizeof path, "/proc/%d/status", process);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%15[^:]: %llx", name, &bits) == 2 && strcmp(name, set) == 0)
            break;
        else
            bits = 0;
    if (file != NULL)
        fclose(file);
    return bits >> (number - 1) & 1;
}

/* Send it, and wait until it has been taken: what is sent later is no longer one with it. */
static inline void process_signal(pid_t process, int number)
{
    kill(process, number);
    while (process_has_signal(process, "ShdPnd", number))
        usleep(500);
}

/* The processor's seconds that its threads have used; negative: there is no such process. */
static inline double process_work(pid_t process)
{
    struct timespec t;
    clockid_t clock;

    return clock_getcpuclockid(process, &clock) == 0 && clock_gettime(clock, &t) == 0
               ? (double)t.tv_sec + (double)t.tv_nsec * 1e-9
               : -1;
}

/* Until it has used so much more, however long others keep it from that, or has ended. */
static inline void process_wait_work(pid_t process, double seconds)
{
    double end = process_work(process) + seconds;

    while (!process_is_gone(process) && process_work(process) < end)
        usleep(500);
}

#endif
