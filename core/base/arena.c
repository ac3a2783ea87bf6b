/*
 * arena.c - a linked list of blocks. An allocation takes the next free bytes of the newest block.
 */
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pons/plugin.h>

#include "base/integer.h"

enum { ALIGNMENT = 16, BLOCK_SIZE = 64 * 1024 };

typedef struct block {
    struct block *next;
    size_t used, size;
} block;

struct arena {
    block *newest;
};

static const size_t header_size = (sizeof(block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

/*
 * End the process: code that builds a graph or a configuration cannot return this failure. A rank
 * of 'pons launch' (watchdog/status_page.h) prints nothing, because the launcher reports its exit
 * status once.
 */
_Noreturn void arena_end_process(size_t size)
{
    if (getenv("PONS_LAUNCH_BOARD") != NULL)
        _exit(PONS_DEVICE);
    if (size > 0)
        fprintf(stderr, "error: out of memory: %zu bytes were asked for\n", size);
    else
        fputs("error: out of memory\n", stderr);
    _exit(PONS_DEVICE);
}

static block *block_new(size_t size)
{
    size_t room = max_size(size, BLOCK_SIZE);
    block *b;

    if (size > SIZE_MAX - header_size - BLOCK_SIZE)
        arena_end_process(size);
    b = calloc(1, header_size + room);
    if (b == NULL)
        arena_end_process(size);
    b->size = room;
    return b;
}

arena *arena_new(void)
{
    return calloc(1, sizeof(arena));
}

void arena_free(arena *a)
{
    if (a == NULL)
        return;
    for (block *b = a->newest, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

void *arena_alloc(arena *a, size_t size)
{
    size_t whole = size > SIZE_MAX - ALIGNMENT ? size : round_up_size(size, ALIGNMENT);
    block *b;
    char *piece;

    if (a == NULL)
        arena_end_process(size);
    b = a->newest;
    if (b == NULL || b->size - b->used < whole) {
        b = block_new(whole);
        /*
         * A large allocation gets its own block behind the newest one, whose free bytes stay in
         * use.
         */
        if (whole >= BLOCK_SIZE && a->newest != NULL) {
            b->next = a->newest->next;
            a->newest->next = b;
        } else {
            b->next = a->newest;
            a->newest = b;
        }
    }
    piece = (char *)b + header_size + b->used;
    b->used += whole;
    return piece;
}

void *arena_grow(arena *a, const void *from, size_t used, size_t size)
{
    void *more = arena_alloc(a, size);

    if (used > 0)
        memcpy(more, from, used);
    return more;
}

char *arena_string(arena *a, const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(arena_alloc(a, size), text, size);
}

char *arena_vformat(arena *a, const char *format, va_list list)
{
    va_list again;
    int size;
    char *text;

    va_copy(again, list);
    size = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (size < 0)
        return arena_string(a, "");
    text = arena_alloc(a, (size_t)size + 1);
    vsnprintf(text, (size_t)size + 1, format, list);
    return text;
}

char *arena_format(arena *a, const char *format, ...)
{
    va_list list;
    char *text;

    va_start(list, format);
    text = arena_vformat(a, format, list);
    va_end(list);
    return text;
}
