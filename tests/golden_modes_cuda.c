/*
 * golden_modes_cuda.c - the golden cases on the cuda device, whose libraries are those of
 * tests/fake, or a real card's.
 */
#include <stdlib.h>

#include "fakes.h"
#include "golden_program.h"

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

/* A made-up card takes seconds for what a real one does at once; with poison it does all. */
bool golden_is_slow(const golden_mode *m)
{
    return !fakes_are_away() && !m->poison;
}

static __attribute__((constructor)) void open_fakes(void)
{
    if (!fakes_open())
        exit(1);
}
