/*
 * table_pool.h - small tables in device memory, allocated one by one and freed together.
 */
#ifndef CORE_GRAPH_OPTIMIZER_TABLE_POOL_H
#define CORE_GRAPH_OPTIMIZER_TABLE_POOL_H

#include "graph/storage/storage.h"

typedef struct table_pool {
    const storage *storage;
    struct table_chunk *chunk;
} table_pool;

/* 'count' zeroed numbers at a multiple of MEMORY_ALIGNMENT; NULL: no memory. */
void *table_pool_take(table_pool *pool, int64_t count, pons_error *err);
void *table_pool_take_bytes(table_pool *pool, size_t size, pons_error *err);
void table_pool_free(table_pool *pool);
/* Write one number, behind the kernels that were run. */
pons_status table_pool_write(const table_pool *pool, void *table, int64_t index, double value,
                             pons_error *err);

#endif
