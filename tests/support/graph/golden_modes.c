/*
 * golden_modes.c - the modes in which every golden case of programs is run.
 */
#include "support/graph/golden_program.h"

#include <stdlib.h>
#include <string.h>

const golden_mode golden_modes[] = {
    { "reference, double", NULL, true, false, PRECISION_FP32 },
    { "reference, float, freed memory filled with NaN", NULL, false, true, PRECISION_FP32 },
    { "cpu, fp32", "cpu", false, false, PRECISION_FP32 },
    { "cpu, fp32, freed memory filled with NaN", "cpu", false, true, PRECISION_FP32 },
};
const int golden_mode_count = sizeof golden_modes / sizeof golden_modes[0];

const golden_mode golden_bf16_modes[] = {
    { "reference, bf16", NULL, false, true, PRECISION_BF16 },
    { "cpu, bf16", "cpu", false, false, PRECISION_BF16 },
    { "cpu, bf16, freed memory filled with NaN", "cpu", false, true, PRECISION_BF16 },
};
const int golden_bf16_mode_count = sizeof golden_bf16_modes / sizeof golden_bf16_modes[0];

bool golden_is_slow(const golden_mode *m)
{
    return false;
}

bool golden_is_made_up(const golden_mode *m)
{
    return false;
}

bool golden_is_repeated(const golden_mode *m)
{
    const char *reference = getenv("PONS_TEST_REFERENCE");

    return m->plugin == NULL && reference != NULL && strcmp(reference, "no") == 0;
}
