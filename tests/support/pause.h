/*
 * pause.h - naps that signals do not shorten, and deadlines for slow machines.
 */
#ifndef TESTS_PAUSE_H
#define TESTS_PAUSE_H

#include <errno.h>
#include <stdlib.h>
#include <time.h>

void pause_for(double seconds);

/*
 * The deadline on this machine for 'seconds' on an idle one, by the factor of
 * tests/tools/patience.sh, as Check's own timeouts. Waits with such a deadline end early where
 * nothing is wrong.
 */
double deadline_scaled(double seconds);

#endif
