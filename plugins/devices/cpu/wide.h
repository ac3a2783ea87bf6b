/*
 * wide.h - convolutions of many channels on both sides, as products of tiles of 16 x 16 numbers.
 *
 * The product kernels (wide_lanes.c, wide_bf16.c, wide_amx.c) know nothing of convolutions. They
 * take steps of 64 bytes: 16 floats or 32 bf16 of the axis that is summed over.
 *
 *   panel   [16 units][16 columns]: a unit is 4 bytes, one float or two neighbouring bf16
 *   rows    16 rows 'pitch' bytes apart, 16 units of each; may begin at any number
 *
 * A row of this table that computes in float also takes bf16 tensors: they are converted as they
 * are packed.
 */
#ifndef CPU_WIDE_H
#define CPU_WIDE_H

#include <pons/device.h>

enum { WIDE_TILE = 16, WIDE_STEP = 64, WIDE_PANEL = 1024, WIDE_ROWS = 4, WIDE_COLUMNS = 2 };

/* Tiles c[r][n] = sum over steps of rows at a[r] + a_at[s] by panels at b[n] + b_at[s]. */
typedef struct wide_product {
    int rows, columns;          /* with two columns at most two rows */
    float *c[WIDE_ROWS][WIDE_COLUMNS];
    const char *a[WIDE_ROWS], *b[WIDE_COLUMNS];
    int64_t pitch;
    int64_t steps;
    const int64_t *a_at, *b_at;
    bool add;                   /* to what c holds */
} wide_product;

typedef struct wide_lanes {
    const char *name;
    int unit;                   /* numbers in a unit: 1 or 2 */
    /*
     * Channels 'first' .. first + count - 1 (at most 16, zeros behind) of 16 x unit positions: as a
     * panel whose units lie along the positions, or as rows of one channel each.
     */
    void (*pack_panel)(void *to, pons_type type, const char *const *position, int first, int count);
    void (*pack_rows)(void *to, int64_t pitch, pons_type type, const char *const *position,
                      int first, int count);
    void (*multiply)(const wide_product *p);
    void (*begin)(void), (*end)(void); /* around products, on each thread; NULL: nothing to do */
} wide_lanes;

extern const wide_lanes wide_lanes_baseline, wide_lanes_avx2, wide_lanes_avx512;
extern const wide_lanes wide_bf16, wide_amx;

/*
 * The kernels for a row of map_lanes_row: those that compute in float, and those that multiply bf16
 * (the same where the processor cannot).
 */
typedef struct wide_choice {
    const wide_lanes *single, *half;
} wide_choice;
wide_choice wide_lanes_row(int row);
/* For tests: all tables that run here, in a fixed order; NULL behind the last. */
const wide_lanes *wide_lanes_number(int number);

/* As pons_device_operations.prepare. */
pons_status wide_prepare_weight(wide_choice lanes, int threads, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err);

#endif
