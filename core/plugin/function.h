/*
 * function.h - the functions of loaded libraries, as their tables for unwinding list them.
 */
#ifndef CORE_PLUGIN_FUNCTION_H
#define CORE_PLUGIN_FUNCTION_H

typedef enum function_find {
    FUNCTION_NONE,      /* the address is no code of a library                                    */
    FUNCTION_UNLISTED,  /* code that no table lists                                               */
    FUNCTION_WITHIN,    /* within a function, behind its beginning                                */
    FUNCTION_BEGINS
} function_find;

/* Classify a code address. FUNCTION_UNLISTED on machines with function descriptors. */
function_find function_at(const void *address);

#endif
