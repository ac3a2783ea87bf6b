/*
 * process_state.c - see process_state.h.
 */
#include "support/process/process_state.h"

#include <stdlib.h>

char process_state(pid_t process)
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

int64_t process_number(const char *path, const char *word)
{
    FILE *file = fopen(path, "r");
    char line[512];
    int64_t found = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, word, strlen(word)) == 0)
            found = strtoll(line + strlen(word), NULL, 10);
    if (file != NULL)
        fclose(file);
    return found;
}

bool process_is_gone(pid_t process)
{
    char state = process_state(process);

    return state == 'Z' || state == 'X';
}

bool process_has_signal(pid_t process, const char *set, int number)
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

void process_signal(pid_t process, int number)
{
    kill(process, number);
    while (process_has_signal(process, "ShdPnd", number))
        usleep(500);
}

/* CPU seconds of the process's threads; negative: the process does not exist. */
static double process_work(pid_t process)
{
    struct timespec t;
    clockid_t clock;

    return clock_getcpuclockid(process, &clock) == 0 && clock_gettime(clock, &t) == 0
               ? (double)t.tv_sec + (double)t.tv_nsec * 1e-9
               : -1;
}

void process_wait_work(pid_t process, double seconds)
{
    double end = process_work(process) + seconds;

    while (!process_is_gone(process) && process_work(process) < end)
        usleep(500);
}
