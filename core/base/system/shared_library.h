/*
 * shared_library.h - libraries that are opened when a file first needs them, because they bring
 * many more with them.
 */
#ifndef CORE_BASE_SYSTEM_SHARED_LIBRARY_H
#define CORE_BASE_SYSTEM_SHARED_LIBRARY_H

#include <pons/plugin.h>

/* A member for the function NAME of a struct of functions, and its row in the list of names. */
#define SHARED_LIBRARY_POINTER(NAME) __typeof__(NAME) *NAME;
#define SHARED_LIBRARY_NAME(NAME) #NAME,

typedef struct shared_library {
    const char *file;          /* "libtiff.so.6"                                                  */
    const char *use;           /* the files that need it, as in "TIFF pictures"                   */
    const char *version;       /* of the functions, as in "libtiff 4.5 or later"                  */
    const char *const *name;   /* of the functions                                                */
    size_t count;
} shared_library;

/*
 * Open a library, which stays open, and write the addresses of its functions to the 'count'
 * pointers of 'functions'. 'path' is the file that needs it. PONS_CONFIG: the library or one of its
 * functions is missing. Thread-safe.
 */
pons_status shared_library_open(const shared_library *l, const char *path, void *functions,
                                pons_error *err);

#endif
