/*
 * comm_breaks_rule - a communicator of one process that keeps the rules, or breaks the one that
 * COMM_FAULT in the environment names. The conformance test must detect it.
 */
#include <pons/comm.h>

#include <stdlib.h>
#include <string.h>

enum { FAULT_NONE = 0, FAULT_SUM, FAULT_GATHER, FAULT_NEVER, FAULT_ABORT, FAULT_SILENT, FAULT_OPEN,
       FAULT_START };
static const char *const faults[] = { "none", "sum", "gather", "never", "abort", "silent", "open",
                                      "start", NULL };

typedef struct state {
    int fault;
    bool aborted;
} state;

static pons_status single_open(const pons_comm_rank_info *place, const pons_comm_store *store,
                              void **comm, pons_error *err)
{
    const char *fault = getenv("COMM_FAULT");
    state *s = calloc(1, sizeof *s);

    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    while (fault != NULL && faults[s->fault] != NULL && strcmp(faults[s->fault], fault) != 0)
        s->fault++;
    if (s->fault == FAULT_OPEN) {
        free(s);
        return PONS_COMMUNICATION;
    }
    *comm = s;
    return PONS_OK;
}

static pons_status start(state *s, void **pending)
{
    *pending = s;
    return PONS_OK;
}

static pons_status single_all_reduce(void *comm, void *buffer, int64_t count, pons_type type,
                                    void **pending, pons_error *err)
{
    state *s = comm;

    if (s->fault == FAULT_SUM)
        ((double *)buffer)[count - 1] *= 2;
    return start(s, pending);
}

static pons_status single_broadcast(void *comm, void *buffer, size_t size, int root, void **pending,
                                   pons_error *err)
{
    return start(comm, pending);
}

static pons_status single_all_gather(void *comm, const void *mine, size_t size, void *all,
                                    void **pending, pons_error *err)
{
    state *s = comm;

    memcpy(all, mine, s->fault == FAULT_GATHER ? size / 2 : size);
    return start(s, pending);
}

static pons_status single_barrier(void *comm, void **pending, pons_error *err)
{
    state *s = comm;

    return s->fault == FAULT_START ? PONS_COMMUNICATION : start(s, pending);
}

static pons_comm_state single_poll(void *comm, void *pending, double wait_s, pons_error *err)
{
    const state *s = comm;

    if (s->fault == FAULT_NEVER)
        return PONS_COMM_RUNNING;
    if (s->fault == FAULT_SILENT)
        return PONS_COMM_FAILED;
    if (!s->aborted || s->fault == FAULT_ABORT)
        return PONS_COMM_DONE;
    pons_fail(err, PONS_COMMUNICATION, "aborted");
    return PONS_COMM_FAILED;
}

static void single_abort(void *comm)
{
    ((state *)comm)->aborted = true;
}

static const pons_comm_operations operations = {
    .open = single_open, .close = free, .all_reduce = single_all_reduce,
    .broadcast = single_broadcast, .all_gather = single_all_gather, .barrier = single_barrier,
    .poll = single_poll, .abort = single_abort
};

PONS_COMM(comm_breaks_rule, "1.0", "a communicator of one process", PONS_NO_OPTIONS, operations);
