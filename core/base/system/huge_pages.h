/*
 * huge_pages.h - memory for volumes in huge pages, so that first access causes few page faults.
 */
#ifndef CORE_BASE_SYSTEM_HUGE_PAGES_H
#define CORE_BASE_SYSTEM_HUGE_PAGES_H

#include <stddef.h>

/*
 * As malloc and calloc; released by free. Blocks of at least two huge pages ask the kernel for huge
 * pages.
 */
void *huge_pages_alloc(size_t size);
void *huge_pages_alloc_zeroed(size_t size);
/*
 * Give the whole pages of a part of an allocated block back to the system. Its contents become
 * undefined, and it may be written again. The block is freed as before.
 */
void pages_discard(void *part, size_t size);

#endif
