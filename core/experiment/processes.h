/*
 * processes.h - the processes of a run: whether there are several (ddp), and what joins them.
 */
#ifndef CORE_EXPERIMENT_PROCESSES_H
#define CORE_EXPERIMENT_PROCESSES_H

#include "base/log.h"
#include "config/sections.h"
#include "data/cache/cache.h"
#include "cluster/group/group.h"

typedef struct processes {
    dist_place place;
    const plugin *comm;      /* NULL: this process is alone                                       */
    device device;           /* has the stream of the communicator's work, where it has one       */
    group *group;            /* NULL: this process is alone                                       */
} processes;

/*
 * Find this process's place, and join the others where there are any: returns when all are there.
 * PONS_CONFIG where [distribute] mode means one process and a launcher has started several. From
 * then on 'l' shows warnings and errors alone where this is not rank 0 (-v: everything).
 */
pons_status processes_open(config *c, const sections *s, logger *l, processes *out,
                           pons_error *err);
/* Instead, where this process has failed before: the others end with its failure. */
void processes_refuse(const pons_error *failure);
/* 'failure': why this process leaves; where its status is not PONS_OK the others end with it. */
void processes_close(processes *p, const pons_error *failure);

/*
 * Whether [distribute] mode is ddp and no launcher has started this process; then how many 'pons
 * launch' is to start: one for each of [distribute] devices.
 */
pons_status processes_wanted(config *c, const sections *s, int *out, pons_error *err);

/*
 * What joins several cards of one process; *out = NULL: nothing that there is, or that [distribute]
 * backend names.
 */
pons_status processes_find_joint(config *c, const sections *s, logger *l, const plugin **out,
                                 pons_error *err);

/* The processes of 'g' as those that fill one cache of a machine; count 1 where 'g' is NULL. */
void processes_share_cache(group *g, cache_peers *out);
/* The least of a number over all processes of 'g'; itself where 'g' is NULL. */
pons_status processes_least(group *g, int mine, int *least, pons_error *err);

#endif
