/*
 * cgroup.c - walk over the control groups of a process. The meaning of their files is left to
 * cpu_quota.c and memory_limit.c.
 */
#include "base/system/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Visit a group and its parents up to 'top'. */
static void visit_parents(const char *top, const char *group, cgroup_visit *visit, void *context)
{
    char folder[PATH_MAX];
    size_t size = strlen(top);

    if ((size_t)snprintf(folder, sizeof folder, "%s%s", top, group) >= sizeof folder)
        return;
    visit(context, folder);
    while (strlen(folder) > size) {
        *strrchr(folder, '/') = '\0';
        visit(context, folder);
    }
}

/* Whether 'controller' is one of the names, such as "cpu,cpuacct", that end at 'end'. */
static bool has_controller(const char *names, const char *end, const char *controller)
{
    size_t size = strlen(controller);

    for (const char *at = names, *next; at < end; at = next + 1) {
        next = at + strcspn(at, ",:");
        if ((size_t)(next - at) == size && strncmp(at, controller, size) == 0)
            return true;
    }
    return false;
}

/* Lines are "0::/a/b" (version 2) or "5:cpu,cpuacct:/a/b" (version 1). */
void cgroup_each(const char *list, const char *root, const char *controller, cgroup_visit *visit,
                 void *context)
{
    char line[PATH_MAX], top[PATH_MAX];
    FILE *f = fopen(list, "re");

    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        char *names = strchr(line, ':');
        char *group = names != NULL ? strchr(names + 1, ':') : NULL;

        if (group == NULL)
            continue;
        line[strcspn(line, "\n")] = '\0';
        if (group == names + 1)
            visit_parents(root, group + 1, visit, context);
        else if (has_controller(names + 1, group, controller)
                 && (size_t)snprintf(top, sizeof top, "%s/%s", root, controller) < sizeof top)
            visit_parents(top, group + 1, visit, context);
    }
    if (f != NULL)
        fclose(f);
}

bool cgroup_read(const char *folder, const char *name, char *line, int size)
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
