/*
 * row_loops_lanes.c - the loops of row_loops.h, compiled once for each instruction set, which
 * CPU_ISA names. Every element has a sum of its own, so results do not depend on the vector width.
 */
#include "cpu/pool/row_loops.h"

#include "base/integer.h"
#include "cpu/simd/lane_math.h"
#include "cpu/map/map_lanes.h"

#define EACH _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)

static void scale(float *restrict to, const float *restrict x, float weight, int64_t n)
{
    EACH
        to[i] = weight * x[i];
}

static void scale_add(float *restrict to, const float *restrict x, float weight, int64_t n)
{
    EACH
        to[i] = LANE_FMA(weight, x[i], to[i]);
}

static void largest(float *restrict to, const float *restrict x, int64_t n)
{
    EACH
        to[i] = ((x[i] > to[i]) | (x[i] != x[i])) ? x[i] : to[i];
}

/* ---- along an axis --------------------------------------------------------------------------- */

LANE void mix_run(float *restrict to, const float *restrict from, int64_t n,
                  const row_loops_mix *mix)
{
    for (int64_t p = 0; p < mix->count; p++, to += n) {
        int64_t k = mix->first[p], end = mix->first[p + 1];
        const float *x = from + (k < end ? mix->source[k] : 0) * n;
        float weight = k < end ? mix->weight[k] : 0;
        if (k == end) {
            memset(to, 0, (size_t)n * sizeof *to);
            continue;
        }
        if (k + 1 == end) {
            EACH
                to[i] = weight * x[i];
            continue;
        }
        const float *y = from + mix->source[k + 1] * n, second = mix->weight[k + 1];
        EACH
            to[i] = LANE_FMA(second, y[i], weight * x[i]);
        for (k += 2; k < end; k++) {
            x = from + mix->source[k] * n;
            weight = mix->weight[k];
            EACH
                to[i] = LANE_FMA(weight, x[i], to[i]);
        }
    }
}

static void mix(float *to, const float *from, int64_t run, const row_loops_mix *mix)
{
    switch (run) {
    case 1: mix_run(to, from, 1, mix); break;
    case 2: mix_run(to, from, 2, mix); break;
    case 3: mix_run(to, from, 3, mix); break;
    case 4: mix_run(to, from, 4, mix); break;
    default: mix_run(to, from, run, mix); break;
    }
}

static void mix_largest(float *to, const float *from, int64_t run, const row_loops_mix *mix)
{
    for (int64_t p = 0; p < mix->count; p++, to += run) {
        int64_t k = mix->first[p], end = mix->first[p + 1];
        if (k == end)
            memset(to, 0, (size_t)run * sizeof *to);
        else
            memcpy(to, from + mix->source[k] * run, (size_t)run * sizeof *to);
        for (k++; k < end; k++)
            largest(to, from + mix->source[k] * run, run);
    }
}

/* ---- the gradient of a maximum --------------------------------------------------------------- */

enum { CHANNELS = 64 };

/* The largest of one window, for n channels from 'c' on. */
LANE void find_largest(int32_t *restrict index, const float *const *row, int rows,
                       const row_loops_windows *w, int64_t window, int64_t c, int n)
{
    int64_t begin = w->begin[window] * w->channels + c, end = w->end[window] * w->channels;
    float best[CHANNELS];
    int32_t k = 0;

    memcpy(best, row[0] + begin, (size_t)n * sizeof *best);
    memset(index, 0, (size_t)n * sizeof *index);
    for (int r = 0; r < rows; r++)
        for (int64_t at = begin; at < end; at += w->channels, k++) {
            const float *x = row[r] + at;
            _Pragma("GCC ivdep") for (int i = 0; i < n; i++) {
                int more = (x[i] > best[i]) | ((x[i] != x[i]) & (best[i] == best[i]));
                best[i] = more ? x[i] : best[i];
                index[i] = more ? k : index[i];
            }
        }
}

static void windows_find(int32_t *index, const float *const *row, int rows,
                         const row_loops_windows *w)
{
    for (int64_t c = 0; c < w->channels; c += CHANNELS) {
        int n = (int)min_i64(w->channels - c, CHANNELS);
        for (int64_t p = 0; p < w->count; p++)
            if (w->end[p] > w->begin[p])
                find_largest(index + p * w->channels + c, row, rows, w, p, c, n);
    }
}

static void windows_add(float *restrict dx, const float *restrict dy,
                        const int32_t *restrict index, int row, const row_loops_windows *w)
{
    int64_t n = w->channels;

    for (int64_t p = 0; p < w->count; p++, dy += n, index += n) {
        int64_t begin = w->begin[p], width = w->end[p] - begin;
        for (int64_t k = 0; k < width; k++) {
            float *to = dx + (begin + k) * n;
            int32_t here = (int32_t)(row * width + k);
            EACH
                to[i] += lane_select(index[i] == here, dy[i], 0);
        }
    }
}

/* ---- argmax ---------------------------------------------------------------------------------- */

#define ARGMAX(NAME, MORE)                                                                        \
    static void NAME(int32_t *restrict index, float *restrict best, const float *restrict x,      \
                     int32_t candidate, int n)                                                    \
    {                                                                                             \
        _Pragma("GCC ivdep") for (int i = 0; i < n; i++) {                                        \
            int more = x[i] MORE best[i];                                                         \
            index[i] = more ? candidate : index[i];                                               \
            best[i] = more ? x[i] : best[i];                                                      \
        }                                                                                         \
    }

ARGMAX(larger, >)
ARGMAX(smaller, <)

const row_loops CPU_ISA_NAME(row_loops) = {
    .scale = scale,
    .scale_add = scale_add,
    .largest = largest,
    .mix = mix,
    .mix_largest = mix_largest,
    .windows_find = windows_find,
    .windows_add = windows_add,
    .larger = larger,
    .smaller = smaller,
};
