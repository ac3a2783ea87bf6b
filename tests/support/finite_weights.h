/*
 * finite_weights.h - check that every tensor of a checkpoint is finite.
 */
#ifndef TESTS_FINITE_WEIGHTS_H
#define TESTS_FINITE_WEIGHTS_H

#include "checkpoint/safetensors.h"
#include "support/asserts.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

/*
 * Check all checkpoints of the folder up to step 'last'. Returns the newest step, or -1 without a
 * checkpoint.
 */
int64_t newest_finite_in(const char *checkpoints, int64_t last);

#endif
