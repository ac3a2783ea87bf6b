/*
 * winograd_weight_pack.c - weights to panels of factors (winograd.h).
 *
 * A task makes the panels of 16 channels of the target by 32 that are summed over, of one plane of
 * the kernel: first a panel of each position along H and W, then the factors of those, line by
 * line. Neighbouring tasks read neighbouring channels. Their lines lie far apart, so that no
 * processor foresees them: each task asks for those of the next. Factors do not go through the
 * caches: mostly all weights of a step are packed, and then they are read.
 */
#include "cpu/conv/winograd/winograd.h"

#include "cpu/cpu.h"

#include <string.h>

#include "base/integer.h"

enum {
    NUMBER = sizeof(uint16_t),
    TAPS = WINOGRAD_KERNEL * WINOGRAD_KERNEL,
    FACTORS = WINOGRAD_FACTORS * WINOGRAD_FACTORS
};

typedef struct work {
    const winograd_panels *p;
    const char *from;
    char *to;
} work;

/* A block of weights: rows of neighbouring channels, of one plane. */
typedef struct block {
    int column, plane, step;
    int rows, length;       /* inside; numbers of a row */
    const char *from;
    int64_t row, tap;       /* bytes to the next */
} block;

static block block_of(const work *k, int64_t i)
{
    const winograd_panels *p = k->p;
    int along = p->gradient ? p->columns : p->steps;
    int inner = (int)(i % along), plane = (int)(i / along % p->depth);
    int outer = (int)(i / along / p->depth);
    int length = p->gradient ? WIDE_TILE : WIDE_NUMBERS, rows = WIDE_TILE + WIDE_NUMBERS - length;
    int channels = p->gradient ? p->outs : p->ins, all = p->gradient ? p->ins : p->outs;
    block b = { .column = p->gradient ? inner : outer, .plane = plane,
                .step = p->gradient ? outer : inner, .rows = min_int(rows, all - outer * rows),
                .length = min_int(length, channels - inner * length),
                .tap = (int64_t)channels * NUMBER };

    b.row = p->depth * TAPS * b.tap;
    b.from = k->from + outer * rows * b.row + plane * TAPS * b.tap + inner * length * NUMBER;
    return b;
}

static void ask_for(const block *b, int tap)
{
    for (int r = 0; r < b->rows; r++)
        __builtin_prefetch(b->from + r * b->row + tap * b->tap);
}

/* w[target's channel][tap][source's channels]: 16 rows of 32 numbers. */
static void pack_columns(const block *b, int tap, char *to)
{
    char line[WIDE_TILE][WIDE_STEP];
    const char *row[WIDE_TILE];
    bool whole = b->rows == WIDE_TILE && b->length == WIDE_NUMBERS;

    if (!whole)
        memset(line, 0, sizeof line);
    for (int r = 0; r < WIDE_TILE; r++) {
        const char *from = b->from + r * b->row + tap * b->tap;
        if (!whole && r < b->rows)
            memcpy(line[r], from, (size_t)b->length * NUMBER);
        row[r] = whole ? from : line[r];
    }
    wide_pack_columns(to, row);
}

/* w[source's channel][tap][target's channels]: 32 rows of 16 numbers. */
static void pack_rows(const block *b, int tap, char *to)
{
    static const char none[WIDE_TILE * NUMBER];
    const char *row[WIDE_NUMBERS];

    for (int r = 0; r < WIDE_NUMBERS; r++)
        row[r] = r < b->rows ? b->from + r * b->row + tap * b->tap : none;
    wide_pack_panel(to, row, 0, b->length);
}

static void task(void *context, int64_t i, int thread)
{
    const work *k = context;
    const winograd_panels *p = k->p;
    block b = block_of(k, i), next = block_of(k, i + 1);
    _Alignas(WIDE_STEP) char taps[TAPS][WIDE_PANEL];
    char *to[FACTORS];

    (void)thread;
    for (int tap = 0; tap < TAPS; tap++) {
        ask_for(&next, tap);
        (p->gradient ? pack_rows : pack_columns)(&b, tap, taps[tap]);
    }
    for (int f = 0; f < FACTORS; f++)
        to[f] = k->to + winograd_panel_at(p, f, b.column, b.plane) + b.step * (int64_t)WIDE_PANEL;
    winograd_weigh(p->kind, p->gradient && p->kind == WINOGRAD_PLAIN, taps[0], to);
}

void winograd_pack(const winograd_panels *p, int threads, const void *from, void *to)
{
    work k = { p, from, to };

    cpu_parallel(threads, (int64_t)p->columns * p->depth * p->steps, task, &k);
}
