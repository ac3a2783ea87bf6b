/*
 * cpu_quota.h - how much processor time the control group of this process leaves it (containers,
 * batch systems), beside which processors it may use.
 */
#ifndef CORE_BASE_SYSTEM_CPU_QUOTA_H
#define CORE_BASE_SYSTEM_CPU_QUOTA_H

/*
 * Processors' worth of time, 2.5 for instance; INFINITY: not limited, or not known. The least of
 * the group and all groups around it. 'list' is as /proc/self/cgroup, groups are folders in 'root',
 * as /sys/fs/cgroup; both versions of control groups are understood. Any thread.
 */
double quota_find(const char *list, const char *root);
/* Threads of each of 'sharers' of a quota, at least one; INT_MAX: it limits nothing. */
int quota_threads(double quota, int sharers);

#endif
