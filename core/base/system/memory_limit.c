/*
 * memory_limit.c - the machine's memory and the limits of the process's control groups, version 1
 * and 2. A process that exceeds them is killed. Free memory is not used: it changes, and caches are
 * dropped on demand.
 */
#include "base/system/memory_limit.h"

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/system/cgroup.h"
#include "base/text/text.h"

static void keep_least(void *context, const char *folder)
{
    static const char *const files[] = { "memory.max", "memory.limit_in_bytes" };
    double *least = context, bytes;
    char line[64];

    for (int i = 0; i < 2; i++) /* of version 2, of version 1 */
        if (cgroup_read(folder, files[i], line, sizeof line) && text_real(line, &bytes)
            && bytes > 0)
            *least = fmin(*least, bytes);
}

double memory_limit_bytes(void)
{
    struct sysinfo facts;
    double least;

    if (sysinfo(&facts) != 0)
        return 0;
    least = (double)facts.totalram * facts.mem_unit;
    cgroup_each("/proc/self/cgroup", "/sys/fs/cgroup", "memory", keep_least, &least);
    return least + (double)facts.totalswap * facts.mem_unit;
}

double memory_resident_bytes(void)
{
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file == NULL)
        return 0;
    if (fscanf(file, "%ld %ld", &all, &pages) != 2)
        pages = 0;
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

double memory_peak_bytes(void)
{
    struct rusage used;

    return getrusage(RUSAGE_SELF, &used) == 0 ? (double)used.ru_maxrss * 1024 : 0;
}
