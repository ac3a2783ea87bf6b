/*
 * cache_smart.c - replace the cases of a smart cache: which enter, which leave, who reads them.
 *
 * The state of a case changes under one lock. Cases are read without it.
 */
#include "data/cache/cache_smart_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

/* Seconds after which a reader no longer waits for another process. */
enum { PATIENCE_S = 2 };

/* ---- filling --------------------------------------------------------------------------------- */

/* True if a case of the turn's lane is trained on by this machine. */
static bool is_trained_here(const cache *c, int64_t turn)
{
    int lane = (int)(turn % c->window.lanes);

    return c->window.lanes == 1 || (lane >= c->lane && lane < c->lane + c->lane_count);
}

/* True for a place in the first window, and for validation cases, which stay. */
static bool is_held_first(const cache *c, int place)
{
    const case_window *w = &c->window;
    int64_t first = case_window_first(w, c->epoch);
    int ahead = (place - case_window_place(w, first) + w->total) % w->total;

    return place >= w->total || (ahead < w->count && is_trained_here(c, first + ahead));
}

/* Every case is read, so that a damaged one ends the run before training. */
static bool hold_in_window(fill_task *p, packed_case *out, pons_error *err)
{
    int place = (int)(p->entry - p->fill->shared->entry);

    if (is_held_first(p->fill->cache, place))
        return cache_kind_memory.hold(p, out, err);
    fill_pack(p, err);
    return false;
}

static bool map_in_window(fill *f, int position, packed_case *out, pons_error *cause)
{
    return cache_kind_memory.map(f, position, out, cause);
}

const cache_kind cache_kind_smart = { .hold = hold_in_window, .map = map_in_window };

/* ---- states of a case ------------------------------------------------------------------------ */

static smart_case *item_of_turn(cache_smart *s, int64_t turn)
{
    return &s->item[case_window_place(&s->window, turn)];
}

static int64_t first_turn(const cache_smart *s)
{
    return case_window_first(&s->window, s->epoch);
}

/* A case without content: it is read again if its latest turn has not passed. */
static void item_reset(cache_smart *s, smart_case *c)
{
    free(c->failure);
    c->failure = NULL;
    c->leaving = -1;
    c->state = c->turn >= first_turn(s) && is_trained_here(s->cache, c->turn) ? SMART_QUEUED
                                                                             : SMART_OUT;
}

static size_t held_bytes(const packed_case *p)
{
    return p->mapping != NULL ? p->mapping_size : p->size;
}

static void item_drop(cache_smart *s, smart_case *c)
{
    s->cache->size -= held_bytes(&c->packed);
    packed_case_clear(&c->packed);
    item_reset(s, c);
}

/* A turn has passed. */
static void item_leave(cache_smart *s, int64_t turn)
{
    smart_case *c = item_of_turn(s, turn);

    if (c->state == SMART_READING || c->pins > 0)
        c->leaving = turn;
    else if (c->state == SMART_HELD)
        item_drop(s, c);
    else
        item_reset(s, c);
}

static void item_enter(cache_smart *s, int64_t turn)
{
    smart_case *c = item_of_turn(s, turn);

    c->turn = turn;
    if (c->state == SMART_OUT && is_trained_here(s->cache, turn))
        c->state = SMART_QUEUED;
}

/* Turns up to this one have passed, and no thread of this process uses their cases. */
static int64_t passed_turn(const cache_smart *s)
{
    int64_t turn = first_turn(s);

    for (int i = 0; i < s->window.total; i++)
        if (s->item[i].leaving >= 0)
            turn = min_i64(turn, s->item[i].leaving);
    return turn;
}

static void move_window(cache_smart *s, int64_t epoch)
{
    int64_t before = first_turn(s), end;

    s->epoch = epoch;
    end = first_turn(s) + s->window.count + s->window.replaced;
    for (int64_t turn = before; turn < min_i64(first_turn(s), s->queued); turn++)
        item_leave(s, turn);
    for (s->queued = max_i64(s->queued, first_turn(s)); s->queued < end; s->queued++)
        item_enter(s, s->queued);
    if (smart_is_shared(s))
        smart_pass(s, passed_turn(s));
    pthread_cond_broadcast(&s->changed);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Whether a private case fits the limit. */
static bool has_room(const cache_smart *s, const packed_case *p)
{
    return s->limit == 0 || (int64_t)(s->cache->size + held_bytes(p)) <= s->limit;
}

static void item_fail(smart_case *c, const pons_error *failure)
{
    c->failure = malloc(sizeof *c->failure);
    c->state = SMART_OUT; /* without memory each reader meets the failure itself */
    if (c->failure != NULL) {
        *c->failure = *failure;
        c->state = SMART_FAILED;
    }
}

/* End the reading of a case, which is taken. */
static void item_settle(cache_smart *s, smart_case *c, packed_case *made, const pons_error *failure)
{
    if (c->leaving >= 0) {
        packed_case_clear(made);
        item_reset(s, c);
    } else if (failure->status != PONS_OK) {
        item_fail(c, failure);
    } else if (made->codes == NULL) {
        c->state = SMART_OUT;
    } else {
        c->packed = *made;
        c->state = SMART_HELD;
        s->cache->size += held_bytes(made);
    }
    pthread_cond_broadcast(&s->changed);
}

/* Read a queued case of this process. The lock is left meanwhile. */
static void item_read(cache_smart *s, smart_case *c)
{
    int rank = s->rank[c - s->item];
    int64_t turn = c->turn;
    packed_case made = { .codes = NULL };
    pons_error failure = PONS_ERROR_INIT;

    c->state = SMART_READING;
    if (smart_is_shared(s))
        smart_free_piece(s, c);
    pthread_mutex_unlock(&s->lock);
    if (cache_pack(s->cache, rank, NULL, &made, &failure) != PONS_OK)
        made = (packed_case){ .codes = NULL };
    if (smart_is_shared(s))
        smart_publish(s, turn, &made, &failure);
    pthread_mutex_lock(&s->lock);
    if (!smart_is_shared(s) && made.codes != NULL && !has_room(s, &made))
        packed_case_clear(&made);
    item_settle(s, c, &made, &failure);
}

static bool item_is_readable(const cache_smart *s, const smart_case *c)
{
    return c->state == SMART_QUEUED && smart_is_own(s, c->turn) && smart_can_publish(s, c->turn);
}

static bool read_next(cache_smart *s)
{
    for (int64_t turn = first_turn(s); turn < s->queued; turn++) {
        smart_case *c = item_of_turn(s, turn);

        if (c->turn == turn && item_is_readable(s, c)) {
            item_read(s, c);
            return true;
        }
    }
    return false;
}

/* Take the cases that other processes have read; true: some are not there. */
static bool fetch_all(cache_smart *s)
{
    bool missing = false;

    for (int64_t turn = first_turn(s); turn < s->queued; turn++) {
        smart_case *c = item_of_turn(s, turn);
        pons_error failure = PONS_ERROR_INIT;
        packed_case found = { .codes = NULL };

        if (c->turn != turn || c->state != SMART_QUEUED)
            continue;
        if (!smart_is_own(s, turn) && smart_fetch(s, turn, &found, &failure))
            item_settle(s, c, &found, &failure);
        else
            missing = true;
    }
    return missing;
}

static pons_status replace_cases(void *context, pons_error *err)
{
    cache_smart *s = context;
    thread_budget none = { 0 };

    (void)err; /* readers receive failures */
    thread_budget_set(&none);
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        bool others = false;

        if (read_next(s))
            continue;
        if (smart_is_shared(s)) {
            others = fetch_all(s);
            others = smart_free_passed(s) || others;
        }
        if (others)
            smart_wait_for_others(s);
        else
            pthread_cond_wait(&s->changed, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    thread_budget_set(NULL);
    return PONS_OK;
}

/* ---- readers --------------------------------------------------------------------------------- */

int cache_smart_add_reader(cache_smart *s, int64_t epoch)
{
    int reader;

    pthread_mutex_lock(&s->lock);
    reader = min_int(s->reader_count++, SMART_READERS_MAX - 1);
    s->reader_epoch[reader] = epoch;
    pthread_mutex_unlock(&s->lock);
    return reader;
}

void cache_smart_advance(cache_smart *s, int reader, int64_t epoch)
{
    int64_t earliest = epoch;

    pthread_mutex_lock(&s->lock);
    s->reader_epoch[reader] = epoch;
    for (int i = 0; i < min_int(s->reader_count, SMART_READERS_MAX); i++)
        earliest = min_i64(earliest, s->reader_epoch[i]);
    if (earliest > s->epoch)
        move_window(s, earliest);
    pthread_mutex_unlock(&s->lock);
}

int64_t cache_smart_size(cache_smart *s)
{
    int64_t size;

    pthread_mutex_lock(&s->lock);
    size = (int64_t)s->cache->size;
    pthread_mutex_unlock(&s->lock);
    return size;
}

/* Wait for the thread that reads a case; false: the wait for another process was too long. */
static bool wait_for_item(cache_smart *s, const smart_case *c, const struct timespec *until)
{
    if (!smart_is_shared(s) || c->state == SMART_READING)
        return pthread_cond_wait(&s->changed, &s->lock) == 0;
    return pthread_cond_timedwait(&s->changed, &s->lock, until) != ETIMEDOUT;
}

/* Wait until a case is held, has failed or is out; a queued case is read here. */
static void await_item(cache_smart *s, smart_case *c)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    while (c->state == SMART_QUEUED || c->state == SMART_READING) {
        if (item_is_readable(s, c))
            item_read(s, c);
        else if (!wait_for_item(s, c, &until))
            return;
    }
}

bool cache_smart_pin(cache_smart *s, int place, const packed_case **out, pons_error *err)
{
    smart_case *c = &s->item[place];
    bool held;

    pthread_mutex_lock(&s->lock);
    await_item(s, c);
    held = c->state == SMART_HELD;
    if (held) {
        c->pins++;
        *out = &c->packed;
    } else if (c->state == SMART_FAILED) {
        pons_fail(err, c->failure->status, "%s", c->failure->text);
    }
    pthread_mutex_unlock(&s->lock);
    return held;
}

void cache_smart_unpin(cache_smart *s, int place)
{
    smart_case *c = &s->item[place];

    pthread_mutex_lock(&s->lock);
    c->pins--;
    if (c->pins == 0 && c->leaving >= 0) {
        item_drop(s, c);
        if (smart_is_shared(s))
            smart_pass(s, passed_turn(s));
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Take the filled cases over from the cache. */
static void take_filled(cache_smart *s)
{
    for (int i = 0; i < s->window.total; i++) {
        cache_slot *slot = &s->cache->slot[s->rank[i]];

        s->item[i] = (smart_case){ .turn = -1, .leaving = -1 };
        if (!slot->resident)
            continue;
        s->item[i].packed = slot->packed;
        s->item[i].state = SMART_HELD;
        slot->packed = (packed_case){ .codes = NULL };
        slot->resident = false;
    }
    for (int64_t turn = first_turn(s); turn < first_turn(s) + s->window.count; turn++)
        item_of_turn(s, turn)->turn = turn;
    s->queued = first_turn(s) + s->window.count;
}

static void note_places(cache_smart *s)
{
    for (int i = 0; i < s->cache->data->case_count; i++)
        s->cache->slot[i].place = -1;
    for (int i = 0; i < s->window.total; i++)
        s->cache->slot[s->rank[i]].place = i;
}

static pons_status make_smart(cache *c, const int *ranks, pons_error *err)
{
    cache_smart *s = calloc(1, sizeof *s);
    size_t total = (size_t)c->window.total;

    if (s != NULL) {
        s->item = calloc(total, sizeof *s->item);
        s->rank = malloc(total * sizeof *s->rank);
    }
    if (s == NULL || s->item == NULL || s->rank == NULL) {
        if (s != NULL) {
            free(s->item);
            free(s->rank);
        }
        free(s);
        return pons_fail(err, PONS_DEVICE, "out of memory for a cache of %d cases",
                         c->window.total);
    }
    s->cache = c;
    s->window = c->window;
    s->epoch = c->epoch;
    s->limit = c->tier[0].limit;
    memcpy(s->rank, ranks, total * sizeof *s->rank);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    c->smart = s;
    return PONS_OK;
}

pons_status cache_smart_open(cache *c, const int *ranks, shared_memory *memory, pons_error *err)
{
    cache_smart *s;

    if (make_smart(c, ranks, err) != PONS_OK)
        return err->status;
    s = c->smart;
    s->memory = *memory;
    *memory = (shared_memory){ .count = 0 };
    take_filled(s);
    note_places(s);
    if (smart_is_shared(s))
        smart_own_filled(s);
    move_window(s, s->epoch);
    if (worker_open(WORKER_LOW, "the thread that replaces cases", &s->worker, err) == PONS_OK)
        worker_start(s->worker, replace_cases, s, err);
    return err->status;
}

void cache_smart_close(cache_smart *s)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    worker_close(s->worker);
    for (int i = 0; i < s->window.total; i++) {
        packed_case_clear(&s->item[i].packed);
        free(s->item[i].failure);
    }
    shared_memory_close(&s->memory);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->rank);
    free(s->item);
    free(s);
}
