/*
 * buckets.c - what a step adds up over replicas, in pieces that leave as soon as they are complete
 * (R8): the gradients, and behind them the contributions to states and the loss.
 *
 * Gradients are written from the last layer to the first, so the fold set is cut from its end. The
 * first piece of gradients is a quarter of the others: the sum begins early, and what it costs
 * besides its bytes is paid while there is still much to compute. The last ones grow smaller, as
 * nothing is computed any more while the very last is summed.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "graph/passes/fuse/fuse.h"
#include "graph/program/program_internal.h"
#include "graph/storage/device_stream.h"

enum { GROUPS = 3 }; /* beside begin, reduce and update: six pieces a step */

/* One gradient of the fold set. */
typedef struct landed {
    size_t offset;
    int ready;
} landed;

static bool uses(const program_call *c, const program_tensor *t)
{
    for (int i = 0; i < c->request->output_count; i++)
        if (c->output[i] == t)
            return true;
    for (int i = 0; i < c->request->input_count; i++)
        if (c->input[i] == t)
            return true;
    return false;
}

/* The last call of the micro section that writes x, or reads it: a sum is taken in place. */
static int node_ready(const program *p, pons_node *x)
{
    const program_tensor *t = p->tensor + plan_owner(x)->number;
    int k = p->section_first[SECTION_MICRO + 1] - 1;

    while (k > p->section_first[SECTION_MICRO] && !uses(p->call + k, t))
        k--;
    return k;
}

static int compare_offsets(const void *a, const void *b)
{
    size_t x = ((const landed *)a)->offset, y = ((const landed *)b)->offset;

    return (x > y) - (x < y);
}

static int compare_ready(const void *a, const void *b)
{
    const program_bucket *x = a, *y = b;

    if (x->ready != y->ready)
        return x->ready - y->ready;
    return (x->offset < y->offset) - (x->offset > y->offset);
}

static void add_bucket(program *p, size_t begin, size_t end, int ready)
{
    p->bucket[p->bucket_count++] = (program_bucket){ begin, end - begin, ready, NULL };
}

/* Of the next piece, with 'rest' bytes to come: half of them when they are few. */
static size_t piece_limit(const program *p, size_t rest)
{
    size_t most = p->settings.bucket, least = most / 32, limit = rest / 2;

    return limit < least ? least : limit > most ? most : limit;
}

static void cut_gradients(program *p)
{
    landed *list = arena_alloc(p->arena, (size_t)(p->gradient_count + 1) * sizeof *list);
    size_t limit = p->settings.bucket / 4, end = p->fold_gradients;
    int ready = 0;

    for (int i = 0; i < p->gradient_count; i++) {
        pons_node *x = p->gradient[i];

        list[i] = (landed){ p->tensor[plan_owner(x)->number].offset, node_ready(p, x) };
    }
    qsort(list, (size_t)p->gradient_count, sizeof *list, compare_offsets);
    for (int i = p->gradient_count - 1; i >= 0; i--) {
        size_t begin = i > 0 ? list[i].offset : 0;

        ready = list[i].ready > ready ? list[i].ready : ready;
        if (i > 0 && end - begin < limit)
            continue;
        add_bucket(p, begin, end, ready);
        end = begin;
        ready = 0;
        limit = piece_limit(p, end);
    }
}

static int rest_ready(const program *p)
{
    int ready = node_ready(p, p->loss);

    for (int i = 0; i < p->merge_count; i++) {
        int k = node_ready(p, p->contribution[i]);

        ready = k > ready ? k : ready;
    }
    return ready;
}

/*
 * A device that records a section does so up to each place where buckets leave: they leave in
 * groups, the last ones at the end, so that a step has few such pieces.
 */
static void gather_buckets(program *p)
{
    size_t before = 0, total = 0;
    int last = p->bucket_count - 1, ready = p->section_first[SECTION_MICRO + 1] - 1;
    int group = GROUPS - 1;

    for (int b = 0; b <= last; b++)
        total += p->bucket[b].size;
    for (int b = last; b >= 0; b--) {
        int own = GROUPS - 1 - (int)(GROUPS * before / total);

        before += p->bucket[b].size;
        if (own != group)
            ready = p->bucket[b].ready;
        group = own;
        p->bucket[b].ready = ready;
    }
}

int program_bucket_limit(const program *p)
{
    return p->settings.collective != NULL ? p->gradient_count + 1 : 1;
}

void program_cut_buckets(program *p)
{
    p->bucket = arena_alloc(p->arena, (size_t)program_bucket_limit(p) * sizeof *p->bucket);
    if (p->settings.collective == NULL) {
        add_bucket(p, 0, p->fold_size, p->section_first[SECTION_MICRO + 1] - 1);
        return;
    }
    cut_gradients(p);
    add_bucket(p, p->fold_gradients, p->fold_size, rest_ready(p));
    qsort(p->bucket, (size_t)p->bucket_count, sizeof *p->bucket, compare_ready);
    if (p->device.operations->capture.begin != NULL)
        gather_buckets(p);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static int64_t count_of(const program *p, const program_bucket *b)
{
    return (int64_t)(b->size / p->storage->real_size);
}

static pons_status start_sum(program *p, program_bucket *b, char *set, pons_error *err)
{
    const program_collective *c = p->settings.collective;

    return c->start(c->context, set + b->offset, count_of(p, b), p->storage->real, &b->pending,
                    err);
}

/* To the host, beside the kernels that come. */
static pons_status send_bucket(program *p, int number, pons_error *err)
{
    const device *d = &p->device;
    const program_bucket *b = p->bucket + number;
    int complete = MARK_BUCKETS + 2 * number;

    if (event_record(d, PONS_STREAM_KERNELS, complete, err) != PONS_OK
        || stream_wait_event(d, PONS_STREAM_COPY, complete, err) != PONS_OK
        || stream_copy(d, PONS_STREAM_COPY, p->summed + b->offset, p->fold + b->offset, b->size,
                      err) != PONS_OK)
        return err->status;
    return event_record(d, PONS_STREAM_COPY, complete + 1, err);
}

pons_status program_bucket_start(program *p, int number, pons_error *err)
{
    const program_collective *c = p->settings.collective;

    if (p->summed != NULL)
        return send_bucket(p, number, err);
    if (c->stream != NULL && stream_wait_stream(&p->device, c->stream, err) != PONS_OK)
        return err->status;
    return start_sum(p, p->bucket + number, p->fold, err);
}

/* In the order in which they are complete, while the device computes what is behind them. */
pons_status program_buckets_started(program *p, pons_error *err)
{
    for (int i = 0; p->summed != NULL && i < p->bucket_count; i++)
        if (event_synchronize(&p->device, MARK_BUCKETS + 2 * i + 1, err) != PONS_OK
            || start_sum(p, p->bucket + i, p->summed, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

static pons_status end_sum(program *p, program_bucket *b, pons_error *err)
{
    const program_collective *c = p->settings.collective;

    if (c->wait(c->context, b->pending, err) != PONS_OK || p->summed == NULL)
        return err->status;
    return stream_copy(&p->device, PONS_STREAM_KERNELS, p->fold + b->offset, p->summed + b->offset,
                      b->size, err);
}

pons_status program_buckets_wait(program *p, pons_error *err)
{
    for (int i = 0; p->settings.collective != NULL && i < p->bucket_count; i++)
        if (end_sum(p, p->bucket + i, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}
