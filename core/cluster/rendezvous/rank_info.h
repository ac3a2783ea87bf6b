/*
 * rank_info.h - which of how many processes this one is, and where they meet: from what a launcher
 * put into the environment. Nothing is opened here.
 *
 * In this order, the first that is there decides:
 *
 *   pons launch   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT, and the
 *                 job's token, by which it is known
 *   torchrun      the same six, TORCHELASTIC_RUN_ID as token. Where its agent keeps a store of its
 *                 own at MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE), ours has a port made from both
 *   Open MPI      OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
 *   PMI, PMIx     PMI_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}, MPI_LOCAL{RANKID,NRANKS}, PMIX_RANK
 *   SLURM         SLURM_{PROCID,STEP_NUM_TASKS,NTASKS,LOCALID} in a step of srun with several tasks
 *   Kubernetes    JOB_COMPLETION_INDEX with WORLD_SIZE and MASTER_ADDR
 *
 * MASTER_ADDR and MASTER_PORT count for all of them. Without, the store is on the first node of
 * SLURM's list, or on this node where all processes are on it, at a port made from the job's token.
 * RANK without LOCAL_RANK is one process per node. WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE
 * beside another launcher's variables must have the same values as those.
 *
 * Several launchers' ranks contradict each other where they are of as many processes: srun's
 * PMI_RANK is SLURM_PROCID, mpirun's PMIX_RANK is OMPI_COMM_WORLD_RANK, and a RANK set by hand is
 * that of the launcher. Where they are of other numbers of processes, one launcher runs inside of
 * the other: its daemons are the tasks of a step (mpirun, mpiexec in a job of SLURM). 'pons launch'
 * and torchrun number their processes anew, whatever is around them.
 */
#ifndef CORE_CLUSTER_RENDEZVOUS_RANK_INFO_H
#define CORE_CLUSTER_RENDEZVOUS_RANK_INFO_H

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
    int local_rank, local_size; /* among the processes of this node; where no variable says how   */
                                /* many, the most that the ranks allow:                           */
    bool local_guessed;
    char master[256];           /* host of the store, name or address; "" with size 1             */
    int port;
    int listener;               /* rank 0: the store's socket, listening already; -1: open one    */
    char token[129];            /* the job's: processes of another job are refused                */
    char origin[32];            /* "pons launch", "torchrun", "Open MPI", "SLURM", ...; "" none   */
    char remark[192];           /* what a user should know who meant several; "": nothing         */
} dist_place;

/* How the environment is read: getenv, or a table in tests. */
typedef const char *dist_look(void *context, const char *name);

/* Variables that contradict each other, or are no numbers in range, are PONS_CONFIG, with both. */
pons_status dist_place_find(dist_look *look, void *context, dist_place *out, pons_error *err);
/*
 * Something lists 'listed' things for the processes of this node, one for each: so many there are,
 * where that is not known and can be.
 */
void dist_place_settle(dist_place *place, int listed);
/* One line: "rank 1 of 4, local rank 1 of 2, store node-a:29500 (SLURM)". */
void dist_place_tell(const dist_place *place, char *out, size_t size);

#endif
