/*
 * descent.h - the plainest optimizer: p - lr g.
 */
#ifndef TESTS_DESCENT_H
#define TESTS_DESCENT_H

#include <pons/optimizer.h>

extern const pons_optimizer_operations descent;

#endif
