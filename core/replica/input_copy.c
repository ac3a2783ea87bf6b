/*
 * input_copy.c - patches on their way from the loader into the training program of a replica: it
 * reads them where the loader has made them, or they are copied for a device with memory of its
 * own.
 */
#include "replica/input_copy.h"

#include <string.h>

#include "base/integer.h"
#include "base/thread/parallel.h"
#include "data/loader/batch_layout.h"
#include "replica/replicas.h"

/* Nobody is there for what the loader has made. */
static pons_status refuse(const experiment *e, int part, pons_error *err)
{
    if (part == PATCH_IMAGE)
        return pons_fail(err, PONS_PLUGIN, "model '%s' does not use its image",
                         e->model.plugin->descriptor->name);
    return pons_fail(err, PONS_PLUGIN, "loss '%s' does not use its target",
                     e->loss.plugin->descriptor->name);
}

/* So many threads get most of a memory's pace; less than a piece is not worth another one. */
enum { COPIERS = 4, PIECE = 1 << 20 };

typedef struct copying {
    char *to;
    const char *from;
} copying;

static void copy_piece(void *context, int64_t first, int64_t end)
{
    const copying *c = context;

    memcpy(c->to + first, c->from + first, (size_t)(end - first));
}

/* Steps of a fast device wait for it. */
static void copy_part(void *to, const loader_part *part)
{
    copying c = { to, part->data };
    int64_t share = ceil_div_i64((int64_t)part->size, COPIERS);

    parallel_run((int64_t)part->size, share > PIECE ? share : PIECE, copy_piece, &c);
}

/* False: the program has no such input. */
static bool give(const replica *r, const loader_part *part)
{
    void *input;

    if (r->device->facts.host_memory) /* it is read before the loader is asked for the next one */
        return program_lend(r->training, part->name, part->data);
    input = program_input(r->training, part->name, NULL);
    if (input != NULL)
        copy_part(input, part);
    return input != NULL;
}

/* A step of [augment] may leave numbers of its own unused. */
static pons_status fill(const replica *r, const experiment *e, const loader_batch *batch,
                        pons_error *err)
{
    for (int i = 0; i < batch->part_count; i++)
        if (!give(r, &batch->part[i]) && i <= PATCH_TARGET)
            return refuse(e, i, err);
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

pons_status replica_seek(replica *r, int64_t step, pons_error *err)
{
    r->ahead = NULL;
    return loader_seek(r->loader, step, err);
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
