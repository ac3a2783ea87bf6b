/*
 * soak.c - see soak.h.
 */
#include "support/soak.h"

int soak_times(int usual, int soaked)
{
    return getenv("SOAK") != NULL ? soaked : usual;
}
