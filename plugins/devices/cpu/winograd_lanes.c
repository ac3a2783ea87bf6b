/*
 * winograd_lanes.c - tiles to components and back (winograd.h), 16 channels at a time. Compiled for
 * AVX-512.
 */
#include "winograd.h"

#include <immintrin.h>

#define PAIRS __attribute__((target("avx512bf16")))
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 4")

enum { LANES = 16, NUMBER = sizeof(uint16_t) };

PAIRS INLINE __m512 load(const char *from, __mmask16 mask)
{
    __m256i half = _mm256_maskz_loadu_epi16(mask, from);

    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

PAIRS INLINE void store(char *to, __mmask16 mask, __m512 value)
{
    _mm256_mask_storeu_epi16(to, mask, (__m256i)_mm512_cvtneps_pbh(value));
}

/* B^T d of four numbers. */
INLINE void spread(__m512 to[WINOGRAD_READ], __m512 a, __m512 b, __m512 c, __m512 d)
{
    to[0] = a - c;
    to[1] = b + c;
    to[2] = c - b;
    to[3] = b - d;
}

/* The four lines at one point, spread along H. */
PAIRS INLINE void read_column(const winograd_read *r, int point, int channel, __mmask16 mask,
                              __m512 to[WINOGRAD_READ])
{
    __m512 d[WINOGRAD_READ];

    if (point < 0 || point >= r->width) {
        UNROLL
        for (int i = 0; i < WINOGRAD_READ; i++)
            to[i] = _mm512_setzero_ps();
        return;
    }
    UNROLL
    for (int i = 0; i < WINOGRAD_READ; i++)
        d[i] = load(r->line[i] + r->step[i] * point + channel * NUMBER, mask);
    spread(to, d[0], d[1], d[2], d[3]);
}

/* Neighbours share two of their four columns. */
PAIRS INLINE void read_row(const winograd_read *r, int channel, __mmask16 in, __mmask16 out)
{
    __m512 column[WINOGRAD_READ][WINOGRAD_READ];
    char *to = r->to + channel * NUMBER;
    int point = r->first;

    read_column(r, point, channel, in, column[0]);
    read_column(r, point + 1, channel, in, column[1]);
    for (int t = 0; t < r->tiles; t++, to += r->pitch) {
        point += WINOGRAD_POINTS;
        read_column(r, point, channel, in, column[2]);
        read_column(r, point + 1, channel, in, column[3]);
        UNROLL
        for (int i = 0; i < WINOGRAD_READ; i++) {
            __m512 part[WINOGRAD_READ];
            spread(part, column[0][i], column[1][i], column[2][i], column[3][i]);
            UNROLL
            for (int k = 0; k < WINOGRAD_READ; k++)
                store(to + (i * WINOGRAD_READ + k) * r->apart, out, part[k]);
        }
        UNROLL
        for (int i = 0; i < WINOGRAD_READ; i++) {
            column[0][i] = column[2][i];
            column[1][i] = column[3][i];
        }
    }
}

static __mmask16 first_of(int count)
{
    return count >= LANES ? (__mmask16)-1 : (__mmask16)((1u << count) - 1);
}

PAIRS void winograd_read_tiles(const winograd_read *r)
{
    for (int channel = 0; channel < r->channels; channel += LANES) {
        int left = r->channels - channel;
        read_row(r, channel, first_of(left), first_of(left + left % 2));
    }
}

/* A^T m of four numbers. */
INLINE void gather(__m512 to[WINOGRAD_POINTS], const __m512 m[WINOGRAD_READ])
{
    to[0] = m[0] + m[1] + m[2];
    to[1] = m[1] - m[2] - m[3];
}

PAIRS INLINE void write_tile(const float *from, int64_t apart, char *const line[WINOGRAD_POINTS],
                             int64_t second, __mmask16 mask)
{
    __m512 half[WINOGRAD_POINTS][WINOGRAD_READ];

    UNROLL
    for (int i = 0; i < WINOGRAD_READ; i++) {
        __m512 m[WINOGRAD_READ], two[WINOGRAD_POINTS];
        UNROLL
        for (int k = 0; k < WINOGRAD_READ; k++)
            m[k] = _mm512_loadu_ps((const char *)from + (i * WINOGRAD_READ + k) * apart);
        gather(two, m);
        half[0][i] = two[0];
        half[1][i] = two[1];
    }
    UNROLL
    for (int k = 0; k < WINOGRAD_POINTS; k++) {
        __m512 y[WINOGRAD_POINTS];
        if (k == 1 && second == 0)
            break;
        gather(y, half[k]);
        store(line[0] + k * second, mask, y[0]);
        if (line[1] != NULL)
            store(line[1] + k * second, mask, y[1]);
    }
}

PAIRS void winograd_write_tiles(const winograd_write *w)
{
    __mmask16 mask = first_of(w->channels);
    const char *from = (const char *)w->from;

    for (int t = 0; t < w->tiles; t++, from += w->pitch) {
        int64_t at = WINOGRAD_POINTS * t * w->step;
        char *line[WINOGRAD_POINTS] = { w->line[0] + at,
                                        w->line[1] == NULL ? NULL : w->line[1] + at };
        bool both = WINOGRAD_POINTS * t + 1 < w->width;
        write_tile((const float *)from, w->apart, line, both ? w->step : 0, mask);
    }
}

/* G g of three numbers. */
INLINE void weigh(__m512 to[WINOGRAD_READ], __m512 a, __m512 b, __m512 c)
{
    const __m512 half = _mm512_set1_ps(0.5f);

    to[0] = a;
    to[1] = half * (a + b + c);
    to[2] = half * (a - b + c);
    to[3] = c;
}

PAIRS void winograd_weights(const char *const tap[WINOGRAD_KERNEL * WINOGRAD_KERNEL], int count,
                            char *const to[WINOGRAD_COMPONENTS])
{
    __mmask16 mask = first_of(count);
    __m512 column[WINOGRAD_KERNEL][WINOGRAD_READ];

    for (int k = 0; k < WINOGRAD_KERNEL; k++)
        weigh(column[k], load(tap[k], mask), load(tap[WINOGRAD_KERNEL + k], mask),
              load(tap[2 * WINOGRAD_KERNEL + k], mask));
    for (int i = 0; i < WINOGRAD_READ; i++) {
        __m512 part[WINOGRAD_READ];
        weigh(part, column[0][i], column[1][i], column[2][i]);
        for (int k = 0; k < WINOGRAD_READ; k++)
            store(to[i * WINOGRAD_READ + k], (__mmask16)-1, part[k]);
    }
}
