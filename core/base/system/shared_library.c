/*
 * shared_library.c - open a library, and find its functions.
 */
#include "base/system/shared_library.h"

#include <dlfcn.h>
#include <string.h>

pons_status shared_library_open(const shared_library *l, const char *path, void *functions,
                                pons_error *err)
{
    void *library = dlopen(l->file, RTLD_NOW | RTLD_LOCAL), *function;

    if (library == NULL)
        return pons_fail(err, PONS_CONFIG, "cannot read '%s': %s need %s: %s", path, l->use,
                         l->file, dlerror());
    for (size_t i = 0; i < l->count; i++) {
        function = dlsym(library, l->name[i]);
        if (function == NULL)
            return pons_fail(err, PONS_CONFIG, "cannot read '%s': %s has no %s, expected %s", path,
                             l->file, l->name[i], l->version);
        memcpy((char *)functions + i * sizeof function, &function, sizeof function);
    }
    return PONS_OK;
}
