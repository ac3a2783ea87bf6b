/*
 * schedule.c - the order in which a step runs calls and completes gradient buckets (R1, R2, R8).
 *
 * Each section has a schedule, and micro has one for each micro-batch of a step. Behind the calls
 * of a micro-batch its gradients are added to those of earlier ones. In the last micro-batch each
 * bucket is complete behind the last call that uses its gradients. captured_graph.c runs a
 * schedule; gradient_buckets.c sums a complete bucket over replicas.
 */
#include "base/arena.h"
#include "graph/program/program_internal.h"

static schedule *new_schedule(program *p, const char *name, int room)
{
    schedule *s = arena_alloc(p->arena, sizeof *s);

    s->name = name;
    s->item = arena_alloc(p->arena, (size_t)(room + 1) * sizeof *s->item);
    return s;
}

static void add_item(schedule *s, schedule_action action, int number)
{
    s->item[s->item_count++] = (schedule_item){ action, number };
}

static void add_section(const program *p, schedule *s, int section)
{
    for (int k = p->calls.section_first[section]; k < p->calls.section_first[section + 1]; k++)
        add_item(s, SCHEDULE_CALL, k);
}

/* Add bucket b of slot i + 1 to that of slot i. */
static void add_accumulate(const program *p, schedule *s, int i, int b)
{
    int first = p->calls.section_first[SECTION_ACCUMULATE];

    add_item(s, SCHEDULE_CALL, first + i * p->buckets.count + b);
}

/* The last micro-batch has written bucket b of slot 'top'. Add up the slots below it. */
static void add_bucket_start(const program *p, schedule *s, int b, int top)
{
    for (int i = top - 1; i >= 0; i--)
        add_accumulate(p, s, i, b);
    if (p->settings.collective != NULL)
        add_item(s, SCHEDULE_BUCKET_START, b);
}

static void add_last_micro(const program *p, schedule *s, int top)
{
    const int *first = p->calls.section_first;
    int b = 0;

    for (int k = first[SECTION_MICRO]; k < first[SECTION_MICRO + 1]; k++) {
        add_item(s, SCHEDULE_CALL, k);
        for (; b < p->buckets.count && p->buckets.bucket[b].last_call <= k; b++)
            add_bucket_start(p, s, b, top);
    }
}

/*
 * The schedule of micro-batch m of a step, from 0. After m micro-batches the slots hold one sum for
 * each bit of m. Sums of equally many micro-batches are added, and all sums after the last
 * micro-batch, from the top: R2's tree.
 */
static schedule *make_micro(program *p, int m)
{
    const int *first = p->calls.section_first;
    int calls = first[SECTION_MICRO + 1] - first[SECTION_MICRO];
    int top = __builtin_popcount((unsigned)m), buckets = p->buckets.count;
    schedule *s = new_schedule(p, "micro-batch",
                               calls + buckets + p->grad_accum.slot_count * (buckets + 1));

    if (m + 1 == p->settings.accumulate) {
        add_last_micro(p, s, top);
        return s;
    }
    add_section(p, s, SECTION_MICRO);
    for (int n = m + 1; n % 2 == 0 && top > 0; n /= 2) {
        top--;
        for (int b = 0; b < buckets; b++)
            add_accumulate(p, s, top, b);
    }
    return s;
}

/* The schedule of an earlier micro-batch with the same slot and the same additions, or NULL. */
static schedule *find_micro(const program *p, int m)
{
    for (int i = 0; i < m && m + 1 < p->settings.accumulate; i++)
        if (__builtin_popcount((unsigned)i) == __builtin_popcount((unsigned)m)
            && __builtin_ctz((unsigned)i + 1) == __builtin_ctz((unsigned)m + 1))
            return p->schedules.micro[i];
    return NULL;
}

static schedule *make_section(program *p, const char *name, int section)
{
    schedule *s = new_schedule(p, name, p->calls.count);

    add_section(p, s, section);
    captured_graphs_cut(p, s);
    return s;
}

void schedule_build(program *p)
{
    int count = p->settings.accumulate;

    p->schedules.begin = make_section(p, "begin", SECTION_BEGIN);
    p->schedules.norm = make_section(p, "reduce", SECTION_NORM);
    p->schedules.update = make_section(p, "update", SECTION_UPDATE);
    p->schedules.micro = arena_alloc(p->arena, (size_t)count * sizeof *p->schedules.micro);
    for (int m = 0; m < count; m++) {
        p->schedules.micro[m] = find_micro(p, m);
        if (p->schedules.micro[m] != NULL)
            continue;
        p->schedules.micro[m] = make_micro(p, m);
        captured_graphs_cut(p, p->schedules.micro[m]);
    }
}
