/*
 * isa_rows.c - the table of compiled kernels by instruction set.
 */
#include "cpu/isa_rows.h"

#include "cpu/conv/direct/direct.h"
#include "cpu/conv/few_channels/few_channels.h"
#include "cpu/map/map_lanes.h"
#include "cpu/pool/row_loops.h"

#define FEW_CHANNELS(name, pairs)                                                                 \
    { &few_channels_vector_##name, &few_channels_planar_##name, &few_channels_layout_##name, pairs }

#if defined(__x86_64__)

/* Map lanes of one instruction set, other kernels of another: they need no AVX512-BF16 variant. */
#define ROW(maps, name, set) { &map_lanes_##maps, &direct_lanes_##name, &row_loops_##name, set }

static const struct {
    const map_lanes *lanes;
    const direct_lanes *direct;
    const row_loops *rows;
    isa set;
} rows[] = {
    ROW(baseline, baseline, ISA_BASELINE),
    ROW(avx2, avx2, ISA_AVX2),
    ROW(avx512, avx512, ISA_AVX512),
    ROW(avx512bf16, avx512, ISA_AVX512BF16),
};

int isa_rows_built(void) { return (int)(sizeof rows / sizeof *rows); }

int isa_rows_count(void)
{
    int n = 0;

    while (n < isa_rows_built() && isa_runs(rows[n].set))
        n++;
    return n;
}

const map_lanes *isa_map_lanes(int row) { return rows[row].lanes; }

const few_channels_loops *isa_few_channels_loops(isa set)
{
    static const few_channels_loops lanes[] = {
        [ISA_BASELINE] = FEW_CHANNELS(baseline, NULL),
        [ISA_AVX2] = FEW_CHANNELS(avx2, NULL),
        [ISA_AVX512] = FEW_CHANNELS(avx512, NULL),
        [ISA_AVX512BF16] = FEW_CHANNELS(avx512, &few_channels_bf16x2_avx512),
        [ISA_AMX] = FEW_CHANNELS(avx512, NULL),
    };

    return &lanes[set];
}

const direct_lanes *isa_direct_lanes(int row) { return rows[row].direct; }
const row_loops *isa_row_loops(int row) { return rows[row].rows; }

bool isa_has_bf16(void) { return isa_runs(ISA_AVX512BF16); }

#else

int isa_rows_built(void) { return 1; }
int isa_rows_count(void) { return 1; }

const map_lanes *isa_map_lanes(int row)
{
    (void)row;
    return &map_lanes_baseline;
}

const few_channels_loops *isa_few_channels_loops(isa set)
{
    static const few_channels_loops baseline = FEW_CHANNELS(baseline, NULL);

    (void)set;
    return &baseline;
}

const direct_lanes *isa_direct_lanes(int row)
{
    (void)row;
    return &direct_lanes_baseline;
}

const row_loops *isa_row_loops(int row)
{
    (void)row;
    return &row_loops_baseline;
}

bool isa_has_bf16(void) { return false; }

#endif
