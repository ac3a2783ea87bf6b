/*
 * cuda_peak.c - the peak rates of a GPU: its clocks times the operations of its architecture in a
 * clock.
 */
#include "cuda/cuda.h"

/*
 * Operations of one multiprocessor in a clock, from NVIDIA's white paper of each architecture. f32
 * is fused multiply-adds; the others are dense tensor core products with f32 sums. A GPU counts as
 * the last row that is not above its architecture. Rows 86 and 120 are consumer GPUs.
 */
static const struct { int architecture; double f32, bf16, fp16, tf32; } kinds[] = {
    { 75, 128, 0, 1024, 0 }, { 80, 128, 2048, 2048, 1024 }, { 86, 256, 512, 512, 256 },
    { 90, 256, 4096, 4096, 2048 }, { 100, 256, 8192, 8192, 4096 }, { 120, 256, 512, 512, 256 },
};

pons_status cuda_peak_read(void *device, pons_device_peak *peak, pons_error *err)
{
    static const int asked[] = { CUDA_PROCESSORS, CUDA_CLOCK, CUDA_MEMORY_CLOCK, CUDA_MEMORY_BITS };
    const cuda_device *d = device;
    int value[4], kind = (int)(sizeof kinds / sizeof *kinds) - 1;
    double clocks;

    for (int i = 0; i < 4; i++)
        if (cuda_check(d, d->driver.attribute(&value[i], asked[i], d->device), "read the clocks",
                       err) != PONS_OK)
            return PONS_DEVICE;
    while (kind > 0 && kinds[kind].architecture > d->architecture)
        kind--;
    clocks = (double)value[0] * 1e3 * value[1];
    *peak = (pons_device_peak){ .copy = 2 * 1e3 * value[2] * value[3] / 8,
                                    .f32 = clocks * kinds[kind].f32,
                                    .bf16 = clocks * kinds[kind].bf16,
                                    .fp16 = clocks * kinds[kind].fp16,
                                    .tf32 = clocks * kinds[kind].tf32 };
    return PONS_OK;
}
