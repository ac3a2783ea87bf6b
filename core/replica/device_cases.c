/*
 * device_cases.c - preprocessed cases in the memory of devices, which cut their patches themselves.
 */
#include "replica/device_cases.h"

#include <string.h>

#include "base/integer.h"
#include "base/system/memory_limit.h"
#include "experiment/processes.h"
#include "graph/program/explain.h"
#include "graph/storage/staging.h"
#include "replica/patch_nodes.h"
#include "replica/replicas.h"

typedef struct holding {
    const device_case_layout *layout;
    const cache *held;
    bool count_padding;
} holding;

static pons_status put_bytes(void *context, size_t offset, const void *from, size_t size,
                             pons_error *err)
{
    const replica *r = context;

    return staging_write(r->device, r->held + offset, from, size, err);
}

static pons_status refuse_cases(const device_case_layout *l, const char *device, double room,
                                pons_error *err)
{
    return pons_fail(err, PONS_DEVICE, "[data] cache = device: %d training case%s take%s %.3g GB, "
                     "found no room for them beside the network in the %.3g GB of '%s'\n"
                     "hint: --set data.cache=memory", l->count, l->count == 1 ? "" : "s",
                     l->count == 1 ? "s" : "", (double)l->size / 1e9, room / 1e9, device);
}

/* The work of a replica's thread. */
static pons_status hold_cases(void *context, replica *r, pons_error *err)
{
    const holding *h = context;
    const pons_device_operations *o = r->device->operations;
    pons_error why = PONS_ERROR_INIT;

    r->held_size = round_up_size(h->layout->size, 4096);
    r->held = o->memory.allocate(r->device->handle, r->held_size, &why);
    if (r->held == NULL)
        return refuse_cases(h->layout, r->device->facts.name,
                            (double)r->device->facts.memory_size, err);
    program_bind_resident(r->training, PATCH_CASES, r->held);
    return device_case_layout_copy(h->layout, h->held, !h->count_padding, put_bytes, r, err);
}

/* Bytes of a replica's network in the memory of its device. */
static double network_bytes(const replica *r)
{
    program_facts training, more;
    double bytes;

    program_describe(r->training, &training);
    bytes = (double)(training.arena + training.parameters + training.packed + training.inputs
                     - training.external_inputs + training.grad_accum);
    if (r->evaluation != NULL) {
        program_describe(r->evaluation, &more); /* it shares the arena and the parameters */
        bytes += (double)(more.packed + more.inputs);
        if (more.arena > training.arena)
            bytes += (double)(more.arena - training.arena);
    }
    return bytes;
}

/* Pages of the host come as they are touched, so that an allocation does not fail. */
static pons_status check_memory(const replicas *r, pons_error *err)
{
    const experiment *e = r->experiment;
    double needed = 0, room = memory_limit_bytes();
    int processes = e->group != NULL ? e->processes->place.local_size : 1;

    for (int i = 0; i < r->count; i++) {
        const pons_device_facts *facts = &r->item[i].device->facts;
        double here = (double)r->layout.size + network_bytes(&r->item[i]);

        if (facts->host_memory)
            needed += (double)r->layout.size * processes;
        else if (facts->memory_size > 0 && here > (double)facts->memory_size)
            return refuse_cases(&r->layout, facts->name, (double)facts->memory_size, err);
    }
    return room > 0 && needed > room
         ? refuse_cases(&r->layout, r->item[0].device->facts.name, room, err) : PONS_OK;
}

/*
 * Lay out the first 'count' training cases and forecast whether they fit into each device's memory
 * beside the network. PONS_DEVICE: they do not, and 'err' says why.
 */
static pons_status device_cases_plan(replicas *r, const cache *held, int count, pons_error *err)
{
    device_case_layout_clear(&r->layout);
    if (device_case_layout_make(held, count, r->experiment->data->training, &r->layout, err)
        != PONS_OK)
        return err->status;
    return check_memory(r, err);
}

/* Look for room on the devices. *why has the error of the first process that lacks it, if any. */
static pons_status find_room(replicas *r, const cache *held, int count, pons_error *why,
                             pons_error *err)
{
    const experiment *e = r->experiment;
    pons_error *all, mine = PONS_ERROR_INIT;
    cache_peers peers;

    device_cases_plan(r, held, count, &mine);
    if (e->group == NULL) {
        *why = mine;
        return PONS_OK;
    }
    processes_cache_peers(e->group, &peers);
    all = arena_alloc(e->memory, (size_t)peers.count * sizeof *all);
    if (peers.all_gather(peers.context, &mine, sizeof mine, all, err) != PONS_OK)
        return err->status;
    for (int n = peers.count - 1; n >= 0; n--)
        if (all[n].status != PONS_OK)
            *why = all[n];
    return PONS_OK;
}

pons_status device_cases_choose(replicas *r, experiment *e, const cache *held, int count,
                                bool *moved, pons_error *err)
{
    pons_error why = PONS_ERROR_INIT;

    *moved = false;
    if (!experiment_device_extracts(e) || find_room(r, held, count, &why, err) != PONS_OK
        || why.status == PONS_OK)
        return err->status;
    if (why.status != PONS_DEVICE)
        return pons_fail(err, why.status, "%s", why.text);
    log_warning(e->log, "patches are cut by the host, as with cache = memory: %.*s",
                (int)strcspn(why.text, "\n"), why.text);
    e->sections.data.cache = CACHE_MEMORY;
    *moved = true;
    return PONS_OK;
}

pons_status device_cases_load(replicas *r, const cache *held, int count, pons_error *err)
{
    holding h = { &r->layout, held, r->experiment->sections.patch.count_padding };

    if (r->layout.count == 0 && device_cases_plan(r, held, count, err) != PONS_OK)
        return err->status;
    return replicas_run(r, hold_cases, &h, err);
}

void device_cases_drop(replica *r)
{
    if (r->held != NULL)
        r->device->operations->memory.release(r->device->handle, r->held, r->held_size);
    r->held = NULL;
}
