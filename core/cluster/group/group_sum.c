/*
 * group_sum.c - sums over the processes of a run, for its program.
 *
 * A fast sum is the plugin's, in place. A deterministic one is added up here in R2's order, from
 * what everybody has: that needs room for all processes, so a sum is cut into pieces, a few of
 * which are under way at a time. They take together no more than the sums themselves do, however
 * many processes there are. Pieces begin in the order of their sums, in the same sizes everywhere;
 * when one begins has no influence on that.
 *
 * The rooms of the pieces are one block. While the first step's sums are being counted, pieces
 * become larger: then none begins until all have ended, and the block goes back to the system
 * before a larger one comes. It is mapped: an allocator would keep the place of each smaller one.
 */
#include "cluster/group/group_internal.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/pairwise_sum.h"

enum { PIECES = 8, LEAST = 16384 }; /* under way at a time; bytes of a process's part             */

struct exact_sum {
    exact_sum *next, *below;  /* of 'waiting' or 'idle'; of 'made'                                */
    char *buffer;
    int64_t count, piece, started, added; /* elements: of all, of a piece, sent, added up         */
    size_t cell, size;
    double ended;
};

static size_t cell_of(pons_type type)
{
    return type == PONS_F64 ? sizeof(double) : sizeof(float);
}

/* ---- one piece ------------------------------------------------------------------------------- */

static size_t room_for(const group *g, const exact_sum *s)
{
    return (size_t)(s->piece < s->count ? s->piece : s->count) * s->cell * (size_t)g->size;
}

static void give_rooms_back(group *g)
{
    if (g->rooms != NULL)
        munmap(g->rooms, PIECES * g->room);
    g->rooms = NULL;
    g->room = 0;
}

/* With no piece under way. */
static pons_status enlarge_rooms(group *g, size_t room, pons_error *err)
{
    give_rooms_back(g);
    g->rooms = mmap(NULL, PIECES * room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
    if (g->rooms != MAP_FAILED) {
        g->room = room;
        return PONS_OK;
    }
    g->rooms = NULL;
    return pons_fail(err, PONS_DEVICE, "out of memory for the sums of %d processes", g->size);
}

static pons_status start_piece(group *g, exact_sum *s, pons_error *err)
{
    int64_t left = s->count - s->started, count = left < s->piece ? left : s->piece;
    operation *o = group_take(g, "all_gather", (size_t)count * s->cell, err);
    pons_error why = PONS_ERROR_INIT;

    if (o == NULL)
        return err->status;
    o->sum = s;
    o->at = s->started;
    o->count = count;
    o->all = g->rooms + g->begun++ % PIECES * g->room; /* they end in order: that one is free */
    if (g->operations->all_gather(g->comm, s->buffer + (size_t)o->at * s->cell, o->size, o->all,
                                  &o->pending, &why) != PONS_OK)
        return group_fail_to_start(g, o, &why, err);
    s->started += count;
    *(g->oldest == NULL ? &g->oldest : &g->newest->next) = o;
    g->newest = o;
    g->pieces++;
    return PONS_OK;
}

static void add_up(const group *g, const operation *o)
{
    const exact_sum *s = o->sum;
    char *out = s->buffer + (size_t)o->at * s->cell;

    for (int r = 0; r < g->size; r++)
        g->part[r] = o->all + (size_t)r * o->size;
    for (int64_t at = 0; at < o->count; at += TREE_TILE) {
        int count = o->count - at < TREE_TILE ? (int)(o->count - at) : TREE_TILE;
        tree_sum(g->part, g->size, s->cell == sizeof(double), at, count,
                 out + (size_t)at * s->cell);
    }
}

/* The oldest piece under way; one that failed is given back too. */
static pons_status end_piece(group *g, double wait_s, bool *ended, pons_error *err)
{
    operation *o = g->oldest;

    group_end(g, o, wait_s, ended, err);
    if (!*ended)
        return PONS_OK;
    g->oldest = o->next;
    g->pieces--;
    if (err->status == PONS_OK) {
        add_up(g, o);
        o->sum->added += o->count;
        o->sum->ended = seconds_now();
    }
    group_give_back(g, o);
    return err->status;
}

/* ---- in order -------------------------------------------------------------------------------- */

/* As many pieces as may be under way. */
static pons_status start_pieces(group *g, pons_error *err)
{
    while (g->waiting != NULL && g->pieces < PIECES) {
        exact_sum *s = g->waiting;

        if (room_for(g, s) > g->room) {
            if (g->pieces > 0)
                return PONS_OK;
            if (enlarge_rooms(g, room_for(g, s), err) != PONS_OK)
                return err->status;
        }
        if (start_piece(g, s, err) != PONS_OK)
            return err->status;
        if (s->started == s->count)
            g->waiting = s->next;
    }
    return PONS_OK;
}

/* Add up what has come, without waiting, and send what there is room for. */
static pons_status go_on(group *g, pons_error *err)
{
    bool ended = true;

    while (g->oldest != NULL && ended)
        if (end_piece(g, 0, &ended, err) != PONS_OK)
            return err->status;
    return start_pieces(g, err);
}

static exact_sum *take_sum(group *g, pons_error *err)
{
    exact_sum *s = g->idle;

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

/* Of a process's part: all pieces under way together are as large as all sums together. */
static int64_t piece_of(const group *g, size_t cell)
{
    size_t size = g->most / (PIECES * (size_t)g->size);

    return (int64_t)((size < LEAST ? LEAST : size) / cell);
}

static pons_status start_tree(group *g, void *buffer, int64_t count, pons_type type,
                              void **pending, pons_error *err)
{
    exact_sum *s = take_sum(g, err);

    if (s == NULL)
        return err->status;
    *s = (exact_sum){ .below = s->below, .buffer = buffer, .count = count, .cell = cell_of(type) };
    s->size = (size_t)count * s->cell;
    g->asked += s->size;
    g->most = g->asked > g->most ? g->asked : g->most;
    s->piece = piece_of(g, s->cell);
    *(g->waiting == NULL ? &g->waiting : &g->last->next) = s;
    g->last = s;
    *pending = s;
    return go_on(g, err);
}

static pons_status end_tree(group *g, exact_sum *s, pons_error *err)
{
    bool ended;

    while (s->added < s->count && err->status == PONS_OK)
        if (start_pieces(g, err) == PONS_OK)
            end_piece(g, GROUP_POLL_S, &ended, err);
    g->ended = s->ended;
    g->asked -= s->size;
    if (err->status != PONS_OK)
        return err->status; /* its pieces may be under way: it stays until the group closes */
    s->next = g->idle;
    g->idle = s;
    return start_pieces(g, err);
}

pons_status group_end_sums(group *g, pons_error *err)
{
    bool ended;

    while (g->waiting != NULL && err->status == PONS_OK)
        if (start_pieces(g, err) == PONS_OK && g->waiting != NULL)
            end_piece(g, GROUP_POLL_S, &ended, err);
    return err->status;
}

/* ---- the program's --------------------------------------------------------------------------- */

static pons_status start_sum(void *context, void *buffer, int64_t count, pons_type type,
                             void **pending, pons_error *err)
{
    group *g = context;
    operation *o;
    pons_error why = PONS_ERROR_INIT;

    if (g->deterministic)
        return start_tree(g, buffer, count, type, pending, err);
    o = group_take(g, "all_reduce", (size_t)count * cell_of(type), err);
    if (o == NULL)
        return err->status;
    if (g->operations->all_reduce(g->comm, buffer, count, type, &o->pending, &why) != PONS_OK)
        return group_fail_to_start(g, o, &why, err);
    *pending = o;
    return PONS_OK;
}

static pons_status end_sum(void *context, void *pending, pons_error *err)
{
    group *g = context;
    pons_status status;
    bool ended;

    if (g->deterministic)
        return end_tree(g, pending, err);
    status = group_end(g, pending, GROUP_POLL_S, &ended, err);
    g->ended = g->operations->ended == NULL ? seconds_now() : g->operations->ended(g->comm);
    group_give_back(g, pending);
    return status;
}

static double ended(void *context)
{
    return ((const group *)context)->ended;
}

/* What is added up here is so on the host; the plugin's own sums take memory of the device. */
void group_prepare_sums(group *g, void *stream)
{
    g->collective = (program_collective){ g->size, g->rank, g, start_sum, end_sum, ended,
                                          g->deterministic ? NULL : stream };
}

void group_drop_sums(group *g)
{
    for (exact_sum *s = g->made, *next; s != NULL; s = next) {
        next = s->below;
        free(s);
    }
    free(g->part);
    give_rooms_back(g);
}
