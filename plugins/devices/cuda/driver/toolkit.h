/*
 * toolkit.h - libraries of CUDA toolkits, of which a machine may have several versions: lookup of
 * functions, and selection of a version.
 */
#ifndef PLUGINS_DEVICES_CUDA_DRIVER_TOOLKIT_H
#define PLUGINS_DEVICES_CUDA_DRIVER_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

/* A function of a library and its offset in a table; a NULL name ends a list. */
typedef struct toolkit_symbol {
    const char *name;
    size_t offset;
} toolkit_symbol;

/* Fill the table. Returns the first symbol that the library lacks, or NULL. */
const char *toolkit_find_symbols(void *library, const toolkit_symbol *symbols, void *table);

/* A file name or path of a library and its CUDA version; TOOLKIT_LATER: a future version. */
enum { TOOLKIT_OLDEST = 11, TOOLKIT_LATER = 14 };
typedef struct toolkit_file {
    int cuda;
    const char *name;
} toolkit_file;

/* A search, and the reasons for refused libraries ("" if none was refused). */
typedef struct toolkit_search {
    int flags;                 /* flags of dlopen besides RTLD_NOW                                */
    /* True if a loaded library is suitable; else 'why' is a short reason. */
    bool (*serves)(void *context, const char *name, void *library, char *why, size_t size);
    void *context;
    char refused[1024];        /* reasons, separated by "; "                                      */
} toolkit_search;

/*
 * Open the newest suitable library that is not newer than the driver: a driver runs code of all
 * older versions, but may refuse that of newer ones. If there is none, open the oldest of the newer
 * ones. NULL: no library is suitable. A NULL name ends the list.
 */
void *toolkit_open(const toolkit_file *list, int cuda, toolkit_search *search);

#endif
