/*
 * order.c - detect conflicting accesses to memory, by vector clocks of this process and of the
 * streams.
 *
 * All threads of this process are one actor: a wait of one of them counts for all.
 */
#include "fake_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static order_clock clocks[ACTORS];
static bool taken[ACTORS] = { [HOST] = true, [DEFAULT_STREAM] = true };

int order_actor_new(void)
{
    int actor = 0;

    pthread_mutex_lock(&lock);
    while (actor < ACTORS && taken[actor])
        actor++;
    if (actor == ACTORS)
        abort();
    taken[actor] = true;
    pthread_mutex_unlock(&lock);
    return actor;
}

void order_actor_free(int actor)
{
    pthread_mutex_lock(&lock);
    taken[actor] = false;
    pthread_mutex_unlock(&lock);
}

static void add(order_clock *to, const order_clock *from)
{
    for (int i = 0; i < ACTORS; i++)
        if (from->seen[i] > to->seen[i])
            to->seen[i] = from->seen[i];
}

void order_begin(int actor)
{
    pthread_mutex_lock(&lock);
    add(&clocks[actor], &clocks[HOST]);
    clocks[actor].seen[actor]++;
    pthread_mutex_unlock(&lock);
}

void order_look(int actor, order_clock *out)
{
    pthread_mutex_lock(&lock);
    *out = clocks[actor];
    pthread_mutex_unlock(&lock);
}

void order_follow(int actor, const order_clock *c)
{
    pthread_mutex_lock(&lock);
    add(&clocks[actor], c);
    pthread_mutex_unlock(&lock);
}

bool order_known(const order_record *r)
{
    bool known;

    pthread_mutex_lock(&lock);
    known = clocks[HOST].seen[r->actor] >= r->time;
    pthread_mutex_unlock(&lock);
    return known;
}

static void refuse(const order_record *r, int actor, size_t begin, size_t end, bool writes)
{
    fprintf(stderr, "fake cuda: actor %d %s bytes %zu to %zu while actor %d may %s bytes %zu to "
            "%zu\n", actor, writes ? "writes" : "reads", begin, end, r->actor,
            r->writes ? "write" : "read", r->begin, r->end);
    abort();
}

void order_touch(order_list *l, int actor, size_t begin, size_t end, bool writes)
{
    order_record *same = NULL;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < l->count; i++) {
        order_record *r = &l->record[i];
        if (r->actor == actor && r->begin == begin && r->end == end && r->writes == writes)
            same = r;
        if (r->actor != actor && r->begin < end && begin < r->end && (writes || r->writes)
            && clocks[actor].seen[r->actor] < r->time)
            refuse(r, actor, begin, end, writes);
    }
    if (same == NULL && l->count == l->room) {
        l->room = l->room > 0 ? 2 * l->room : 16;
        l->record = realloc(l->record, (size_t)l->room * sizeof *l->record);
        if (l->record == NULL)
            abort();
    }
    if (same == NULL)
        same = &l->record[l->count++];
    *same = (order_record){ begin, end, clocks[actor].seen[actor], actor, writes };
    pthread_mutex_unlock(&lock);
}
