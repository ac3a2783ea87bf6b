/*
 * group_sum.c - all-reduce among the processes of a run, for the graph's program.
 *
 * Without 'deterministic' a sum is the plugin's all_reduce, in place. With it, all_gather collects
 * the buffers of all processes, and they are added here in R2's order. A sum is cut into pieces,
 * and a few pieces are in progress at a time. So their buffers together are no larger than the
 * sums, whatever the number of processes. Pieces start in the order of their sums with the same
 * sizes on every rank, whenever that happens.
 *
 * The buffers of the pieces are one block. During the first step the pieces grow with the sums that
 * are counted. For a larger block all pieces must end first, and the old block is unmapped. It is
 * mapped memory, because an allocator would retain each smaller block.
 */
#include "cluster/group/group_internal.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/pairwise_sum.h"

enum { PIECES = 8, LEAST = 16384 }; /* pieces in progress; least bytes of a process's share       */

struct ordered_sum {
    ordered_sum *next, *below;  /* next of 'waiting' or 'idle'; next of 'made'                    */
    char *buffer;
    int64_t count, piece, started, added; /* elements: all, of a piece, started, added            */
    size_t cell, size;
    double ended;
};

static size_t cell_of(pons_type type)
{
    return type == PONS_F64 ? sizeof(double) : sizeof(float);
}

/* ---- one piece ------------------------------------------------------------------------------- */

static size_t buffer_size(const group *g, const ordered_sum *s)
{
    return (size_t)min_i64(s->piece, s->count) * s->cell * (size_t)g->size;
}

static void free_buffers(group *g)
{
    if (g->rooms != NULL)
        munmap(g->rooms, PIECES * g->room);
    g->rooms = NULL;
    g->room = 0;
}

/* No piece is in progress. */
static pons_status enlarge_buffers(group *g, size_t room, pons_error *err)
{
    free_buffers(g);
    g->rooms = mmap(NULL, PIECES * room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
    if (g->rooms != MAP_FAILED) {
        g->room = room;
        return PONS_OK;
    }
    g->rooms = NULL;
    return pons_fail(err, PONS_DEVICE, "out of memory for the sums of %d processes", g->size);
}

static pons_status start_piece(group *g, ordered_sum *s, pons_error *err)
{
    int64_t left = s->count - s->started, count = min_i64(left, s->piece);
    operation *o = group_operation_new(g, "all_gather", (size_t)count * s->cell, err);
    pons_error why = PONS_ERROR_INIT;

    if (o == NULL)
        return err->status;
    o->sum = s;
    o->at = s->started;
    o->count = count;
    o->all = g->rooms + g->begun++ % PIECES * g->room; /* pieces end in order: it is free */
    if (g->operations->all_gather(g->comm, s->buffer + (size_t)o->at * s->cell, o->size, o->all,
                                  &o->pending, &why) != PONS_OK)
        return group_operation_not_started(g, o, &why, err);
    s->started += count;
    *(g->oldest == NULL ? &g->oldest : &g->newest->next) = o;
    g->newest = o;
    g->pieces++;
    return PONS_OK;
}

static void add_piece(const group *g, const operation *o)
{
    const ordered_sum *s = o->sum;
    char *out = s->buffer + (size_t)o->at * s->cell;

    for (int r = 0; r < g->size; r++)
        g->part[r] = o->all + (size_t)r * o->size;
    for (int64_t at = 0; at < o->count; at += PAIRWISE_SUM_TILE) {
        int count = o->count - at < PAIRWISE_SUM_TILE ? (int)(o->count - at) : PAIRWISE_SUM_TILE;
        pairwise_sum(g->part, g->size, s->cell == sizeof(double), at, count,
                     out + (size_t)at * s->cell);
    }
}

/* End the oldest piece in progress and release it, also after a failure. */
static pons_status end_piece(group *g, double wait_s, bool *ended, pons_error *err)
{
    operation *o = g->oldest;

    group_operation_end(g, o, wait_s, ended, err);
    if (!*ended)
        return PONS_OK;
    g->oldest = o->next;
    g->pieces--;
    if (err->status == PONS_OK) {
        add_piece(g, o);
        o->sum->added += o->count;
        o->sum->ended = seconds_now();
    }
    group_operation_free(g, o);
    return err->status;
}

/* ---- pieces in order ------------------------------------------------------------------------- */

/* Start as many pieces as may be in progress. */
static pons_status start_pieces(group *g, pons_error *err)
{
    while (g->waiting != NULL && g->pieces < PIECES) {
        ordered_sum *s = g->waiting;

        if (buffer_size(g, s) > g->room) {
            if (g->pieces > 0)
                return PONS_OK;
            if (enlarge_buffers(g, buffer_size(g, s), err) != PONS_OK)
                return err->status;
        }
        if (start_piece(g, s, err) != PONS_OK)
            return err->status;
        if (s->started == s->count)
            g->waiting = s->next;
    }
    return PONS_OK;
}

/* Add pieces that have ended, without waiting, and start further ones. */
static pons_status advance_sums(group *g, pons_error *err)
{
    bool ended = true;

    while (g->oldest != NULL && ended)
        if (end_piece(g, 0, &ended, err) != PONS_OK)
            return err->status;
    return start_pieces(g, err);
}

static ordered_sum *new_ordered_sum(group *g, pons_error *err)
{
    ordered_sum *s = g->idle;

    if (g->part == NULL)
        g->part = malloc((size_t)g->size * sizeof *g->part);
    if (s != NULL && g->part != NULL) {
        g->idle = s->next;
        return s;
    }
    s = g->part != NULL ? calloc(1, sizeof *s) : NULL;
    if (s == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for the sums of %d processes", g->size);
        return NULL;
    }
    s->below = g->made;
    g->made = s;
    return s;
}

/* Elements of a process's share of a piece: the buffers together are as large as all sums. */
static int64_t piece_elements(const group *g, size_t cell)
{
    size_t size = g->most / (PIECES * (size_t)g->size);

    return (int64_t)(max_size(size, LEAST) / cell);
}

static pons_status start_ordered_sum(group *g, void *buffer, int64_t count, pons_type type,
                                     void **pending, pons_error *err)
{
    ordered_sum *s = new_ordered_sum(g, err);

    if (s == NULL)
        return err->status;
    *s = (ordered_sum){ .below = s->below, .buffer = buffer, .count = count,
                        .cell = cell_of(type) };
    s->size = (size_t)count * s->cell;
    g->asked += s->size;
    g->most = max_size(g->asked, g->most);
    s->piece = piece_elements(g, s->cell);
    *(g->waiting == NULL ? &g->waiting : &g->last->next) = s;
    g->last = s;
    *pending = s;
    return advance_sums(g, err);
}

static pons_status end_ordered_sum(group *g, ordered_sum *s, pons_error *err)
{
    bool ended;

    while (s->added < s->count && err->status == PONS_OK)
        if (start_pieces(g, err) == PONS_OK)
            end_piece(g, GROUP_POLL_S, &ended, err);
    g->ended = s->ended;
    g->asked -= s->size;
    if (err->status != PONS_OK)
        return err->status; /* pieces may be in progress: keep it until the group closes */
    s->next = g->idle;
    g->idle = s;
    return start_pieces(g, err);
}

pons_status group_start_all_sums(group *g, pons_error *err)
{
    bool ended;

    while (g->waiting != NULL && err->status == PONS_OK)
        if (start_pieces(g, err) == PONS_OK && g->waiting != NULL)
            end_piece(g, GROUP_POLL_S, &ended, err);
    return err->status;
}

/* ---- the program's collective ---------------------------------------------------------------- */

static pons_status start_sum(void *context, void *buffer, int64_t count, pons_type type,
                             void **pending, pons_error *err)
{
    group *g = context;
    operation *o;
    pons_error why = PONS_ERROR_INIT;

    if (g->deterministic)
        return start_ordered_sum(g, buffer, count, type, pending, err);
    o = group_operation_new(g, "all_reduce", (size_t)count * cell_of(type), err);
    if (o == NULL)
        return err->status;
    if (g->operations->all_reduce(g->comm, buffer, count, type, &o->pending, &why) != PONS_OK)
        return group_operation_not_started(g, o, &why, err);
    *pending = o;
    return PONS_OK;
}

static pons_status end_sum(void *context, void *pending, pons_error *err)
{
    group *g = context;
    pons_status status;
    bool ended;

    if (g->deterministic)
        return end_ordered_sum(g, pending, err);
    status = group_operation_end(g, pending, GROUP_POLL_S, &ended, err);
    g->ended = g->operations->ended == NULL ? seconds_now() : g->operations->ended(g->comm);
    group_operation_free(g, pending);
    return status;
}

static double ended(void *context)
{
    return ((const group *)context)->ended;
}

/* Deterministic sums need host memory; the plugin's all_reduce takes the device's memory. */
void group_init_sums(group *g, void *stream)
{
    g->collective = (program_collective){ g->size, g->rank, g, start_sum, end_sum, ended,
                                          g->deterministic ? NULL : stream };
}

void group_free_sums(group *g)
{
    for (ordered_sum *s = g->made, *next; s != NULL; s = next) {
        next = s->below;
        free(s);
    }
    free(g->part);
    free_buffers(g);
}
