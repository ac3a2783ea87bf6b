/*
 * processes.h - the processes of a run (ddp) and the comm plugin that joins them.
 */
#ifndef CORE_EXPERIMENT_PROCESSES_H
#define CORE_EXPERIMENT_PROCESSES_H

#include "base/log.h"
#include "config/sections.h"
#include "data/cache/cache.h"
#include "cluster/group/group.h"

typedef struct processes {
    rank_info place;
    const plugin *comm;      /* NULL: a single process                                            */
    device device;           /* provides the stream for the communicator's work, if it needs one  */
    group *group;            /* NULL: a single process                                            */
} processes;

/*
 * Find this process's rank and join the others; returns when all have joined. PONS_CONFIG if
 * [distribute] mode means a single process but a launcher has started several. After it, 'l' shows
 * warnings and errors alone unless this is rank 0 (-v: everything).
 */
pons_status processes_open(config *c, const sections *s, logger *l, processes *out,
                           pons_error *err);
/* Called instead of processes_open after an earlier error: the other processes end with it. */
void processes_refuse(const pons_error *failure);
/* Leave the group. If 'failure' is not PONS_OK, the other processes end with it. */
void processes_close(processes *p, const pons_error *failure);

/*
 * The number of processes that 'pons launch' is to start, one for each of [distribute] devices. 0:
 * mode is not ddp, or a launcher has started this process.
 */
pons_status processes_wanted(config *c, const sections *s, int *out, pons_error *err);

/*
 * The comm plugin for several GPUs of one process. *out = NULL: none is available, or [distribute]
 * backend names none for GPUs.
 */
pons_status processes_find_comm(config *c, const sections *s, logger *l, const plugin **out,
                                pons_error *err);

/* The processes of 'g' that fill a common cache; count 1 if 'g' is NULL. */
void processes_cache_peers(group *g, cache_peers *out);
/* The minimum of a number over the processes of 'g'; the number itself if 'g' is NULL. */
pons_status processes_minimum(group *g, int mine, int *least, pons_error *err);

#endif
