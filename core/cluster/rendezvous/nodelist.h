/*
 * nodelist.h - SLURM's short lists of nodes, and of the number of tasks per node.
 */
#ifndef CORE_CLUSTER_RENDEZVOUS_NODELIST_H
#define CORE_CLUSTER_RENDEZVOUS_NODELIST_H

#include <stdbool.h>
#include <stddef.h>

/* The first node of a list: gpu003 of "gpu[003-006,9],login". False if the text is no such list. */
bool nodelist_first(const char *list, char *out, size_t size);
/* The number of tasks on node 'node': 1 on node 3 of "2(x3),1"; 0 if the text gives none. */
int nodelist_tasks(const char *list, int node);

#endif
