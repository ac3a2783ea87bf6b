/*
 * limits.c - what a card can reach: its clocks times what its kind does in a clock.
 */
#include "cuda.h"

/*
 * Operations of one processor in a clock, from NVIDIA's papers on each architecture: fused products
 * of float, and dense products of bf16 with sums in float by matrix units. A card counts as the
 * last row that is not above it.
 */
static const struct { int architecture; double f32, bf16; } kinds[] = {
    { 75, 128, 0 }, { 80, 128, 2048 }, { 86, 256, 512 }, { 90, 256, 4096 }, { 100, 256, 8192 },
    { 120, 256, 512 },
};

pons_status cuda_limits(void *device, pons_device_limits *limits, pons_error *err)
{
    static const int asked[] = { CUDA_PROCESSORS, CUDA_CLOCK, CUDA_MEMORY_CLOCK, CUDA_MEMORY_BITS };
    const cuda_device *d = device;
    int value[4], kind = (int)(sizeof kinds / sizeof *kinds) - 1;
    double clocks;

    for (int i = 0; i < 4; i++)
        if (cuda_check(d, d->driver.attribute(&value[i], asked[i], d->device), "ask for the clocks",
                       err) != PONS_OK)
            return PONS_DEVICE;
    while (kind > 0 && kinds[kind].architecture > d->architecture)
        kind--;
    clocks = (double)value[0] * 1e3 * value[1];
    *limits = (pons_device_limits){ .copy = 2 * 1e3 * value[2] * value[3] / 8,
                                    .f32 = clocks * kinds[kind].f32,
                                    .bf16 = clocks * kinds[kind].bf16 };
    return PONS_OK;
}
