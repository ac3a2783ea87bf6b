/*
 * device_accumulator.c - device memory for the sums of windows.
 */
#include "infer/device_accumulator.h"

#include <stdlib.h>

#include "base/integer.h"
#include "graph/storage/staging.h"
#include "replica/window_nodes.h"

enum { TENTHS = 9 };      /* of the device's memory */

static int64_t voxels_of(const experiment *e)
{
    return (int64_t)e->window[0] * e->window[1] * e->window[2];
}

static size_t weights_size(const experiment *e)
{
    return memory_round((size_t)voxels_of(e) * sizeof(float));
}

/* Where the volume's sums begin: behind the weights, and the sums of flips with theirs. */
static size_t sums_begin(const experiment *e, const window_settings *s)
{
    uint64_t flips = stitch_flip_bytes(s, e->task.classes) * (uint64_t)s->batch;

    return window_nodes_flip(e) ? 2 * weights_size(e) + flips : weights_size(e);
}

size_t held_sums_size(const experiment *e, const int64_t size[3])
{
    window_settings settings;
    uint64_t bytes;

    experiment_window_settings(e, &settings);
    bytes = stitch_held_bytes(&settings, size, e->task.classes);
    return bytes > 0 ? round_up_size(sums_begin(e, &settings) + bytes, 4096) : 0;
}

bool held_sums_fit(const device *d, size_t size, double taken)
{
    double all = (double)d->facts.memory_size;

    return all == 0 || (double)size + taken <= all * TENTHS / 10;
}

static void tell(held_sums *h, const experiment *e, const device *d)
{
    if (!h->told)
        log_line(e->log, "windows: their sums, %.3g GB, find no room beside the network in the "
                 "%.3g GB of '%s'; the host adds them up", (double)h->size / 1e9,
                 (double)d->facts.memory_size / 1e9, d->facts.name);
    h->told = true;
}

/* The weights of a window's voxels; of its flips all are equal, and a power of two. */
static pons_status fill(const held_sums *h, const experiment *e, const window_settings *settings,
                        const stitch *s, pons_error *err)
{
    size_t count = (size_t)voxels_of(e), size = count * sizeof(float);
    float *share;

    if (mirror_write(h->device, h->memory, stitch_importance(s), size, err) != PONS_OK
        || !window_nodes_flip(e))
        return err->status;
    share = malloc(size);
    if (share == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the weights of windows");
    for (size_t n = 0; n < count; n++)
        share[n] = 1 / (float)(1 << __builtin_popcount(settings->mirror & 7));
    mirror_write(h->device, h->memory + weights_size(e), share, size, err);
    free(share);
    return err->status;
}

static void hold(const held_sums *h, const experiment *e, program *p)
{
    const window_memory m = { .weights = h->memory, .shares = h->memory + weights_size(e),
                              .mirrored = h->memory + 2 * weights_size(e),
                              .sums = h->memory + h->first };

    window_nodes_hold(e, p, &m);
}

pons_status held_sums_take(held_sums *h, const experiment *e, const replica *r,
                           const int64_t size[3], stitch *s, bool *held, pons_error *err)
{
    const device *d = r->device;
    window_settings settings;
    pons_error why = PONS_ERROR_INIT;

    *held = false;
    experiment_window_settings(e, &settings);
    h->first = sums_begin(e, &settings);
    h->size = held_sums_size(e, size);
    if (h->size == 0 || program_input(r->evaluation, HELD_PLACES, NULL) == NULL)
        return PONS_OK;
    if (program_settle(r->evaluation, err) != PONS_OK)
        return err->status;
    if (held_sums_fit(d, h->size, replica_bytes(r) + (double)r->held_size))
        h->memory = d->operations->memory.allocate(d->handle, h->size, &why);
    if (h->memory == NULL) {
        tell(h, e, d);
        return PONS_OK;
    }
    h->device = d;
    log_detail(e->log, "windows: '%s' adds them up in %.3g GB", d->facts.name,
               (double)h->size / 1e9);
    hold(h, e, r->evaluation);
    stitch_hold(s);
    *held = true;
    return fill(h, e, &settings, s, err);
}

void held_sums_drop(held_sums *h)
{
    pons_error unread = PONS_ERROR_INIT;

    if (h->memory == NULL)
        return;
    mirror_wait(h->device, &unread); /* after a failure batches may be under way */
    h->device->operations->memory.release(h->device->handle, h->memory, h->size);
    h->memory = NULL;
}

pons_status held_sums_read(void *context, int64_t first, int64_t count, float *to,
                           pons_error *err)
{
    const held_sums *h = context;

    return mirror_read(h->device, to, (const float *)(h->memory + h->first) + first,
                       (size_t)count * sizeof *to, err);
}
