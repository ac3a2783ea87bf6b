/*
 * mpi - collectives of host memory by Open MPI, in processes that mpirun (or srun) has started.
 *
 * MPI is begun once in a process and ended with the communicator. All its calls are made by one
 * thread at a time: opening, the queue, closing. Collectives do not block, so that a stop need not
 * wait for processes that never come; what was under way then stays so, MPI is not finalized, and
 * mpirun ends the others when this process ends.
 */
#include <pons/comm.h>

#include "comms/async_queue.h"

#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/integer.h"

/* Elements or bytes of one call: MPI counts in int. */
#define PIECE ((size_t)1 << 30)

typedef struct link_to_all {
    MPI_Comm comm;
    int size;
    atomic_bool stopped;
} link_to_all;

static pons_status fail_mpi(int code, const char *what, pons_error *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int size;

    if (code == MPI_SUCCESS)
        return PONS_OK;
    MPI_Error_string(code, text, &size);
    return pons_fail(err, PONS_COMMUNICATION, "%s failed: %s", what, text);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Large transfers progress on this thread; waits should leave the processor to other ranks. */
static void rest(int64_t round, size_t size)
{
    const struct timespec nap = { 0, 50000 };

    if (round < (size > 65536 ? 100000 : 200))
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

static pons_status finish_request(link_to_all *l, int code, MPI_Request *request, size_t size,
                                  const char *what, pons_error *err)
{
    int done = 0;

    for (int64_t round = 0; code == MPI_SUCCESS; round++) {
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done || code != MPI_SUCCESS)
            break;
        if (atomic_load(&l->stopped))
            return pons_fail(err, PONS_COMMUNICATION, "%s failed: the communicator was stopped",
                             what);
        rest(round, size);
    }
    return fail_mpi(code, what, err);
}

/* ---- the transport of the queue -------------------------------------------------------------- */

static pons_status sum_numbers(link_to_all *l, const async_work *w, pons_error *err)
{
    size_t cell = w->type == PONS_F64 ? sizeof(double) : sizeof(float);
    MPI_Datatype type = w->type == PONS_F64 ? MPI_DOUBLE : MPI_FLOAT;
    size_t count = (size_t)w->count;

    for (size_t at = 0; at < count && err->status == PONS_OK; at += PIECE) {
        int part = (int)min_size(count - at, PIECE);
        MPI_Request request;
        int code = MPI_Iallreduce(MPI_IN_PLACE, (char *)w->buffer + at * cell, part, type, MPI_SUM,
                                  l->comm, &request);
        finish_request(l, code, &request, w->size, "an all-reduce", err);
    }
    return err->status;
}

static pons_status broadcast(link_to_all *l, const async_work *w, pons_error *err)
{
    for (size_t at = 0; at < w->size && err->status == PONS_OK; at += PIECE) {
        int part = (int)min_size(w->size - at, PIECE);
        MPI_Request request;
        int code = MPI_Ibcast((char *)w->buffer + at, part, MPI_BYTE, w->root, l->comm, &request);
        finish_request(l, code, &request, w->size, "a broadcast", err);
    }
    return err->status;
}

/* Gather in pieces; a rank's piece lies 'size' bytes behind that of the rank before. */
static pons_status gather(link_to_all *l, const async_work *w, pons_error *err)
{
    size_t most = PIECE / (size_t)l->size;

    if (w->size <= most) {
        MPI_Request request;
        int code = MPI_Iallgather(w->mine, (int)w->size, MPI_BYTE, w->buffer, (int)w->size,
                                  MPI_BYTE, l->comm, &request);
        return finish_request(l, code, &request, w->size, "an all-gather", err);
    }
    for (int root = 0; root < l->size && err->status == PONS_OK; root++) {
        char *to = (char *)w->buffer + (size_t)root * w->size;
        async_work part = { .kind = QUEUE_BROADCAST, .root = root, .size = w->size, .buffer = to };
        int rank;
        MPI_Comm_rank(l->comm, &rank);
        if (rank == root)
            memcpy(to, w->mine, w->size);
        broadcast(l, &part, err);
    }
    return err->status;
}

static pons_status barrier(link_to_all *l, const async_work *w, pons_error *err)
{
    MPI_Request request;
    int code = MPI_Ibarrier(l->comm, &request);

    return finish_request(l, code, &request, 0, "a barrier", err);
}

static pons_status run_collective(void *link, const async_work *w, pons_error *err)
{
    static pons_status (*const kinds[])(link_to_all *, const async_work *, pons_error *) = {
        [QUEUE_ALL_REDUCE] = sum_numbers, [QUEUE_BROADCAST] = broadcast,
        [QUEUE_ALL_GATHER] = gather, [QUEUE_BARRIER] = barrier
    };

    return kinds[w->kind](link, w, err);
}

static void link_stop(void *link)
{
    atomic_store(&((link_to_all *)link)->stopped, true);
}

static void link_close(void *link)
{
    link_to_all *l = link;

    if (!atomic_load(&l->stopped)) {
        MPI_Comm_free(&l->comm);
        MPI_Finalize();
    }
    free(l);
}

static const async_transport transport = { run_collective, link_stop, link_close };

/* ---- the plugin ------------------------------------------------------------------------------ */

static pons_status begin(pons_error *err)
{
    int begun, ended, level;

    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (begun || ended)
        return pons_fail(err, PONS_COMMUNICATION, "MPI has been used before in this process");
    /* Components that Open MPI loads need its symbols to be global; those of a plugin are local. */
    dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    if (fail_mpi(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread", err)
        != PONS_OK)
        return err->status;
    if (level < MPI_THREAD_SERIALIZED)
        return pons_fail(err, PONS_COMMUNICATION, "this MPI cannot be used by several threads in "
                         "turn");
    return PONS_OK;
}

/* A communicator of our own, in the order of our ranks. */
static pons_status make_comm(const pons_comm_rank_info *place, link_to_all *l, pons_error *err)
{
    int size;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != place->size)
        return pons_fail(err, PONS_COMMUNICATION, "MPI has started %d process%s together, the run "
                         "has %d\nhint: start it with mpirun -n %d, or --set "
                         "distribute.backend=gloo", size,
                         size == 1 ? "" : "es", place->size, place->size);
    if (fail_mpi(MPI_Comm_split(MPI_COMM_WORLD, 0, place->rank, &l->comm), "MPI_Comm_split", err)
        != PONS_OK)
        return err->status;
    MPI_Comm_set_errhandler(l->comm, MPI_ERRORS_RETURN);
    l->size = size;
    return PONS_OK;
}

static pons_status mpi_open(const pons_comm_rank_info *place, const pons_comm_store *store,
                            void **comm, pons_error *err)
{
    link_to_all *l;

    if (place->stream != NULL)
        return pons_fail(err, PONS_CONFIG, "the communicator 'mpi' needs buffers in host memory");
    if (begin(err) != PONS_OK)
        return err->status;
    l = calloc(1, sizeof *l);
    if (l == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a communicator");
    if (make_comm(place, l, err) != PONS_OK) {
        free(l);
        return err->status;
    }
    return async_queue_open(&transport, l, place->rank, place->size, comm, err);
}

/* Name and version from the begin of the library's own line of text. */
static void describe(char *text, size_t size)
{
    char line[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int count = 0;

    MPI_Get_library_version(line, &count);
    line[strcspn(line, ",\n")] = '\0';
    snprintf(text, size, "%s", line);
}

static const pons_comm_operations operations = {
    .open = mpi_open, .close = async_queue_close, .all_reduce = async_queue_all_reduce,
    .broadcast = async_queue_broadcast, .all_gather = async_queue_all_gather,
    .barrier = async_queue_barrier,
    .poll = async_queue_poll, .abort = async_queue_abort, .ended = async_queue_ended,
    .describe = describe
};

PONS_COMM(mpi, "1.0", "collectives of host memory by Open MPI", PONS_NO_OPTIONS, operations);
