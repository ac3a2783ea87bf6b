/*
 * function.h - the functions of loaded libraries, as their tables for unwinding list them.
 */
#ifndef CORE_PLUGIN_FUNCTION_H
#define CORE_PLUGIN_FUNCTION_H

#include <stdbool.h>

/*
 * Whether 'address' lies within a function of a loaded library, and not at its beginning. false for
 * anything else, as for functions that no table lists.
 */
bool function_is_cut(const void *address);

#endif
