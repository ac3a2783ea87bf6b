/*
 * table.h - the table of the store's keys and values.
 */
#ifndef CORE_CLUSTER_STORE_TABLE_H
#define CORE_CLUSTER_STORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Size limit of all values, so that a faulty process cannot exhaust rank 0's memory. */
#define STORE_TABLE_BYTES ((size_t)256 << 20)

typedef struct store_entry {
    struct store_entry *next;
    char *key;
    void *value;
    size_t size;
    double set;      /* time of base/clock.h at which it was set                                  */
} store_entry;

enum { STORE_TABLE_CHAINS = 1024 };

typedef struct store_table {
    store_entry *chain[STORE_TABLE_CHAINS];
    size_t bytes;
} store_table;

/* The entry of a key; NULL if it is not set. */
const store_entry *store_table_find(const store_table *t, const char *key);
/* Set a value; false if it exceeds the limit or memory is lacking. */
bool store_table_set(store_table *t, const char *key, const void *value, size_t size);
void store_table_clear(store_table *t);

#endif
