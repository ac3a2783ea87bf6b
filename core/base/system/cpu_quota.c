/*
 * cpu_quota.c - read cpu.max of control groups version 2, and cpu.cfs_quota_us and
 * cpu.cfs_period_us of version 1.
 */
#include "base/system/cpu_quota.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/system/cgroup.h"
#include "base/text/text.h"

/* Quota / period, both in microseconds; INFINITY for "max" or -1. */
static double quotient_of(const char *quota, const char *period)
{
    double of, in;

    return text_real(quota, &of) && text_real(period, &in) && of > 0 && in > 0 ? of / in : INFINITY;
}

static double read_quota(const char *folder)
{
    char line[128], period[64];

    if (cgroup_read(folder, "cpu.max", line, sizeof line)) {
        char *space = strchr(line, ' ');
        if (space == NULL)
            return INFINITY;
        *space = '\0';
        return quotient_of(line, space + 1);
    }
    if (cgroup_read(folder, "cpu.cfs_quota_us", line, sizeof line)
        && cgroup_read(folder, "cpu.cfs_period_us", period, sizeof period))
        return quotient_of(line, period);
    return INFINITY;
}

static void keep_least(void *context, const char *folder)
{
    double *least = context;

    *least = fmin(*least, read_quota(folder));
}

double cpu_quota_find(const char *list, const char *root)
{
    double least = INFINITY;

    cgroup_each(list, root, "cpu", keep_least, &least);
    return least;
}

int cpu_quota_threads(double quota, int sharers)
{
    double most = floor(quota / sharers);

    return most < INT_MAX ? (int)fmax(1, most) : INT_MAX;
}
