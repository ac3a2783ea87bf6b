/*
 * loops_in_place.c - the loop of loops.h over pairs of bf16 that reads rows of two channels in the
 * tensor, for kernels of 3 along W.
 *
 * Nothing is copied: lanes past the end of a row are masked, and sums are written as bf16.
 */
#include "cpu/conv/few_channels/loops.h"
#include "cpu/conv/few_channels/few_channels_vector.h"
#include "cpu/conv/bf16_gemm/bf16_interleave.h"

#include "base/integer.h"

enum { COLUMNS = 6, KERNEL = 3 };

/* The mask of lanes from position 'at' on that lie inside a row. */
static inline __mmask16 inside(int at, int width)
{
    int before = at < 0 ? -at : 0, behind = at + VECTOR_LANES - width;

    return (__mmask16)((0xffffu << before) & (0xffffu >> max_int(behind, 0)));
}

/* Rows 'from' to 'to' - 1 of y from taps 'begin' to 'end' - 1; sums are [row][o][column]. */
VECTOR void place_taps(vector *sum, const few_channels_in_place *p, int outs, int columns, int from,
                       int to,
                       int begin, int end, int first, __mmask16 low, const __mmask16 high[KERNEL])
{
    for (int t = begin; t < end; t++)
        VECTOR_UNROLL for (int j = 0; j < KERNEL; j++) {
            const float *row = p->x[t] + first + j - 1;
            vector v[COLUMNS];
            VECTOR_UNROLL for (int c = 0; c < columns; c++) {
                const float *at = row + c * VECTOR_LANES;
                v[c] = c == columns - 1 ? (vector)_mm512_maskz_loadu_ps(high[j], at)
                     : c == 0 && j == 0 ? (vector)_mm512_maskz_loadu_ps(low, at)
                                        : vector_load(at);
                LOADED_ONCE(v[c]);
            }
            VECTOR_UNROLL for (int r = from; r < to; r++)
                VECTOR_UNROLL for (int o = 0; o < outs; o++) {
                    vector u = vector_all(p->weight[r][t][j * outs + o]);
                    vector *s = sum + (r * outs + o) * columns;
                    VECTOR_UNROLL for (int c = 0; c < columns; c++)
                        s[c] = vector_fused(v[c], u, s[c]);
                }
        }
}

VECTOR void place_keep(uint16_t *to, const vector *sum, int outs, int columns, int left)
{
    VECTOR_UNROLL for (int c = 0; c < columns; c++) {
        uint32_t lanes = inside(0, left);
        if (outs == 1) {
            _mm256_mask_storeu_epi16(to, (__mmask16)lanes, (__m256i)_mm512_cvtneps_pbh(sum[c]));
        } else {
            __m512i both = (__m512i)_mm512_cvtne2ps_pbh(sum[columns + c], sum[c]);
            uint32_t numbers = left < VECTOR_LANES ? (1u << 2 * left) - 1 : ~0u;
            _mm512_mask_storeu_epi16(to, numbers, bf16_interleave(both));
        }
        to += outs * VECTOR_LANES;
        left -= VECTOR_LANES;
    }
}

VECTOR void place_block(const few_channels_in_place *p, int outs, int columns, int first)
{
    __mmask16 low = inside(first - 1, p->width), high[KERNEL];
    vector sum[SUMS];

    for (int j = 0; j < KERNEL; j++)
        high[j] = inside(first + j - 1 + (columns - 1) * VECTOR_LANES, p->width);
    VECTOR_UNROLL for (int i = 0; i < 2 * outs * columns; i++)
        sum[i] = vector_all(0);
    place_taps(sum, p, outs, columns, 0, 1, 0, p->end[0], first, low, high);
    place_taps(sum, p, outs, columns, 0, 2, p->end[0], p->end[1], first, low, high);
    place_taps(sum, p, outs, columns, 1, 2, p->end[1], p->end[2], first, low, high);
    VECTOR_UNROLL for (int r = 0; r < 2; r++)
        if (p->y[r] != NULL)
            place_keep(p->y[r] + (int64_t)first * outs, sum + r * outs * columns, outs, columns,
                       p->width - first);
}

VECTOR void place_outs(const few_channels_in_place *p, int outs)
{
    int w = 0;

    for (; w + 5 * VECTOR_LANES < p->width; w += 6 * VECTOR_LANES)
        place_block(p, outs, 6, w);
    for (; w + 2 * VECTOR_LANES < p->width; w += 3 * VECTOR_LANES)
        place_block(p, outs, 3, w);
    for (; w + VECTOR_LANES < p->width; w += 2 * VECTOR_LANES)
        place_block(p, outs, 2, w);
    for (; w < p->width; w += VECTOR_LANES)
        place_block(p, outs, 1, w);
}

void few_channels_in_place_rows(const few_channels_in_place *p, int outs)
{
    if (outs == 1)
        place_outs(p, 1);
    else
        place_outs(p, 2);
}
