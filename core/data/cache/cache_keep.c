/*
 * cache_keep.c - a list of cases and an index of their keys. An entry stays in the index when its
 * case is taken out, and is used again by its key.
 */
#include "data/cache/cache_keep.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash/name_index.h"

typedef struct kept_case {
    char key[CASE_KEY_SIZE];
    packed_case packed;        /* codes NULL: taken out                                           */
    char *note;
} kept_case;

struct cache_keep {
    pthread_mutex_t lock;
    name_index index;
    kept_case **item;          /* [count]; the index borrows their keys                           */
    int count, capacity;
};

cache_keep *cache_keep_new(void)
{
    cache_keep *k = calloc(1, sizeof *k);

    if (k != NULL)
        pthread_mutex_init(&k->lock, NULL);
    return k;
}

void cache_keep_free(cache_keep *k)
{
    if (k == NULL)
        return;
    for (int i = 0; i < k->count; i++) {
        packed_case_clear(&k->item[i]->packed);
        free(k->item[i]->note);
        free(k->item[i]);
    }
    free(k->item);
    name_index_clear(&k->index);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

bool cache_keep_take(cache_keep *k, const char *key, packed_case *out, char **note)
{
    bool found;
    int at;

    pthread_mutex_lock(&k->lock);
    at = name_index_find(&k->index, "", key);
    found = at >= 0 && k->item[at]->packed.codes != NULL;
    if (found) {
        *out = k->item[at]->packed;
        *note = k->item[at]->note;
        k->item[at]->packed = (packed_case){ .codes = NULL };
        k->item[at]->note = NULL;
    }
    pthread_mutex_unlock(&k->lock);
    return found;
}

/* A new entry of a key; NULL: no memory. */
static kept_case *add_entry(cache_keep *k, const char *key)
{
    kept_case *one = calloc(1, sizeof *one);

    if (one != NULL && k->count == k->capacity) {
        int capacity = 2 * k->capacity + 64;
        kept_case **more = realloc(k->item, (size_t)capacity * sizeof *more);
        if (more != NULL) {
            k->item = more;
            k->capacity = capacity;
        }
    }
    if (one != NULL)
        memcpy(one->key, key, sizeof one->key);
    if (one == NULL || k->count == k->capacity
        || name_index_add(&k->index, "", one->key, k->count) != k->count) {
        free(one);
        return NULL;
    }
    k->item[k->count++] = one;
    return one;
}

void cache_keep_put(cache_keep *k, const char *key, packed_case *p, char *note)
{
    kept_case *one;
    int at;

    pthread_mutex_lock(&k->lock);
    at = name_index_find(&k->index, "", key);
    one = at >= 0 ? k->item[at] : add_entry(k, key);
    if (one != NULL && one->packed.codes == NULL) {
        one->packed = *p;
        one->note = note;
        *p = (packed_case){ .codes = NULL };
        note = NULL;
    }
    pthread_mutex_unlock(&k->lock);
    packed_case_clear(p);
    free(note);
}
