/*
 * winograd.h - bf16 convolutions with fewer products (S. Winograd; A. Lavin, S. Gray, Fast
 * algorithms for convolutional neural networks, 2015).
 *
 * Along one axis a form makes some points y of the target at once, from points d of the source and
 * the kernel's three weights g:
 *
 *   sources    sums of points d                      rounded to bf16
 *   factors    sums of weights g                     rounded to bf16
 *   sums       of products of a source by a factor   in float
 *   y          sums of those
 *
 *   stride 1: two points of four, by 4 products where the sums as they stand have 6
 *     sources  d0 - d2, d1 + d2, d2 - d1, d1 - d3
 *     factors  g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2
 *     y        m0 + m1 + m2, m1 - m2 - m3
 *   stride 2: two points of five, by 5 products of 6
 *     sources  d0 - d2, d2, d4 - d2, d1, d3
 *     factors  g0, g0 + g2, g2, g1
 *     sums     d0 - d2 by g0 and d1 by g1; d2 by g0 + g2; d4 - d2 by g2 and d3 by g1
 *     y        m0 + m1, m1 + m2
 *   its gradient by the input, padded by one: four points of three, by 5 products of 6
 *     sources  d0 - d1, d1, d2 - d1, d0
 *     factors  as before
 *     sums     d0 - d1 by g2; d1 by g0 + g2; d2 - d1 by g0; d0 by g1; d1 by g1
 *     y        m3, m0 + m1, m4, m1 + m2
 *
 * The gradient by the weight is the derivative by it:
 *
 *   stride 1
 *     of sums     y0, y0 + y1, y0 - y1, -y1   of y's gradient, rounded to bf16
 *     of factors  sums over tiles of those by the sources, in float
 *     of weights  f0 + (f1 + f2) / 2, (f1 - f2) / 2, (f1 + f2) / 2 + f3
 *   stride 2
 *     of sums     y0, y0 + y1, y1
 *     of factors  as above; f3 has two terms, y0 by d1 and y1 by d3
 *     of weights  f0 + f1, f3, f1 + f2
 *
 * Along H and W both are applied one after the other, so that there are sources, factors and sums
 * for each pair of those: 16 products of 36, and 25. Channels and kernel planes along D are summed
 * over as they stand. A tile is what a form makes of a plane.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_WINOGRAD_WINOGRAD_H
#define PLUGINS_DEVICES_CPU_CONV_WINOGRAD_WINOGRAD_H

#include "cpu/conv/bf16_gemm/bf16_gemm.h"

enum {
    WINOGRAD_KERNEL = 3,
    WINOGRAD_READS = 5,     /* points of the source, at most */
    WINOGRAD_MAKES = 4,
    WINOGRAD_SOURCES = 5,
    WINOGRAD_FACTORS = 4,
    WINOGRAD_PRODUCTS = 5,
    WINOGRAD_SUMS = 5,
    WINOGRAD_POINTS = 4     /* of a plane, that a convolution makes */
};

/* In the order of the text above. */
typedef enum winograd_kind { WINOGRAD_PLAIN, WINOGRAD_STRIDED, WINOGRAD_SPREAD } winograd_kind;

/* A form along one axis. */
typedef struct winograd_form {
    int reads, makes;       /* points of the source and the target */
    int moves;              /* points of the source to those of the next tile */
    int sources, sums, products;
    struct { int source, factor, sum; } product[WINOGRAD_PRODUCTS]; /* in the order of sums */
} winograd_form;

/* Here, so that loops over them unroll. */
static const winograd_form winograd_forms[] = {
    [WINOGRAD_PLAIN] = {
        .reads = 4, .makes = 2, .moves = 2, .sources = 4, .sums = 4, .products = 4,
        .product = { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 2, 2 }, { 3, 3, 3 } },
    },
    [WINOGRAD_STRIDED] = {
        .reads = 5, .makes = 2, .moves = 4, .sources = 5, .sums = 3, .products = 5,
        .product = { { 0, 0, 0 }, { 3, 3, 0 }, { 1, 1, 1 }, { 2, 2, 2 }, { 4, 3, 2 } },
    },
    [WINOGRAD_SPREAD] = {
        .reads = 3, .makes = 4, .moves = 2, .sources = 4, .sums = 5, .products = 5,
        .product = { { 0, 2, 0 }, { 1, 1, 1 }, { 2, 0, 2 }, { 3, 3, 3 }, { 1, 3, 4 } },
    },
};

/* A row of tiles and the lines of the source that it reads. */
typedef struct winograd_read {
    const char *line[WINOGRAD_READS];
    int64_t step[WINOGRAD_READS];   /* bytes from a point to the next; 0: a line of zeros */
    int first, width;               /* of the first tile, may be negative; of a line, in points */
    int tiles, channels;
    char *to;                       /* sources [along H][along W] */
    int64_t pitch, apart;           /* bytes from tile to tile, and from source to source */
    int64_t ahead;                  /* bytes behind a point lies what is read soon */
} winograd_read;

/*
 * Behind the channels a tile has zeros up to an even number; one tile more than 'tiles' has room.
 */
void winograd_read_tiles(winograd_kind kind, const winograd_read *r);
/*
 * Of convolutions: two rows of tiles, of at most 16 channels. The sources of both rows' tiles are a
 * line of a panel (bf16_gemm.h), lines are 'pitch' apart. The first one says where they go, how
 * many, and of how many channels.
 */
void winograd_read_pairs(winograd_kind kind, const winograd_read row[2]);

/* A row of tiles and the lines of the target that it makes. */
typedef struct winograd_write {
    const char *from;               /* 16 channels of sums; as 'to' of winograd_read */
    int64_t pitch, apart;
    char *line[WINOGRAD_MAKES];     /* NULL: outside */
    int64_t step;                   /* bytes from a point to the next */
    int tiles, width, channels;     /* channels: at most 16 of them are written */
} winograd_write;

void winograd_write_tiles(winograd_kind kind, const winograd_write *w);

/*
 * A panel (bf16_gemm.h) of each position along H and W, one behind the other; 'turned' from the
 * last to the first. Factor f becomes a panel at to[f], past the caches.
 */
void winograd_weigh(winograd_kind kind, bool turned, const char *taps,
                    char *const to[WINOGRAD_FACTORS * WINOGRAD_FACTORS]);

/*
 * A channel of y's gradient at the four points of 32 tiles, of number k and 16 + k side by side:
 * the gradient of all sums as rows (bf16_gemm.h), 'apart' bytes apart. The sign of -y1 is left to
 * winograd_weights_gradient.
 */
void winograd_sums_gradient(winograd_kind kind, const char *const point[WINOGRAD_POINTS], char *to,
                            int64_t apart);
/*
 * 16 channels of the gradient of all factors, 'apart' floats apart: 'count' of the weights', taps
 * 'tap' floats apart. What lies 'next' floats behind them is asked for.
 */
void winograd_weights_gradient(winograd_kind kind, const float *from, int64_t apart, int count,
                               float *to, int64_t tap, int64_t next);

/* A convolution's weights, bf16, or those of its gradient by the input, as panels of factors. */
typedef struct winograd_panels {
    winograd_kind kind;
    bool gradient;
    int ins, outs, depth;   /* channels of what is read and made; planes along D */
    int columns, steps;     /* WIDE_TILE channels of outs, WIDE_NUMBERS of ins */
} winograd_panels;

/* Bytes: panels lie as [factor][column][plane][step]. */
static inline int64_t winograd_panel_at(const winograd_panels *p, int factor, int column, int plane)
{
    return (((int64_t)factor * p->columns + column) * p->depth + plane) * p->steps * WIDE_PANEL;
}

/* From [outs][depth][3][3][ins], or of a gradient [ins][depth][3][3][outs]. */
void winograd_pack(const winograd_panels *p, int threads, const void *from, void *to);

/*
 * As pons_device_operations.prepare: a convolution or its gradient by the input. Declines other
 * types than bf16, groups, dilations and units without 'lines'; along H and W kernels that are not
 * 3 wide, strides other than 1 and 1 or 2 and 2, and the gradient of the latter where the padding
 * is not 1.
 */
pons_status winograd_prepare(const wide_unit *unit, int threads, const pons_request *request,
                             pons_kernel *kernel, bool *supported, pons_error *err);
/*
 * The gradient by the weight: declines dilations along H and W, other kernels there, and strides
 * other than 1 and 1 or 2 and 2.
 */
pons_status winograd_prepare_weight(const wide_unit *unit, int threads, const pons_request *request,
                                    pons_kernel *kernel, bool *supported, pons_error *err);

#endif
