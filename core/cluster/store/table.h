/*
 * table.h - the values of the store, by key.
 */
#ifndef CORE_CLUSTER_STORE_TABLE_H
#define CORE_CLUSTER_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Together, so that a process that goes wrong does not take rank 0's memory. */
#define STORE_TABLE_BYTES ((size_t)256 << 20)

typedef struct store_entry {
    struct store_entry *next;
    char *key;
    void *value;
    size_t size;
    double set;      /* when it was, as base/clock.h says                                         */
} store_entry;

enum { STORE_TABLE_CHAINS = 1024 };

typedef struct store_table {
    store_entry *chain[STORE_TABLE_CHAINS];
    size_t bytes;
} store_table;

/* NULL: nobody has set it. */
const store_entry *store_table_find(const store_table *t, const char *key);
/* False where it has no room. */
bool store_table_set(store_table *t, const char *key, const void *value, size_t size);
void store_table_clear(store_table *t);

#endif
