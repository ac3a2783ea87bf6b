/*
 * limit.c - preloaded: MEMORY_LIMIT="RANK KIB" limits the data memory of one rank; RANK -1 is a
 * process without a rank. With a third word, "addresses", the limit counts the whole address space:
 * stacks, code and reservations, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

__attribute__((constructor)) static void limit(void)
{
    const char *text = getenv("MEMORY_LIMIT"), *rank = getenv("RANK");
    struct rlimit most;
    char what[16] = "";
    long kib;
    int which;

    if (text == NULL || sscanf(text, "%d %ld %15s", &which, &kib, what) < 2
        || which != (rank != NULL ? atoi(rank) : -1))
        return;
    most.rlim_cur = most.rlim_max = (rlim_t)kib << 10;
    setrlimit(strcmp(what, "addresses") == 0 ? RLIMIT_AS : RLIMIT_DATA, &most);
}
