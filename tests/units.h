/*
 * units.h - a line on stdout of what kernels were tested on, and what this processor has not:
 * tests/run.sh repeats these at the end.
 */
#ifndef TESTS_UNITS_H
#define TESTS_UNITS_H

#include "cpu/map/map_kernel.h"
#include "cpu/conv/bf16_gemm/bf16_gemm.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct unit_name {
    const char *name;
    bool runs;
} unit_name;

static inline void units_say(const char *of, const unit_name *unit, int count)
{
    bool all = true;

    printf("ran on %s:", of);
    for (int i = 0; i < count; i++) {
        if (unit[i].runs)
            printf(" %s", unit[i].name);
        all = all && unit[i].runs;
    }
    printf(all ? "" : "; not on this processor:");
    for (int i = 0; i < count; i++)
        if (!unit[i].runs)
            printf(" %s", unit[i].name);
    printf("\n");
    fflush(stdout); /* before tests are forked */
}

/* Of tests that go through all of map_lanes_row. */
static inline void units_say_rows(void)
{
    int count = map_lanes_built();
    unit_name *rows = calloc((size_t)count, sizeof *rows);

    for (int i = 0; i < count && rows != NULL; i++)
        rows[i] = (unit_name){ map_lanes_row(i)->name, i < map_lanes_count() };
    if (rows != NULL)
        units_say("rows of lanes", rows, count);
    free(rows);
}

/* The line of tests that use the units of bf16_gemm.h. */
static inline void units_say_wide(void)
{
    const unit_name units[] = { { "vectors of pairs", wide_dots_run() },
                                { "tile registers", wide_tiles_run() } };

    units_say("units of products", units, 2);
}

#endif
