/*
 * huge_pages.c - ask for large pages, and do without them where there are none.
 */
#include "base/system/huge_pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { SMALL = 4096, LARGE = 2 << 20 };

/* A wish: where it is refused everything stays as it was. */
static void *enlarge(void *block, size_t size)
{
    uintptr_t begin = ((uintptr_t)block + SMALL - 1) / SMALL * SMALL;
    uintptr_t end = ((uintptr_t)block + size) / SMALL * SMALL;

    if (block != NULL && size >= 2 * (size_t)LARGE)
        madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    return block;
}

void *pages_alloc(size_t size)
{
    return enlarge(malloc(size), size);
}

void *pages_alloc_zeroed(size_t size)
{
    return enlarge(calloc(1, size), size);
}
