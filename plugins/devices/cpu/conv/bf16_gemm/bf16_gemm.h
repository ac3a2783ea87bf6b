/*
 * bf16_gemm.h - bf16 convolutions of many channels on both sides, on the tile registers of AMX or
 * on vectors that multiply pairs (AVX512-BF16).
 *
 * The product kernels (engine_amx.c, engine_avx512_bf16.c, gemm_pack.c) know nothing of
 * convolutions. They multiply tiles of 16 x 16 numbers, in steps of 32 numbers of the axis that is
 * summed over:
 *
 *   panel   [16 pairs][16 columns][2]: two neighbouring numbers of that axis side by side
 *   rows    16 rows 'pitch' bytes apart, 32 numbers of each; may begin at any number
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_BF16_GEMM_H
#define PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_BF16_GEMM_H

#include <pons/device.h>

enum {
    WIDE_TILE = 16,
    WIDE_NUMBERS = 32,                               /* of a step */
    WIDE_STEP = WIDE_NUMBERS * sizeof(uint16_t),     /* bytes */
    WIDE_PANEL = WIDE_TILE * WIDE_STEP,
    WIDE_ROWS = 4,
    WIDE_COLUMNS = 2,
    WIDE_ACROSS = 3
};

/* Tiles c[r][n] = sum over steps of rows at a[r] + a_at[s] by panels at b[n] + b_at[s]. */
typedef struct wide_product {
    int rows, columns;          /* with two columns at most two rows */
    float *c[WIDE_ROWS][WIDE_COLUMNS];
    int64_t c_pitch;            /* bytes from a row of c to the next */
    const char *a[WIDE_ROWS], *b[WIDE_COLUMNS];
    int64_t pitch;
    int64_t steps;
    const int64_t *a_at, *b_at;
    bool add;                   /* to what c holds */
} wide_product;

/* Pairs that lie behind one another: bytes from the beginning of a row and of a panel's lines. */
typedef struct wide_stretch {
    int64_t a, b, pairs;
} wide_stretch;

/*
 * Rows of sums, of WIDE_ACROSS x 16 numbers each: the sum over runs of pairs of as many rows,
 * 'pitch' bytes apart, by lines of panels at b[n] for column n, of at most WIDE_ACROSS.
 */
typedef struct wide_line_product {
    int rows;                   /* WIDE_TILE, or half of it */
    int columns, count;         /* count: runs */
    float *c;
    const char *a, *b[WIDE_ACROSS];
    int64_t pitch;
    const wide_stretch *run;
    bool add;                   /* to what c holds */
} wide_line_product;

/* What multiplies; begin and end stand around calls of multiply, on each thread. */
typedef struct wide_unit {
    void (*begin)(void);
    void (*multiply)(const wide_product *p);
    void (*end)(void);
    void (*lines)(const wide_line_product *p); /* NULL: it has no kernels for it */
} wide_unit;

extern const wide_unit wide_tiles, wide_dots;

/*
 * Channels 'first' .. first + count - 1 (at most 16, zeros behind) of 32 positions: as a panel
 * whose pairs lie along the positions, or as rows of one channel each.
 */
void wide_pack_panel(void *to, const char *const *position, int first, int count);
void wide_pack_rows(void *to, int64_t pitch, const char *const *position, int first, int count);
/*
 * A line of a tensor as pairs: number j lies 'start' + j 'step' bytes from where it begins if it is
 * among first .. end - 1, and is zero otherwise.
 */
typedef struct wide_line {
    int64_t start, step;
    int first, end, pairs;
} wide_line;

/* 'count' channels from 'from' on, at most 16, zeros behind: a line of a panel for each pair. */
void wide_pack_line(void *to, const char *from, const wide_line *line, int count);
/* 16 rows of 32 numbers become the columns of a panel. */
void wide_pack_columns(void *to, const char *const *row);
/* Row r of a tile, 'count' numbers as bf16, to place[r] behind 'first' numbers; NULL: nowhere. */
void wide_store(const float *tile, char *const *place, int first, int count);

/*
 * Whether this processor and system let us use the tile registers, and whether it has the vectors.
 */
bool wide_tiles_run(void);
bool wide_dots_run(void);
/* The faster one of those that run; NULL: none. */
const wide_unit *wide_find(void);

/*
 * As pons_device_operations.prepare: a convolution or its gradient by the input, and the gradient
 * by the weight. Decline other types than bf16, and the first one groups.
 */
pons_status wide_prepare_image(const wide_unit *unit, int threads, const pons_request *request,
                               pons_kernel *kernel, bool *supported, pons_error *err);
pons_status wide_prepare_weight(const wide_unit *unit, int threads, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err);
/* The weight gradient, line by line (gemm_weight_plain.c), on a unit that multiplies lines. */
pons_status wide_prepare_lines(const wide_unit *unit, int threads, const pons_request *request,
                               pons_kernel *kernel, bool *supported, pons_error *err);

#endif
