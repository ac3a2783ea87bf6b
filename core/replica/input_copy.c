/*
 * input_copy.c - patches from the loader to the training program of a replica. A device that
 * computes in host memory reads them in place; for others they are copied.
 */
#include "replica/input_copy.h"

#include <string.h>

#include "base/integer.h"
#include "base/thread/parallel.h"
#include "data/loader/batch_layout.h"
#include "replica/replicas.h"
#include "replica/task_nodes.h"

/* The program has no input for this part of the loader's. */
static pons_status refuse_part(const experiment *e, int part, pons_error *err)
{
    if (part == BATCH_IMAGE)
        return pons_fail(err, PONS_PLUGIN, "model '%s' does not use its image",
                         e->model.plugin->descriptor->name);
    return pons_fail(err, PONS_PLUGIN, "loss '%s' does not use its target",
                     e->loss.plugin->descriptor->name);
}

/* This many threads reach most of the memory's bandwidth; less than a piece needs no second one. */
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

/* Steps of a fast device wait for this copy, so several threads share it. */
static void copy_part(void *to, const loader_part *part)
{
    copying c = { to, part->data };
    int64_t share = ceil_div_i64((int64_t)part->size, COPIERS);

    parallel_run((int64_t)part->size, max_i64(share, PIECE), copy_piece, &c);
}

/* False: the program has no such input. */
static bool give_part(const replica *r, program *p, const loader_part *part)
{
    void *input;

    if (r->device->facts.host_memory) /* the program reads it before loader_next is called again */
        return program_bind_external(p, part->name, part->data);
    input = program_input(p, part->name, NULL);
    if (input != NULL)
        copy_part(input, part);
    return input != NULL;
}

/* Parts of [augment] may have no input: a step need not use its numbers. */
pons_status input_copy_give(const replica *r, program *p, const experiment *e,
                            const loader_batch *batch, pons_error *err)
{
    int needed = task_nodes_of(e)->labels ? BATCH_TARGET : BATCH_IMAGE;

    for (int i = 0; i < batch->part_count; i++)
        if (!give_part(r, p, &batch->part[i]) && i <= needed)
            return refuse_part(e, i, err);
    return PONS_OK;
}

pons_status input_copy_next(replica *r, const experiment *e, const loader_batch **batch,
                            pons_error *err)
{
    *batch = r->ahead;
    r->ahead = NULL;
    if (*batch != NULL)
        return PONS_OK;
    if (loader_next(r->loader, batch, err) != PONS_OK)
        return err->status;
    return input_copy_give(r, r->training, e, *batch, err);
}

pons_status input_copy_seek(replica *r, int64_t step, pons_error *err)
{
    r->ahead = NULL;
    return loader_seek(r->loader, step, err);
}

pons_status input_copy_ahead(replica *r, const experiment *e, int64_t step, pons_error *err)
{
    int first = r->number * e->accumulate;

    if (r->device->facts.host_memory || (r->loader != NULL && !loader_ready(r->loader)))
        return PONS_OK;
    if (r->loader != NULL && (loader_next(r->loader, &r->ahead, err) != PONS_OK
                              || input_copy_give(r, r->training, e, r->ahead, err) != PONS_OK))
        return err->status;
    return program_send(r->training, (uint64_t)step, (uint64_t)first, err);
}
