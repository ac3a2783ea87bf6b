/*
 * slide_pool.c - a table of slides behind one lock, which is not held while a slide opens or
 * closes.
 */
#include "data/slide/slide_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct pool_entry {
    char *path;
    slide *open;               /* NULL: closed                                                    */
    int users;
    uint64_t used;             /* the pool's clock at the last borrowing                          */
    bool opening, broken;
} pool_entry;

struct slide_pool {
    pthread_mutex_t lock;
    pthread_cond_t changed;    /* 'opening' or 'broken' has ended                                 */
    pool_entry *entry;
    int count, room, limit, open_count;
    uint64_t clock;
};

slide_pool *slide_pool_new(int limit)
{
    slide_pool *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->limit = limit;
    return p;
}

void slide_pool_free(slide_pool *p)
{
    if (p == NULL)
        return;
    for (int i = 0; i < p->count; i++) {
        slide_close(p->entry[i].open);
        free(p->entry[i].path);
    }
    free(p->entry);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

int slide_pool_add(slide_pool *p, const char *path)
{
    char *own = strdup(path);

    if (own != NULL && p->count == p->room) {
        int room = 2 * p->room + 16;
        pool_entry *more = realloc(p->entry, (size_t)room * sizeof *more);
        if (more == NULL) {
            free(own);
            return -1;
        }
        p->entry = more;
        p->room = room;
    }
    if (own == NULL)
        return -1;
    p->entry[p->count] = (pool_entry){ .path = own };
    return p->count++;
}

/* Take the least recently read slide that nobody reads out of the table, if too many are open. */
static slide *take_surplus(slide_pool *p)
{
    pool_entry *oldest = NULL;
    slide *taken;

    if (p->open_count < p->limit)
        return NULL;
    for (int i = 0; i < p->count; i++) {
        pool_entry *e = &p->entry[i];
        if (e->open != NULL && e->users == 0 && (oldest == NULL || e->used < oldest->used))
            oldest = e;
    }
    if (oldest == NULL)
        return NULL;
    taken = oldest->open;
    oldest->open = NULL;
    p->open_count--;
    return taken;
}

/* Open a slide, with the lock released meanwhile. */
static pons_status open_entry(slide_pool *p, pool_entry *e, pons_error *err)
{
    slide *surplus = take_surplus(p), *fresh = NULL;

    e->opening = true;
    p->open_count++;
    pthread_mutex_unlock(&p->lock);
    slide_close(surplus);
    slide_open(e->path, &fresh, err);
    pthread_mutex_lock(&p->lock);
    e->opening = false;
    e->open = fresh;
    p->open_count -= fresh == NULL;
    pthread_cond_broadcast(&p->changed);
    return err->status;
}

pons_status slide_pool_borrow(slide_pool *p, int number, slide **out, pons_error *err)
{
    pool_entry *e = &p->entry[number];

    pthread_mutex_lock(&p->lock);
    while (e->opening || e->broken)
        pthread_cond_wait(&p->changed, &p->lock);
    if (e->open != NULL || open_entry(p, e, err) == PONS_OK) {
        e->users++;
        e->used = ++p->clock;
        *out = e->open;
    }
    pthread_mutex_unlock(&p->lock);
    return err->status;
}

void slide_pool_release(slide_pool *p, int number, bool broken)
{
    pool_entry *e = &p->entry[number];
    slide *closed = NULL;

    pthread_mutex_lock(&p->lock);
    e->broken |= broken;
    if (--e->users == 0 && e->broken) {
        closed = e->open;
        e->open = NULL;
        e->broken = false;
        p->open_count--;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    slide_close(closed);
}

const char *slide_pool_path(const slide_pool *p, int number)
{
    return p->entry[number].path;
}
