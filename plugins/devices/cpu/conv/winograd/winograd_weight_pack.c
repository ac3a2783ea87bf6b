/*
 * winograd_weight_pack.c - pack weights as panels of factors (winograd.h).
 *
 * A task makes the panels of 16 target channels by 32 source channels, for one plane of the kernel
 * or one of its factors along D. It packs a panel for each position along H and W and transforms
 * these line by line. Neighbouring tasks read neighbouring channels, whose lines lie too far apart
 * for the hardware prefetcher. So each task prefetches the lines of the next one. Factors are
 * written by non-temporal stores, because all weights of a step are packed before they are read.
 */
#include "cpu/conv/winograd/winograd.h"

#include "cpu/cpu.h"

#include <string.h>

#include "base/integer.h"

enum {
    TAPS = WINOGRAD_KERNEL * WINOGRAD_KERNEL,   /* at most */
    FACTORS = WINOGRAD_FACTORS * WINOGRAD_FACTORS
};

typedef struct work {
    const winograd_panels *p;
    const char *from;
    char *to;
} work;

/* A block of weights: rows of neighbouring channels, of one plane. */
typedef struct block {
    int column, plane, step; /* plane: of the kernel, or a factor along D */
    int rows, length, bytes; /* rows inside; elements and bytes of a row */
    const char *from;
    int64_t row, tap;       /* bytes to the next */
    int64_t deep;           /* likewise of the planes of the kernel, for factors along D */
} block;

static block block_of(const work *k, int64_t i)
{
    const winograd_panels *p = k->p;
    int number = winograd_size(p->type), elements = GEMM_STEP / number;
    int taps = winograd_taps(p->kind);
    int along = p->gradient ? p->columns : p->steps;
    int inner = (int)(i % along), plane = (int)(i / along % p->depth);
    int outer = (int)(i / along / p->depth);
    int length = p->gradient ? GEMM_TILE : elements, rows = GEMM_TILE + elements - length;
    int channels = p->gradient ? p->outs : p->ins, all = p->gradient ? p->ins : p->outs;
    block b = { .column = p->gradient ? inner : outer, .plane = plane,
                .step = p->gradient ? outer : inner, .rows = min_int(rows, all - outer * rows),
                .length = min_int(length, channels - inner * length),
                .tap = (int64_t)channels * number };

    b.row = (p->deep ? winograd_forms[p->kind].kernel : p->depth) * taps * b.tap;
    b.bytes = b.length * number;
    b.from = k->from + outer * rows * b.row + inner * length * number;
    if (p->deep)
        b.deep = taps * b.tap;
    else
        b.from += plane * taps * b.tap;
    return b;
}

static void ask_for(const block *b, int tap)
{
    for (int r = 0; r < b->rows; r++)
        __builtin_prefetch(b->from + r * b->row + tap * b->tap);
}

/* Pack w[target's channel][tap][source's channels]: 16 rows of a step. */
static void pack_columns(const block *b, int tap, char *to)
{
    char line[GEMM_TILE][GEMM_STEP];
    const char *row[GEMM_TILE];
    bool whole = b->rows == GEMM_TILE && b->bytes == GEMM_STEP;

    if (!whole)
        memset(line, 0, sizeof line);
    for (int r = 0; r < GEMM_TILE; r++) {
        const char *from = b->from + r * b->row + tap * b->tap;
        if (!whole && r < b->rows)
            memcpy(line[r], from, (size_t)b->bytes);
        row[r] = whole ? from : line[r];
    }
    gemm_pack_columns(to, row);
}

/* Pack w[source's channel][tap][target's channels]: a row of 16 floats is a line of the panel. */
static void pack_float_rows(const block *b, int tap, char *to)
{
    if (b->rows < GEMM_TILE || b->bytes < GEMM_STEP)
        memset(to, 0, GEMM_PANEL);
    for (int r = 0; r < b->rows; r++)
        memcpy(to + r * GEMM_STEP, b->from + r * b->row + tap * b->tap, (size_t)b->bytes);
}

/* pack_float_rows for bf16: 32 rows of 16 elements. */
static void pack_rows(const block *b, int tap, char *to)
{
    static const char none[GEMM_TILE * sizeof(uint16_t)];
    const char *row[GEMM_ELEMENTS];

    for (int r = 0; r < GEMM_ELEMENTS; r++)
        row[r] = r < b->rows ? b->from + r * b->row + tap * b->tap : none;
    gemm_pack_panel(to, row, 0, b->length);
}

typedef void packer(const block *b, int tap, char *to);

/* Pack a tap of one plane of the kernel. */
static void pack_plane(packer *pack, const block *b, int plane, int tap, char *to)
{
    block of = *b;

    of.from += plane * b->deep;
    pack(&of, tap, to);
}

/* Pack a tap's factor along D: g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, or g2. */
static void pack_deep(packer *pack, const block *b, bool turned, int tap, char *to)
{
    enum { COUNT = GEMM_PANEL / sizeof(float) };
    _Alignas(GEMM_STEP) float g[3][COUNT];
    float sign = b->plane == 1 ? 1 : -1;

    if (b->plane == 0 || b->plane == WINOGRAD_DEEP - 1) {
        pack_plane(pack, b, (b->plane == 0) == turned ? 2 : 0, tap, to);
        return;
    }
    for (int i = 0; i < 3; i++)
        pack_plane(pack, b, i, tap, (char *)g[i]);
    for (int n = 0; n < COUNT; n++)
        ((float *)to)[n] = 0.5f * (g[0][n] + g[2][n] + sign * g[1][n]);
}

static void task(void *context, int64_t i, int thread)
{
    const work *k = context;
    const winograd_panels *p = k->p;
    packer *const pack = !p->gradient ? pack_columns
                       : p->type == PONS_F32 ? pack_float_rows : pack_rows;
    block b = block_of(k, i), next = block_of(k, i + 1);
    _Alignas(GEMM_STEP) char taps[TAPS][GEMM_PANEL];
    char *to[FACTORS];

    (void)thread;
    for (int tap = 0; tap < winograd_taps(p->kind); tap++) {
        ask_for(&next, tap);
        if (p->deep)
            pack_deep(pack, &b, p->gradient, tap, taps[tap]);
        else
            pack(&b, tap, taps[tap]);
    }
    for (int f = 0; f < winograd_all_factors(p->kind); f++)
        to[f] = k->to + winograd_panel_at(p, f, b.column, b.plane) + b.step * (int64_t)GEMM_PANEL;
    winograd_factors(p->kind, p->type, p->gradient && p->kind != WINOGRAD_SPREAD, taps[0], to);
}

void winograd_pack(const winograd_panels *p, int threads, const void *from, void *to)
{
    work k = { p, from, to };

    cpu_parallel_for(threads, (int64_t)p->columns * p->depth * p->steps, task, &k);
}
