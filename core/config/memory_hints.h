/*
 * memory_hints.h - what a user can turn where memory has run out.
 */
#ifndef CORE_CONFIG_MEMORY_HINTS_H
#define CORE_CONFIG_MEMORY_HINTS_H

#include "config/sections.h"

/* What ran out of it: a prediction has fewer keys to turn; training can be explained first. */
typedef enum shortage { SHORTAGE_TRAIN, SHORTAGE_EXPLAIN, SHORTAGE_PREDICT } shortage;

/*
 * Add the hint to an error that has 'out of memory' in its text and no hint yet. 's' tells what is
 * turned down already and what the others stand at; NULL: nothing is known of the file.
 */
void shortage_hint(const sections *s, shortage where, pons_error *err);

#endif
