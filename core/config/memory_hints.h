/*
 * memory_hints.h - hints at the keys that reduce memory, for a run that is out of it.
 */
#ifndef CORE_CONFIG_MEMORY_HINTS_H
#define CORE_CONFIG_MEMORY_HINTS_H

#include "config/sections.h"

/* The command that is out of memory: it selects the keys of the hint. */
typedef enum memory_hints_command { MEMORY_HINTS_TRAIN, MEMORY_HINTS_EXPLAIN,
    MEMORY_HINTS_PREDICT } memory_hints_command;

/*
 * Add a hint to an error whose text has 'out of memory' and no hint. 's' has the present values,
 * and keys that are already low are left out; NULL: all keys are listed.
 */
void memory_hints_add(const sections *s, memory_hints_command where, pons_error *err);

#endif
