/*
 * guarded.h - memory between two guard pages, which nothing may touch.
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

/* 'size' bytes that end at the upper guard page, or else begin right behind the lower one. */
guarded guarded_new(size_t size, bool at_end);

void guarded_free(guarded *g);

#endif
