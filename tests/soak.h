/*
 * soak.h - how much of a test: what every change can afford, or with SOAK in the environment (make
 * soak) the size that a release asks for.
 */
#ifndef TESTS_SOAK_H
#define TESTS_SOAK_H

#include <stdlib.h>

static inline int soak_times(int usual, int soaked)
{
    return getenv("SOAK") != NULL ? soaked : usual;
}

#endif
