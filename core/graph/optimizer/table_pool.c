/*
 * table_pool.c - small tables in chunks of device memory.
 */
#include "graph/optimizer/table_pool.h"

#include <stdlib.h>
#include <string.h>

#include "graph/storage/device_stream.h"

enum { CHUNK_SIZE = 1 << 16 };

typedef struct table_chunk {
    struct table_chunk *next;
    char *memory;
    size_t size, used;
} table_chunk;

static table_chunk *chunk_new(const table_pool *pool, size_t size, pons_error *err)
{
    table_chunk *c = malloc(sizeof *c);
    void *memory;

    if (c == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for a table of %zu bytes", size);
        return NULL;
    }
    if (storage_allocate(pool->storage, size, &memory, err) != PONS_OK) {
        free(c);
        return NULL;
    }
    *c = (table_chunk){ NULL, memory, size, 0 };
    return c;
}

/*
 * Add a chunk with room for 'size' bytes. A large table has one of its own; small tables share the
 * first.
 */
static table_chunk *chunk_add(table_pool *pool, size_t size, pons_error *err)
{
    bool large = size > CHUNK_SIZE / 4;
    table_chunk *c = chunk_new(pool, large ? size : CHUNK_SIZE, err);

    if (c == NULL)
        return NULL;
    if (large && pool->chunk != NULL) {
        c->next = pool->chunk->next;
        pool->chunk->next = c;
    } else {
        c->next = pool->chunk;
        pool->chunk = c;
    }
    return c;
}

void *table_pool_take_bytes(table_pool *pool, size_t size, pons_error *err)
{
    table_chunk *c = pool->chunk;
    void *table;

    size = memory_round(size);
    if (c == NULL || c->size - c->used < size)
        c = chunk_add(pool, size, err);
    if (c == NULL)
        return NULL;
    table = c->memory + c->used;
    c->used += size;
    return table;
}

void *table_pool_take(table_pool *pool, int64_t count, pons_error *err)
{
    return table_pool_take_bytes(pool, (size_t)count * pool->storage->real_size, err);
}

void table_pool_free(table_pool *pool)
{
    while (pool->chunk != NULL) {
        table_chunk *c = pool->chunk;

        pool->chunk = c->next;
        storage_release(pool->storage, c->memory, c->size);
        free(c);
    }
}

pons_status table_pool_write(const table_pool *pool, void *table, int64_t index, double value,
                             pons_error *err)
{
    const device *d = pool->storage->device;
    size_t size = pool->storage->real_size;
    char *to = (char *)table + (size_t)index * size;
    float narrow = (float)value;
    const void *from = pool->storage->real == PONS_F64 ? (const void *)&value : &narrow;

    if (!d->facts.host_memory)
        return stream_copy(d, PONS_STREAM_KERNELS, to, from, size, err);
    memcpy(to, from, size);
    return PONS_OK;
}
