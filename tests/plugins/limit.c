/*
 * limit.c - preloaded: MEMORY_LIMIT="RANK KIB" leaves one rank of a run so much memory for its
 * data; RANK -1 is a process that has none. With a third word, "addresses", what is limited is all
 * that it maps: stacks, code and what is reserved count then, too.
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
