/*
 * held_sums.c - what an evaluation program needs to add windows to sums, and the memory for them.
 */
#include <config.h>

#include "train/held_sums.h"

#include "graph/memory.h"
#include "graph/mirror.h"

#include <string.h>

#define SUMS "sums"       /* held leaves of the program */
#define WEIGHTS "weights"

enum { TENTHS = 9 };      /* of the device's memory */

static int64_t voxels_of(const experiment *e)
{
    return (int64_t)e->window[0] * e->window[1] * e->window[2];
}

static pons_shape windows_shape(const experiment *e)
{
    return (pons_shape){ 5, { e->sections.window.batch, e->window[0], e->window[1], e->window[2],
                              e->task.classes } };
}

static pons_shape places_shape(const experiment *e)
{
    return (pons_shape){ 2, { e->sections.window.batch, PONS_PATCH_PLACE
                              + 2 * (int64_t)(e->window[0] + e->window[1] + e->window[2]) } };
}

static pons_shape weights_shape(const experiment *e)
{
    return (pons_shape){ 3, { e->window[0], e->window[1], e->window[2] } };
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Whether the device has the kernel; no other kernel can take its place (hosted.c). */
static bool can_add(const experiment *e, const device *d)
{
    const pons_tensor bytes = { PONS_U8, { 1, { 1 } } };
    const pons_tensor input[] = { bytes, { PONS_I32, places_shape(e) },
                                  { PONS_F32, weights_shape(e) }, { PONS_F32, windows_shape(e) } };
    const pons_request request = { .kind = PONS_KERNEL_PATCH_ADD, .name = SUMS, .input_count = 4,
                                   .output_count = 1, .input = input, .output = &bytes };
    pons_error unread = PONS_ERROR_INIT;
    pons_kernel kernel = { .run = NULL };
    bool supported = false;
    pons_status status = d->operations->prepare(d->handle, &request, &kernel, &supported, &unread);

    if (status == PONS_OK && supported && kernel.free != NULL)
        kernel.free(&kernel);
    return status == PONS_OK && supported;
}

bool held_sums_wanted(const experiment *e, const device *d)
{
    return !d->facts.host_memory && e->device_count == 1 && e->sections.window.mirror.count == 0
        && can_add(e, d);
}

/* A window's axes are those of the file here; a flat network has them in another order. */
pons_node *held_sums_node(const experiment *e, pons_graph *g, pons_node *logits)
{
    node_scope scope = g->scope;
    pons_node *sums;

    g->scope = SCOPE_CORE;
    sums = node_patch_add(g, node_held(g, SUMS),
                          node_input(g, HELD_PLACES, PONS_I32, places_shape(e)),
                          node_held_tensor(g, WEIGHTS, PONS_F32, weights_shape(e)),
                          pons_reshape(g, logits, windows_shape(e)));
    g->scope = scope;
    sums->name = SUMS;
    return sums;
}

void held_sums_clear(program *p)
{
    pons_tensor tensor;
    int32_t *place = program_input(p, HELD_PLACES, &tensor);

    if (place != NULL)
        memset(place, -1, (size_t)shape_count(tensor.shape) * sizeof *place);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Sums lie behind the weights. */
static size_t weights_size(const experiment *e)
{
    return memory_round((size_t)voxels_of(e) * sizeof(float));
}

size_t held_sums_size(const experiment *e, const int64_t size[3])
{
    window_settings settings;
    uint64_t bytes;

    network_window_settings(e, &settings);
    bytes = stitch_held_bytes(&settings, size, e->task.classes);
    return bytes > 0 ? (weights_size(e) + bytes + 4095) / 4096 * 4096 : 0;
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

pons_status held_sums_take(held_sums *h, const experiment *e, const replica *r,
                           const int64_t size[3], stitch *s, bool *held, pons_error *err)
{
    const device *d = r->device;
    pons_error why = PONS_ERROR_INIT;

    *held = false;
    h->first = weights_size(e);
    h->size = held_sums_size(e, size);
    if (h->size == 0 || program_input(r->evaluation, HELD_PLACES, NULL) == NULL)
        return PONS_OK;
    if (program_settle(r->evaluation, err) != PONS_OK)
        return err->status;
    if (held_sums_fit(d, h->size, replica_bytes(r) + (double)r->held_size))
        h->memory = d->operations->allocate(d->handle, h->size, &why);
    if (h->memory == NULL) {
        tell(h, e, d);
        return PONS_OK;
    }
    h->device = d;
    log_detail(e->log, "windows: '%s' adds them up in %.3g GB", d->facts.name,
               (double)h->size / 1e9);
    program_hold(r->evaluation, WEIGHTS, h->memory);
    program_hold(r->evaluation, SUMS, h->memory + h->first);
    stitch_hold(s);
    *held = true;
    return mirror_write(d, h->memory, stitch_importance(s),
                        (size_t)voxels_of(e) * sizeof(float), err);
}

void held_sums_drop(held_sums *h)
{
    pons_error unread = PONS_ERROR_INIT;

    if (h->memory == NULL)
        return;
    mirror_wait(h->device, &unread); /* after a failure batches may be under way */
    h->device->operations->release(h->device->handle, h->memory, h->size);
    h->memory = NULL;
}

pons_status held_sums_read(void *context, int64_t first, int64_t count, float *to,
                           pons_error *err)
{
    const held_sums *h = context;

    return mirror_read(h->device, to, (const float *)(h->memory + h->first) + first,
                       (size_t)count * sizeof *to, err);
}
