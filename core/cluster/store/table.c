/*
 * table.c - a hash table with chains.
 */
#include "cluster/store/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"

static store_entry **chain_of(store_table *t, const char *key)
{
    return &t->chain[random_stream_hash(key) % STORE_TABLE_CHAINS];
}

const store_entry *store_table_find(const store_table *t, const char *key)
{
    const store_entry *e = *chain_of((store_table *)t, key);

    while (e != NULL && strcmp(e->key, key) != 0)
        e = e->next;
    return e;
}

static store_entry *add_entry(store_table *t, const char *key)
{
    store_entry *e = calloc(1, sizeof *e), **chain = chain_of(t, key);

    if (e == NULL || (e->key = strdup(key)) == NULL) {
        free(e);
        return NULL;
    }
    e->next = *chain;
    *chain = e;
    t->bytes += sizeof *e + strlen(key);
    return e;
}

bool store_table_set(store_table *t, const char *key, const void *value, size_t size)
{
    store_entry *e = (store_entry *)store_table_find(t, key);
    size_t before = e != NULL ? e->size : 0, more = e != NULL ? 0 : sizeof *e + strlen(key);
    void *copy;

    if (t->bytes - before + more + size > STORE_TABLE_BYTES)
        return false;
    copy = malloc(size + 1);
    if (copy != NULL && e == NULL)
        e = add_entry(t, key);
    if (copy == NULL || e == NULL) {
        free(copy);
        return false;
    }
    if (size > 0)
        memcpy(copy, value, size);
    free(e->value);
    e->value = copy;
    e->size = size;
    e->set = seconds_now();
    t->bytes += size - before;
    return true;
}

void store_table_clear(store_table *t)
{
    for (int i = 0; i < STORE_TABLE_CHAINS; i++)
        for (store_entry *e = t->chain[i], *next; e != NULL; e = next) {
            next = e->next;
            free(e->key);
            free(e->value);
            free(e);
        }
    memset(t, 0, sizeof *t);
}
