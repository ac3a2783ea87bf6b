/*
 * shortage.h - what a user can turn where memory has run out.
 */
#ifndef CORE_CONFIG_SHORTAGE_H
#define CORE_CONFIG_SHORTAGE_H

#include "config/sections.h"

/*
 * Add the hint to an error that has 'out of memory' in its text and no hint yet. 's' tells what is
 * turned down already and what the others stand at; NULL: nothing is known of the file. A
 * prediction ('training' false) has fewer keys to turn.
 */
void shortage_hint(const sections *s, bool training, pons_error *err);

#endif
