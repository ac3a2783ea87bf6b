/*
 * feed.c - patches on their way from the loader into the training program of a replica.
 */
#include <config.h>

#include "train/replicas.h"

#include <string.h>

static pons_status fill(const replica *r, const experiment *e, const loader_batch *batch,
                        pons_error *err)
{
    pons_tensor tensor = { 0 };
    void *image = program_input(r->training, "image", &tensor);

    if (image == NULL)
        return pons_fail(err, PONS_PLUGIN, "model '%s' does not use its image",
                         e->model.plugin->descriptor->name);
    memcpy(image, batch->image, (size_t)shape_count(tensor.shape) * sizeof *batch->image);
    void *target = program_input(r->training, "target", &tensor);
    if (target == NULL)
        return pons_fail(err, PONS_PLUGIN, "loss '%s' does not use its target",
                         e->loss.plugin->descriptor->name);
    memcpy(target, batch->label, (size_t)shape_count(tensor.shape));
    return PONS_OK;
}

pons_status replica_feed(replica *r, const experiment *e, const loader_batch **batch,
                         pons_error *err)
{
    *batch = r->ahead;
    r->ahead = NULL;
    if (*batch != NULL)
        return PONS_OK;
    return loader_next(r->loader, batch, err) == PONS_OK ? fill(r, e, *batch, err) : err->status;
}

pons_status replica_feed_ahead(replica *r, const experiment *e, int64_t step, pons_error *err)
{
    int first = r->number * e->accumulate;

    if (r->device->facts.host_memory || (r->loader != NULL && !loader_ready(r->loader)))
        return PONS_OK;
    if (r->loader != NULL && (loader_next(r->loader, &r->ahead, err) != PONS_OK
                              || fill(r, e, r->ahead, err) != PONS_OK))
        return err->status;
    return program_send(r->training, (uint64_t)step, (uint64_t)first, err);
}
