/*
 * few_channels_layout.c - convert rows between tensors and loops: split and join channels, bf16 and
 * float.
 */
#include "cpu/conv/few_channels/loops.h"
#include "cpu/conv/few_channels/few_channels_vector.h"

#include "cpu/simd/lane_math.h"

#include <string.h>

#include "base/integer.h"

/* ---- channels apart -------------------------------------------------------------------------- */

VECTOR void split_plain(float *to, int pitch, const float *from, int width, int channels, int w)
{
    for (; w < width; w++)
        for (int c = 0; c < channels; c++)
            to[(int64_t)c * pitch + w] = from[(int64_t)w * channels + c];
}

static int split_2(float *to, int pitch, const float *from, int width)
{
    int w = 0;

    for (; w + VECTOR_LANES <= width; w += VECTOR_LANES) {
        vector a = vector_load(from + 2 * w), b = vector_load(from + 2 * w + VECTOR_LANES);
        vector_store(to + w, even(a, b));
        vector_store(to + pitch + w, odd(a, b));
    }
    return w;
}

static int split_4(float *to, int pitch, const float *from, int width)
{
    int w = 0;

    for (; w + VECTOR_LANES <= width; w += VECTOR_LANES) {
        const float *p = from + 4 * w;
        vector a = vector_load(p), b = vector_load(p + VECTOR_LANES);
        vector c = vector_load(p + 2 * VECTOR_LANES), d = vector_load(p + 3 * VECTOR_LANES);
        vector ab = even(a, b), cd = even(c, d);
        vector_store(to + w, even(ab, cd));
        vector_store(to + 2 * pitch + w, odd(ab, cd));
        ab = odd(a, b), cd = odd(c, d);
        vector_store(to + pitch + w, even(ab, cd));
        vector_store(to + 3 * pitch + w, odd(ab, cd));
    }
    return w;
}

/* A round mixes rows i and i + n / 2 of n. After log2(n) rounds the rows are transposed. */
VECTOR void turn(vector v[VECTOR_LANES])
{
    VECTOR_UNROLL for (int round = 1; round < VECTOR_LANES; round *= 2) {
        vector u[VECTOR_LANES];
        VECTOR_UNROLL for (int i = 0; i < VECTOR_LANES / 2; i++) {
            u[2 * i] = mix_low(v[i], v[i + VECTOR_LANES / 2]);
            u[2 * i + 1] = mix_high(v[i], v[i + VECTOR_LANES / 2]);
        }
        VECTOR_UNROLL for (int i = 0; i < VECTOR_LANES; i++)
            v[i] = u[i];
    }
}

#if defined(__AVX512F__)
/*
 * Quarters of rows are loaded side by side, so only blocks of 4 x 4 are transposed. This takes half
 * the shuffles of turn() and few registers.
 */
VECTOR __m512 quarters(const float *from, int64_t rows)
{
    __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(from));

    v = _mm512_insertf32x4(v, _mm_loadu_ps(from + 4 * rows), 1);
    v = _mm512_insertf32x4(v, _mm_loadu_ps(from + 8 * rows), 2);
    return _mm512_insertf32x4(v, _mm_loadu_ps(from + 12 * rows), 3);
}

VECTOR void turn_quarters(float *to, int pitch, const float *from, int64_t channels)
{
    __m512 a = quarters(from, channels), b = quarters(from + channels, channels);
    __m512 c = quarters(from + 2 * channels, channels), d = quarters(from + 3 * channels, channels);
    __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
    __m512d cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));

    _mm512_storeu_pd(to, _mm512_unpacklo_pd(ab, cd));
    _mm512_storeu_pd(to + pitch, _mm512_unpackhi_pd(ab, cd));
    ab = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
    cd = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
    _mm512_storeu_pd(to + 2 * (int64_t)pitch, _mm512_unpacklo_pd(ab, cd));
    _mm512_storeu_pd(to + 3 * (int64_t)pitch, _mm512_unpackhi_pd(ab, cd));
}

static int split_fours(float *to, int pitch, const float *from, int width, int channels)
{
    int w = 0;

    for (; channels % 4 == 0 && w + VECTOR_LANES <= width; w += VECTOR_LANES)
        for (int c = 0; c < channels; c += 4)
            turn_quarters(to + (int64_t)c * pitch + w, pitch, from + (int64_t)w * channels + c,
                          channels);
    return w;
}
#else
static int split_fours(float *to, int pitch, const float *from, int width, int channels)
{
    (void)to, (void)pitch, (void)from, (void)width, (void)channels;
    return 0;
}
#endif

static int split_many(float *to, int pitch, const float *from, int width, int channels)
{
    int w = split_fours(to, pitch, from, width, channels);

    for (; w + VECTOR_LANES <= width; w += VECTOR_LANES)
        for (int c = 0; c < channels; c += VECTOR_LANES) {
            vector v[VECTOR_LANES];
            VECTOR_UNROLL for (int i = 0; i < VECTOR_LANES; i++)
                v[i] = vector_load(from + (int64_t)(w + i) * channels + c);
            turn(v);
            VECTOR_UNROLL for (int i = 0; i < VECTOR_LANES; i++)
                if (c + i < channels)
                    vector_store(to + (int64_t)(c + i) * pitch + w, v[i]);
        }
    return w;
}

static void split(float *to, int pitch, const float *from, int width, int channels)
{
    switch (channels) {
    case 1: memcpy(to, from, (size_t)width * sizeof(float)); break;
    case 2: split_plain(to, pitch, from, width, 2, split_2(to, pitch, from, width)); break;
    case 3: split_plain(to, pitch, from, width, 3, 0); break;
    case 4: split_plain(to, pitch, from, width, 4, split_4(to, pitch, from, width)); break;
    default:
        split_plain(to, pitch, from, width, channels,
                    split_many(to, pitch, from, width, channels));
        break;
    }
    for (int c = 0; c < channels; c++)
        memset(to + (int64_t)c * pitch + width, 0, (size_t)(pitch - width) * sizeof(float));
}

/* ---- channels together ----------------------------------------------------------------------- */

VECTOR void join_plain(float *restrict to, const float *restrict from, int pitch, int width,
                       int channels, int w)
{
    for (; w < width; w++)
        for (int c = 0; c < channels; c++)
            to[(int64_t)w * channels + c] = from[(int64_t)c * pitch + w];
}

static int join_2(float *to, const float *from, int pitch, int width)
{
    int w = 0;

    for (; w + VECTOR_LANES <= width; w += VECTOR_LANES) {
        vector a = vector_load(from + w), b = vector_load(from + pitch + w);
        vector_store(to + 2 * w, mix_low(a, b));
        vector_store(to + 2 * w + VECTOR_LANES, mix_high(a, b));
    }
    return w;
}

static int join_4(float *to, const float *from, int pitch, int width)
{
    int w = 0;

    for (; w + VECTOR_LANES <= width; w += VECTOR_LANES) {
        vector a = vector_load(from + w), b = vector_load(from + pitch + w);
        vector c = vector_load(from + 2 * pitch + w);
        vector d = vector_load(from + 3 * pitch + w), ac = mix_low(a, c), bd = mix_low(b, d);
        vector_store(to + 4 * w, mix_low(ac, bd));
        vector_store(to + 4 * w + VECTOR_LANES, mix_high(ac, bd));
        ac = mix_high(a, c), bd = mix_high(b, d);
        vector_store(to + 4 * w + 2 * VECTOR_LANES, mix_low(ac, bd));
        vector_store(to + 4 * w + 3 * VECTOR_LANES, mix_high(ac, bd));
    }
    return w;
}

static void join(float *to, const float *from, int pitch, int width, int channels)
{
    switch (channels) {
    case 1: memcpy(to, from, (size_t)width * sizeof(float)); break;
    case 2: join_plain(to, from, pitch, width, 2, join_2(to, from, pitch, width)); break;
    case 3: join_plain(to, from, pitch, width, 3, 0); break;
    case 4: join_plain(to, from, pitch, width, 4, join_4(to, from, pitch, width)); break;
    case 6: join_plain(to, from, pitch, width, 6, 0); break;
    default: join_plain(to, from, pitch, width, channels, 0); break;
    }
}

/* ---- types in memory ------------------------------------------------------------------------- */

static void from_bf16(float *to, const uint16_t *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = lane_from_bf16(from[i]);
}

enum { TILE = 16 };

#if defined(__AVX512F__)
VECTOR void row_to_bf16(uint16_t *to, const float *from)
{
    __m512i bits = _mm512_loadu_si512(from), high = _mm512_srli_epi32(bits, 16);
    __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    __m512i even = _mm512_srli_epi32(_mm512_add_epi32(bits, half), 16);
    __m512 x = _mm512_castsi512_ps(bits);
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);

    even = _mm512_mask_or_epi32(even, nan, high, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtepi32_epi16(even));
}
#else
VECTOR void row_to_bf16(uint16_t *to, const float *from)
{
    for (int i = 0; i < TILE; i++)
        to[i] = lane_to_bf16(from[i]);
}
#endif

static void to_bf16(uint16_t *to, const float *from, int64_t count)
{
    int64_t i = 0;

    for (; i + TILE <= count; i += TILE)
        row_to_bf16(to + i, from + i);
    for (; i < count; i++)
        to[i] = lane_to_bf16(from[i]);
}

static void tiles_to_bf16(uint16_t *to, const float *from, int cells, int outs)
{
    int across = ceil_div_int(outs, TILE);

    for (int cell = 0; cell < cells; cell++, to += outs) {
        const float *row = from + (int64_t)(cell / TILE) * across * TILE * TILE +
                           cell % TILE * TILE;
        for (int a = 0; a < across; a++)
            row_to_bf16(to + a * TILE, row + a * TILE * TILE);
    }
}

const few_channels_layout CPU_ISA_NAME(few_channels_layout) = { split, join, from_bf16, to_bf16,
                                                                tiles_to_bf16 };
