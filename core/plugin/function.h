/*
 * function.h - classify code addresses by the unwind tables of loaded libraries.
 */
#ifndef CORE_PLUGIN_FUNCTION_H
#define CORE_PLUGIN_FUNCTION_H

typedef enum function_find {
    FUNCTION_NONE,      /* not code of a library                                                  */
    FUNCTION_UNLISTED,  /* code that no unwind table lists                                        */
    FUNCTION_WITHIN,    /* inside a function, after its begin                                     */
    FUNCTION_BEGINS
} function_find;

/* Classify a code address. FUNCTION_UNLISTED on machines with function descriptors. */
function_find function_at(const void *address);

#endif
