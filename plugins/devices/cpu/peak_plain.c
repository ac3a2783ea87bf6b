/*
 * peak_plain.c - the loops of peak.h where nothing is known of the processor.
 */
#include "cpu/peak.h"

#include <string.h>

enum { LANES = 64 };

static void products_plain(int64_t rounds, const void *input, float *output)
{
    const float *a = input;
    float sum[LANES];

    memcpy(sum, a, sizeof sum);
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < LANES; i++)
            sum[i] = sum[i] * a[i] + a[i + LANES];
    *output = 0;
    for (int i = 0; i < LANES; i++)
        *output += sum[i];
}

const limits_loop limits_f32[] = { { ISA_BASELINE, products_plain, 2.0 * LANES }, { 0 } };
const limits_loop limits_bf16[] = { { 0 } };

void limits_copy(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
}
