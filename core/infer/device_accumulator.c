/*
 * device_accumulator.c - allocate and read the device memory in which windows are accumulated.
 */
#include "infer/device_accumulator.h"

#include <stdlib.h>

#include "base/integer.h"
#include "graph/storage/staging.h"
#include "replica/window_nodes.h"

enum { TENTHS = 9 };      /* tenths of the device's memory that may be used */

static int64_t voxels_of(const experiment *e)
{
    return (int64_t)e->window[0] * e->window[1] * e->window[2];
}

static size_t weights_size(const experiment *e)
{
    return memory_round((size_t)voxels_of(e) * sizeof(float));
}

/*
 * Offset of the volume's sums, behind the window's weights and, with mirroring, the flips' weights
 * and sums.
 */
static size_t sums_begin(const experiment *e, const window_settings *s)
{
    uint64_t flips = window_blend_flip_bytes(s, e->task.classes) * (uint64_t)s->batch;

    return window_nodes_flip(e) ? 2 * weights_size(e) + flips : weights_size(e);
}

size_t device_accumulator_size(const experiment *e, const int64_t size[3])
{
    window_settings settings;
    uint64_t bytes;

    experiment_window_settings(e, &settings);
    bytes = window_blend_device_bytes(&settings, size, e->task.classes);
    return bytes > 0 ? round_up_size(sums_begin(e, &settings) + bytes, 4096) : 0;
}

bool device_accumulator_fits(const device *d, size_t size, double taken)
{
    double all = (double)d->facts.memory_size;

    return all == 0 || (double)size + taken <= all * TENTHS / 10;
}

static void log_no_memory(device_accumulator *h, const experiment *e, const device *d)
{
    if (!h->memory_logged)
        log_line(e->log, "windows: sums of %.3g GB do not fit beside the network in the %.3g GB "
                 "of '%s'; the host accumulates them", (double)h->size / 1e9,
                 (double)d->facts.memory_size / 1e9, d->facts.name);
    h->memory_logged = true;
}

/* Write the weights of a window's voxels, and the weight of a flip: 1 / number of flips. */
static pons_status write_weights(const device_accumulator *h, const experiment *e,
                                 const window_settings *settings, const blender *s, pons_error *err)
{
    size_t count = (size_t)voxels_of(e), size = count * sizeof(float);
    float *share;

    if (staging_write(h->device, h->memory, window_blend_importance(s), size, err) != PONS_OK
        || !window_nodes_flip(e))
        return err->status;
    share = malloc(size);
    if (share == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the weights of windows");
    for (size_t n = 0; n < count; n++)
        share[n] = 1 / (float)(1 << __builtin_popcount(settings->mirror & 7));
    staging_write(h->device, h->memory + weights_size(e), share, size, err);
    free(share);
    return err->status;
}

static void bind_memory(const device_accumulator *h, const experiment *e, program *p)
{
    const window_memory m = { .weights = h->memory, .shares = h->memory + weights_size(e),
                              .mirrored = h->memory + 2 * weights_size(e),
                              .sums = h->memory + h->first };

    window_nodes_bind(e, p, &m);
}

pons_status device_accumulator_open(device_accumulator *h, const experiment *e, const replica *r,
                                    const int64_t size[3], blender *s, bool *accumulates,
                                        pons_error *err)
{
    const device *d = r->device;
    window_settings settings;
    pons_error why = PONS_ERROR_INIT;

    *accumulates = false;
    experiment_window_settings(e, &settings);
    h->first = sums_begin(e, &settings);
    h->size = device_accumulator_size(e, size);
    if (h->size == 0 || program_input(r->evaluation, HELD_PLACES, NULL) == NULL)
        return PONS_OK;
    if (program_settle(r->evaluation, err) != PONS_OK)
        return err->status;
    if (device_accumulator_fits(d, h->size, replica_bytes(r) + (double)r->held_size))
        h->memory = d->operations->memory.allocate(d->handle, h->size, &why);
    if (h->memory == NULL) {
        log_no_memory(h, e, d);
        return PONS_OK;
    }
    h->device = d;
    log_detail(e->log, "windows: '%s' accumulates them in %.3g GB", d->facts.name,
               (double)h->size / 1e9);
    h->experiment = e;
    h->program = r->evaluation;
    bind_memory(h, e, r->evaluation);
    window_blend_use_device(s);
    *accumulates = true;
    return write_weights(h, e, &settings, s, err);
}

void device_accumulator_close(device_accumulator *h)
{
    pons_error unread = PONS_ERROR_INIT;

    if (h->memory == NULL)
        return;
    staging_wait(h->device, &unread); /* after a failure batches may be under way                 */
    /* The host may accumulate the next volume, whose batches run with the same program. */
    window_nodes_bind(h->experiment, h->program, NULL);
    h->device->operations->memory.release(h->device->handle, h->memory, h->size);
    h->memory = NULL;
}

pons_status device_accumulator_read(void *context, int64_t first, int64_t count, float *to,
                                    pons_error *err)
{
    const device_accumulator *h = context;

    return staging_read(h->device, to, (const float *)(h->memory + h->first) + first,
                        (size_t)count * sizeof *to, err);
}
