/*
 * worst_cases.c - keep a bounded number of cases, and send those of other processes to rank 0.
 */
#include "report/page/worst_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

void worst_cases_init(worst_cases *w, int room)
{
    pthread_mutex_init(&w->lock, NULL);
    w->room = min_int(room, WORST_CASES_MAX);
    w->count = 0;
}

void worst_cases_clear(worst_cases *w)
{
    for (int n = 0; n < w->count; n++)
        free(w->item[n].slices);
    w->count = 0;
}

void worst_cases_close(worst_cases *w)
{
    worst_cases_clear(w);
    pthread_mutex_destroy(&w->lock);
}

/* ---- a case ---------------------------------------------------------------------------------- */

/* Whether a comes before b in a report: the worst first, of equals the first. */
static bool is_worse(const worst_case *a, const worst_case *b)
{
    if (isnan(a->badness) != isnan(b->badness))
        return isnan(b->badness);
    if (a->badness > b->badness || a->badness < b->badness)
        return a->badness > b->badness;
    return a->number < b->number;
}

/* Locked. The place of a case: a free one, that of the least bad one, or NULL if it is less bad. */
static worst_case *find_place(worst_cases *w, const worst_case *c)
{
    worst_case *least = w->item;

    if (w->count < w->room)
        return &w->item[w->count];
    for (int n = 1; n < w->count; n++)
        if (is_worse(least, &w->item[n]))
            least = &w->item[n];
    return w->count > 0 && is_worse(c, least) ? least : NULL;
}

/* Take the slices of 'c', or free them. */
static void keep_case(worst_cases *w, const worst_case *c)
{
    mosaic_slices *unused = c->slices;
    worst_case *place;

    pthread_mutex_lock(&w->lock);
    place = find_place(w, c);
    if (place != NULL) {
        bool added = place == &w->item[w->count] && w->count < w->room;

        unused = added ? NULL : place->slices;
        w->count += added;
        *place = *c;
    }
    pthread_mutex_unlock(&w->lock);
    free(unused);
}

pons_status worst_cases_add(worst_cases *w, int number, double badness, const mosaic_case *c,
                            pons_error *err)
{
    worst_case added = { number, badness, NULL };
    bool wanted;

    pthread_mutex_lock(&w->lock);
    wanted = find_place(w, &added) != NULL;
    pthread_mutex_unlock(&w->lock);
    if (wanted && mosaic_cut(c, &added.slices, err) == PONS_OK)
        keep_case(w, &added);
    return err->status;
}

/* ---- several processes ----------------------------------------------------------------------- */

/* A case on its way; its slices follow. */
typedef struct parcel {
    int64_t number;
    double badness;
    uint64_t size;            /* of the slices; 0: no case follows                                */
} parcel;

static size_t packed_size(const worst_cases *w)
{
    size_t size = sizeof(parcel);

    for (int n = 0; n < w->count; n++)
        size += sizeof(parcel) + mosaic_size(w->item[n].slices);
    return size;
}

static void pack_cases(const worst_cases *w, char *to)
{
    for (int n = 0; n < w->count; n++) {
        const worst_case *c = &w->item[n];
        const parcel p = { c->number, c->badness, mosaic_size(c->slices) };

        memcpy(to, &p, sizeof p);
        memcpy(to + sizeof p, c->slices, (size_t)p.size);
        to += sizeof p + p.size;
    }
    memcpy(to, &(parcel){ 0, 0, 0 }, sizeof(parcel));
}

/* A case whose slices find no memory has no picture. */
static void unpack_cases(worst_cases *w, const char *from)
{
    parcel p;

    for (memcpy(&p, from, sizeof p); p.size > 0; memcpy(&p, from, sizeof p)) {
        worst_case c = { (int)p.number, p.badness, malloc((size_t)p.size) };

        if (c.slices != NULL) {
            memcpy(c.slices, from + sizeof p, (size_t)p.size);
            keep_case(w, &c);
        }
        from += sizeof p + p.size;
    }
}

/* The size of the largest message. Every process sends as much. */
static pons_status find_size(const worst_cases *w, group *g, uint64_t *out, pons_error *err)
{
    uint64_t mine = packed_size(w), *all = malloc((size_t)group_size(g) * sizeof *all);

    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for pictures of a validation");
    *out = 0;
    if (group_all_gather(g, &mine, sizeof mine, all, err) == PONS_OK)
        for (int r = 0; r < group_size(g); r++)
            *out = all[r] > *out ? all[r] : *out;
    free(all);
    return err->status;
}

/* Rank 0 has room for the cases of all. */
static void take_all(worst_cases *w, group *g, const char *all, size_t size)
{
    int room = w->room;

    if (group_rank(g) > 0) {
        worst_cases_clear(w);
        return;
    }
    w->room = WORST_CASES_MAX;
    for (int r = 1; r < group_size(g); r++)
        unpack_cases(w, all + size * (size_t)r);
    w->room = room;
}

pons_status worst_cases_gather(worst_cases *w, group *g, pons_error *err)
{
    uint64_t size = 0;
    char *mine, *all;

    if (find_size(w, g, &size, err) != PONS_OK)
        return err->status;
    mine = calloc(1, (size_t)size);
    all = malloc((size_t)size * (size_t)group_size(g));
    if (mine == NULL || all == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for pictures of a validation");
    } else {
        pack_cases(w, mine);
        if (group_all_gather(g, mine, (size_t)size, all, err) == PONS_OK)
            take_all(w, g, all, (size_t)size);
    }
    free(mine);
    free(all);
    return err->status;
}
