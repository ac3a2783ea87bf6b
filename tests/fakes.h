/*
 * fakes.h - the libraries of tests/fake in place of NVIDIA's.
 */
#ifndef TESTS_FAKES_H
#define TESTS_FAKES_H

#include <stdbool.h>

/*
 * Open those that were built, so that the device finds them under the names it looks for. False:
 * the loader has said why.
 */
bool fakes_open(void);
/* A function of one of them; NULL: there is none. */
void *fakes_function(const char *name);

#endif
