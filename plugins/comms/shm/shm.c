/*
 * shm - collectives of processes of one node, which read each other's memory.
 *
 * An all-reduce cuts the buffer into a slice for each rank. Each rank adds up its slice of all
 * buffers in the order of the ranks; then every rank copies the slices of the others.
 */
#include <pons/comm.h>

#include "comms/async_queue.h"
#include "comms/shm/shm_mailbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

#define PIECE 65536 /* bytes that are summed at a time */

/* Ranks, and room for two pieces of a sum. */
typedef struct shm_link {
    shm_ranks *ranks;
    char piece[2][PIECE];
} shm_link;

/* ---- sum ------------------------------------------------------------------------------------- */

static void add_floats(float *sum, const float *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += x[i];
}

static void add_doubles(double *sum, const double *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += x[i];
}

/* First byte of a rank's slice; the slice behind the last one begins at the buffer's end. */
static size_t slice_begin(const async_work *w, int rank, int size)
{
    size_t element = w->size / (size_t)w->count;

    return (size_t)(w->count * rank / size) * element;
}

static pons_status read_piece(shm_ranks *s, const async_work *w, int rank, size_t offset,
                              size_t size, void *to, pons_error *err)
{
    if (rank != shm_rank(s))
        return shm_read(s, rank, offset, size, to, err);
    memcpy(to, (const char *)w->buffer + offset, size);
    return PONS_OK;
}

/* The piece of rank 0, plus that of rank 1, and so on. */
static pons_status sum_piece(shm_link *link, const async_work *w, size_t offset, size_t size,
                             pons_error *err)
{
    void *sum = link->piece[0], *x = link->piece[1];

    for (int r = 0; r < shm_size(link->ranks); r++) {
        if (read_piece(link->ranks, w, r, offset, size, r == 0 ? sum : x, err) != PONS_OK)
            return err->status;
        if (r > 0 && w->type == PONS_F64)
            add_doubles(sum, x, size / sizeof(double));
        else if (r > 0)
            add_floats(sum, x, size / sizeof(float));
    }
    memcpy((char *)w->buffer + offset, sum, size);
    return PONS_OK;
}

static pons_status sum_slice(shm_link *link, const async_work *w, pons_error *err)
{
    shm_ranks *s = link->ranks;
    size_t at = slice_begin(w, shm_rank(s), shm_size(s));
    size_t end = slice_begin(w, shm_rank(s) + 1, shm_size(s));

    shm_post(s, w->buffer);
    for (int r = 0; r < shm_size(s); r++)
        if (shm_wait_posted(s, r, err) != PONS_OK)
            return err->status;
    for (; at < end; at += PIECE)
        if (sum_piece(link, w, at, min_size(end - at, PIECE), err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

/* A rank that begins this round has read all that it adds up, so its slice here may change. */
static pons_status copy_slices(shm_ranks *s, const async_work *w, pons_error *err)
{
    shm_post(s, w->buffer);
    for (int n = 1; n < shm_size(s); n++) {
        int r = (shm_rank(s) + n) % shm_size(s);
        size_t at = slice_begin(w, r, shm_size(s)), end = slice_begin(w, r + 1, shm_size(s));

        if (shm_wait_posted(s, r, err) != PONS_OK
            || shm_read(s, r, at, end - at, (char *)w->buffer + at, err) != PONS_OK)
            return err->status;
    }
    shm_finish(s);
    return shm_wait_finished(s, err);
}

static pons_status all_reduce(shm_link *link, const async_work *w, pons_error *err)
{
    if (w->size == 0)
        return PONS_OK;
    return sum_slice(link, w, err) == PONS_OK ? copy_slices(link->ranks, w, err) : err->status;
}

/* ---- the other collectives ------------------------------------------------------------------- */

static pons_status broadcast(shm_ranks *s, const async_work *w, pons_error *err)
{
    shm_post(s, w->buffer);
    if (shm_rank(s) != w->root
        && (shm_wait_posted(s, w->root, err) != PONS_OK
            || shm_read(s, w->root, 0, w->size, w->buffer, err) != PONS_OK))
        return err->status;
    shm_finish(s);
    return shm_rank(s) == w->root ? shm_wait_finished(s, err) : PONS_OK;
}

static pons_status all_gather(shm_ranks *s, const async_work *w, pons_error *err)
{
    char *all = w->buffer;

    shm_post(s, w->mine);
    if (w->size > 0)
        memcpy(all + (size_t)shm_rank(s) * w->size, w->mine, w->size);
    for (int n = 1; n < shm_size(s); n++) {
        int r = (shm_rank(s) + n) % shm_size(s);

        if (shm_wait_posted(s, r, err) != PONS_OK
            || shm_read(s, r, 0, w->size, all + (size_t)r * w->size, err) != PONS_OK)
            return err->status;
    }
    shm_finish(s);
    return shm_wait_finished(s, err);
}

static pons_status barrier(shm_ranks *s, pons_error *err)
{
    shm_post(s, NULL);
    shm_finish(s);
    return shm_wait_finished(s, err);
}

/* ---- the transport of the queue -------------------------------------------------------------- */

static pons_status shm_run(void *context, const async_work *w, pons_error *err)
{
    shm_link *link = context;

    switch (w->kind) {
    case QUEUE_ALL_REDUCE:
        return all_reduce(link, w, err);
    case QUEUE_BROADCAST:
        return broadcast(link->ranks, w, err);
    case QUEUE_ALL_GATHER:
        return all_gather(link->ranks, w, err);
    default:
        return barrier(link->ranks, err);
    }
}

static void stop_link(void *context)
{
    shm_stop(((shm_link *)context)->ranks);
}

static void close_link(void *context)
{
    shm_link *link = context;

    shm_close_ranks(link->ranks);
    free(link);
}

static const async_transport transport = { shm_run, stop_link, close_link };

/* ---- the plugin ------------------------------------------------------------------------------ */

static pons_status shm_open(const pons_comm_rank_info *place, const pons_comm_store *store,
                            void **comm, pons_error *err)
{
    shm_link *link;

    if (place->stream != NULL)
        return pons_fail(err, PONS_CONFIG, "the communicator 'shm' needs buffers in host memory");
    if (place->local_size != place->size)
        return pons_fail(err, PONS_CONFIG, "the communicator 'shm' joins processes of one node, "
                         "found %d of %d here\nhint: --set distribute.backend=gloo",
                         place->local_size, place->size);
    link = malloc(sizeof *link);
    if (link == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a communicator");
    if (shm_open_ranks(place, store, &link->ranks, err) != PONS_OK) {
        free(link);
        return err->status;
    }
    return async_queue_open(&transport, link, place->rank, place->size, comm, err);
}

static const pons_comm_operations operations = {
    .available = shm_available, .open = shm_open, .close = async_queue_close,
    .all_reduce = async_queue_all_reduce,
    .broadcast = async_queue_broadcast, .all_gather = async_queue_all_gather,
    .barrier = async_queue_barrier,
    .poll = async_queue_poll, .abort = async_queue_abort, .ended = async_queue_ended
};

PONS_COMM(shm, "1.0", "collectives of processes of one node, through their memory",
          PONS_NO_OPTIONS, operations);
