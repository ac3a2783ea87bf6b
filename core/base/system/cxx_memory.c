/*
 * cxx_memory.c - the new handler of the C++ library, set from C by its name in the ABI of Linux
 * (Itanium C++ ABI, 5.1).
 */
#include "base/system/cxx_memory.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"

static bool own;

static void end_process(void)
{
    arena_end_process(0);
}

void cxx_memory_own_process(void)
{
    own = true;
}

void cxx_memory_watch(void)
{
    void *library = own ? dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD) : NULL, *symbol;
    void (*(*set_handler)(void (*)(void)))(void);

    if (library == NULL)
        return;
    symbol = dlsym(library, "_ZSt15set_new_handlerPFvvE");
    if (symbol != NULL) {
        memcpy(&set_handler, &symbol, sizeof set_handler);
        set_handler(end_process);
    }
    dlclose(library);
}
