/*
 * map_rows.c - which of the compiled lanes this processor can run.
 */
#include "direct.h"
#include "map_lanes.h"
#include "narrow.h"
#include "rows.h"

#if defined(__x86_64__)

static int always(void) { return 1; }

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

static const struct {
    const map_lanes *lanes;
    const narrow_lanes *narrow;
    const direct_lanes *direct;
    const rows_lanes *rows;
    int (*runs)(void);
} rows[] = {
    { &map_lanes_baseline, &narrow_lanes_baseline, &direct_lanes_baseline, &rows_lanes_baseline,
      always },
    { &map_lanes_avx2, &narrow_lanes_avx2, &direct_lanes_avx2, &rows_lanes_avx2, has_avx2 },
    { &map_lanes_avx512, &narrow_lanes_avx512, &direct_lanes_avx512, &rows_lanes_avx512,
      has_avx512 },
};

int map_lanes_count(void)
{
    int n = 0;

    while (n < (int)(sizeof rows / sizeof *rows) && rows[n].runs())
        n++;
    return n;
}

const map_lanes *map_lanes_row(int row) { return rows[row].lanes; }
const narrow_lanes *narrow_lanes_row(int row) { return rows[row].narrow; }
const direct_lanes *direct_lanes_row(int row) { return rows[row].direct; }
const rows_lanes *rows_lanes_row(int row) { return rows[row].rows; }

bool map_has_bf16(void) { return __builtin_cpu_supports("avx512bf16") != 0; }

#else

int map_lanes_count(void) { return 1; }

const map_lanes *map_lanes_row(int row)
{
    (void)row;
    return &map_lanes_baseline;
}

const narrow_lanes *narrow_lanes_row(int row)
{
    (void)row;
    return &narrow_lanes_baseline;
}

const direct_lanes *direct_lanes_row(int row)
{
    (void)row;
    return &direct_lanes_baseline;
}

const rows_lanes *rows_lanes_row(int row)
{
    (void)row;
    return &rows_lanes_baseline;
}

bool map_has_bf16(void) { return false; }

#endif
