/*
 * winograd_transform.c - the transforms of winograd.h, 16 channels at a time: points to sources,
 * weights to factors, sums to points, and the gradients of sums and weights. The file is compiled
 * for AVX-512.
 */
#include "cpu/conv/winograd/winograd.h"

#include "cpu/conv/bf16_gemm/bf16_interleave.h"

#define PAIRS __attribute__((target("avx512bf16")))
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 8")

enum { LANES = 16, CACHE_LINE = 64 };

/* 'kind' and 'type' are constants wherever functions have been inlined. */

PAIRS INLINE __m512 load(pons_type type, const char *from, __mmask16 mask)
{
    __m256i half;

    if (type == PONS_F32)
        return _mm512_maskz_loadu_ps(mask, from);
    half = _mm256_maskz_loadu_epi16(mask, from);

    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

PAIRS INLINE void store(pons_type type, char *to, __mmask16 mask, __m512 value)
{
    if (type == PONS_F32)
        _mm512_mask_storeu_ps(to, mask, value);
    else
        _mm256_mask_storeu_epi16(to, mask, (__m256i)_mm512_cvtneps_pbh(value));
}

/* Round two vectors to bf16, one behind the other. */
PAIRS INLINE __m512i both(__m512 a, __m512 b) { return (__m512i)_mm512_cvtne2ps_pbh(b, a); }

/* Side by side. */
PAIRS INLINE __m512i pair(__m512 a, __m512 b) { return bf16_interleave(both(a, b)); }

/* A line of pairs: both vectors as bf16, or the first one as floats. */
PAIRS INLINE __m512i line_of(pons_type type, const __m512 *v)
{
    return type == PONS_F32 ? _mm512_castps_si512(v[0]) : pair(v[0], v[1]);
}

/* The lower or upper elements of pairs; a float is the lower one. */
INLINE __m512 half_of(pons_type type, __m512i units, bool upper)
{
    if (type == PONS_F32)
        return _mm512_castsi512_ps(units);
    return _mm512_castsi512_ps(upper ? _mm512_and_si512(units, _mm512_set1_epi32((int)0xffff0000))
                                     : _mm512_slli_epi32(units, 16));
}

static __mmask16 first_of(int count)
{
    return count >= LANES ? (__mmask16)-1 : (__mmask16)((1u << count) - 1);
}

/* ---- sources --------------------------------------------------------------------------------- */

INLINE void take_apart(winograd_kind kind, __m512 *to, const __m512 *d)
{
    switch (kind) {
    case WINOGRAD_PLAIN:
    case WINOGRAD_WIDE:
        to[0] = d[0] - d[2];
        to[1] = d[1] + d[2];
        to[2] = d[2] - d[1];
        to[3] = d[1] - d[3];
        break;
    case WINOGRAD_STRIDED:
        to[0] = d[0] - d[2];
        to[1] = d[2];
        to[2] = d[4] - d[2];
        to[3] = d[1];
        to[4] = d[3];
        break;
    case WINOGRAD_SPREAD:
        to[0] = d[0] - d[1];
        to[1] = d[1];
        to[2] = d[2] - d[1];
        to[3] = d[0];
        break;
    }
}

INLINE const char *point_of(const winograd_line *line, pons_type type, int point, int channel)
{
    return line->from + line->step * point + channel * winograd_size(type);
}

/*
 * Transform one point of all lines along H. The point 'ahead' is prefetched with the first channels
 * of a cache line.
 */
PAIRS INLINE void read_column_of(winograd_kind kind, pons_type type, winograd_planes planes,
                                 const winograd_read *r, int point, int channel, __mmask16 mask,
                                 __m512 *to)
{
    const winograd_form *f = &winograd_forms[kind];
    const bool asks = channel * winograd_size(type) % CACHE_LINE == 0;
    __m512 d[WINOGRAD_READS];

    if (point < 0 || point >= r->width) {
        UNROLL
        for (int i = 0; i < f->sources; i++)
            to[i] = _mm512_setzero_ps();
        return;
    }
    UNROLL
    for (int i = 0; i < f->reads; i++) {
        const char *from = point_of(&r->line[i], type, point, channel);
        d[i] = load(type, from, mask);
        if (asks)
            __builtin_prefetch(from + r->ahead);
        if (planes == WINOGRAD_SUM)
            d[i] += load(type, point_of(&r->second[i], type, point, channel), mask);
        else if (planes == WINOGRAD_DIFFERENCE)
            d[i] -= load(type, point_of(&r->second[i], type, point, channel), mask);
    }
    take_apart(kind, to, d);
}

PAIRS INLINE void read_column(winograd_kind kind, pons_type type, const winograd_read *r,
                              int point, int channel, __mmask16 mask, __m512 *to)
{
    read_column_of(kind, type, WINOGRAD_ONE, r, point, channel, mask, to);
}

/* Neighbouring tiles share columns. */
PAIRS INLINE void read_row(winograd_kind kind, pons_type type, winograd_planes planes,
                           const winograd_read *r, int channel, __mmask16 in, __mmask16 out)
{
    const winograd_form *f = &winograd_forms[kind];
    __m512 column[WINOGRAD_READS][WINOGRAD_SOURCES];
    int point = r->first, shared = f->reads - f->moves;
    char *to = r->to + channel * winograd_size(type);

    UNROLL
    for (int k = 0; k < shared; k++)
        read_column_of(kind, type, planes, r, point++, channel, in, column[k]);
    for (int t = 0; t < r->tiles; t++, to += r->pitch) {
        UNROLL
        for (int k = shared; k < f->reads; k++)
            read_column_of(kind, type, planes, r, point++, channel, in, column[k]);
        UNROLL
        for (int i = 0; i < f->sources; i++) {
            __m512 line[WINOGRAD_READS], part[WINOGRAD_SOURCES];
            UNROLL
            for (int k = 0; k < f->reads; k++)
                line[k] = column[k][i];
            take_apart(kind, part, line);
            UNROLL
            for (int k = 0; k < f->sources; k++)
                store(type, to + (i * f->sources + k) * r->apart, out, part[k]);
        }
        UNROLL
        for (int k = 0; k < shared; k++)
            UNROLL
            for (int i = 0; i < f->sources; i++)
                column[k][i] = column[k + f->moves][i];
    }
}

PAIRS INLINE void read_tiles(winograd_kind kind, pons_type type, winograd_planes planes,
                             const winograd_read *r)
{
    for (int channel = 0; channel < r->channels; channel += LANES) {
        int left = r->channels - channel;
        read_row(kind, type, planes, r, channel, first_of(left),
                 first_of(left + left % winograd_together(type)));
    }
}

/* Two tiles of bf16 at once fill a vector: for an odd count one more tile is written. */
PAIRS static void read_twos(const winograd_read *r)
{
    enum { READS = 4, MOVES = 2, ACROSS = READS + MOVES, SHARED = READS - MOVES };
    __m512 column[ACROSS][READS];
    __mmask16 mask = first_of(r->channels);
    int point = r->first;
    char *to = r->to;

    for (int k = 0; k < SHARED; k++)
        read_column(WINOGRAD_PLAIN, PONS_BF16, r, point++, 0, mask, column[k]);
    for (int t = 0; t < r->tiles; t += 2, to += 2 * r->pitch) {
        UNROLL
        for (int k = SHARED; k < ACROSS; k++)
            read_column(WINOGRAD_PLAIN, PONS_BF16, r, point++, 0, mask, column[k]);
        UNROLL
        for (int i = 0; i < READS; i++) {
            __m512 line[ACROSS], a[READS], b[READS];
            UNROLL
            for (int k = 0; k < ACROSS; k++)
                line[k] = column[k][i];
            take_apart(WINOGRAD_PLAIN, a, line);
            take_apart(WINOGRAD_PLAIN, b, line + MOVES);
            UNROLL
            for (int k = 0; k < READS; k++)
                _mm512_storeu_si512(to + (i * READS + k) * r->apart, both(a[k], b[k]));
        }
        UNROLL
        for (int i = 0; i < READS; i++) {
            column[0][i] = column[ACROSS - 2][i];
            column[1][i] = column[ACROSS - 1][i];
        }
    }
}

PAIRS INLINE void read_kind(winograd_kind kind, pons_type type, const winograd_read *r)
{
    if (kind == WINOGRAD_STRIDED)
        read_tiles(WINOGRAD_STRIDED, type, WINOGRAD_ONE, r);
    else if (kind == WINOGRAD_SPREAD)
        read_tiles(WINOGRAD_SPREAD, type, WINOGRAD_ONE, r);
    else if (type == PONS_BF16 && r->pitch == LANES * winograd_size(PONS_BF16))
        read_twos(r);
    else
        read_tiles(WINOGRAD_PLAIN, type, WINOGRAD_ONE, r);
}

PAIRS void winograd_read_tiles(winograd_kind kind, const winograd_read *r)
{
    if (r->planes == WINOGRAD_SUM)
        read_tiles(WINOGRAD_PLAIN, PONS_F32, WINOGRAD_SUM, r);
    else if (r->planes == WINOGRAD_DIFFERENCE)
        read_tiles(WINOGRAD_PLAIN, PONS_F32, WINOGRAD_DIFFERENCE, r);
    else if (r->type == PONS_F32)
        read_kind(kind, PONS_F32, r);
    else
        read_kind(kind, PONS_BF16, r);
}

/* ---- points of the target -------------------------------------------------------------------- */

INLINE void put_together(winograd_kind kind, __m512 *y, const __m512 *m)
{
    switch (kind) {
    case WINOGRAD_PLAIN:
    case WINOGRAD_WIDE:
        y[0] = m[0] + m[1] + m[2];
        y[1] = m[1] - m[2] - m[3];
        break;
    case WINOGRAD_STRIDED:
        y[0] = m[0] + m[1];
        y[1] = m[1] + m[2];
        break;
    case WINOGRAD_SPREAD:
        y[0] = m[3];
        y[1] = m[0] + m[1];
        y[2] = m[4];
        y[3] = m[1] + m[2];
        break;
    }
}

/* Read columns first .. first + count - 1 of a tile. */
PAIRS INLINE void write_tile(winograd_kind kind, pons_type type, const winograd_write *w,
                             const char *from, int64_t at, int count, __mmask16 mask)
{
    const winograd_form *f = &winograd_forms[kind];
    __m512 half[WINOGRAD_MAKES][WINOGRAD_SUMS];

    UNROLL
    for (int i = 0; i < f->sums; i++) {
        __m512 m[WINOGRAD_SUMS], y[WINOGRAD_MAKES];
        UNROLL
        for (int k = 0; k < f->sums; k++)
            m[k] = _mm512_loadu_ps(from + (i * f->sums + k) * w->apart);
        put_together(kind, y, m);
        UNROLL
        for (int k = 0; k < f->makes; k++)
            half[k][i] = y[k];
    }
    UNROLL
    for (int k = 0; k < f->makes; k++, at += w->step) {
        __m512 y[WINOGRAD_MAKES];
        if (k >= count)
            return;
        put_together(kind, y, half[k]);
        UNROLL
        for (int i = 0; i < f->makes; i++)
            if (w->line[i] != NULL)
                store(type, w->line[i] + at, mask, y[i]);
    }
}

PAIRS INLINE void write_tiles(winograd_kind kind, pons_type type, const winograd_write *w)
{
    const int makes = winograd_forms[kind].makes;
    __mmask16 mask = first_of(w->channels);
    const char *from = w->from;

    for (int t = 0; t < w->tiles; t++, from += w->pitch)
        write_tile(kind, type, w, from, (int64_t)t * makes * w->step, w->width - t * makes, mask);
}

PAIRS INLINE void write_kind(winograd_kind kind, pons_type type, const winograd_write *w)
{
    if (kind == WINOGRAD_STRIDED)
        write_tiles(WINOGRAD_STRIDED, type, w);
    else if (kind == WINOGRAD_SPREAD)
        write_tiles(WINOGRAD_SPREAD, type, w);
    else
        write_tiles(WINOGRAD_PLAIN, type, w);
}

PAIRS void winograd_write_tiles(winograd_kind kind, const winograd_write *w)
{
    if (w->type == PONS_F32)
        write_kind(kind, PONS_F32, w);
    else
        write_kind(kind, PONS_BF16, w);
}

/* ---- factors --------------------------------------------------------------------------------- */

INLINE void weigh_axis(winograd_kind kind, __m512 *to, const __m512 *g)
{
    const __m512 half = _mm512_set1_ps(0.5f);

    to[0] = g[0];
    if (kind == WINOGRAD_STRIDED) {
        to[1] = g[0] + g[2];
        to[2] = g[2];
        to[3] = g[1];
        return;
    }
    to[1] = half * (g[0] + g[1] + g[2]);
    to[2] = half * (g[0] - g[1] + g[2]);
    to[3] = g[2];
    if (kind == WINOGRAD_WIDE) {
        to[4] = half * (g[3] + g[4]);
        to[5] = half * (g[4] - g[3]);
        to[6] = g[4];
    }
}

/* Read a line of the panel of each position, 'step' bytes apart. */
PAIRS INLINE void weigh_line(winograd_kind kind, pons_type type, const char *tap, int64_t step,
                             int64_t at, char *const to[WINOGRAD_FACTORS * WINOGRAD_FACTORS])
{
    const winograd_form *f = &winograd_forms[kind];
    const int parts = winograd_together(type);
    __m512 row[2][WINOGRAD_FACTORS][WINOGRAD_KERNEL];

    UNROLL
    for (int k = 0; k < f->kernel; k++)
        UNROLL
        for (int n = 0; n < parts; n++) {
            __m512 weight[WINOGRAD_KERNEL], column[WINOGRAD_FACTORS];
            UNROLL
            for (int i = 0; i < f->kernel; i++)
                weight[i] = half_of(type, _mm512_load_si512(tap + (i * f->kernel + k) * step), n);
            weigh_axis(kind, column, weight);
            UNROLL
            for (int i = 0; i < f->factors; i++)
                row[n][i][k] = column[i];
        }
    UNROLL
    for (int i = 0; i < f->factors; i++) {
        __m512 part[2][WINOGRAD_FACTORS];
        UNROLL
        for (int n = 0; n < parts; n++)
            weigh_axis(kind, part[n], row[n][i]);
        UNROLL
        for (int k = 0; k < f->factors; k++) {
            const __m512 both_parts[] = { part[0][k], part[parts - 1][k] };
            _mm512_stream_si512((void *)(to[i * f->factors + k] + at), line_of(type, both_parts));
        }
    }
}

PAIRS INLINE void weigh(winograd_kind kind, pons_type type, bool turned, const char *taps,
                        char *const to[WINOGRAD_FACTORS * WINOGRAD_FACTORS])
{
    const int last = winograd_taps(kind) - 1;
    int64_t step = turned ? -GEMM_PANEL : GEMM_PANEL;

    taps += turned ? last * GEMM_PANEL : 0;
    for (int64_t at = 0; at < GEMM_PANEL; at += GEMM_STEP)
        weigh_line(kind, type, taps + at, step, at, to);
    _mm_sfence();
}

PAIRS INLINE void weigh_kind(winograd_kind kind, pons_type type, bool turned, const char *taps,
                             char *const to[WINOGRAD_FACTORS * WINOGRAD_FACTORS])
{
    if (type == PONS_F32)
        weigh(kind, PONS_F32, turned, taps, to);
    else
        weigh(kind, PONS_BF16, turned, taps, to);
}

PAIRS void winograd_factors(winograd_kind kind, pons_type type, bool turned, const char *taps,
                            char *const to[WINOGRAD_FACTORS * WINOGRAD_FACTORS])
{
    if (kind == WINOGRAD_PLAIN)
        weigh_kind(WINOGRAD_PLAIN, type, turned, taps, to);
    else if (kind == WINOGRAD_WIDE)
        weigh_kind(WINOGRAD_WIDE, type, turned, taps, to);
    else
        weigh_kind(WINOGRAD_STRIDED, type, turned, taps, to);
}

/* ---- along D --------------------------------------------------------------------------------- */

PAIRS void winograd_write_planes(const float *from, int64_t apart, int count,
                                 float *const to[WINOGRAD_DEEP_MAKES])
{
    for (int n = 0; n < count; n += LANES) {
        __m512 m[WINOGRAD_DEEP], y[WINOGRAD_DEEP_MAKES];

        UNROLL
        for (int i = 0; i < WINOGRAD_DEEP; i++)
            m[i] = _mm512_loadu_ps(from + i * apart + n);
        put_together(WINOGRAD_PLAIN, y, m);
        UNROLL
        for (int i = 0; i < WINOGRAD_DEEP_MAKES; i++)
            _mm512_storeu_ps(to[i] + n, y[i]);
    }
}

/* ---- gradients by the weight ----------------------------------------------------------------- */

/* Transform a source along H of all columns along W, for all rows. */
PAIRS INLINE void make_pairs(winograd_kind kind, pons_type type,
                             __m512 column[2][WINOGRAD_READS][WINOGRAD_SOURCES], int source,
                             char *to, int64_t apart)
{
    const winograd_form *f = &winograd_forms[kind];
    const int rows = winograd_together(type);
    __m512 part[2][WINOGRAD_SOURCES];

    UNROLL
    for (int row = 0; row < rows; row++) {
        __m512 line[WINOGRAD_READS];
        UNROLL
        for (int k = 0; k < f->reads; k++)
            line[k] = column[row][k][source];
        take_apart(kind, part[row], line);
    }
    UNROLL
    for (int k = 0; k < f->sources; k++) {
        const __m512 both_rows[] = { part[0][k], part[rows - 1][k] };
        _mm512_store_si512(to + (source * f->sources + k) * apart, line_of(type, both_rows));
    }
}

PAIRS INLINE void read_pairs(winograd_kind kind, pons_type type, const winograd_read row[2])
{
    const winograd_form *f = &winograd_forms[kind];
    const int shared = f->reads - f->moves, rows = winograd_together(type);
    __m512 column[2][WINOGRAD_READS][WINOGRAD_SOURCES];
    __mmask16 mask = first_of(row->channels);
    int point = row->first;
    char *to = row->to;

    UNROLL
    for (int i = 0; i < rows; i++)
        UNROLL
        for (int k = 0; k < shared; k++)
            read_column(kind, type, &row[i], point + k, 0, mask, column[i][k]);
    point += shared;
    for (int t = 0; t < row->tiles; t++, to += row->pitch, point += f->moves) {
        UNROLL
        for (int i = 0; i < rows; i++) {
            UNROLL
            for (int k = 0; k < f->moves; k++)
                read_column(kind, type, &row[i], point + k, 0, mask, column[i][shared + k]);
        }
        UNROLL
        for (int i = 0; i < f->sources; i++)
            make_pairs(kind, type, column, i, to, row->apart);
        UNROLL
        for (int i = 0; i < rows; i++)
            UNROLL
            for (int k = 0; k < shared; k++)
                UNROLL
                for (int s = 0; s < f->sources; s++)
                    column[i][k][s] = column[i][f->moves + k][s];
    }
}

PAIRS INLINE void read_pairs_kind(winograd_kind kind, pons_type type, const winograd_read row[2])
{
    if (kind == WINOGRAD_STRIDED)
        read_pairs(WINOGRAD_STRIDED, type, row);
    else
        read_pairs(WINOGRAD_PLAIN, type, row);
}

PAIRS void winograd_read_pairs(winograd_kind kind, const winograd_read row[2])
{
    if (row->type == PONS_F32)
        read_pairs_kind(kind, PONS_F32, row);
    else
        read_pairs_kind(kind, PONS_BF16, row);
}

/* The sign of the last sum is applied by winograd_gradient_of_weights if the stride is 1. */
INLINE void sums_gradient(winograd_kind kind, __m512 *to, __m512 a, __m512 b)
{
    to[0] = a;
    to[1] = a + b;
    to[2] = b;
    if (kind == WINOGRAD_PLAIN) {
        to[2] = a - b;
        to[3] = b;
    }
}

PAIRS INLINE void make_sums(winograd_kind kind, pons_type type,
                            const char *const point[WINOGRAD_POINTS], char *to, int64_t apart)
{
    const winograd_form *f = &winograd_forms[kind];
    const int parts = winograd_together(type);
    __m512 column[2][2][WINOGRAD_SUMS];

    UNROLL
    for (int h = 0; h < parts; h++)
        UNROLL
        for (int k = 0; k < f->makes; k++)
            sums_gradient(kind, column[h][k], half_of(type, _mm512_load_si512(point[k]), h),
                          half_of(type, _mm512_load_si512(point[f->makes + k]), h));
    UNROLL
    for (int i = 0; i < f->sums; i++) {
        __m512 part[2][WINOGRAD_SUMS];
        UNROLL
        for (int h = 0; h < parts; h++)
            sums_gradient(kind, part[h], column[h][0][i], column[h][1][i]);
        UNROLL
        for (int k = 0; k < f->sums; k++)
            _mm512_store_si512(to + (i * f->sums + k) * apart,
                               type == PONS_F32 ? _mm512_castps_si512(part[0][k])
                                                : both(part[0][k], part[1][k]));
    }
}

PAIRS INLINE void make_sums_kind(winograd_kind kind, pons_type type,
                                 const char *const point[WINOGRAD_POINTS], char *to, int64_t apart)
{
    if (kind == WINOGRAD_STRIDED)
        make_sums(WINOGRAD_STRIDED, type, point, to, apart);
    else
        make_sums(WINOGRAD_PLAIN, type, point, to, apart);
}

PAIRS void winograd_gradient_of_sums(winograd_kind kind, pons_type type,
                                     const char *const point[WINOGRAD_POINTS], char *to,
                                     int64_t apart)
{
    if (type == PONS_F32)
        make_sums_kind(kind, PONS_F32, point, to, apart);
    else
        make_sums_kind(kind, PONS_BF16, point, to, apart);
}

INLINE void weights_gradient(winograd_kind kind, __m512 to[WINOGRAD_KERNEL],
                             const __m512 f[WINOGRAD_FACTORS])
{
    const __m512 half = _mm512_set1_ps(0.5f);

    __m512 sum;

    if (kind == WINOGRAD_STRIDED) {
        to[0] = f[0] + f[1];
        to[1] = f[3];
        to[2] = f[1] + f[2];
        return;
    }
    sum = half * (f[1] + f[2]);
    to[0] = f[0] + sum;
    to[1] = half * (f[1] - f[2]);
    to[2] = sum - f[3];
    if (kind == WINOGRAD_WIDE) {
        to[3] = half * (f[4] - f[5]);
        to[4] = half * (f[4] + f[5]) - f[6];
    }
}

/* Prefetch weights for writing, 'row' elements further on. */
INLINE void ask_for_weights(winograd_kind kind, const float *to, int64_t tap, int64_t row)
{
    for (int i = 0; i < winograd_taps(kind); i++)
        __builtin_prefetch(to + row + i * tap, 1);
}

PAIRS INLINE void make_weights(winograd_kind kind, const float *from, int64_t apart, __mmask16 mask,
                               float *to, int64_t tap)
{
    const winograd_form *form = &winograd_forms[kind];
    __m512 row[WINOGRAD_KERNEL][WINOGRAD_FACTORS];

    UNROLL
    for (int i = 0; i < form->factors; i++) {
        __m512 f[WINOGRAD_FACTORS], g[WINOGRAD_KERNEL];
        UNROLL
        for (int k = 0; k < form->factors; k++)
            f[k] = _mm512_loadu_ps(from + (i * form->factors + k) * apart);
        weights_gradient(kind, g, f);
        UNROLL
        for (int k = 0; k < form->kernel; k++)
            row[k][i] = g[k];
    }
    UNROLL
    for (int k = 0; k < form->kernel; k++) {
        __m512 g[WINOGRAD_KERNEL];
        weights_gradient(kind, g, row[k]);
        UNROLL
        for (int i = 0; i < form->kernel; i++)
            _mm512_mask_storeu_ps(to + (i * form->kernel + k) * tap, mask, g[i]);
    }
}

PAIRS void winograd_gradient_of_weights(winograd_kind kind, const float *from, int64_t apart,
                                        int count, float *to, int64_t tap, int64_t next)
{
    __mmask16 mask = first_of(count);

    ask_for_weights(kind, to, tap, next);
    if (kind == WINOGRAD_PLAIN)
        make_weights(WINOGRAD_PLAIN, from, apart, mask, to, tap);
    else if (kind == WINOGRAD_WIDE)
        make_weights(WINOGRAD_WIDE, from, apart, mask, to, tap);
    else
        make_weights(WINOGRAD_STRIDED, from, apart, mask, to, tap);
}
