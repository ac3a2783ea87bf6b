/*
 * arena.h - an arena: many allocations that are freed together.
 *
 * Only arena_new may return NULL. Where the system refuses a block, the process ends with status
 * PONS_DEVICE and 'out of memory', so arena_alloc never returns NULL. A NULL arena ends the
 * process, too: code that cannot return the failure of arena_new needs no check of its own.
 * Allocations are zeroed and aligned to 16 bytes. An arena belongs to one thread.
 */
#ifndef CORE_BASE_ARENA_H
#define CORE_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct arena arena;

arena *arena_new(void);
void arena_free(arena *a);
void *arena_alloc(arena *a, size_t size);
/* A copy of the first 'used' bytes of 'from' with room for 'size' bytes; the rest is zero. */
void *arena_grow(arena *a, const void *from, size_t used, size_t size);
char *arena_string(arena *a, const char *text);
char *arena_format(arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vformat(arena *a, const char *format, va_list list);
/* End the process for lack of memory; 'size' bytes were asked for, 0: not known. */
_Noreturn void arena_end_process(size_t size);

#endif
