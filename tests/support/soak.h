/*
 * soak.h - the size of a test: small for every change, or with SOAK in the environment (make soak)
 * the size of a release.
 */
#ifndef TESTS_SOAK_H
#define TESTS_SOAK_H

#include <stdlib.h>

int soak_times(int usual, int soaked);

#endif
