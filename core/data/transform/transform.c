/*
 * transform.c - functions for transform plugins: warnings, parallel loops, random draws (R5),
 * composition of maps.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/text/quote.h"
#include "base/thread/parallel.h"
#include "data/volume/volume.h"

void pons_transform_warn(const pons_transform_scope *scope, const char *format, ...)
{
    char text[512];
    va_list list;

    if (!scope->warn)
        return;
    va_start(list, format);
    quote_format(text, sizeof text, format, list);
    va_end(list);
    scope->warn(scope->receiver, text);
}

void pons_parallel_for(int64_t count, int64_t piece,
                       void (*body)(void *context, int64_t first, int64_t end), void *context)
{
    parallel_run(count, piece, body, context);
}

static void draw_words(pons_rng *d, uint32_t out[4])
{
    random_data(d->seed, d->stream, d->epoch, d->case_rank, d->sample, d->next++, out);
}

float pons_draw_uniform(pons_rng *d)
{
    uint32_t out[4];

    draw_words(d, out);
    return random_uniform(out[0]);
}

double pons_draw_range(pons_rng *d, double low, double high)
{
    return low + (high - low) * (double)pons_draw_uniform(d);
}

uint64_t pons_draw_key(pons_rng *d)
{
    uint32_t out[4];

    draw_words(d, out);
    return (uint64_t)out[0] << 32 | out[1];
}

int64_t pons_draw_index(pons_rng *d, int64_t count)
{
    unsigned __int128 product = (unsigned __int128)pons_draw_key(d) * (uint64_t)count;

    return (int64_t)(product >> 64);
}

void pons_voxel_uniform(uint64_t key, uint64_t quad, float out[4])
{
    uint32_t number[4];

    random_voxels(key, quad, number);
    for (int i = 0; i < 4; i++)
        out[i] = random_uniform(number[i]);
}

void pons_voxel_normal(uint64_t key, uint64_t quad, float out[4])
{
    uint32_t number[4];

    random_voxels(key, quad, number);
    random_normal(number[0], number[1], out);
    random_normal(number[2], number[3], out + 2);
}

void pons_sample_compose(pons_sample *s, const double map[3][4])
{
    double product[3][4];

    pons_affine_multiply((const double (*)[4])s->map, map, product);
    memcpy(s->map, product, sizeof product);
}
