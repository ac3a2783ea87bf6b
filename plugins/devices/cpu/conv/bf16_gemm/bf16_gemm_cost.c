/*
 * bf16_gemm_cost.c - where the kernels of bf16_gemm.h are faster than oneDNN 2.6.3's. A build
 * without the library takes them for all that they support.
 */
#include "cpu/conv/bf16_gemm/bf16_gemm.h"

#include "base/integer.h"

/*
 * On tile registers: all weight gradients. In the other directions the library is slower where a
 * stride makes its kernels scatter, and where sums are long.
 */
static bool amx_is_faster(const conv_problem *p)
{
    int in = p->x.channels, out = p->y.channels;

    switch (p->direction) {
    case CONV_WEIGHT_GRADIENT:
        return true;
    case CONV_INPUT_GRADIENT:
        return p->taps > 1 && (out >= 128 || (p->strided && (out >= 64 || in >= 64)));
    default:
        return p->taps > 1 && in >= 256;
    }
}

/*
 * On vectors: weight gradients alone, but for channels that leave much of a panel empty, and for
 * dilations, where lines are packed that no kernel position meets.
 */
static bool avx512_is_faster(const conv_problem *p)
{
    int64_t in = p->x.channels, out = p->y.channels;

    return p->direction == CONV_WEIGHT_GRADIENT && (p->taps > 1 || p->strided) && !p->dilated &&
           out >= GEMM_TILE && in >= GEMM_TILE &&
           5 * round_up_i64(out, GEMM_TILE) * round_up_i64(in, GEMM_TILE) <= 6 * out * in;
}

bool bf16_gemm_profitable(const conv_problem *p, const conv_machine *machine)
{
    return !machine->onednn || (machine->isa >= ISA_AMX ? amx_is_faster(p) : avx512_is_faster(p));
}
