/*
 * toolkit.h - libraries of CUDA's toolkits, of which a machine may have several versions: their
 * functions, and which of them is taken.
 */
#ifndef PLUGINS_DEVICES_CUDA_DRIVER_TOOLKIT_H
#define PLUGINS_DEVICES_CUDA_DRIVER_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

/* Functions of a library, and where in a table they go; the last has no name. */
typedef struct cuda_symbol {
    const char *name;
    size_t offset;
} cuda_symbol;

/* The first of 'symbols' that the library lacks, or NULL: all are in the table. */
const char *cuda_find_symbols(void *library, const cuda_symbol *symbols, void *table);

/* Where a library of the toolkit may lie, and of which CUDA; CUDA_LATER: one not known yet. */
enum { CUDA_OLDEST = 11, CUDA_LATER = 14 };
typedef struct cuda_toolkit {
    int cuda;
    const char *name;
} cuda_toolkit;

/* What is wanted of a library, and of those that were refused the reasons: "" while none was. */
typedef struct cuda_search {
    int flags;                 /* of dlopen, beside RTLD_NOW                                      */
    /* Whether a library that is there serves; else 'why' says in a few words why not. */
    bool (*serves)(void *context, const char *name, void *library, char *why, size_t size);
    void *context;
    char refused[1024];        /* reasons, with "; " between them                                 */
} cuda_search;

/*
 * Of a list (the last has no name) the newest that serves and is not newer than the driver, which
 * runs all that older ones compile. What newer ones compile it may refuse: where no other serves
 * the oldest of them is taken. NULL: none is there that serves.
 */
void *cuda_toolkit_open(const cuda_toolkit *list, int cuda, cuda_search *search);

#endif
