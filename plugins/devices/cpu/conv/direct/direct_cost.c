/*
 * direct_cost.c - the problems on which the kernels of direct.h are faster than oneDNN 2.6.3.
 *
 * They are convolutions in float on processors with AVX512-BF16 and without AMX.
 */
#include "cpu/conv/direct/direct.h"

/* Weight gradients with a stride on large images, unless the channels are few. */
static bool gradient_is_faster(const conv_problem *p)
{
    enum { LONG = 3 << 19, DEEP = 16 * 16 };
    int64_t in = p->x.channels;

    return p->strided && in >= 16 && p->y.channels >= 32 && p->taps * in >= DEEP &&
           in * p->x.extent[0] * p->x.extent[1] * p->x.extent[2] >= LONG;
}

/* Input gradients of large images with 8 or 16 channels. */
static bool input_gradient_is_faster(const conv_problem *p)
{
    enum { LARGE = 40 * 40 * 40 };

    return !p->strided && p->taps == 27 && (p->x.channels == 8 || p->x.channels == 16) &&
           (int64_t)p->x.extent[0] * p->x.extent[1] * p->x.extent[2] >= LARGE;
}

static bool profitable(const conv_problem *p, const conv_machine *machine)
{
    if (machine->isa != ISA_AVX512BF16 || conv_from(p)->type != PONS_F32 || p->groups != 1)
        return false;
    switch (p->direction) {
    case CONV_WEIGHT_GRADIENT: return gradient_is_faster(p);
    case CONV_INPUT_GRADIENT: return input_gradient_is_faster(p);
    default: return false;
    }
}

const conv_operations direct_large_operations = {
    .supports = direct_supports, .profitable = profitable, .prepare = direct_prepare,
};
