/*
 * cpu_quota.c - cpu.max of the second version of control groups, cpu.cfs_quota_us and
 * cpu.cfs_period_us of the first one.
 */
#include "base/system/cpu_quota.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"

/* The first line of a file of 'folder'. */
static bool read_line(const char *folder, const char *name, char *line, int size)
{
    char path[PATH_MAX];
    bool found;
    FILE *f;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return false;
    f = fopen(path, "re");
    if (f == NULL)
        return false;
    found = fgets(line, size, f) != NULL;
    fclose(f);
    if (found)
        line[strcspn(line, "\n")] = '\0';
    return found;
}

/* Microseconds of each period; "max" or -1: all. */
static double share_of(const char *quota, const char *period)
{
    double of, in;

    return text_real(quota, &of) && text_real(period, &in) && of > 0 && in > 0 ? of / in : INFINITY;
}

static double read_folder(const char *folder)
{
    char line[128], period[64];

    if (read_line(folder, "cpu.max", line, sizeof line)) {
        char *space = strchr(line, ' ');
        if (space == NULL)
            return INFINITY;
        *space = '\0';
        return share_of(line, space + 1);
    }
    if (read_line(folder, "cpu.cfs_quota_us", line, sizeof line)
        && read_line(folder, "cpu.cfs_period_us", period, sizeof period))
        return share_of(line, period);
    return INFINITY;
}

/* A group and those around it. In a container the list may name folders that are not seen there. */
static double read_groups(const char *top, const char *group)
{
    char folder[PATH_MAX];
    size_t size = strlen(top);
    double least;

    if ((size_t)snprintf(folder, sizeof folder, "%s%s", top, group) >= sizeof folder)
        return INFINITY;
    least = read_folder(folder);
    while (strlen(folder) > size) {
        *strrchr(folder, '/') = '\0';
        least = fmin(least, read_folder(folder));
    }
    return least;
}

/* Whether "cpu" is one of the controllers "cpu,cpuacct". */
static bool has_cpu(const char *controllers, const char *end)
{
    for (const char *at = controllers, *next; at < end; at = next + 1) {
        next = at + strcspn(at, ",:");
        if (next - at == 3 && strncmp(at, "cpu", 3) == 0)
            return true;
    }
    return false;
}

int quota_threads(double quota, int sharers)
{
    double most = floor(quota / sharers);

    return most < INT_MAX ? (int)fmax(1, most) : INT_MAX;
}

double quota_find(const char *list, const char *root)
{
    char line[PATH_MAX], top[PATH_MAX];
    double least = INFINITY;
    FILE *f = fopen(list, "re");

    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;

        if (group == NULL)
            continue;
        line[strcspn(line, "\n")] = '\0';
        if (group == controllers + 1) /* the second version: "0::/group" */
            least = fmin(least, read_groups(root, group + 1));
        else if (has_cpu(controllers + 1, group)
                 && (size_t)snprintf(top, sizeof top, "%s/cpu", root) < sizeof top)
            least = fmin(least, read_groups(top, group + 1));
    }
    if (f != NULL)
        fclose(f);
    return least;
}
