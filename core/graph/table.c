/*
 * table.c - small tables in device memory that a program's reduce and update sections share.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "graph/update.h"

enum { CHUNK_SIZE = 1 << 16, TABLE_ALIGNMENT = 64 };

typedef struct table_chunk {
    struct table_chunk *next;
    char *memory;
    size_t size, used;
} table_chunk;

void *table_take_bytes(table_pool *pool, size_t size, pons_error *err)
{
    table_chunk *c = pool->chunk;
    void *table;

    size = (size + TABLE_ALIGNMENT - 1) / TABLE_ALIGNMENT * TABLE_ALIGNMENT;
    if (c == NULL || c->size - c->used < size) {
        void *memory;

        c = malloc(sizeof *c);
        if (c == NULL) {
            pons_fail(err, PONS_DEVICE, "cannot allocate a table of %zu bytes", size);
            return NULL;
        }
        *c = (table_chunk){ pool->chunk, NULL, size > CHUNK_SIZE ? size : CHUNK_SIZE, 0 };
        if (storage_allocate(pool->storage, c->size, &memory, err) != PONS_OK) {
            free(c);
            return NULL;
        }
        c->memory = memory;
        pool->chunk = c;
    }
    table = c->memory + c->used;
    c->used += size;
    return table;
}

void *table_take(table_pool *pool, int64_t count, pons_error *err)
{
    return table_take_bytes(pool, (size_t)count * pool->storage->real_size, err);
}

void table_free(table_pool *pool)
{
    while (pool->chunk != NULL) {
        table_chunk *c = pool->chunk;

        pool->chunk = c->next;
        storage_release(pool->storage, c->memory, c->size);
        free(c);
    }
}

void table_write(const table_pool *pool, void *table, int64_t index, double value)
{
    if (pool->storage->real == PONS_F64)
        ((double *)table)[index] = value;
    else
        ((float *)table)[index] = (float)value;
}

double table_read(const table_pool *pool, const void *table)
{
    return pool->storage->real == PONS_F64 ? *(const double *)table : *(const float *)table;
}
