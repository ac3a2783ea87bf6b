/*
 * limit.c - preloaded: MEMORY_LIMIT="RANK KIB" leaves one rank of a run so much memory for its
 * data; RANK -1 is a process that has none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

__attribute__((constructor)) static void limit(void)
{
    const char *text = getenv("MEMORY_LIMIT"), *rank = getenv("RANK");
    struct rlimit data;
    long kib;
    int which;

    if (text == NULL || sscanf(text, "%d %ld", &which, &kib) != 2
        || which != (rank != NULL ? atoi(rank) : -1))
        return;
    data.rlim_cur = data.rlim_max = (rlim_t)kib << 10;
    setrlimit(RLIMIT_DATA, &data);
}
