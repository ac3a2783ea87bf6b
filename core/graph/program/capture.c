/*
 * capture.c - what a step runs at one go, cut into segments: calls that follow each other and are
 * all the device's own. A device that records them puts a segment into its queue as a whole.
 *
 * A segment ends where this process has something to do: a bucket leaves for other replicas, a sum
 * inside the graph begins or ends, a kernel computes in host memory. The first time it runs call by
 * call, since a device may still have to make what its kernels need; the second time it is
 * recorded; from then on it is replayed, as long as no address moves. A watched program runs call
 * by call.
 */
#include "base/arena.h"
#include "graph/program/program_internal.h"
#include "graph/storage/profiler_range.h"
#include "plugin/plugin_status.h"

static bool records(const program *p)
{
    return p->device.operations->capture.begin != NULL;
}

/* ---- passages -------------------------------------------------------------------------------- */

static program_passage *new_passage(program *p, const char *name, int room)
{
    program_passage *a = arena_alloc(p->arena, sizeof *a);

    a->name = name;
    a->item = arena_alloc(p->arena, (size_t)(room + 1) * sizeof *a->item);
    return a;
}

static void add_item(program_passage *a, int item)
{
    a->item[a->item_count++] = item;
}

static void add_section(const program *p, program_passage *a, int section)
{
    for (int k = p->section_first[section]; k < p->section_first[section + 1]; k++)
        add_item(a, k);
}

/* Bucket b of fold set i + 1 is added to that of set i. */
static void add_fold(const program *p, program_passage *a, int i, int b)
{
    add_item(a, p->section_first[SECTION_FOLD] + i * p->bucket_count + b);
}

/* The last micro-batch has written bucket b into 'top': the stack is added up, and it leaves. */
static void add_bucket(const program *p, program_passage *a, int b, int top)
{
    for (int i = top - 1; i >= 0; i--)
        add_fold(p, a, i, b);
    if (p->settings.collective != NULL)
        add_item(a, -1 - b);
}

static void add_last_micro(const program *p, program_passage *a, int top)
{
    int b = 0;

    for (int k = p->section_first[SECTION_MICRO]; k < p->section_first[SECTION_MICRO + 1]; k++) {
        add_item(a, k);
        for (; b < p->bucket_count && p->bucket[b].ready <= k; b++)
            add_bucket(p, a, b, top);
    }
}

/*
 * Micro-batch m of a step, from 0. After m of them the stack holds a sum for each bit of m; equal
 * ones are added, and after the last micro-batch all of them, from the top: R2's tree.
 */
static program_passage *make_micro(program *p, int m)
{
    int calls = p->section_first[SECTION_MICRO + 1] - p->section_first[SECTION_MICRO];
    int top = __builtin_popcount((unsigned)m);
    program_passage *a = new_passage(p, "micro-batch", calls + p->bucket_count
                                                       + p->fold_sets * (p->bucket_count + 1));

    if (m + 1 == p->settings.accumulate) {
        add_last_micro(p, a, top);
        return a;
    }
    add_section(p, a, SECTION_MICRO);
    for (int n = m + 1; n % 2 == 0 && top > 0; n /= 2) {
        top--;
        for (int b = 0; b < p->bucket_count; b++)
            add_fold(p, a, top, b);
    }
    return a;
}

/* An earlier micro-batch that lands in the same set and adds up the same ones, or NULL. */
static program_passage *find_micro(const program *p, int m)
{
    for (int i = 0; i < m && m + 1 < p->settings.accumulate; i++)
        if (__builtin_popcount((unsigned)i) == __builtin_popcount((unsigned)m)
            && __builtin_ctz((unsigned)i + 1) == __builtin_ctz((unsigned)m + 1))
            return p->micro_passage[i];
    return NULL;
}

/* ---- segments -------------------------------------------------------------------------------- */

static bool is_fixed(const program *p, int item)
{
    return item >= 0 && records(p) && p->call[item].fixed;
}

static void cut_passage(program *p, program_passage *a)
{
    a->segment = arena_alloc(p->arena, (size_t)(a->item_count + 1) * sizeof *a->segment);
    for (int i = 0; i < a->item_count; i++) {
        bool fixed = is_fixed(p, a->item[i]);

        if (i == 0 || fixed != a->segment[a->segment_count - 1].fixed)
            a->segment[a->segment_count++] = (program_segment){ .first = i, .fixed = fixed };
        a->segment[a->segment_count - 1].count++;
    }
}

void program_cut_segments(program *p)
{
    int count = p->settings.accumulate;

    p->begin_passage = new_passage(p, "begin", p->call_count);
    p->reduce_passage = new_passage(p, "reduce", p->call_count);
    p->update_passage = new_passage(p, "update", p->call_count);
    p->micro_passage = arena_alloc(p->arena, (size_t)count * sizeof *p->micro_passage);
    add_section(p, p->begin_passage, SECTION_BEGIN);
    add_section(p, p->reduce_passage, SECTION_REDUCE);
    add_section(p, p->update_passage, SECTION_UPDATE);
    cut_passage(p, p->begin_passage);
    cut_passage(p, p->reduce_passage);
    cut_passage(p, p->update_passage);
    for (int m = 0; m < count; m++) {
        p->micro_passage[m] = find_micro(p, m);
        if (p->micro_passage[m] != NULL)
            continue;
        p->micro_passage[m] = make_micro(p, m);
        cut_passage(p, p->micro_passage[m]);
    }
}

static int count_fixed(const program_passage *a)
{
    int count = 0;

    for (int i = 0; i < a->segment_count; i++)
        count += a->segment[i].fixed;
    return count;
}

int program_segment_count(const program *p)
{
    int count = count_fixed(p->begin_passage) + count_fixed(p->reduce_passage)
              + count_fixed(p->update_passage);

    for (int m = 0; m < p->settings.accumulate; m++)
        count += count_fixed(p->micro_passage[m]);
    return count;
}

/* ---- run ------------------------------------------------------------------------------------- */

static pons_status run_item(program *p, int item, pons_error *err)
{
    if (item >= 0)
        return program_run_call(p, item, err);
    if (p->device.facts.host_memory && mirror_wait(&p->device, err) != PONS_OK)
        return err->status;
    return program_bucket_start(p, -1 - item, err);
}

static pons_status run_items(program *p, const program_passage *a, const program_segment *s,
                             pons_error *err)
{
    pons_status status = PONS_OK;

    for (int i = s->first; i < s->first + s->count && status == PONS_OK; i++)
        status = run_item(p, a->item[i], err);
    return status;
}

static pons_status record(program *p, const program_passage *a, program_segment *s,
                          pons_error *err)
{
    const pons_device_operations *o = p->device.operations;
    void *device = p->device.handle, *recording = NULL;

    if (plugin_answer(o->capture.begin(device, err), "the device", "capture.begin", err) != PONS_OK)
        return err->status;
    run_items(p, a, s, err);
    plugin_answer(o->capture.end(device, &recording, err), "the device", "capture.end", err);
    if (err->status == PONS_OK)
        s->recording = recording;
    else if (recording != NULL)
        o->capture.destroy(device, recording);
    return err->status;
}

static pons_status run_segment(program *p, const program_passage *a, program_segment *s,
                               pons_error *err)
{
    const pons_device_operations *o = p->device.operations;
    bool watched = p->after != NULL || p->settings.poison;

    if (!s->fixed || watched || !s->ran) {
        s->ran = true;
        return run_items(p, a, s, err);
    }
    if (s->recording == NULL && record(p, a, s, err) != PONS_OK)
        return err->status;
    return plugin_answer(o->capture.launch(p->device.handle, s->recording, err), "the device",
                         "capture.launch", err);
}

pons_status program_run_passage(program *p, program_passage *a, pons_error *err)
{
    pons_status status = PONS_OK;

    range_begin(&p->device, a->name);
    for (int i = 0; i < a->segment_count && status == PONS_OK; i++)
        status = run_segment(p, a, a->segment + i, err);
    range_end(&p->device);
    return status;
}

static void forget_passage(program *p, program_passage *a)
{
    for (int i = 0; i < a->segment_count; i++) {
        if (a->segment[i].recording != NULL)
            p->device.operations->capture.destroy(p->device.handle, a->segment[i].recording);
        a->segment[i].recording = NULL;
    }
}

void program_forget_segments(program *p)
{
    if (p->begin_passage == NULL)
        return;
    forget_passage(p, p->begin_passage);
    forget_passage(p, p->reduce_passage);
    forget_passage(p, p->update_passage);
    for (int m = 0; m < p->settings.accumulate; m++)
        forget_passage(p, p->micro_passage[m]);
}
