/*
 * memory_limit.c - the limits that end a process which takes more: the machine's memory, and the
 * limits of the control groups that the process is in, version 1 and 2. What is free at the moment
 * is not asked: it changes, and caches give way.
 */
#include "base/system/memory_limit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

/* A number of bytes in a file of one line; 0: "max", or no such file. */
static double read_limit(const char *path)
{
    FILE *file = fopen(path, "re");
    double bytes = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%lf", &bytes) != 1)
        bytes = 0;
    fclose(file);
    return bytes;
}

static double smaller(double room, double limit)
{
    return limit > 0 && limit < room ? limit : room;
}

/* The limits of a group and of all above it. */
static double smallest_above(double room, const char *root, char *group, const char *name)
{
    char path[PATH_MAX + 256];

    for (;;) {
        char *slash = strrchr(group, '/');
        snprintf(path, sizeof path, "%s%s/%s", root, group, name);
        room = smaller(room, read_limit(path));
        if (slash == NULL)
            return room;
        *slash = '\0';
    }
}

/* Lines of /proc/self/cgroup: "0::/a/b" of version 2, "5:cpu,memory:/a/b" of version 1. */
static double smallest_of_groups(double room)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[PATH_MAX];

    if (file == NULL)
        return room;
    while (fgets(line, sizeof line, file) != NULL) {
        char *names = strchr(line, ':'), *group = names != NULL ? strchr(names + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (names[1] == '\0')
            room = smallest_above(room, "/sys/fs/cgroup", group, "memory.max");
        else if (strstr(names, "memory") != NULL)
            room = smallest_above(room, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
    }
    fclose(file);
    return room;
}

double room_of_process(void)
{
    struct sysinfo facts;

    if (sysinfo(&facts) != 0)
        return 0;
    return smallest_of_groups((double)facts.totalram * facts.mem_unit)
           + (double)facts.totalswap * facts.mem_unit;
}
