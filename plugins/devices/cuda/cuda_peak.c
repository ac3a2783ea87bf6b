/*
 * cuda_peak.c - what a card can reach: its clocks times what its kind does in a clock.
 */
#include "cuda/cuda.h"

/*
 * Operations of one processor in a clock, from NVIDIA's papers on each architecture: fused products
 * of float, and dense products of bf16, fp16 and tf32 with sums in float by matrix units. A card
 * counts as the last row that is not above it; 86 and 120 are those of cards for games.
 */
static const struct { int architecture; double f32, bf16, fp16, tf32; } kinds[] = {
    { 75, 128, 0, 1024, 0 }, { 80, 128, 2048, 2048, 1024 }, { 86, 256, 512, 512, 256 },
    { 90, 256, 4096, 4096, 2048 }, { 100, 256, 8192, 8192, 4096 }, { 120, 256, 512, 512, 256 },
};

pons_status cuda_limits(void *device, pons_device_peak *limits, pons_error *err)
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
    *limits = (pons_device_peak){ .copy = 2 * 1e3 * value[2] * value[3] / 8,
                                    .f32 = clocks * kinds[kind].f32,
                                    .bf16 = clocks * kinds[kind].bf16,
                                    .fp16 = clocks * kinds[kind].fp16,
                                    .tf32 = clocks * kinds[kind].tf32 };
    return PONS_OK;
}
