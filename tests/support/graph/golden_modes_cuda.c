/*
 * golden_modes_cuda.c - the modes of golden cases on the cuda device, with the libraries of
 * tests/fake or a real GPU.
 */
#include <stdlib.h>

#include "support/graph/fakes.h"
#include "support/graph/golden_program.h"

const golden_mode golden_modes[] = {
    { "cuda, fp32", "cuda", false, false, PRECISION_FP32 },
    { "cuda, fp32, freed memory filled with NaN", "cuda", false, true, PRECISION_FP32 },
};
const int golden_mode_count = sizeof golden_modes / sizeof golden_modes[0];

const golden_mode golden_bf16_modes[] = {
    { "cuda, bf16", "cuda", false, false, PRECISION_BF16 },
    { "cuda, fp16", "cuda", false, false, PRECISION_FP16 },
    { "cuda, tf32", "cuda", false, false, PRECISION_TF32 },
};
const int golden_bf16_mode_count = sizeof golden_bf16_modes / sizeof golden_bf16_modes[0];

/* A fake GPU is slow, and skips long cases in all modes but that with NaN in freed memory. */
bool golden_is_slow(const golden_mode *m)
{
    return !fakes_are_away() && !m->fill_nan;
}

bool golden_is_made_up(const golden_mode *m)
{
    return m->plugin != NULL && !fakes_are_away();
}

bool golden_is_repeated(const golden_mode *m)
{
    return false;
}

static __attribute__((constructor)) void open_fakes(void)
{
    if (!fakes_open())
        exit(1);
}
