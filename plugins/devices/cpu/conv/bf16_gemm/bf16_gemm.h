/*
 * bf16_gemm.h - bf16 convolutions with many channels on both sides, as matrix products.
 *
 * Two engines multiply: the tile registers of AMX (engine_amx.c), and vectors that multiply pairs
 * of bf16 (AVX512-BF16, engine_avx512_bf16.c). The engines know nothing of convolutions. A tile of
 * the result has 16 x 16 floats. A step is 32 elements of the axis that is summed over:
 *
 *   panel   [16 pairs][16 columns][2]: two neighbouring elements of that axis side by side
 *   rows    16 rows 'pitch' bytes apart, 32 elements of each; they may begin at any element
 *
 * An engine of floats multiplies along lines alone. It takes a float in the place of a pair, so its
 * step is 16 elements.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_BF16_GEMM_H
#define PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_BF16_GEMM_H

#include "cpu/conv/solver.h"

enum {
    GEMM_TILE = 16,
    GEMM_ELEMENTS = 32,                              /* elements of a step */
    GEMM_STEP = GEMM_ELEMENTS * sizeof(uint16_t),    /* bytes */
    GEMM_PANEL = GEMM_TILE * GEMM_STEP,
    GEMM_PAIR = 2 * sizeof(uint16_t),                /* bytes; a float has as many */
    GEMM_ROWS = 4,
    GEMM_COLUMNS = 2,
    GEMM_ACROSS = 3
};

/* Tiles c[r][n] = sum over steps of rows at a[r] + a_at[s] by panels at b[n] + b_at[s]. */
typedef struct gemm_product {
    int rows, columns;          /* with two columns at most two rows */
    float *c[GEMM_ROWS][GEMM_COLUMNS];
    int64_t c_pitch;            /* bytes from a row of c to the next */
    const char *a[GEMM_ROWS], *b[GEMM_COLUMNS];
    int64_t pitch;
    int64_t steps;
    const int64_t *a_at, *b_at;
    bool add;                   /* to what c holds */
} gemm_product;

/* Consecutive pairs: byte offsets in a row and in the lines of a panel. */
typedef struct gemm_run {
    int64_t a, b, pairs;
} gemm_run;

/*
 * 'rows' rows of c, of GEMM_ACROSS x 16 floats each. A row is the sum over the runs of the pairs of
 * a row of a by the lines of the panels at b[n], for each column n.
 */
typedef struct gemm_row_product {
    int rows;                   /* GEMM_TILE, or half of it; 'pitch' bytes apart in a */
    int columns, count;         /* columns: at most GEMM_ACROSS; count: runs */
    float *c;
    const char *a, *b[GEMM_ACROSS];
    int64_t pitch;
    const gemm_run *run;
    bool add;                   /* to what c holds */
} gemm_row_product;

/* An engine. A thread calls begin before the first multiply and end after the last one. */
typedef struct gemm_engine {
    void (*begin)(void);
    void (*multiply)(const gemm_product *p);
    void (*end)(void);
    void (*lines)(const gemm_row_product *p);  /* NULL: the engine has no such kernel */
} gemm_engine;

extern const gemm_engine engine_amx, engine_avx512_bf16, engine_avx512_f32;

/*
 * Pack channels 'first' .. first + count - 1 of 32 positions: as a panel whose pairs lie along the
 * positions, or as rows of one channel each. Zeros fill up to 16 channels.
 */
void gemm_pack_panel(void *to, const char *const *position, int first, int count);
void gemm_pack_rows(void *to, int64_t pitch, const char *const *position, int first, int count);
/*
 * A line of a tensor as pairs. Element j lies 'start' + j 'step' bytes from the beginning of the
 * line for j from first to end - 1. All other elements are zero.
 */
typedef struct gemm_line {
    int64_t start, step;
    int first, end, pairs;
} gemm_line;

/* Pack 'count' channels from 'from' on: a line of a panel for each pair. Zeros fill up to 16. */
void gemm_pack_line(void *to, const char *from, const gemm_line *line, int count);
/* gemm_pack_rows for floats at 16 positions. */
void gemm_pack_float_rows(void *to, int64_t pitch, const char *const *position, int first,
                          int count);
/* Turn 16 rows of 32 elements, or of 16 floats, into the columns of a panel. */
void gemm_pack_columns(void *to, const char *const *row);
/* Write 'count' elements of row r of a tile as bf16 to place[r] + first; NULL: skip the row. */
void gemm_store(const float *tile, char *const *place, int first, int count);

/* The faster one of those that the instructions have; NULL: none. */
const gemm_engine *bf16_gemm_engine(isa set);

/* A convolution or its input gradient, of bf16. */
extern const conv_operations bf16_gemm_operations;
/* The weight gradient. */
extern const conv_operations bf16_gemm_gradient_operations;

/* bf16_gemm_cost.c: both. */
bool bf16_gemm_profitable(const conv_problem *p, const conv_machine *machine);

/* The weight gradient on an engine of the caller's choice; also of groups. */
pons_status bf16_gemm_prepare_gradient(const gemm_engine *unit, int threads, const conv_problem *p,
                                       pons_kernel *kernel, pons_error *err);
/* The same, line by line (gemm_weight_plain.c), on an engine that multiplies lines. */
pons_status bf16_gemm_prepare_rows(const gemm_engine *unit, int threads, const conv_problem *p,
                                   pons_kernel *kernel, pons_error *err);

#endif
