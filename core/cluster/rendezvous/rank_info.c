/*
 * rank_info.c - read rank, size and the store's address from launchers' variables, which are rows
 * of a table. The values are checked against each other. The store finds out whether the address
 * works.
 */
#include "cluster/rendezvous/rank_info.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/text/text.h"
#include "cluster/rendezvous/nodelist.h"

enum { PROCESSES_MAX = 65536, NAMES = 4, PORT_FIRST = 20000, PORTS = 10000, PORT_USUAL = 29500 };

/* Variable names in order of precedence: the first that is set is used. */
typedef struct launcher {
    const char *origin;
    const char *rank[NAMES], *size[NAMES], *local_rank[NAMES], *local_size[NAMES], *token[NAMES];
    bool generic;            /* users may set its variables by hand                               */
    const char *pass;        /* hint: how it passes a variable to all processes                   */
} launcher;

static const launcher launchers[] = {
    { "environment", { "RANK" }, { "WORLD_SIZE" }, { "LOCAL_RANK" }, { "LOCAL_WORLD_SIZE" },
      { NULL }, true, NULL },
    { "Open MPI", { "OMPI_COMM_WORLD_RANK" }, { "OMPI_COMM_WORLD_SIZE" },
      { "OMPI_COMM_WORLD_LOCAL_RANK" }, { "OMPI_COMM_WORLD_LOCAL_SIZE" },
      { "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid" }, false, "mpirun -x MASTER_ADDR=HOST" },
    { "PMI", { "PMI_RANK", "PMIX_RANK" }, { "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE" },
      { "PMI_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID" },
      { "PMI_LOCAL_SIZE", "MPI_LOCALNRANKS" }, { "PMI_JOBID", "PMIX_NAMESPACE", "PALS_APID" },
      false, "mpiexec -genv MASTER_ADDR HOST" },
    { "SLURM", { "SLURM_PROCID" }, { "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS" },
      { "SLURM_LOCALID" }, { NULL }, { NULL }, false, "srun --export=ALL,MASTER_ADDR=HOST" },
    { "Kubernetes", { "JOB_COMPLETION_INDEX" }, { "WORLD_SIZE" }, { NULL }, { NULL }, { NULL },
      false, "env of the pods' template" }
};
enum { GENERIC, OPEN_MPI, PMI, SLURM, KUBERNETES, LAUNCHERS };

/* State of one search. */
typedef struct finder {
    rank_info_getenv *look;
    void *context;
    rank_info *out;
    pons_error *err;
} finder;

/* The number in a variable; 'name' is NULL if it is not set. */
typedef struct number {
    const char *name;
    int value;
} number;

/* ---- variables ------------------------------------------------------------------------------- */

/* The value of a variable; NULL if it is not set or empty. */
static const char *text_of(const finder *f, const char *name)
{
    const char *text = f->look(f->context, name);

    return text != NULL && *text != '\0' ? text : NULL;
}

static const char *first_set(const finder *f, const char *const names[NAMES])
{
    for (int i = 0; i < NAMES && names[i] != NULL; i++)
        if (text_of(f, names[i]) != NULL)
            return names[i];
    return NULL;
}

static bool read_number(const finder *f, const char *name, int low, int high, number *out)
{
    const char *text = name != NULL ? text_of(f, name) : NULL;
    int64_t value;

    *out = (number){ NULL, 0 };
    if (text == NULL)
        return true;
    if (!text_integer(text, &value) || value < low || value > high) {
        pons_fail(f->err, PONS_CONFIG, "%s = '%s' in the environment is no number from %d to %d",
                  name, text, low, high);
        return false;
    }
    *out = (number){ name, (int)value };
    return true;
}

static bool refuse_missing(const finder *f, const char *set, const char *lacking)
{
    pons_fail(f->err, PONS_CONFIG, "%s = '%s' is in the environment, but %s is not", set,
              text_of(f, set), lacking);
    return false;
}

/* ---- which launcher -------------------------------------------------------------------------- */

/* Special step ids: processes of the job itself, such as a batch script, have one or no id. */
#define SLURM_SPECIAL_STEPS 0xfffffff0

/* Whether this process is one of several tasks of a step of srun. */
static bool is_slurm_step(const finder *f)
{
    static const char *const step[NAMES] = { "SLURM_STEP_ID", "SLURM_STEPID" };
    static const char *const tasks[NAMES] = { "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST" };
    const char *name = first_set(f, step), *count = first_set(f, launchers[SLURM].size);
    int64_t number;

    if (count == NULL || strcmp(text_of(f, count), "1") == 0)
        return false;
    if (name == NULL)
        return first_set(f, tasks) != NULL;
    return !text_integer(text_of(f, name), &number) || number < SLURM_SPECIAL_STEPS;
}

static bool is_launcher_set(const finder *f, int i)
{
    const launcher *l = &launchers[i];

    switch (i) {
    case SLURM:
        return is_slurm_step(f);
    case KUBERNETES: /* an independent run may have an index, too */
        return first_set(f, l->rank) != NULL
               && (text_of(f, "WORLD_SIZE") != NULL || text_of(f, "MASTER_ADDR") != NULL);
    case GENERIC:
        return text_of(f, "RANK") != NULL;
    default:
        return first_set(f, l->rank) != NULL || text_of(f, l->size[0]) != NULL;
    }
}

/* Without a launcher, refuse variables that only make sense with one. */
static bool check_no_launcher(const finder *f)
{
    const char *index = first_set(f, launchers[KUBERNETES].rank);
    const char *size = text_of(f, "WORLD_SIZE"), *task = text_of(f, "SLURM_PROCID");
    const char *count = first_set(f, launchers[SLURM].size);

    if (text_of(f, "LOCAL_RANK") != NULL)
        return refuse_missing(f, "LOCAL_RANK", "RANK");
    if (size != NULL && strcmp(size, "1") != 0)
        return refuse_missing(f, "WORLD_SIZE", "RANK");
    /* A batch script has no step, and it is always process 0. */
    if (task != NULL && strcmp(task, "0") != 0 && count != NULL
        && strcmp(text_of(f, count), "1") != 0)
        return refuse_missing(f, "SLURM_PROCID", "SLURM_STEP_ID");
    if (index != NULL) /* an independent run, or a forgotten WORLD_SIZE */
        snprintf(f->out->remark, sizeof f->out->remark, "%s = '%.32s' is in the environment, but "
                 "neither WORLD_SIZE nor MASTER_ADDR: this process is alone", index,
                 text_of(f, index));
    return true;
}

/* ---- rank and size --------------------------------------------------------------------------- */

/* The numbers that one launcher gives. */
typedef struct numbers {
    number rank, size, local_rank, local_size;
} numbers;

static bool refuse_different(const finder *f, number a, number b)
{
    if (a.name == NULL || b.name == NULL || a.value == b.value)
        return false;
    pons_fail(f->err, PONS_CONFIG, "%s = %d and %s = %d contradict each other in the environment",
              a.name, a.value, b.name, b.value);
    return true;
}

static bool refuse_not_below(const finder *f, number a, number b)
{
    if (a.name == NULL || b.name == NULL || a.value < b.value)
        return false;
    pons_fail(f->err, PONS_CONFIG, "%s = %d in the environment is not below %s = %d", a.name,
              a.value, b.name, b.value);
    return true;
}

/* Whether srun counts this node's processes: as the launcher, or for a PMI that does not count. */
static bool has_slurm_tasks(const finder *f, int i, const numbers *n)
{
    number tasks;

    if (i == SLURM)
        return true;
    return i == PMI && n->local_size.name == NULL && n->local_rank.name != NULL
           && strcmp(n->local_rank.name, "SLURM_LOCALID") == 0
           && read_number(f, "SLURM_STEP_NUM_TASKS", 1, PROCESSES_MAX, &tasks)
           && tasks.name != NULL && tasks.value == n->size.value;
}

/* Read local_size from SLURM's list of tasks per node: "2(x3),1". */
static bool read_slurm_tasks(const finder *f, number *out)
{
    static const char *const lists[NAMES] = { "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE" };
    const char *name = first_set(f, lists);
    number node;

    if (name == NULL)
        return true;
    if (!read_number(f, "SLURM_NODEID", 0, PROCESSES_MAX - 1, &node))
        return false;
    if (node.name == NULL)
        return true;
    out->value = nodelist_tasks(text_of(f, name), node.value);
    out->name = name;
    if (out->value < 1) {
        pons_fail(f->err, PONS_CONFIG, "%s = '%s' in the environment says no number of tasks for "
                  "SLURM_NODEID = %d", name, text_of(f, name), node.value);
        return false;
    }
    return true;
}

static bool read_numbers(const finder *f, int i, numbers *n)
{
    const launcher *l = &launchers[i];

    if (!read_number(f, first_set(f, l->rank), 0, PROCESSES_MAX - 1, &n->rank)
        || !read_number(f, first_set(f, l->size), 1, PROCESSES_MAX, &n->size)
        || !read_number(f, first_set(f, l->local_rank), 0, PROCESSES_MAX - 1, &n->local_rank)
        || !read_number(f, first_set(f, l->local_size), 1, PROCESSES_MAX, &n->local_size)
        || (has_slurm_tasks(f, i, n) && !read_slurm_tasks(f, &n->local_size))
        || f->err->status != PONS_OK)
        return false;
    if (n->rank.name == NULL)
        return refuse_missing(f, n->size.name, l->rank[0]);
    if (n->size.name == NULL)
        return refuse_missing(f, n->rank.name, l->size[i == PMI && l->rank[1] == n->rank.name ? 2
                              : 0]);
    if (n->local_size.name != NULL && n->local_size.value > 1 && n->local_rank.name == NULL)
        return refuse_missing(f, n->local_size.name, l->local_rank[0]);
    return true;
}

static bool refuse_above(const finder *f, number a, number b)
{
    if (a.name == NULL || b.name == NULL || a.value <= b.value)
        return false;
    pons_fail(f->err, PONS_CONFIG, "%s = %d in the environment is above %s = %d", a.name, a.value,
              b.name, b.value);
    return true;
}

static bool are_in_order(const finder *f, const numbers *n)
{
    return !refuse_not_below(f, n->rank, n->size) && !refuse_not_below(f, n->local_rank,
                                                                       n->local_size)
           && !refuse_above(f, n->local_size, n->size) && !refuse_above(f, n->local_rank, n->rank);
}

/*
 * Fill in the numbers. Ranks increase with local ranks on a node, so after this rank there must be
 * enough ranks for the rest of the node.
 */
static bool fill_numbers(const finder *f, const numbers *n)
{
    rank_info *p = f->out;
    int most = n->size.value - n->rank.value + n->local_rank.value;

    p->rank = n->rank.value;
    p->size = n->size.value;
    p->local_rank = n->local_rank.value;
    p->local_size = n->local_rank.name == NULL ? 1 : most;
    p->local_guessed = n->local_rank.name != NULL && n->local_size.name == NULL;
    if (n->local_size.name == NULL || n->local_rank.name == NULL)
        return true;
    p->local_size = n->local_size.value;
    if (p->local_size <= most)
        return true;
    pons_fail(f->err, PONS_CONFIG, "%s = %d, %s = %d and %s = %d contradict each other in the "
              "environment: %d processes would have higher ranks on this node, and there are %d",
              n->rank.name, p->rank, n->local_rank.name, p->local_rank, n->local_size.name,
              p->local_size, p->local_size - 1 - p->local_rank, p->size - 1 - p->rank);
    return false;
}

/* Whether variables that users may set by hand agree with the launcher. */
static bool agrees_with_generic(const finder *f, const numbers *n)
{
    numbers g;

    if (!read_number(f, "WORLD_SIZE", 1, PROCESSES_MAX, &g.size)
        || !read_number(f, "LOCAL_RANK", 0, PROCESSES_MAX - 1, &g.local_rank)
        || !read_number(f, "LOCAL_WORLD_SIZE", 1, PROCESSES_MAX, &g.local_size))
        return false;
    if (g.local_rank.name != NULL && n->local_rank.name == NULL && g.local_rank.value > 0) {
        pons_fail(f->err, PONS_CONFIG, "LOCAL_RANK = %d in the environment, but %s is one process "
                  "per node", g.local_rank.value, n->rank.name);
        return false;
    }
    return !refuse_different(f, g.size, n->size) && !refuse_different(f, g.local_rank,
                                                                      n->local_rank)
           && !refuse_different(f, g.local_size, n->local_size);
}

/* Variables of another launcher that may also number this process, possibly from outside. */
typedef struct numbering {
    const char *rank, *size[NAMES], *local_rank;
} numbering;

static const numbering numberings[] = {
    { "OMPI_COMM_WORLD_RANK", { "OMPI_COMM_WORLD_SIZE" }, "OMPI_COMM_WORLD_LOCAL_RANK" },
    { "PMI_RANK", { "PMI_SIZE", "SLURM_STEP_NUM_TASKS" }, "PMI_LOCAL_RANK" },
    { "PMIX_RANK", { "SLURM_STEP_NUM_TASKS" }, NULL }, /* set by mpirun and srun */
    { "SLURM_PROCID", { "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS" }, "SLURM_LOCALID" }
};

/*
 * Check the numbers of another launcher. With the same or an unknown number of processes they must
 * agree. With another number they belong to a launcher around this one: its tasks or daemons.
 */
static bool same_process(const finder *f, const numbering *other, const numbers *n, bool local)
{
    numbers o;

    if (!read_number(f, other->rank, 0, PROCESSES_MAX - 1, &o.rank)
        || !read_number(f, first_set(f, other->size), 1, PROCESSES_MAX, &o.size)
        || !read_number(f, other->local_rank, 0, PROCESSES_MAX - 1, &o.local_rank))
        return false;
    if (o.rank.name == NULL || (o.size.name != NULL && o.size.value != n->size.value))
        return true;
    return !refuse_different(f, n->rank, o.rank) && !(local && refuse_different(f, n->local_rank,
                                                                                o.local_rank));
}

/*
 * Check against all other launchers. This finds a RANK that is equal in all processes, variables
 * left over from another launcher, and a library that numbers otherwise than srun. Processes of
 * mpirun in a step have inherited the numbers of its daemon, so they are not checked. LOCAL_RANK of
 * GENERIC may be 0 in all processes where each sees one GPU.
 */
static bool is_confirmed(const finder *f, int i, const numbers *n)
{
    bool in_step = is_slurm_step(f);

    if (i == OPEN_MPI && in_step)
        return true;
    for (size_t k = 0; k < sizeof numberings / sizeof *numberings; k++)
        if ((in_step || strcmp(numberings[k].rank, "SLURM_PROCID") != 0)
            && !same_process(f, &numberings[k], n, i != GENERIC))
            return false;
    return true;
}

/* ---- token and meeting place ----------------------------------------------------------------- */

/* Whether the step of srun has all processes. The daemons of mpirun are a step with fewer. */
static bool is_step_of_all(const finder *f)
{
    number tasks;

    return is_slurm_step(f) && read_number(f, "SLURM_STEP_NUM_TASKS", 1, PROCESSES_MAX, &tasks)
           && (tasks.name == NULL || tasks.value == f->out->size);
}

static bool find_token(const finder *f, const launcher *l)
{
    static const char *const any[NAMES] = { RANK_INFO_TOKEN, "TORCHELASTIC_RUN_ID" };
    static const char *const steps[NAMES] = { "SLURM_STEP_ID", "SLURM_STEPID" };
    const char *name = first_set(f, any), *step = first_set(f, steps);
    char *token = f->out->token;
    size_t room = sizeof f->out->token;
    int size;

    if (name == NULL)
        name = first_set(f, l->token);
    if (name == NULL && !l->generic && text_of(f, "SLURM_JOB_ID") != NULL)
        name = "SLURM_JOB_ID";
    if (name == NULL)
        return true;
    if (strcmp(name, "SLURM_JOB_ID") == 0 && step != NULL && is_step_of_all(f))
        size = snprintf(token, room, "%s.%s", text_of(f, name), text_of(f, step));
    else
        size = snprintf(token, room, "%s", text_of(f, name));
    if (size > 0 && (size_t)size < room)
        return true;
    pons_fail(f->err, PONS_CONFIG, "%s in the environment has %zu bytes, expected at most %zu",
              name, strlen(text_of(f, name)), room - 1);
    return false;
}

static bool set_master(const finder *f, const char *name, const char *text)
{
    if (strlen(text) < sizeof f->out->master && strpbrk(text, " \t\r\n,/") == NULL) {
        strcpy(f->out->master, text);
        return true;
    }
    pons_fail(f->err, PONS_CONFIG, "%s = '%.256s' in the environment is no host", name, text);
    return false;
}

static bool find_node(const finder *f)
{
    static const char *const of_step[NAMES] = {
        "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"
    };
    const char *name = first_set(f, is_step_of_all(f) ? of_step : of_step + 1);

    if (name == NULL || nodelist_first(text_of(f, name), f->out->master, sizeof f->out->master))
        return true;
    pons_fail(f->err, PONS_CONFIG, "%s = '%s' in the environment is no list of nodes", name,
              text_of(f, name));
    return false;
}

static bool find_master(const finder *f, const launcher *l, const numbers *n)
{
    const char *given = text_of(f, "MASTER_ADDR");

    if (given != NULL)
        return set_master(f, "MASTER_ADDR", given);
    if (l->generic)
        return refuse_missing(f, n->rank.name, "MASTER_ADDR");
    if (!find_node(f))
        return false;
    if (f->out->master[0] != '\0')
        return true;
    if (n->local_size.name != NULL && f->out->local_size == f->out->size)
        return set_master(f, "MASTER_ADDR", "127.0.0.1");
    pons_fail(f->err, PONS_CONFIG, "%s = %d: nothing in the environment says on which node rank 0 "
              "is\nhint: set MASTER_ADDR for all processes (%s)", n->rank.name, n->rank.value,
              is_slurm_step(f) && l != &launchers[OPEN_MPI] ? launchers[SLURM].pass : l->pass);
    return false;
}

static int port_from(const char *text)
{
    return PORT_FIRST + (int)(random_stream_hash(text) % PORTS);
}

static bool find_port(const finder *f, const launcher *l, const numbers *n)
{
    const char *agent = text_of(f, "TORCHELASTIC_USE_AGENT_STORE");
    rank_info *p = f->out;
    char both[160];
    number port;

    if (!read_number(f, "MASTER_PORT", 1, 65535, &port))
        return false;
    if (port.name == NULL && l->generic)
        return refuse_missing(f, n->rank.name, "MASTER_PORT");
    if (port.name == NULL)
        p->port = p->token[0] != '\0' ? port_from(p->token) : PORT_USUAL;
    else
        p->port = port.value;
    if (port.name != NULL && l->generic && text_of(f, RANK_INFO_TOKEN) == NULL && agent != NULL
        && strcmp(agent, "True") == 0) {
        snprintf(both, sizeof both, "%s:%d", p->token, port.value);
        p->port = port_from(both);
    }
    return true;
}

static bool find_listener(const finder *f)
{
    number listener;

    if (f->out->rank != 0 || text_of(f, RANK_INFO_TOKEN) == NULL)
        return true;
    if (!read_number(f, RANK_INFO_LISTENER, 3, 65535, &listener))
        return false;
    if (listener.name != NULL)
        f->out->listener = listener.value;
    return true;
}

static bool find_store(const finder *f, const launcher *l, const numbers *n)
{
    if (!find_token(f, l))
        return false;
    if (f->out->size == 1)
        return true;
    return find_master(f, l, n) && find_port(f, l, n) && find_listener(f);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static const char *origin_of(const finder *f, const launcher *l)
{
    if (!l->generic)
        return l->origin;
    if (text_of(f, RANK_INFO_TOKEN) != NULL)
        return "pons launch";
    return text_of(f, "TORCHELASTIC_RUN_ID") != NULL ? "torchrun" : l->origin;
}

static bool find_with_launcher(const finder *f, int i)
{
    const launcher *l = &launchers[i];
    const char *origin = origin_of(f, l);
    numbers n;

    snprintf(f->out->origin, sizeof f->out->origin, "%s", origin);
    if (!read_numbers(f, i, &n) || !are_in_order(f, &n) || !fill_numbers(f, &n))
        return false;
    if (!l->generic && !agrees_with_generic(f, &n))
        return false;
    if ((!l->generic || strcmp(origin, "environment") == 0) && !is_confirmed(f, i, &n))
        return false;
    return find_store(f, l, &n);
}

pons_status rank_info_find(rank_info_getenv *look, void *context, rank_info *out, pons_error *err)
{
    rank_info found = { .size = 1, .local_size = 1, .listener = -1 };
    const finder f = { look, context, &found, err };
    int i = 0;

    while (i < LAUNCHERS && !is_launcher_set(&f, i))
        i++;
    if (!(i < LAUNCHERS ? find_with_launcher(&f, i) : check_no_launcher(&f)))
        return PONS_CONFIG;
    *out = found;
    return PONS_OK;
}

void rank_info_set_local_size(rank_info *place, int listed)
{
    if (!place->local_guessed || listed <= place->local_rank || listed > place->local_size)
        return;
    place->local_size = listed;
    place->local_guessed = false;
}

void rank_info_print(const rank_info *p, char *out, size_t size)
{
    const char *open = strchr(p->master, ':') != NULL ? "[" : "";
    int used = snprintf(out, size, "rank %d of %d, local rank %d of %d", p->rank, p->size,
                        p->local_rank, p->local_size);

    if (p->size > 1 && used > 0 && (size_t)used < size)
        used += snprintf(out + used, size - (size_t)used, ", store %s%s%s:%d", open, p->master,
                         open[0] != '\0' ? "]" : "", p->port);
    if (p->origin[0] != '\0' && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, " (%s)", p->origin);
}
