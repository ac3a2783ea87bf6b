/*
 * toolkit.c - select a library among those of several CUDA toolkits.
 */
#include "cuda/driver/toolkit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

const char *toolkit_find_symbols(void *library, const toolkit_symbol *symbols, void *table)
{
    for (const toolkit_symbol *s = symbols; s->name != NULL; s++) {
        void *found = dlsym(library, s->name);
        if (found == NULL)
            return s->name;
        memcpy((char *)table + s->offset, &found, sizeof found);
    }
    return NULL;
}

/* Add a reason once; one library may be found by two names. */
static void note_reason(toolkit_search *s, const char *why)
{
    size_t used = strlen(s->refused);

    if (strstr(s->refused, why) == NULL)
        snprintf(s->refused + used, sizeof s->refused - used, "%s%s", used > 0 ? "; " : "", why);
}

static void *open_one(const char *name, toolkit_search *s)
{
    void *library = dlopen(name, RTLD_NOW | s->flags);
    char why[256] = "";

    if (library == NULL || s->serves(s->context, name, library, why, sizeof why))
        return library;
    note_reason(s, why);
    dlclose(library);
    return NULL;
}

static void *open_of(const toolkit_file *list, int cuda, toolkit_search *s)
{
    void *library = NULL;

    for (; list->name != NULL && library == NULL; list++)
        if (list->cuda == cuda)
            library = open_one(list->name, s);
    return library;
}

void *toolkit_open(const toolkit_file *list, int cuda, toolkit_search *s)
{
    void *library = NULL;

    for (int of = cuda; of >= TOOLKIT_OLDEST && library == NULL; of--)
        library = open_of(list, of, s);
    for (int of = cuda + 1; of <= TOOLKIT_LATER && library == NULL; of++)
        library = open_of(list, of, s);
    return library;
}
