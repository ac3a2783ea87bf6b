/*
 * loops_interleave.c - the loop of loops.h over pairs of bf16 from few channels to many. The vector
 * lies along the many channels, and sums become bf16 in registers.
 */
#include "cpu/conv/few_channels/loops.h"
#include "cpu/conv/few_channels/few_channels_vector.h"

enum { POSITIONS = SUMS / 2, FEWER = 4 };

typedef float number_loose __attribute__((aligned(2), may_alias));

/* Keeps values of the next round out of registers, which the sums need. */
#define FORGET(pointer) __asm__("" : "+r"(pointer))

/* Positions are 'step' numbers of 'size' bytes apart; pairs follow one another. */
VECTOR void interleave_taps(vector *sum, const few_channels_interleave *z, int count, int vectors,
                            int step, int size, int begin, int end, int inner, int first, int o)
{
    for (int t = begin; t < end; t++) {
        const char *x = (const char *)z->x[t] + (int64_t)first * step * size;
        const float *w = z->weight[t] + o;
        for (int j = 0; j < inner; j++, x += sizeof(float), w += z->outs) {
            vector v[2];
            VECTOR_UNROLL for (int i = 0; i < vectors; i++)
                v[i] = vector_load(w + i * VECTOR_LANES);
            FORGET(x);
            VECTOR_UNROLL for (int b = 0; b < count; b++) {
                vector u = vector_all(*(const number_loose *)(x + b * step * size));
                VECTOR_UNROLL for (int i = 0; i < vectors; i++)
                    sum[b * vectors + i] = vector_fused(u, v[i], sum[b * vectors + i]);
            }
        }
    }
}

VECTOR void interleave_keep(uint16_t *to, const vector *sum, int vectors)
{
    if (vectors == 2)
        _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(sum[1], sum[0]));
    else
        _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh(sum[0]));
}

VECTOR void interleave_block(const few_channels_interleave *z, int count, int vectors, int step,
                             int first, int o)
{
    vector sum[SUMS];

    VECTOR_UNROLL for (int i = 0; i < count * vectors; i++)
        sum[i] = vector_all(0);
    interleave_taps(sum, z, count, vectors, step, sizeof(float), 0, z->interleaved, z->numbers,
                    first, o);
    interleave_taps(sum, z, count, vectors, step, sizeof(uint16_t), z->interleaved, z->taps,
                    (z->numbers + 1) / 2, first, o);
    VECTOR_UNROLL for (int b = 0; b < count; b++)
        interleave_keep(z->y + (int64_t)(first + b) * z->outs + o, sum + b * vectors, vectors);
}

VECTOR void interleave_columns(const few_channels_interleave *z, int vectors, int step, int o)
{
    int w = 0;

    for (; vectors == 1 && w + 2 * POSITIONS <= z->width; w += 2 * POSITIONS)
        interleave_block(z, 2 * POSITIONS / vectors, vectors, step, w, o);
    for (; w + POSITIONS <= z->width; w += POSITIONS)
        interleave_block(z, POSITIONS, vectors, step, w, o);
    for (; w + FEWER <= z->width; w += FEWER)
        interleave_block(z, FEWER, vectors, step, w, o);
    for (; w < z->width; w++)
        interleave_block(z, 1, vectors, step, w, o);
}

VECTOR void interleave_step(const few_channels_interleave *z, int step)
{
    int o = 0;

    for (; o + 2 * VECTOR_LANES <= z->outs; o += 2 * VECTOR_LANES)
        interleave_columns(z, 2, step, o);
    for (; o < z->outs; o += VECTOR_LANES)
        interleave_columns(z, 1, step, o);
}

void few_channels_interleave_row(const few_channels_interleave *z)
{
    switch (z->step) {
    case 1: interleave_step(z, 1); break;
    case 2: interleave_step(z, 2); break;
    case 3: interleave_step(z, 3); break;
    case 4: interleave_step(z, 4); break;
    default: interleave_step(z, z->step); break;
    }
}
