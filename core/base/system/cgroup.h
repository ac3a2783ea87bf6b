/*
 * cgroup.h - the control groups of a process, of version 1 and 2, and their settings.
 */
#ifndef CORE_BASE_SYSTEM_CGROUP_H
#define CORE_BASE_SYSTEM_CGROUP_H

#include <stdbool.h>

typedef void cgroup_visit(void *context, const char *folder);

/*
 * Call 'visit' with the folder of each group and of all its parents; in a container some of them do
 * not exist. 'list' has the format of /proc/self/cgroup; 'root' has the groups as folders, as
 * /sys/fs/cgroup. Of version 1 only groups of 'controller' are visited, such as "cpu". Any thread.
 */
void cgroup_each(const char *list, const char *root, const char *controller, cgroup_visit *visit,
                 void *context);
/* Read the first line of a file in a group's folder; false if there is none. Any thread. */
bool cgroup_read(const char *folder, const char *name, char *line, int size);

#endif
