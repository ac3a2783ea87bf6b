/*
 * wide_lanes.c - products of tiles in float, and the packing that they want (wide.h). Compiled once
 * for each kind of processor, with CPU_ROW naming it.
 *
 * A sum runs over its steps in order in one accumulator, so bits depend neither on the width of the
 * vectors nor on how tiles are grouped (processors without fused products round twice).
 */
#include "wide.h"

#include "lane.h"
#include "map_lanes.h"
#include "vector.h"

#if defined(__AVX512F__)
enum { HELD = 8 };
#elif defined(__FMA__)
enum { HELD = 4 };
#else
enum { HELD = 2 };
#endif

/* ---- products -------------------------------------------------------------------------------- */

enum { VECTORS = WIDE_TILE / VECTOR_LANES };

/* Where vector v of one row of results lies. */
VECTOR float *held(const wide_product *p, int row, int r, int v)
{
    return p->c[row][v / VECTORS] + r * WIDE_TILE + v % VECTORS * VECTOR_LANES;
}

/* HELD rows of one row of tiles. */
VECTOR void multiply_block(const wide_product *p, int row, int first, int columns)
{
    vector sum[HELD][WIDE_COLUMNS * VECTORS];
    int vectors = columns * VECTORS;

    VECTOR_UNROLL
    for (int r = 0; r < HELD; r++)
        VECTOR_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v] = p->add ? vector_load(held(p, row, first + r, v)) : vector_all(0);
    for (int64_t s = 0; s < p->steps; s++) {
        const char *a = p->a[row] + p->a_at[s] + first * p->pitch;
        for (int k = 0; k < WIDE_TILE; k++)
            VECTOR_UNROLL
            for (int v = 0; v < vectors; v++) {
                const float *panel = (const float *)(p->b[v / VECTORS] + p->b_at[s]);
                vector b = vector_load(panel + k * WIDE_TILE + v % VECTORS * VECTOR_LANES);
                VECTOR_UNROLL
                for (int r = 0; r < HELD; r++)
                    sum[r][v] = vector_fused(vector_all(((const float *)(a + r * p->pitch))[k]), b,
                                             sum[r][v]);
            }
    }
    VECTOR_UNROLL
    for (int r = 0; r < HELD; r++)
        VECTOR_UNROLL
        for (int v = 0; v < vectors; v++)
            vector_store(held(p, row, first + r, v), sum[r][v]);
}

static void multiply(const wide_product *p)
{
    for (int row = 0; row < p->rows; row++)
        for (int first = 0; first < WIDE_TILE; first += HELD) {
            if (VECTORS == 1 && p->columns == 2) {
                multiply_block(p, row, first, 2);
                continue;
            }
            for (int n = 0; n < p->columns; n++) {
                wide_product one = *p;
                one.c[row][0] = p->c[row][n];
                one.b[0] = p->b[n];
                multiply_block(&one, row, first, 1);
            }
        }
}

/* ---- packing --------------------------------------------------------------------------------- */

VECTOR void read_position(float to[WIDE_TILE], pons_type type, const char *from, int first,
                          int count)
{
    if (type == PONS_BF16 && count == WIDE_TILE)
        for (int i = 0; i < WIDE_TILE; i++)
            to[i] = lane_from_bf16(((const uint16_t *)from)[first + i]);
    else if (type == PONS_BF16)
        for (int i = 0; i < WIDE_TILE; i++)
            to[i] = i < count ? lane_from_bf16(((const uint16_t *)from)[first + i]) : 0;
    else if (count == WIDE_TILE)
        memcpy(to, (const float *)from + first, WIDE_TILE * sizeof(float));
    else
        for (int i = 0; i < WIDE_TILE; i++)
            to[i] = i < count ? ((const float *)from)[first + i] : 0;
}

static void pack_panel(void *to, pons_type type, const char *const *position, int first, int count)
{
    for (int k = 0; k < WIDE_TILE; k++)
        read_position((float *)to + k * WIDE_TILE, type, position[k], first, count);
}

/* In blocks of four times four, which every processor turns in registers. */
static void pack_rows(void *to, int64_t pitch, pons_type type, const char *const *position,
                      int first, int count)
{
    typedef float four __attribute__((vector_size(16)));
    typedef int index __attribute__((vector_size(16)));
    float tile[WIDE_TILE][WIDE_TILE];

    for (int k = 0; k < WIDE_TILE; k++)
        read_position(tile[k], type, position[k], first, count);
    for (int k = 0; k < WIDE_TILE; k += 4)
        for (int c = 0; c < WIDE_TILE; c += 4) {
            four r[4];
            memcpy(&r[0], tile[k] + c, 16);
            memcpy(&r[1], tile[k + 1] + c, 16);
            memcpy(&r[2], tile[k + 2] + c, 16);
            memcpy(&r[3], tile[k + 3] + c, 16);
            four low = __builtin_shuffle(r[0], r[1], (index){ 0, 4, 1, 5 });
            four high = __builtin_shuffle(r[0], r[1], (index){ 2, 6, 3, 7 });
            four low2 = __builtin_shuffle(r[2], r[3], (index){ 0, 4, 1, 5 });
            four high2 = __builtin_shuffle(r[2], r[3], (index){ 2, 6, 3, 7 });
            r[0] = __builtin_shuffle(low, low2, (index){ 0, 1, 4, 5 });
            r[1] = __builtin_shuffle(low, low2, (index){ 2, 3, 6, 7 });
            r[2] = __builtin_shuffle(high, high2, (index){ 0, 1, 4, 5 });
            r[3] = __builtin_shuffle(high, high2, (index){ 2, 3, 6, 7 });
            for (int i = 0; i < 4; i++)
                memcpy((char *)to + (c + i) * pitch + k * sizeof(float), &r[i], 16);
        }
}

const wide_lanes CPU_ROW_NAME(wide_lanes) = {
    .name = CPU_ROW_TEXT, .unit = 1, .pack_panel = pack_panel, .pack_rows = pack_rows,
    .multiply = multiply,
};
