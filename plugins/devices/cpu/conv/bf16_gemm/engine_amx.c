/*
 * engine_amx.c - products of pairs of bf16 on the tile registers of AMX (bf16_gemm.h).
 *
 * Two rows by two columns of tiles have four products for four loads. With one column, four rows
 * share its load.
 */
#include "cpu/conv/bf16_gemm/bf16_gemm.h"

#include <immintrin.h>

#define AMX __attribute__((target("amx-tile,amx-bf16")))

/*
 * The configuration of all eight registers: 16 rows of 64 bytes. It is constant because compilers
 * assume that the instruction reads less than it does, and drop stores to it.
 */
static const struct {
    uint8_t palette, start, reserved[14];
    uint16_t width[16];
    uint8_t rows[16];
} shape = { .palette = 1, .width = { 64, 64, 64, 64, 64, 64, 64, 64 },
            .rows = { 16, 16, 16, 16, 16, 16, 16, 16 } };

AMX static void begin(void)
{
    _tile_loadconfig(&shape);
}

AMX static void end(void)
{
    _tile_release();
}

AMX static void two_by_two(const gemm_product *p)
{
    const char *a0 = p->a[0], *a1 = p->a[1], *b0 = p->b[0], *b1 = p->b[1];

    if (p->add) {
        _tile_loadd(0, p->c[0][0], p->c_pitch);
        _tile_loadd(1, p->c[0][1], p->c_pitch);
        _tile_loadd(2, p->c[1][0], p->c_pitch);
        _tile_loadd(3, p->c[1][1], p->c_pitch);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t s = 0; s < p->steps; s++) {
        int64_t a = p->a_at[s], b = p->b_at[s];
        _tile_loadd(6, b0 + b, GEMM_STEP);
        _tile_loadd(4, a0 + a, p->pitch);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b1 + b, GEMM_STEP);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a1 + a, p->pitch);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, p->c[0][0], p->c_pitch);
    _tile_stored(1, p->c[0][1], p->c_pitch);
    _tile_stored(2, p->c[1][0], p->c_pitch);
    _tile_stored(3, p->c[1][1], p->c_pitch);
}

AMX static void one_by_two(const gemm_product *p)
{
    if (p->add) {
        _tile_loadd(0, p->c[0][0], p->c_pitch);
        _tile_loadd(1, p->c[0][1], p->c_pitch);
    } else {
        _tile_zero(0);
        _tile_zero(1);
    }
    for (int64_t s = 0; s < p->steps; s++) {
        _tile_loadd(4, p->a[0] + p->a_at[s], p->pitch);
        _tile_loadd(6, p->b[0] + p->b_at[s], GEMM_STEP);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, p->b[1] + p->b_at[s], GEMM_STEP);
        _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(0, p->c[0][0], p->c_pitch);
    _tile_stored(1, p->c[0][1], p->c_pitch);
}

/* One column, which up to four rows share; 'rows' is a constant where this is called. */
AMX static inline __attribute__((always_inline)) void rows_by_one(const gemm_product *p, int rows)
{
    const char *a0 = p->a[0], *a1 = p->a[1], *a2 = p->a[2], *a3 = p->a[3], *b0 = p->b[0];

    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (p->add) {
        _tile_loadd(0, p->c[0][0], p->c_pitch);
        if (rows > 1)
            _tile_loadd(1, p->c[1][0], p->c_pitch);
        if (rows > 2)
            _tile_loadd(2, p->c[2][0], p->c_pitch);
        if (rows > 3)
            _tile_loadd(3, p->c[3][0], p->c_pitch);
    }
    for (int64_t s = 0; s < p->steps; s++) {
        int64_t a = p->a_at[s];
        _tile_loadd(7, b0 + p->b_at[s], GEMM_STEP);
        _tile_loadd(4, a0 + a, p->pitch);
        _tile_dpbf16ps(0, 4, 7);
        if (rows > 1) {
            _tile_loadd(5, a1 + a, p->pitch);
            _tile_dpbf16ps(1, 5, 7);
        }
        if (rows > 2) {
            _tile_loadd(6, a2 + a, p->pitch);
            _tile_dpbf16ps(2, 6, 7);
        }
        if (rows > 3) {
            _tile_loadd(4, a3 + a, p->pitch);
            _tile_dpbf16ps(3, 4, 7);
        }
    }
    _tile_stored(0, p->c[0][0], p->c_pitch);
    if (rows > 1)
        _tile_stored(1, p->c[1][0], p->c_pitch);
    if (rows > 2)
        _tile_stored(2, p->c[2][0], p->c_pitch);
    if (rows > 3)
        _tile_stored(3, p->c[3][0], p->c_pitch);
}

AMX static void four_by_one(const gemm_product *p) { rows_by_one(p, 4); }
AMX static void three_by_one(const gemm_product *p) { rows_by_one(p, 3); }
AMX static void two_by_one(const gemm_product *p) { rows_by_one(p, 2); }
AMX static void one_by_one(const gemm_product *p) { rows_by_one(p, 1); }

static void multiply(const gemm_product *p)
{
    static void (*const few[GEMM_ROWS])(const gemm_product *) = { one_by_one, two_by_one,
                                                                  three_by_one, four_by_one };

    if (p->columns == 2 && p->rows == 2)
        two_by_two(p);
    else if (p->columns == 2)
        one_by_two(p);
    else
        few[p->rows - 1](p);
}

const gemm_engine engine_amx = { begin, multiply, end, NULL };
