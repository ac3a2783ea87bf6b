/*
 * gradient_buckets.c - sum the gradients of a step over replicas, in buckets whose sums start as
 * soon as they are complete (R8). The last bucket has the contributions to states and the loss.
 *
 * The backward pass writes gradients from the last layer to the first, so buckets are cut from the
 * end of the accumulation slot. The first bucket of gradients is a quarter of the others: its sum
 * starts early, and its latency is hidden by computation. The last ones grow smaller, since no
 * computation hides the sum of the very last.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/integer.h"
#include "graph/program/program_internal.h"
#include "graph/storage/device_stream.h"

enum { GROUP_COUNT = 3 }; /* Six graphs a step, with those of begin, norm and update.             */

/* A gradient in the accumulation slot. */
typedef struct slot_gradient {
    size_t offset;
    int last_call;
} slot_gradient;

static bool call_uses(const program_call *c, const program_tensor *t)
{
    for (int i = 0; i < c->request->output_count; i++)
        if (c->output[i] == t)
            return true;
    for (int i = 0; i < c->request->input_count; i++)
        if (c->input[i] == t)
            return true;
    return false;
}

/* The last call of micro that reads or writes 'x': the sum is made in place. */
static int last_use(const program *p, pons_node *x)
{
    const program_tensor *t = p->layout.tensor + node_owner(x)->number;
    int k = p->calls.section_first[SECTION_MICRO + 1] - 1;

    while (k > p->calls.section_first[SECTION_MICRO] && !call_uses(p->calls.call + k, t))
        k--;
    return k;
}

static int compare_offsets(const void *a, const void *b)
{
    size_t x = ((const slot_gradient *)a)->offset, y = ((const slot_gradient *)b)->offset;

    return (x > y) - (x < y);
}

static int compare_last_calls(const void *a, const void *b)
{
    const program_bucket *x = a, *y = b;

    if (x->last_call != y->last_call)
        return x->last_call - y->last_call;
    return (x->offset < y->offset) - (x->offset > y->offset);
}

static void add_bucket(program *p, size_t begin, size_t end, int last_call)
{
    p->buckets.bucket[p->buckets.count++] = (program_bucket){ begin, end - begin, last_call, NULL };
}

/* Bytes of the next bucket if 'rest' bytes remain: half of the rest when it is small. */
static size_t piece_limit(const program *p, size_t rest)
{
    size_t most = p->settings.bucket, least = most / 32, limit = rest / 2;

    return limit < least ? least : limit > most ? most : limit;
}

static void cut_gradients(program *p)
{
    slot_gradient *list = arena_alloc(p->arena, (size_t)(p->gradients.count + 1) * sizeof *list);
    size_t limit = p->settings.bucket / 4, end = p->grad_accum.gradients_size;
    int last_call = 0;

    for (int i = 0; i < p->gradients.count; i++) {
        pons_node *x = p->gradients.gradient[i];

        list[i] = (slot_gradient){ p->layout.tensor[node_owner(x)->number].offset, last_use(p, x) };
    }
    qsort(list, (size_t)p->gradients.count, sizeof *list, compare_offsets);
    for (int i = p->gradients.count - 1; i >= 0; i--) {
        size_t begin = i > 0 ? list[i].offset : 0;

        last_call = max_int(list[i].last_call, last_call);
        if (i > 0 && end - begin < limit)
            continue;
        add_bucket(p, begin, end, last_call);
        end = begin;
        last_call = 0;
        limit = piece_limit(p, end);
    }
}

static int rest_last_use(const program *p)
{
    int last_call = last_use(p, p->loss);

    for (int i = 0; i < p->gradients.state_count; i++) {
        int k = last_use(p, p->gradients.contribution[i]);

        last_call = max_int(k, last_call);
    }
    return last_call;
}

/*
 * A captured graph ends where buckets are complete. So buckets complete in groups, the last group
 * at the end of micro, and a step has few graphs.
 */
static void group_buckets(program *p)
{
    size_t before = 0, total = 0;
    int last = p->buckets.count - 1;
    int last_call = p->calls.section_first[SECTION_MICRO + 1] - 1;
    int group = GROUP_COUNT - 1;

    for (int b = 0; b <= last; b++)
        total += p->buckets.bucket[b].size;
    for (int b = last; b >= 0; b--) {
        int own = GROUP_COUNT - 1 - (int)(GROUP_COUNT * before / total);

        before += p->buckets.bucket[b].size;
        if (own != group)
            last_call = p->buckets.bucket[b].last_call;
        group = own;
        p->buckets.bucket[b].last_call = last_call;
    }
}

int gradient_buckets_limit(const program *p)
{
    return p->settings.collective != NULL ? p->gradients.count + 1 : 1;
}

void gradient_buckets_cut(program *p)
{
    size_t most = (size_t)gradient_buckets_limit(p);

    p->buckets.bucket = arena_alloc(p->arena, most * sizeof *p->buckets.bucket);
    if (p->settings.collective == NULL) {
        add_bucket(p, 0, p->grad_accum.slot_size, p->calls.section_first[SECTION_MICRO + 1] - 1);
        return;
    }
    cut_gradients(p);
    add_bucket(p, p->grad_accum.gradients_size, p->grad_accum.slot_size, rest_last_use(p));
    qsort(p->buckets.bucket, (size_t)p->buckets.count, sizeof *p->buckets.bucket,
          compare_last_calls);
    if (p->device.operations->capture.begin != NULL)
        group_buckets(p);
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

/* Queue the bucket's copy to the host, beside the kernels behind it. */
static pons_status copy_bucket_to_host(program *p, int number, pons_error *err)
{
    const device *d = &p->device;
    const program_bucket *b = p->buckets.bucket + number;
    int complete = EVENT_BUCKETS + 2 * number;

    if (event_record(d, PONS_STREAM_KERNELS, complete, err) != PONS_OK
        || stream_wait_event(d, PONS_STREAM_COPY, complete, err) != PONS_OK
        || stream_copy(d, PONS_STREAM_COPY, p->grad_accum.host_slot + b->offset,
                       p->grad_accum.memory + b->offset, b->size, err) != PONS_OK)
        return err->status;
    return event_record(d, PONS_STREAM_COPY, complete + 1, err);
}

pons_status gradient_bucket_start(program *p, int number, pons_error *err)
{
    const program_collective *c = p->settings.collective;

    if (p->grad_accum.host_slot != NULL)
        return copy_bucket_to_host(p, number, err);
    if (c->stream != NULL && stream_wait_stream(&p->device, c->stream, err) != PONS_OK)
        return err->status;
    return start_sum(p, p->buckets.bucket + number, p->grad_accum.memory, err);
}

/* The host sums follow the order of completion, while the device computes the kernels behind. */
pons_status gradient_buckets_start_host_sums(program *p, pons_error *err)
{
    for (int i = 0; p->grad_accum.host_slot != NULL && i < p->buckets.count; i++)
        if (event_synchronize(&p->device, EVENT_BUCKETS + 2 * i + 1, err) != PONS_OK
            || start_sum(p, p->buckets.bucket + i, p->grad_accum.host_slot, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

static pons_status end_sum(program *p, program_bucket *b, pons_error *err)
{
    const program_collective *c = p->settings.collective;

    if (c->wait(c->context, b->pending, err) != PONS_OK || p->grad_accum.host_slot == NULL)
        return err->status;
    return stream_copy(&p->device, PONS_STREAM_KERNELS, p->grad_accum.memory + b->offset,
                       p->grad_accum.host_slot + b->offset, b->size, err);
}

pons_status gradient_buckets_wait(program *p, pons_error *err)
{
    for (int i = 0; p->settings.collective != NULL && i < p->buckets.count; i++)
        if (end_sum(p, p->buckets.bucket + i, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}
