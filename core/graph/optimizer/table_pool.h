/*
 * table_pool.h - small tables in device memory, taken one by one and given back together.
 */
#ifndef CORE_GRAPH_OPTIMIZER_TABLE_POOL_H
#define CORE_GRAPH_OPTIMIZER_TABLE_POOL_H

#include "graph/storage/storage.h"

typedef struct table_pool {
    const storage *storage;
    struct table_chunk *chunk;
} table_pool;

/* 'count' numbers at a multiple of MEMORY_ALIGNMENT, zeroed; NULL: no memory. */
void *table_take(table_pool *pool, int64_t count, pons_error *err);
void *table_take_bytes(table_pool *pool, size_t size, pons_error *err);
void table_free(table_pool *pool);
/* Behind what runs. */
pons_status table_write(const table_pool *pool, void *table, int64_t index, double value,
                        pons_error *err);

#endif
