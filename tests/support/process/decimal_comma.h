/*
 * decimal_comma.h - the locale de_DE, in which printf writes a decimal comma.
 */
#ifndef TESTS_DECIMAL_COMMA_H
#define TESTS_DECIMAL_COMMA_H

#include <stdbool.h>

/*
 * Give the process the locale, which is compiled into a folder, since few machines have one with a
 * decimal comma. False, with the line of a skipped test: this machine cannot compile it.
 */
bool decimal_comma_begin(const char *test);
/* Give the process the C locale again. */
void decimal_comma_end(void);

#endif
