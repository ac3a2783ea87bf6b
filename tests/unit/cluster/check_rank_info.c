/*
 * check_rank_info.c - the environments that launchers set, and contradictory ones.
 */
#include <config.h>

#include "cluster/rendezvous/nodelist.h"
#include "cluster/rendezvous/rank_info.h"

#include "support/suite.h"

#include <string.h>

enum { VARIABLES = 24 };

/* Variables as "NAME=value", and the expected rank info. */
typedef struct environment {
    const char *name;
    const char *variable[VARIABLES];
    const char *told;           /* line of rank_info_print, or a part of the refusal              */
    const char *token;
} environment;

static const char *look(void *context, const char *name)
{
    const environment *e = context;
    size_t size = strlen(name);

    for (int i = 0; i < VARIABLES && e->variable[i] != NULL; i++)
        if (strncmp(e->variable[i], name, size) == 0 && e->variable[i][size] == '=')
            return e->variable[i] + size + 1;
    return NULL;
}

#define SLURM_BATCH "SLURM_JOB_ID=4711", "SLURM_JOBID=4711", "SLURM_JOB_NODELIST=gpu[07-08]", \
    "SLURM_NODELIST=gpu[07-08]", "SLURM_JOB_NUM_NODES=2", "SLURM_NNODES=2"
#define SLURM_TASK SLURM_BATCH, "SLURM_STEP_ID=0", "SLURM_STEPID=0", \
    "SLURM_STEP_NODELIST=gpu[07-08]", "SLURM_STEP_TASKS_PER_NODE=2(x2)"

static const environment good[] = {
    { "nothing", { "HOME=/root" }, "rank 0 of 1, local rank 0 of 1", "" },
    { "pons launch", { "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
        "MASTER_ADDR=127.0.0.1", "MASTER_PORT=45123", "PONS_JOB_TOKEN=9f3c" },
      "rank 1 of 2, local rank 1 of 2, store 127.0.0.1:45123 (pons launch)", "9f3c" },
    { "pons launch in a step of SLURM with as many tasks", { SLURM_TASK, "SLURM_PROCID=3",
        "SLURM_STEP_NUM_TASKS=4", "SLURM_LOCALID=1", "RANK=0", "WORLD_SIZE=4", "LOCAL_RANK=0",
        "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=::1", "MASTER_PORT=45123", "PONS_JOB_TOKEN=9f3c" },
      "rank 0 of 4, local rank 0 of 4, store [::1]:45123 (pons launch)", "9f3c" },
    { "torchrun with a static meeting", { "RANK=3", "GROUP_RANK=1", "ROLE_RANK=3", "WORLD_SIZE=4",
        "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=node-a", "MASTER_PORT=29500",
        "TORCHELASTIC_RUN_ID=none", "TORCHELASTIC_USE_AGENT_STORE=False",
        "TORCHELASTIC_RESTART_COUNT=0" },
      "rank 3 of 4, local rank 1 of 2, store node-a:29500 (torchrun)", "none" },
    { "RANK alone is one process per node", { "RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=10.0.0.1",
        "MASTER_PORT=29500" },
      "rank 1 of 2, local rank 0 of 1, store 10.0.0.1:29500 (environment)", "" },
    { "LOCAL_RANK without LOCAL_WORLD_SIZE on the first node", { "RANK=1", "WORLD_SIZE=2",
        "LOCAL_RANK=1", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500" },
      "rank 1 of 2, local rank 1 of 2, store 10.0.0.1:29500 (environment)", "" },
    { "LOCAL_RANK without LOCAL_WORLD_SIZE on the last node", { "RANK=6", "WORLD_SIZE=8",
        "LOCAL_RANK=2", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500" },
      "rank 6 of 8, local rank 2 of 4, store 10.0.0.1:29500 (environment)", "" },
    { "LOCAL_RANK of a task that sees one card of its own", { SLURM_TASK, "SLURM_PROCID=3",
        "SLURM_STEP_NUM_TASKS=4", "SLURM_LOCALID=1", "RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=0",
        "MASTER_ADDR=gpu07", "MASTER_PORT=29500" },
      "rank 3 of 4, local rank 0 of 1, store gpu07:29500 (environment)", "" },
    { "one process needs no meeting place", { "RANK=0", "WORLD_SIZE=1" },
      "rank 0 of 1, local rank 0 of 1 (environment)", "" },
    { "Open MPI 4 on one node", { "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2",
        "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
        "OMPI_MCA_ess_base_jobid=1066795009", "PMIX_NAMESPACE=1066795009", "PMIX_RANK=1",
        "MASTER_PORT=31000" },
      "rank 1 of 2, local rank 1 of 2, store 127.0.0.1:31000 (Open MPI)", "1066795009" },
    { "Open MPI on two nodes", { "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4",
        "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=2", "MASTER_ADDR=node-a",
        "WORLD_SIZE=4", "LOCAL_RANK=0" },
      "rank 2 of 4, local rank 0 of 2, store node-a:29500 (Open MPI)", "" },
    /* The daemons that mpirun starts on the other nodes are a SLURM step of their own. */
    { "Open MPI in a batch script of SLURM", { SLURM_BATCH, "SLURM_NTASKS=4", "SLURM_PROCID=0",
        "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=gpu08", "SLURM_STEP_NUM_TASKS=1",
        "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
        "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=77", "MASTER_PORT=2" },
      "rank 3 of 4, local rank 1 of 2, store gpu07:2 (Open MPI)", "77" },
    { "Hydra of MPICH", { "PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2",
        "PMI_FD=9" },
      "rank 1 of 2, local rank 1 of 2, store 127.0.0.1:29500 (PMI)", "" },
    { "srun --mpi=pmi2", { SLURM_TASK, "PMI_RANK=2", "PMI_SIZE=4", "SLURM_PROCID=2",
        "SLURM_STEP_NUM_TASKS=4", "SLURM_NTASKS=4", "SLURM_LOCALID=0", "MASTER_PORT=29501" },
      "rank 2 of 4, local rank 0 of 2, store gpu07:29501 (PMI)", "4711.0" },
    { "srun --mpi=pmix", { SLURM_TASK, "PMIX_RANK=3", "PMIX_NAMESPACE=slurm.pmix.4711.0",
        "SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS=4", "SLURM_LOCALID=1", "MASTER_PORT=29501" },
      "rank 3 of 4, local rank 1 of 2, store gpu07:29501 (PMI)", "slurm.pmix.4711.0" },
    { "srun --mpi=pmix, first node of two", { SLURM_TASK, "PMIX_RANK=1",
        "PMIX_NAMESPACE=slurm.pmix.4711.0", "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=4",
        "SLURM_LOCALID=1", "SLURM_NODEID=0", "MASTER_PORT=2" },
      "rank 1 of 4, local rank 1 of 2, store gpu07:2 (PMI)", "slurm.pmix.4711.0" },
    { "srun --mpi=pmi2, first node of two", { SLURM_BATCH, "SLURM_STEP_ID=0", "PMI_RANK=0",
        "PMI_SIZE=4", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=4", "SLURM_LOCALID=0",
        "SLURM_NODEID=0", "SLURM_STEP_TASKS_PER_NODE=3,1", "MASTER_PORT=2" },
      "rank 0 of 4, local rank 0 of 3, store gpu07:2 (PMI)", "4711.0" },
    { "a PMI of another number of processes than the step around it", { SLURM_TASK, "PMI_RANK=2",
        "PMI_SIZE=4", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_LOCALID=0",
        "SLURM_NODEID=0", "MASTER_PORT=2" },
      "rank 2 of 4, local rank 0 of 2, store gpu07:2 (PMI)", "4711" },
    { "srun on two nodes", { SLURM_TASK, "SLURM_PROCID=3", "SLURM_NTASKS=4",
        "SLURM_STEP_NUM_TASKS=4", "SLURM_LOCALID=1", "SLURM_NODEID=1", "MASTER_PORT=29501",
        "WORLD_SIZE=4" },
      "rank 3 of 4, local rank 1 of 2, store gpu07:29501 (SLURM)", "4711.0" },
    { "srun with a node that has fewer tasks", { SLURM_BATCH, "SLURM_PROCID=2", "SLURM_NTASKS=3",
        "SLURM_STEP_ID=5", "SLURM_STEP_NODELIST=gpu08", "SLURM_TASKS_PER_NODE=2,1",
        "SLURM_LOCALID=0", "SLURM_NODEID=1", "MASTER_PORT=29501", "MASTER_ADDR=gpu07-ib" },
      "rank 2 of 3, local rank 0 of 1, store gpu07-ib:29501 (SLURM)", "4711.5" },
    { "a batch script without srun", { SLURM_BATCH, "SLURM_PROCID=0", "SLURM_LOCALID=0",
        "SLURM_NTASKS=4", "SLURM_NODEID=0", "SLURM_TASKS_PER_NODE=2(x2)", "ENVIRONMENT=BATCH" },
      "rank 0 of 1, local rank 0 of 1", "" },
    { "a batch script that has the number of its own step", { SLURM_BATCH, "SLURM_PROCID=0",
        "SLURM_NTASKS=4", "SLURM_STEP_ID=4294967291", "SLURM_STEPID=4294967291" },
      "rank 0 of 1, local rank 0 of 1", "" },
    { "srun of one task", { SLURM_BATCH, "SLURM_PROCID=0", "SLURM_NTASKS=1",
        "SLURM_STEP_NUM_TASKS=1", "SLURM_STEP_ID=0" },
      "rank 0 of 1, local rank 0 of 1", "" },
    { "Kubernetes", { "JOB_COMPLETION_INDEX=1", "WORLD_SIZE=2", "MASTER_ADDR=pons-0.pons",
        "TORCHELASTIC_RUN_ID=6ab2" , "MASTER_PORT=29500", "KUBERNETES_SERVICE_HOST=10.96.0.1" },
      "rank 1 of 2, local rank 0 of 1, store pons-0.pons:29500 (Kubernetes)", "6ab2" },
    { "the first launcher decides", { "RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1",
        "LOCAL_WORLD_SIZE=4", "MASTER_ADDR=a", "MASTER_PORT=1", "OMPI_COMM_WORLD_RANK=1",
        "OMPI_COMM_WORLD_SIZE=2", "JOB_COMPLETION_INDEX=1", "PMI_RANK=0", "PMI_SIZE=1" },
      "rank 5 of 8, local rank 1 of 4, store a:1 (environment)", "" },
    { "torchrun in a batch script of SLURM", { SLURM_BATCH, "SLURM_PROCID=0", "SLURM_LOCALID=0",
        "SLURM_NTASKS=1", "RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4",
        "MASTER_ADDR=gpu07", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=4711" },
      "rank 5 of 8, local rank 1 of 4, store gpu07:29500 (torchrun)", "4711" },
    /* torchrun assigns ranks in the order in which nodes arrive. */
    { "torchrun in a step of SLURM with a task per node", { SLURM_TASK, "SLURM_PROCID=1",
        "SLURM_STEP_NUM_TASKS=2", "SLURM_LOCALID=0", "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0",
        "LOCAL_WORLD_SIZE=1", "MASTER_ADDR=gpu07", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=5" },
      "rank 0 of 2, local rank 0 of 1, store gpu07:29500 (torchrun)", "5" },
    { "Open MPI over a step of daemons that know PMI", { SLURM_TASK, "SLURM_PROCID=0",
        "SLURM_STEP_NUM_TASKS=2", "SLURM_LOCALID=0", "PMI_RANK=0", "PMI_SIZE=2",
        "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "PMIX_NAMESPACE=77",
        "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=1", "MASTER_PORT=2" },
      "rank 1 of 2, local rank 0 of 1, store gpu07:2 (Open MPI)", "77" },
    { "Open MPI over one daemon that knows a PMI without a size", { SLURM_BATCH, "SLURM_PROCID=0",
        "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1", "PMI_RANK=0", "PMI_LOCAL_RANK=0",
        "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
        "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=77", "MASTER_PORT=2" },
      "rank 3 of 4, local rank 1 of 2, store gpu07:2 (Open MPI)", "77" },
    { "Open MPI in a shell that is a task of its own", { "PMI_RANK=0", "PMI_SIZE=1",
        "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
        "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_RANK=1" },
      "rank 1 of 2, local rank 1 of 2, store 127.0.0.1:29500 (Open MPI)", "" },
    { "Hydra over a step of its proxies", { SLURM_TASK, "SLURM_PROCID=1", "SLURM_LOCALID=0",
        "SLURM_STEP_NUM_TASKS=2", "PMI_RANK=2", "PMI_SIZE=4", "PMI_LOCAL_RANK=0",
        "PMI_LOCAL_SIZE=2", "PMIX_RANK=1", "MASTER_PORT=2" },
      "rank 2 of 4, local rank 0 of 2, store gpu07:2 (PMI)", "4711" },
    { "an empty variable is none", { "RANK=", "WORLD_SIZE=", "LOCAL_RANK=" },
      "rank 0 of 1, local rank 0 of 1", "" }
};

START_TEST(every_launcher_is_understood)
{
    environment e = good[_i];
    pons_error err = PONS_ERROR_INIT;
    rank_info place;
    char told[512];

    ck_assert_msg(rank_info_find(look, &e, &place, &err) == PONS_OK, "%s: %s", e.name, err.text);
    rank_info_print(&place, told, sizeof told);
    ck_assert_msg(strcmp(told, e.told) == 0, "%s: found '%s', expected '%s'", e.name, told, e.told);
    ck_assert_msg(strcmp(place.token, e.token) == 0, "%s: token '%s'", e.name, place.token);
    ck_assert_int_eq(place.listener, -1);
    ck_assert_str_eq(place.remark, "");
}
END_TEST

/* Kubernetes also numbers independent runs. */
START_TEST(a_numbered_process_without_a_size_runs_alone_with_a_hint)
{
    environment e = { .name = "an index", .variable = { "JOB_COMPLETION_INDEX=3" } };
    pons_error err = PONS_ERROR_INIT;
    rank_info place;

    ck_assert_msg(rank_info_find(look, &e, &place, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(place.size, 1);
    ck_assert_str_eq(place.remark, "JOB_COMPLETION_INDEX = '3' is in the environment, but neither "
                     "WORLD_SIZE nor MASTER_ADDR: this process is alone");
}
END_TEST

#define MASTER "MASTER_ADDR=a", "MASTER_PORT=29500"
#define LONG "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const environment bad[] = {
    { "rank", { "RANK=2", "WORLD_SIZE=2", MASTER },
      "RANK = 2 in the environment is not below WORLD_SIZE = 2", NULL },
    { "no number", { "RANK=one", "WORLD_SIZE=2", MASTER },
      "RANK = 'one' in the environment is no number from 0 to 65535", NULL },
    { "negative", { "RANK=-1", "WORLD_SIZE=2", MASTER }, "RANK = '-1'", NULL },
    { "no processes", { "RANK=0", "WORLD_SIZE=0", MASTER }, "WORLD_SIZE = '0'", NULL },
    { "overflow", { "RANK=0", "WORLD_SIZE=99999999999999999999", MASTER },
      "WORLD_SIZE = '99999999999999999999'", NULL },
    { "no size", { "RANK=0", MASTER },
      "RANK = '0' is in the environment, but WORLD_SIZE is not", NULL },
    { "no rank", { "WORLD_SIZE=2", MASTER },
      "WORLD_SIZE = '2' is in the environment, but RANK is not", NULL },
    { "local rank alone", { "LOCAL_RANK=0" },
      "LOCAL_RANK = '0' is in the environment, but RANK is not", NULL },
    { "local rank", { "RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2", MASTER },
      "LOCAL_RANK = 2 in the environment is not below LOCAL_WORLD_SIZE = 2", NULL },
    { "local rank above rank", { "RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=4",
        MASTER }, "LOCAL_RANK = 2 in the environment is above RANK = 1", NULL },
    { "local size", { "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4", MASTER },
      "LOCAL_WORLD_SIZE = 4 in the environment is above WORLD_SIZE = 2", NULL },
    { "local size without local rank", { "RANK=1", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", MASTER },
      "LOCAL_WORLD_SIZE = '2' is in the environment, but LOCAL_RANK is not", NULL },
    { "no room for the node's others", { "RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=0",
        "LOCAL_WORLD_SIZE=2", MASTER },
      "RANK = 3, LOCAL_RANK = 0 and LOCAL_WORLD_SIZE = 2 contradict each other", NULL },
    { "no master", { "RANK=0", "WORLD_SIZE=2", "MASTER_PORT=1" },
      "RANK = '0' is in the environment, but MASTER_ADDR is not", NULL },
    { "no port", { "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a" },
      "RANK = '0' is in the environment, but MASTER_PORT is not", NULL },
    { "port", { "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=65536" },
      "MASTER_PORT = '65536' in the environment is no number from 1 to 65535", NULL },
    { "master", { "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=http://a", "MASTER_PORT=1" },
      "MASTER_ADDR = 'http://a' in the environment is no host", NULL },
    { "token", { "RANK=0", "WORLD_SIZE=2", MASTER, "PONS_JOB_TOKEN=" LONG LONG "x" },
      "PONS_JOB_TOKEN in the environment has 129 bytes, expected at most 128", NULL },
    { "RANK for all processes alike", { "RANK=0", "WORLD_SIZE=2", MASTER,
        "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2" },
      "RANK = 0 and OMPI_COMM_WORLD_RANK = 1 contradict each other", NULL },
    { "Open MPI and PMI", { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", MASTER,
        "PMI_RANK=1", "PMI_SIZE=2" },
      "OMPI_COMM_WORLD_RANK = 0 and PMI_RANK = 1 contradict each other", NULL },
    { "Open MPI and a PMI without a size", { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2",
        MASTER, "PMI_RANK=1" },
      "OMPI_COMM_WORLD_RANK = 0 and PMI_RANK = 1 contradict each other", NULL },
    { "Open MPI and its PMIx", { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", MASTER,
        "PMIX_RANK=1" },
      "OMPI_COMM_WORLD_RANK = 0 and PMIX_RANK = 1 contradict each other", NULL },
    { "local ranks of Open MPI and PMI", { "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4",
        "OMPI_COMM_WORLD_LOCAL_RANK=0", MASTER, "PMI_RANK=2", "PMI_SIZE=4", "PMI_LOCAL_RANK=1" },
      "OMPI_COMM_WORLD_LOCAL_RANK = 0 and PMI_LOCAL_RANK = 1 contradict each other", NULL },
    { "PMI and PMIx", { "PMI_RANK=0", "PMI_SIZE=2", "PMIX_RANK=1", MASTER },
      "PMI_RANK = 0 and PMIX_RANK = 1 contradict each other", NULL },
    { "srun's PMI and its task", { SLURM_TASK, "PMI_RANK=2", "PMI_SIZE=4", "SLURM_PROCID=1",
        "SLURM_STEP_NUM_TASKS=4" }, "PMI_RANK = 2 and SLURM_PROCID = 1 contradict each other",
      NULL },
    { "srun's PMIx and its task", { SLURM_TASK, "PMIX_RANK=2", "SLURM_PROCID=1",
        "SLURM_STEP_NUM_TASKS=4" }, "PMIX_RANK = 2 and SLURM_PROCID = 1 contradict each other",
      NULL },
    { "no number beside", { "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", MASTER,
        "PMI_RANK=one" }, "PMI_RANK = 'one' in the environment is no number", NULL },
    { "Open MPI and WORLD_SIZE", { "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", MASTER,
        "WORLD_SIZE=4" }, "WORLD_SIZE = 4 and OMPI_COMM_WORLD_SIZE = 2 contradict", NULL },
    { "Open MPI without a rank", { "OMPI_COMM_WORLD_SIZE=2", MASTER },
      "OMPI_COMM_WORLD_SIZE = '2' is in the environment, but OMPI_COMM_WORLD_RANK is not", NULL },
    { "Open MPI on several nodes", { "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4",
        "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2" },
      "nothing in the environment says on which node rank 0 is\nhint: set MASTER_ADDR for all "
      "processes (mpirun -x MASTER_ADDR=HOST)", NULL },
    { "PMI on several nodes", { "PMI_RANK=1", "PMI_SIZE=4" },
      "PMI_RANK = 1: nothing in the environment says on which node rank 0 is\nhint: set "
      "MASTER_ADDR for all processes (mpiexec -genv MASTER_ADDR HOST)", NULL },
    { "SLURM on several nodes", { "SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_ID=0",
        "SLURM_LOCALID=0" },
      "SLURM_PROCID = 1: nothing in the environment says on which node rank 0 is\nhint: set "
      "MASTER_ADDR for all processes (srun --export=ALL,MASTER_ADDR=HOST)", NULL },
    { "Open MPI's rank", { "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=2", MASTER },
      "OMPI_COMM_WORLD_RANK = 2 in the environment is not below OMPI_COMM_WORLD_SIZE = 2", NULL },
    { "PMIx alone", { "PMIX_RANK=1" },
      "PMIX_RANK = '1' is in the environment, but WORLD_SIZE is not", NULL },
    { "PMI's rank", { "PMI_RANK=4", "PMI_SIZE=4", MASTER },
      "PMI_RANK = 4 in the environment is not below PMI_SIZE = 4", NULL },
    { "SLURM and LOCAL_RANK", { SLURM_TASK, "SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS=4",
        "SLURM_LOCALID=1", "LOCAL_RANK=0" },
      "LOCAL_RANK = 0 and SLURM_LOCALID = 1 contradict each other", NULL },
    { "SLURM's rank", { SLURM_TASK, "SLURM_PROCID=4", "SLURM_STEP_NUM_TASKS=4" },
      "SLURM_PROCID = 4 in the environment is not below SLURM_STEP_NUM_TASKS = 4", NULL },
    { "SLURM's step is missing", { SLURM_BATCH, "SLURM_PROCID=1", "SLURM_NTASKS=4" },
      "SLURM_PROCID = '1' is in the environment, but SLURM_STEP_ID is not", NULL },
    { "SLURM's nodes", { "SLURM_JOB_ID=1", "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=4",
        "SLURM_STEP_NODELIST=gpu[" },
      "SLURM_STEP_NODELIST = 'gpu[' in the environment is no list of nodes", NULL },
    { "SLURM's tasks", { SLURM_BATCH, "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=4",
        "SLURM_TASKS_PER_NODE=2(x2)", "SLURM_NODEID=2" },
      "SLURM_TASKS_PER_NODE = '2(x2)' in the environment says no number of tasks for "
      "SLURM_NODEID = 2", NULL },
    { "Kubernetes without a size", { "JOB_COMPLETION_INDEX=1", "MASTER_ADDR=pons-0.pons" },
      "JOB_COMPLETION_INDEX = '1' is in the environment, but WORLD_SIZE is not", NULL },
    { "Kubernetes with an index too many", { "JOB_COMPLETION_INDEX=2", "WORLD_SIZE=2", MASTER },
      "JOB_COMPLETION_INDEX = 2 in the environment is not below WORLD_SIZE = 2", NULL },
    { "Kubernetes with LOCAL_RANK", { "JOB_COMPLETION_INDEX=1", "WORLD_SIZE=2", "LOCAL_RANK=1",
        MASTER }, "LOCAL_RANK = 1 in the environment, but JOB_COMPLETION_INDEX is one process per "
      "node", NULL },
    { "listener", { "RANK=0", "WORLD_SIZE=2", MASTER, "PONS_JOB_TOKEN=a", "PONS_STORE_SOCKET=2" },
      "PONS_STORE_SOCKET = '2' in the environment is no number from 3 to 65535", NULL }
};

START_TEST(contradictions_are_refused_with_names_and_values)
{
    environment e = bad[_i];
    pons_error err = PONS_ERROR_INIT;
    rank_info place = { .rank = 77 };

    ck_assert_msg(rank_info_find(look, &e, &place, &err) == PONS_CONFIG, "%s", e.name);
    ck_assert_int_eq(err.status, PONS_CONFIG);
    ck_assert_msg(strstr(err.text, e.told) != NULL, "%s: found '%s', expected '%s'", e.name,
                  err.text, e.told);
    ck_assert_int_eq(place.rank, 77);
}
END_TEST

static int port_of(environment e)
{
    pons_error err = PONS_ERROR_INIT;
    rank_info place;

    ck_assert_msg(rank_info_find(look, &e, &place, &err) == PONS_OK, "%s", err.text);
    return place.port;
}

START_TEST(an_unset_port_is_derived_from_the_job)
{
    environment e = { "slurm", { SLURM_TASK, "SLURM_NTASKS=4", "SLURM_PROCID=0" }, NULL, NULL };
    int first = port_of(e);

    ck_assert_int_ge(first, 20000);
    ck_assert_int_lt(first, 30000);
    e.variable[11] = "SLURM_PROCID=3";
    ck_assert_int_eq(port_of(e), first);
    e.variable[0] = "SLURM_JOB_ID=4712";
    ck_assert_int_ne(port_of(e), first);
    e.variable[0] = "SLURM_JOB_ID=4711";
    e.variable[6] = "SLURM_STEP_ID=1";
    ck_assert_int_ne(port_of(e), first);
}
END_TEST

START_TEST(the_port_of_torchruns_agent_is_avoided)
{
    environment e = { "torchrun", { "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2",
        "MASTER_ADDR=a", "MASTER_PORT=41000", "TORCHELASTIC_RUN_ID=5e",
        "TORCHELASTIC_USE_AGENT_STORE=True" }, NULL, NULL };
    int first = port_of(e);

    ck_assert_int_ge(first, 20000);
    ck_assert_int_lt(first, 30000);
    e.variable[0] = "RANK=1";
    e.variable[2] = "LOCAL_RANK=1";
    ck_assert_int_eq(port_of(e), first);
    e.variable[7] = "TORCHELASTIC_USE_AGENT_STORE=False";
    ck_assert_int_eq(port_of(e), 41000);
}
END_TEST

START_TEST(rank_0_alone_takes_the_launchers_socket)
{
    environment e = { "launch", { "RANK=0", "WORLD_SIZE=2", MASTER, "PONS_JOB_TOKEN=a",
        "PONS_STORE_SOCKET=7" }, NULL, NULL };
    pons_error err = PONS_ERROR_INIT;
    rank_info place;

    ck_assert_int_eq(rank_info_find(look, &e, &place, &err), PONS_OK);
    ck_assert_int_eq(place.listener, 7);
    e.variable[0] = "RANK=1";
    ck_assert_int_eq(rank_info_find(look, &e, &place, &err), PONS_OK);
    ck_assert_int_eq(place.listener, -1);
}
END_TEST

/* The ranks allow up to 4 processes on this node; a list that fits them gives their number. */
START_TEST(a_consistent_list_gives_the_local_size)
{
    static const struct { int listed, expected, then; } lists[] = {
        { 2, 2, 2 }, { 4, 4, 4 }, { 3, 3, 3 }, { 1, 4, 2 }, { 5, 4, 2 }, { 0, 4, 2 }
    };
    environment e = { "environment", { "RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", MASTER }, NULL,
                      NULL };
    pons_error err = PONS_ERROR_INIT;
    rank_info place;

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        ck_assert_int_eq(rank_info_find(look, &e, &place, &err), PONS_OK);
        rank_info_set_local_size(&place, lists[i].listed);
        ck_assert_int_eq(place.local_size, lists[i].expected);
        rank_info_set_local_size(&place, 2); /* a known size does not change */
        ck_assert_int_eq(place.local_size, lists[i].then);
    }
    e.variable[5] = "LOCAL_WORLD_SIZE=3";
    ck_assert_int_eq(rank_info_find(look, &e, &place, &err), PONS_OK);
    rank_info_set_local_size(&place, 2);
    ck_assert_int_eq(place.local_size, 3);
}
END_TEST

START_TEST(a_long_rank_info_line_is_cut)
{
    static const rank_info place = { .rank = 1, .size = 2, .local_size = 1, .master = "node-a",
                                     .port = 29500, .origin = "SLURM" };
    char told[8], all[512], cut[512];

    rank_info_print(&place, told, sizeof told);
    ck_assert_str_eq(told, "rank 1 ");
    rank_info_print(&place, all, sizeof all);
    for (size_t size = 1; size <= strlen(all) + 1; size++) {
        memset(cut, 'x', sizeof cut);
        rank_info_print(&place, cut, size);
        ck_assert_uint_eq(strlen(cut), size - 1);
        ck_assert_int_eq(strncmp(cut, all, size - 1), 0);
    }
}
END_TEST

START_TEST(the_first_node_of_a_list_is_found)
{
    static const struct { const char *list, *first; } lists[] = {
        { "gpu01", "gpu01" }, { "gpu01,gpu02", "gpu01" }, { "gpu[003-006,9],login", "gpu003" },
        { "rack[1-2]node[07,09]", "rack1node07" }, { "a-b.c[10]-ib", "a-b.c10-ib" },
        { "", NULL }, { "gpu[", NULL }, { "gpu[]", NULL }, { "gpu[a-b]", NULL }, { ",a", NULL },
        { "gpu[1", NULL }, { "a b", NULL }, { "gpu]", NULL },
        { "gpu[11111111111111111111]", NULL }, { "abcdefghijklmnop", NULL }
    };
    char first[16];

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        bool found = nodelist_first(lists[i].list, first, sizeof first);
        ck_assert_msg(found == (lists[i].first != NULL), "'%s'", lists[i].list);
        if (found)
            ck_assert_str_eq(first, lists[i].first);
    }
}
END_TEST

START_TEST(tasks_of_a_node_are_counted)
{
    static const struct { const char *list; int node, tasks; } lists[] = {
        { "4", 0, 4 }, { "4", 1, 0 }, { "2(x3),1", 0, 2 }, { "2(x3),1", 2, 2 }, { "2(x3),1", 3, 1 },
        { "2(x3),1", 4, 0 }, { "1,2,3(x2)", 3, 3 }, { "", 0, 0 }, { "x", 0, 0 }, { "2(x", 0, 0 },
        { "2(x2", 0, 0 }, { "0", 0, 0 }, { "-1", 0, 0 }, { "99999999999999999999", 0, 0 }
    };

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        ck_assert_msg(nodelist_tasks(lists[i].list, lists[i].node) == lists[i].tasks, "'%s', %d",
                      lists[i].list, lists[i].node);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("place");

    tcase_add_loop_test(c, every_launcher_is_understood, 0, (int)(sizeof good / sizeof *good));
    tcase_add_test(c, a_numbered_process_without_a_size_runs_alone_with_a_hint);
    tcase_add_loop_test(c, contradictions_are_refused_with_names_and_values, 0,
                        (int)(sizeof bad / sizeof *bad));
    tcase_add_test(c, an_unset_port_is_derived_from_the_job);
    tcase_add_test(c, the_port_of_torchruns_agent_is_avoided);
    tcase_add_test(c, rank_0_alone_takes_the_launchers_socket);
    tcase_add_test(c, a_consistent_list_gives_the_local_size);
    tcase_add_test(c, a_long_rank_info_line_is_cut);
    tcase_add_test(c, the_first_node_of_a_list_is_found);
    tcase_add_test(c, tasks_of_a_node_are_counted);
    return suite_run();
}
