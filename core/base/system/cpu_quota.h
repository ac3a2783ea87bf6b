/*
 * cpu_quota.h - the processor time that the control group of a container or batch job allows. The
 * affinity mask, which says which processors may be used, is separate.
 */
#ifndef CORE_BASE_SYSTEM_CPU_QUOTA_H
#define CORE_BASE_SYSTEM_CPU_QUOTA_H

/*
 * The quota in processors, such as 2.5: the least of the group and its parents. INFINITY: unlimited
 * or unknown. 'list' has the format of /proc/self/cgroup; 'root' has the groups as folders, as
 * /sys/fs/cgroup. Both versions of control groups are read. Any thread.
 */
double cpu_quota_find(const char *list, const char *root);
/* Threads for each of 'sharers' of a quota, at least 1; INT_MAX: unlimited. */
int cpu_quota_threads(double quota, int sharers);

#endif
