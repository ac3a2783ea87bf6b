/*
 * units.h - print which kernels were tested, and which this processor cannot run. tests/run.sh
 * repeats these lines at the end.
 */
#ifndef TESTS_UNITS_H
#define TESTS_UNITS_H

#include "cpu/isa_rows.h"
#include "cpu/map/map_internal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct unit_name {
    const char *name;
    bool runs;
} unit_name;

/* Print the line of tests that go through all of isa_map_lanes. */
void units_say_rows(void);

/* Print the line of tests that use the units of bf16_gemm.h. */
void units_say_bf16_gemm(void);

#endif
