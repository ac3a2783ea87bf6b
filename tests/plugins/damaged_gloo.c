/*
 * damaged_gloo.c - a wrapper of gloo, the plugin file GLOO_BEHIND. On rank GLOO_DAMAGED the first
 * large broadcast arrives with one wrong bit.
 */
#include <pons/comm.h>

#include <dlfcn.h>
#include <stdlib.h>

enum { LARGE = 4096 };

/* A communicator, and the arguments of the broadcast to be damaged. */
typedef struct damaged {
    const pons_comm_operations *behind;
    void *comm, *pending;
    unsigned char *buffer;
    size_t size;
    bool mine, done;
} damaged;

static const pons_comm_operations *find_behind(pons_error *err)
{
    const char *path = getenv("GLOO_BEHIND");
    void *module = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    const pons_plugin *(*entry)(void) = NULL;

    if (module != NULL)
        *(void **)&entry = dlsym(module, "pons_plugin_entry");
    if (entry == NULL) {
        pons_fail(err, PONS_FAILURE, "there is no gloo behind '%s'", path != NULL ? path : "");
        return NULL;
    }
    return entry()->operations;
}

static pons_status damaged_open(const pons_comm_rank_info *place, const pons_comm_store *store,
                                void **comm, pons_error *err)
{
    const char *rank = getenv("GLOO_DAMAGED");
    damaged *d = calloc(1, sizeof *d);

    if (d == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    d->behind = find_behind(err);
    d->mine = rank != NULL && atoi(rank) == place->rank;
    if (d->behind == NULL || d->behind->open(place, store, &d->comm, err) != PONS_OK) {
        free(d);
        return err->status;
    }
    *comm = d;
    return PONS_OK;
}

static void damaged_close(void *comm)
{
    damaged *d = comm;

    d->behind->close(d->comm);
    free(d);
}

static pons_status damaged_all_reduce(void *comm, void *buffer, int64_t count, pons_type type,
                                      void **pending, pons_error *err)
{
    damaged *d = comm;

    return d->behind->all_reduce(d->comm, buffer, count, type, pending, err);
}

static pons_status damaged_broadcast(void *comm, void *buffer, size_t size, int root,
                                     void **pending, pons_error *err)
{
    damaged *d = comm;

    if (d->behind->broadcast(d->comm, buffer, size, root, pending, err) != PONS_OK)
        return err->status;
    if (d->mine && !d->done && size >= LARGE) {
        d->pending = *pending;
        d->buffer = buffer;
        d->size = size;
        d->done = true;
    }
    return PONS_OK;
}

static pons_status damaged_all_gather(void *comm, const void *mine, size_t size, void *all,
                                      void **pending, pons_error *err)
{
    damaged *d = comm;

    return d->behind->all_gather(d->comm, mine, size, all, pending, err);
}

static pons_status damaged_barrier(void *comm, void **pending, pons_error *err)
{
    damaged *d = comm;

    return d->behind->barrier(d->comm, pending, err);
}

static pons_comm_state damaged_poll(void *comm, void *pending, double wait_s, pons_error *err)
{
    damaged *d = comm;
    pons_comm_state state = d->behind->poll(d->comm, pending, wait_s, err);

    if (state == PONS_COMM_DONE && d->buffer != NULL && pending == d->pending) {
        d->buffer[d->size / 2 / sizeof(float) * sizeof(float)] ^= 1;
        d->buffer = NULL;
    }
    return state;
}

static void damaged_abort(void *comm)
{
    damaged *d = comm;

    d->behind->abort(d->comm);
}

static const pons_comm_operations operations = {
    .open = damaged_open, .close = damaged_close, .all_reduce = damaged_all_reduce,
    .broadcast = damaged_broadcast, .all_gather = damaged_all_gather, .barrier = damaged_barrier,
    .poll = damaged_poll, .abort = damaged_abort
};

PONS_COMM(gloo, "1.0", "gloo that damages what it brings", PONS_NO_OPTIONS, operations);
