/*
 * huge_pages.c - allocate memory and advise the kernel to use huge pages for it.
 */
#include "base/system/huge_pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/integer.h"

enum { SMALL = 4096, LARGE = 2 << 20 };

/* Advise on the whole pages of a block, which works without it: a refusal is ignored. */
static void advise_pages(void *block, size_t size, int advice)
{
    uintptr_t begin = round_up_u64((uintptr_t)block, SMALL);
    uintptr_t end = ((uintptr_t)block + size) / SMALL * SMALL;

    if (begin < end)
        madvise((void *)begin, end - begin, advice);
}

static void *advise_huge_pages(void *block, size_t size)
{
    if (block != NULL && size >= 2 * (size_t)LARGE)
        advise_pages(block, size, MADV_HUGEPAGE);
    return block;
}

void *huge_pages_alloc(size_t size)
{
    return advise_huge_pages(malloc(size), size);
}

void *huge_pages_alloc_zeroed(size_t size)
{
    return advise_huge_pages(calloc(1, size), size);
}

void pages_discard(void *part, size_t size)
{
    advise_pages(part, size, MADV_DONTNEED);
}
