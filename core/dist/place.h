/*
 * place.h - which of how many processes this one is, and where they meet: from flags or from what a
 * launcher put into the environment. Nothing is opened here.
 */
#ifndef CORE_DIST_PLACE_H
#define CORE_DIST_PLACE_H

#include <pons/plugin.h>

/*
 * What 'pons launch' adds to torchrun's RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR
 * and MASTER_PORT. Where the job's token is there, the launcher is 'pons launch'.
 */
#define DIST_TOKEN "PONS_JOB_TOKEN"       /* at most 128 characters                               */
#define DIST_LISTENER "PONS_STORE_SOCKET" /* rank 0 on a single node: number of a descriptor that */
                                          /* it inherits, a socket that listens at MASTER_PORT    */

/* 'size' is 1 where there is no launcher. */
typedef struct dist_place {
    int rank, size;
    int local_rank, local_size; /* among the processes of this node                               */
    char master[256];           /* host of the store, name or address; "" with size 1             */
    int port;
    int listener;               /* rank 0: the store's socket, listening already; -1: open one    */
    char token[129];            /* the job's: processes of another job are refused                */
    char origin[32];            /* "pons launch", "torchrun", "Open MPI", "SLURM", ...; "" none   */
} dist_place;

/* How the environment is read: getenv, or a table in tests. */
typedef const char *dist_look(void *context, const char *name);

/*
 * The first launcher whose variables are there decides; variables of one launcher that contradict
 * each other, or are no numbers in range, are PONS_CONFIG, with names and values.
 */
pons_status dist_place_find(dist_look *look, void *context, dist_place *out, pons_error *err);
/* One line: "rank 1 of 4, local rank 1 of 2, store node-a:29500 (SLURM)". */
void dist_place_tell(const dist_place *place, char *out, size_t size);

#endif
