/*
 * winograd_cost.c - where Winograd kernels are faster than those that multiply directly.
 *
 * They save multiplications where vectors of pairs of bf16 or of floats are the limit, not beside
 * tile registers. Tiles that stick out of an image and sums of few channels take some of it back.
 */
#include "cpu/conv/winograd/winograd.h"

#include "base/integer.h"

static bool is_candidate(const conv_machine *machine)
{
    return machine->winograd && machine->isa == ISA_AVX512BF16;
}

/*
 * The plane has 2 x 2 points of the smaller image for each tile, and 8 tiles are computed together:
 * enough of those points exist. With a stride, fewer pairs of channels pay too much for sums. With
 * five weights one more tile along W is computed, and one more row between images.
 */
bool winograd_profitable(const conv_problem *p, const conv_machine *machine)
{
    enum { TILES = 8, POINTS = 4, STRIDED_PAIRS = 32 * 32 };
    bool plain = p->stride[2] == 1;
    const conv_image *y = plain && p->direction == CONV_INPUT_GRADIENT ? &p->x : &p->y;
    int64_t planes = p->cases, reach = winograd_forms[winograd_kind_of(p)].reach;
    int64_t rows = planes * (ceil_div_i64(y->extent[1], 2) + reach) - reach;
    int64_t tiles = round_up_i64(rows * (ceil_div_i64(y->extent[2], 2) + reach), TILES);
    int full = plain ? 70 : 85;     /* percent */

    return is_candidate(machine) &&
           100 * planes * y->extent[1] * y->extent[2] >= full * POINTS * tiles &&
           (plain || (int64_t)p->x.channels * p->y.channels >= STRIDED_PAIRS);
}

/*
 * A whole panel of input channels, with a stride two of them or more kernel planes; and fewer
 * multiplications than those of the direct kernels, with those of the tiles' empty points. Two rows
 * of tiles are multiplied at once.
 */
bool winograd_gradient_profitable(const conv_problem *p, const conv_machine *machine)
{
    enum { POINTS = 4, ALL = 36, FEWER = 16, STRIDED = 25, STRIDED_INS = 2 * GEMM_TILE };
    enum { WIDE = 49, WIDE_ALL = 75 };   /* of 100, less a quarter for short lines */
    bool plain = p->stride[2] == 1;
    int64_t planes = p->cases, h = p->y.extent[1], w = p->y.extent[2];
    int64_t tiles = round_up_i64(planes * round_up_i64(h, 2) / 2, 2) * round_up_i64(w, 2) / 2;

    if (winograd_kind_of(p) == WINOGRAD_WIDE)
        return is_candidate(machine) && p->x.channels >= GEMM_TILE &&
               WIDE * tiles * POINTS <= WIDE_ALL * planes * h * w;
    return is_candidate(machine) && p->x.channels >= GEMM_TILE &&
           (plain || p->kernel[0] * p->x.channels >= STRIDED_INS) &&
           (plain ? FEWER : STRIDED) * tiles * POINTS <= ALL * planes * h * w;
}
