/*
 * rank_info.h - rank and size of this process and the address of the store, from the environment
 * variables of the launcher. Nothing is opened here.
 *
 * The first launcher of this list whose variables are set is used:
 *
 *   pons launch   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT, and the
 *                 job's token, which identifies the launcher
 *   torchrun      the same six, TORCHELASTIC_RUN_ID as token. If its agent has its own store at
 *                 MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE), our port is derived from both
 *   Open MPI      OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
 *   PMI, PMIx     PMI_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}, MPI_LOCAL{RANKID,NRANKS}, PMIX_RANK
 *   SLURM         SLURM_{PROCID,STEP_NUM_TASKS,NTASKS,LOCALID} in a step of srun with several tasks
 *   Kubernetes    JOB_COMPLETION_INDEX with WORLD_SIZE and MASTER_ADDR
 *
 * MASTER_ADDR and MASTER_PORT apply to all of them. Without them the store is on the first node of
 * SLURM's list, or on this node if all processes are on it, at a port derived from the job's token.
 * RANK without LOCAL_RANK means one process per node. WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE
 * must agree with the variables of another launcher.
 *
 * Ranks of several launchers must agree if they number equally many processes: srun's PMI_RANK is
 * SLURM_PROCID, mpirun's PMIX_RANK is OMPI_COMM_WORLD_RANK, and a RANK set by hand is that of the
 * launcher. If the numbers of processes differ, one launcher runs inside the other, and its daemons
 * are the tasks of a step (mpirun or mpiexec in a job of SLURM). 'pons launch' and torchrun number
 * their processes anew, whatever launcher is around them.
 */
#ifndef CORE_CLUSTER_RENDEZVOUS_RANK_INFO_H
#define CORE_CLUSTER_RENDEZVOUS_RANK_INFO_H

#include <pons/plugin.h>

/*
 * Variables that 'pons launch' adds to torchrun's RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
 * MASTER_ADDR and MASTER_PORT. The job's token identifies the launcher as 'pons launch'.
 */
#define RANK_INFO_TOKEN "PONS_JOB_TOKEN"  /* at most 128 characters                               */
#define RANK_INFO_LISTENER "PONS_STORE_SOCKET" /* rank 0 of a single node: inherited   */
                                          /* socket that listens at MASTER_PORT   */

/* Rank and size of a process; 'size' is 1 without a launcher. */
typedef struct rank_info {
    int rank, size;
    int local_rank, local_size; /* among the processes of this node                               */
    bool local_guessed;         /* local_size is unknown: it is the most that the ranks allow     */
    char master[256];           /* host of the store; "" with size 1                              */
    int port;
    int listener;               /* rank 0: inherited socket of the store; -1: open one            */
    char token[129];            /* the job's; processes of other jobs are refused                 */
    char origin[32];            /* "pons launch", "SLURM", ...; "": none                          */
    char remark[192];           /* warning for a user who may want several processes; "": none    */
} rank_info;

/* A reader of the environment: getenv, or a table in tests. */
typedef const char *rank_info_getenv(void *context, const char *name);

/*
 * Read the environment. Variables that disagree or are out of range are PONS_CONFIG with both
 * values.
 */
pons_status rank_info_find(rank_info_getenv *look, void *context, rank_info *out, pons_error *err);
/*
 * Replace a guessed local_size by 'listed', the length of a list with one entry per process of this
 * node, if the ranks allow it.
 */
void rank_info_set_local_size(rank_info *place, int listed);
/* Write one line: "rank 1 of 4, local rank 1 of 2, store node-a:29500 (SLURM)". */
void rank_info_print(const rank_info *place, char *out, size_t size);

#endif
