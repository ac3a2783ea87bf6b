/*
 * process_state.h - what the system says of another process.
 */
#ifndef TESTS_PROCESS_STATE_H
#define TESTS_PROCESS_STATE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

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

#endif
