/*
 * guarded.c - see guarded.h.
 */
#include "support/guarded.h"

guarded guarded_new(size_t size, bool at_end)
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

void guarded_free(guarded *g)
{
    munmap(g->map, g->map_size);
}
