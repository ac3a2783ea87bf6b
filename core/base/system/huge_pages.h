/*
 * huge_pages.h - memory for volumes: few large pages instead of thousands of small ones.
 */
#ifndef CORE_BASE_SYSTEM_HUGE_PAGES_H
#define CORE_BASE_SYSTEM_HUGE_PAGES_H

#include <stddef.h>

/*
 * As malloc and calloc, ended by free. A large block asks the system for large pages, where it has
 * them: a page that is touched for the first time costs half a microsecond, whatever its size.
 */
void *pages_alloc(size_t size);
void *pages_alloc_zeroed(size_t size);

#endif
