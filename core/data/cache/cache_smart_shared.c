/*
 * cache_smart_shared.c - one copy of the cases of a smart cache for the processes of a machine.
 *
 * The board has an entry for each case and, for each process, the turn up to which it has passed.
 * The process that reads a turn writes the case to its memory file and announces it in the entry.
 * It frees the pages when all processes have passed the turn.
 */
#include "data/cache/cache_smart_internal.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/integer.h"

bool smart_is_shared(const cache_smart *s)
{
    return s->memory.count > 1;
}

bool smart_is_own(const cache_smart *s, int64_t turn)
{
    return turn % s->memory.count == s->memory.self;
}

static shared_case *entry_of_turn(const cache_smart *s, int64_t turn)
{
    return &s->memory.shared->entry[case_window_place(&s->window, turn)];
}

static void wake_others(const cache_smart *s)
{
    s->memory.shared->changes++;
    syscall(SYS_futex, &s->memory.shared->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void smart_wait_for_others(cache_smart *s)
{
    const struct timespec longest = { .tv_nsec = 50000000 };
    unsigned seen = s->memory.shared->changes;

    pthread_mutex_unlock(&s->lock);
    syscall(SYS_futex, &s->memory.shared->changes, FUTEX_WAIT, seen, &longest, NULL, 0);
    pthread_mutex_lock(&s->lock);
}

/* ---- turns that have passed ------------------------------------------------------------------ */

void smart_pass(cache_smart *s, int64_t turn)
{
    _Atomic int64_t *mine = &s->memory.passed[s->memory.self];

    if (*mine == turn)
        return;
    *mine = turn;
    wake_others(s);
}

/* All processes have passed the turns before this one. */
static int64_t passed_by_all(const cache_smart *s)
{
    int64_t turn = INT64_MAX;

    for (int i = 0; i < s->memory.count; i++)
        turn = min_i64(turn, s->memory.passed[i]);
    return turn;
}

void smart_free_piece(cache_smart *s, smart_case *c)
{
    if (c->piece.size == 0)
        return;
    shared_memory_free(&s->memory, &c->piece);
    s->memory.shared->size[0] -= c->piece.size;
    c->piece.size = 0;
}

bool smart_free_passed(cache_smart *s)
{
    int64_t passed = passed_by_all(s);
    bool left = false;

    for (int i = 0; i < s->window.total; i++) {
        smart_case *c = &s->item[i];

        if (c->state == SMART_READING || c->piece.size == 0)
            continue;
        if (c->piece_turn < passed)
            smart_free_piece(s, c);
        else
            left = left || c->piece_turn < case_window_first(&s->window, s->epoch);
    }
    return left;
}

/* ---- cases ----------------------------------------------------------------------------------- */

bool smart_can_publish(const cache_smart *s, int64_t turn)
{
    return !smart_is_shared(s) || turn - s->window.total < passed_by_all(s);
}

/* Reserve bytes of the machine's limit. */
static bool reserve(const cache_smart *s, size_t size)
{
    _Atomic int64_t *used = &s->memory.shared->size[0];
    int64_t before = atomic_fetch_add(used, (int64_t)size);

    if (s->limit == 0 || before + (int64_t)size <= s->limit)
        return true;
    *used -= (int64_t)size;
    return false;
}

/* Write a case to this process's memory file, unless there is no room. */
static void put_case(cache_smart *s, smart_case *c, const packed_case *made)
{
    static const char key[CASE_KEY_SIZE] = "";
    size_t size = packed_case_file_size(made, "");
    pons_error full = PONS_ERROR_INIT;
    char *bytes = NULL;

    if (!reserve(s, size))
        return;
    if (packed_case_file_make(key, made, "", &bytes, &size, &full) != PONS_OK
        || shared_memory_put(&s->memory, bytes, size, &c->piece, &full) != PONS_OK) {
        s->memory.shared->size[0] -= (int64_t)size;
        c->piece.size = 0;
    }
    free(bytes);
}

static void put_failure(cache_smart *s, shared_case *e, const pons_error *failure)
{
    pons_error full = PONS_ERROR_INIT; /* the others then meet the failure themselves */

    if (failure->status != PONS_OK)
        shared_memory_put(&s->memory, failure, sizeof *failure, &e->failure, &full);
}

void smart_publish(cache_smart *s, int64_t turn, packed_case *made, const pons_error *failure)
{
    shared_case *e = entry_of_turn(s, turn);
    smart_case *c = &s->item[case_window_place(&s->window, turn)];
    pons_error lost = PONS_ERROR_INIT;

    e->failure = (shared_piece){ 0, 0 };
    put_failure(s, e, failure);
    if (made->codes != NULL)
        put_case(s, c, made);
    packed_case_clear(made);
    c->piece_turn = turn;
    e->process = s->memory.self;
    e->packed = c->piece;
    e->ready = turn + 1;
    wake_others(s);
    if (e->packed.size > 0)
        shared_memory_map(&s->memory, e, made, &lost);
}

bool smart_fetch(const cache_smart *s, int64_t turn, packed_case *out, pons_error *failure)
{
    const shared_case *e = entry_of_turn(s, turn);
    pons_error lost = PONS_ERROR_INIT; /* the case is then read by each reader */

    if (e->ready != turn + 1)
        return false;
    if (e->failure.size > 0)
        shared_memory_get(&s->memory, e->process, &e->failure, failure);
    if (e->packed.size > 0)
        shared_memory_map(&s->memory, e, out, &lost);
    return true;
}

void smart_own_filled(cache_smart *s)
{
    for (int i = 0; i < s->window.total; i++) {
        const shared_case *e = &s->memory.shared->entry[i];

        if (e->packed.size == 0 || e->process != s->memory.self)
            continue;
        s->item[i].piece = e->packed;
        s->item[i].piece_turn = s->item[i].turn;
    }
}
