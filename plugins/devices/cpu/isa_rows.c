/*
 * isa_rows.c - which of the compiled lanes this processor can run.
 */
#include "cpu/conv/direct/direct.h"
#include "cpu/isa.h"
#include "cpu/map/map_lanes.h"
#include "cpu/conv/few_channels/few_channels.h"
#include "cpu/pool/row_loops.h"

#if defined(__x86_64__)

/* Lanes of maps, and the rest. */
#define ROW(maps, name, set)                                                                      \
    { &map_lanes_##maps,                                                                          \
      { &narrow_wide_##name, &narrow_planar_##name, &narrow_layout_##name, NULL },                \
      &direct_lanes_##name, &rows_lanes_##name, set }

static const struct {
    const map_lanes *lanes;
    narrow_lanes narrow;
    const direct_lanes *direct;
    const rows_lanes *rows;
    isa set;
} rows[] = {
    ROW(baseline, baseline, ISA_BASELINE),
    ROW(avx2, avx2, ISA_AVX2),
    ROW(avx512, avx512, ISA_AVX512),
    ROW(avx512bf16, avx512, ISA_AVX512BF16),
};

int map_lanes_built(void) { return (int)(sizeof rows / sizeof *rows); }

int map_lanes_count(void)
{
    int n = 0;

    while (n < map_lanes_built() && isa_runs(rows[n].set))
        n++;
    return n;
}

const map_lanes *map_lanes_row(int row) { return rows[row].lanes; }
const narrow_lanes *narrow_lanes_row(int row) { return &rows[row].narrow; }

const narrow_lanes *narrow_lanes_dots(void)
{
    static const narrow_lanes dots = { &narrow_wide_avx512, &narrow_planar_avx512,
                                       &narrow_layout_avx512, &narrow_pairs_avx512 };

    return &dots;
}

const direct_lanes *direct_lanes_row(int row) { return rows[row].direct; }
const rows_lanes *rows_lanes_row(int row) { return rows[row].rows; }

bool map_has_bf16(void) { return isa_runs(ISA_AVX512BF16); }

#else

int map_lanes_built(void) { return 1; }
int map_lanes_count(void) { return 1; }

const map_lanes *map_lanes_row(int row)
{
    (void)row;
    return &map_lanes_baseline;
}

const narrow_lanes *narrow_lanes_row(int row)
{
    static const narrow_lanes baseline = { &narrow_wide_baseline, &narrow_planar_baseline,
                                           &narrow_layout_baseline, NULL };

    (void)row;
    return &baseline;
}

const narrow_lanes *narrow_lanes_dots(void) { return narrow_lanes_row(0); }

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
