/*
 * golden_modes_cuda.c - the golden cases on the cuda device, whose driver and compiler are those of
 * tests/fake: they are opened first, so that the device finds them under the names it looks for.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "golden_program.h"

const golden_mode golden_modes[] = {
    { "cuda, fp32", "cuda", false, false, PRECISION_FP32 },
    { "cuda, fp32, freed memory filled with NaN", "cuda", false, true, PRECISION_FP32 },
};
const int golden_mode_count = sizeof golden_modes / sizeof golden_modes[0];

const golden_mode golden_bf16_modes[] = {
    { "cuda, bf16", "cuda", false, false, PRECISION_BF16 },
};
const int golden_bf16_mode_count = sizeof golden_bf16_modes / sizeof golden_bf16_modes[0];

static __attribute__((constructor)) void open_fakes(void)
{
    static const char *const fakes[] = { "tests/fake/.libs/libcuda.so.1",
                                         "tests/fake/.libs/libnvrtc.so.13" };

    for (size_t i = 0; i < sizeof fakes / sizeof *fakes; i++)
        if (dlopen(fakes[i], RTLD_NOW | RTLD_LOCAL) == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
}
