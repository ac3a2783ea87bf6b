/*
 * guarded.h - memory with a page behind or before it that must not be touched.
 */
#ifndef TESTS_GUARDED_H
#define TESTS_GUARDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef struct guarded {
    char *map;
    size_t map_size, size;
    void *memory;
} guarded;

/* 'size' bytes that end at the guard, or begin right behind one. */
static inline guarded guarded_new(size_t size, bool at_end)
{
    size_t page = 4096, body = (size + page - 1) / page * page + (size == 0 ? page : 0);
    guarded g = { .map_size = body + 2 * page, .size = size };

    g.map = mmap(NULL, g.map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.map == MAP_FAILED)
        abort();
    mprotect(g.map, page, PROT_NONE);
    mprotect(g.map + page + body, page, PROT_NONE);
    g.memory = g.map + page + (at_end ? body - size : 0);
    return g;
}

static inline void guarded_free(guarded *g)
{
    munmap(g->map, g->map_size);
}

#endif
