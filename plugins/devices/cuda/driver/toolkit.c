/*
 * toolkit.c - which library of several toolkits is taken.
 */
#include "cuda/driver/toolkit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

const char *cuda_find_symbols(void *library, const cuda_symbol *symbols, void *table)
{
    for (const cuda_symbol *s = symbols; s->name != NULL; s++) {
        void *found = dlsym(library, s->name);
        if (found == NULL)
            return s->name;
        memcpy((char *)table + s->offset, &found, sizeof found);
    }
    return NULL;
}

/* One library may be found by two names. */
static void note(cuda_search *s, const char *why)
{
    size_t used = strlen(s->refused);

    if (strstr(s->refused, why) == NULL)
        snprintf(s->refused + used, sizeof s->refused - used, "%s%s", used > 0 ? "; " : "", why);
}

static void *open_one(const char *name, cuda_search *s)
{
    void *library = dlopen(name, RTLD_NOW | s->flags);
    char why[256] = "";

    if (library == NULL || s->serves(s->context, name, library, why, sizeof why))
        return library;
    note(s, why);
    dlclose(library);
    return NULL;
}

static void *open_of(const cuda_toolkit *list, int cuda, cuda_search *s)
{
    void *library = NULL;

    for (; list->name != NULL && library == NULL; list++)
        if (list->cuda == cuda)
            library = open_one(list->name, s);
    return library;
}

void *cuda_toolkit_open(const cuda_toolkit *list, int cuda, cuda_search *s)
{
    void *library = NULL;

    for (int of = cuda; of >= CUDA_OLDEST && library == NULL; of--)
        library = open_of(list, of, s);
    for (int of = cuda + 1; of <= CUDA_LATER && library == NULL; of++)
        library = open_of(list, of, s);
    return library;
}
