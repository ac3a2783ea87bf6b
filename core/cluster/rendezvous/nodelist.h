/*
 * nodelist.h - SLURM's short forms for lists: of nodes, and of how many tasks each has.
 */
#ifndef CORE_CLUSTER_RENDEZVOUS_NODELIST_H
#define CORE_CLUSTER_RENDEZVOUS_NODELIST_H

#include <stdbool.h>
#include <stddef.h>

/* The first node of "gpu[003-006,9],login" is gpu003; false where the text is no such list. */
bool nodelist_first(const char *list, char *out, size_t size);
/* How many tasks node 'node' of "2(x3),1" has; 0 where the text says none. */
int nodelist_tasks(const char *list, int node);

#endif
