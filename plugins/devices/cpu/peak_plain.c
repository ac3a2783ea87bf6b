/*
 * peak_plain.c - the loops of peak.h for processors other than x86-64.
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

const peak_loop peak_f32[] = { { ISA_BASELINE, products_plain, 2.0 * LANES }, { 0 } };
const peak_loop peak_bf16[] = { { 0 } };

void peak_copy(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
}
