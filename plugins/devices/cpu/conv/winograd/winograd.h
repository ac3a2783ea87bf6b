/*
 * winograd.h - convolutions by Winograd's algorithm (S. Winograd; A. Lavin, S. Gray, Fast
 * algorithms for convolutional neural networks, 2015), of bf16 or of floats.
 *
 * Along one axis a form makes several points y of the target at once, from points d of the source
 * and the kernel's weights g, three or five:
 *
 *   sources    sums of points d                      rounded to the type of both tensors
 *   factors    sums of weights g                     likewise
 *   sums       of products of a source by a factor   in float
 *   y          sums of those
 *
 *   stride 1: two points of four, by 4 products where direct sums have 6
 *     sources  d0 - d2, d1 + d2, d2 - d1, d1 - d3
 *     factors  g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2
 *     y        m0 + m1 + m2, m1 - m2 - m3
 *   stride 2: two points of five, by 5 products of 6
 *     sources  d0 - d2, d2, d4 - d2, d1, d3
 *     factors  g0, g0 + g2, g2, g1
 *     sums     d0 - d2 by g0 and d1 by g1; d2 by g0 + g2; d4 - d2 by g2 and d3 by g1
 *     y        m0 + m1, m1 + m2
 *   input gradient of stride 2, padded by one: four points of three, by 5 products of 6
 *     sources  d0 - d1, d1, d2 - d1, d0
 *     factors  as before
 *     sums     d0 - d1 by g2; d1 by g0 + g2; d2 - d1 by g0; d0 by g1; d1 by g1
 *     y        m3, m0 + m1, m4, m1 + m2
 *   stride 1, five weights: two points by 7 products of 10. The last two weights are a kernel of
 *   three, (0, g3, g4), which lies two points further on: its sources are those of the next tile,
 *   s' below, and its sums those of the first three weights.
 *     sources  as with three weights
 *     factors  as with three weights, (g3 + g4) / 2, (g4 - g3) / 2, g4
 *     sums     s0 by f0; s1 by f1 and s1' by f4; s2 by f2 and s2' by f5; s3 by f3 and s3' by f6
 *     y        as with three weights
 *
 * The weight gradient is the derivative by g:
 *
 *   stride 1
 *     of sums     y0, y0 + y1, y0 - y1, -y1   of y's gradient, rounded to its type
 *     of factors  sums over tiles of those by the sources, in float
 *     of weights  f0 + (f1 + f2) / 2, (f1 - f2) / 2, (f1 + f2) / 2 + f3
 *   stride 2
 *     of sums     y0, y0 + y1, y1
 *     of factors  as above; f3 has two terms, y0 by d1 and y1 by d3
 *     of weights  f0 + f1, f3, f1 + f2
 *   five weights: as with stride 1, and the last two weights (f4 - f5) / 2, (f4 + f5) / 2 + f6
 *
 * A form is applied along H and along W, so sources, factors and sums have two indices: 16 products
 * of 36, and 25; of five weights 49 of 100. Channels and kernel planes along D are summed directly.
 * A tile is the part of a plane that a form makes.
 *
 * A convolution of floats whose kernel has three planes and whose strides are 1 has the form also
 * along D, where its sources are read from four planes and its sums make two planes: 64 products of
 * 216. In bf16 sources would be rounded once more, so it has none there.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_WINOGRAD_WINOGRAD_H
#define PLUGINS_DEVICES_CPU_CONV_WINOGRAD_WINOGRAD_H

#include "cpu/conv/bf16_gemm/bf16_gemm.h"
#include "cpu/conv/solver.h"

enum {
    WINOGRAD_KERNEL = 5,    /* weights along an axis, at most */
    WINOGRAD_READS = 5,     /* points of the source, at most */
    WINOGRAD_MAKES = 4,
    WINOGRAD_SOURCES = 5,
    WINOGRAD_FACTORS = 7,
    WINOGRAD_PRODUCTS = 7,
    WINOGRAD_SUMS = 5,
    WINOGRAD_POINTS = 4,    /* of a plane, that a convolution makes */
    WINOGRAD_DEEP = 4,      /* sources, factors and sums along D */
    WINOGRAD_DEEP_MAKES = 2 /* planes of the target */
};

/* The forms in the order of the text above. */
typedef enum winograd_kind {
    WINOGRAD_PLAIN, WINOGRAD_STRIDED, WINOGRAD_SPREAD, WINOGRAD_WIDE
} winograd_kind;

/* A form along one axis. */
typedef struct winograd_form {
    int reads, makes;       /* points of the source and the target */
    int moves;              /* points of the source to those of the next tile */
    int kernel, sources, factors, sums, products;
    int reach;              /* tiles from one whose sums are made to the last that these read */
    /* In the order of sums; ahead: tiles to that of the source. */
    struct { int source, factor, sum, ahead; } product[WINOGRAD_PRODUCTS];
} winograd_form;

/* The header has these, so that loops over them unroll. */
static const winograd_form winograd_forms[] = {
    [WINOGRAD_PLAIN] = {
        .reads = 4, .makes = 2, .moves = 2, .kernel = 3, .sources = 4, .factors = 4, .sums = 4,
        .products = 4,
        .product = { { 0, 0, 0 }, { 1, 1, 1 }, { 2, 2, 2 }, { 3, 3, 3 } },
    },
    [WINOGRAD_STRIDED] = {
        .reads = 5, .makes = 2, .moves = 4, .kernel = 3, .sources = 5, .factors = 4, .sums = 3,
        .products = 5,
        .product = { { 0, 0, 0 }, { 3, 3, 0 }, { 1, 1, 1 }, { 2, 2, 2 }, { 4, 3, 2 } },
    },
    [WINOGRAD_SPREAD] = {
        .reads = 3, .makes = 4, .moves = 2, .kernel = 3, .sources = 4, .factors = 4, .sums = 5,
        .products = 5,
        .product = { { 0, 2, 0 }, { 1, 1, 1 }, { 2, 0, 2 }, { 3, 3, 3 }, { 1, 3, 4 } },
    },
    [WINOGRAD_WIDE] = {
        .reads = 4, .makes = 2, .moves = 2, .kernel = 5, .sources = 4, .factors = 7, .sums = 4,
        .products = 7, .reach = 1,
        .product = { { 0, 0, 0 }, { 1, 1, 1 }, { 1, 4, 1, 1 }, { 2, 2, 2 }, { 2, 5, 2, 1 },
                     { 3, 3, 3 }, { 3, 6, 3, 1 } },
    },
};

/* The form of a convolution that has one: of its strides and its kernel along W. */
static inline winograd_kind winograd_kind_of(const conv_problem *p)
{
    if (p->stride[2] == 1)
        return p->kernel[2] == winograd_forms[WINOGRAD_WIDE].kernel ? WINOGRAD_WIDE
                                                                    : WINOGRAD_PLAIN;
    return p->direction == CONV_INPUT_GRADIENT ? WINOGRAD_SPREAD : WINOGRAD_STRIDED;
}

static inline int winograd_size(pons_type type) { return type == PONS_F32 ? 4 : 2; }
/* The elements that a pair of bf16_gemm.h has: two of bf16, or a float. */
static inline int winograd_together(pons_type type) { return GEMM_PAIR / winograd_size(type); }

/* A line of a plane. */
typedef struct winograd_line {
    const char *from;
    int64_t step;                   /* bytes from a point to the next; 0: a line of zeros */
} winograd_line;

/* Points of one plane are read, or, of a form along D, sums or differences of two planes. */
typedef enum winograd_planes { WINOGRAD_ONE, WINOGRAD_SUM, WINOGRAD_DIFFERENCE } winograd_planes;

/* A row of tiles and the lines of the source that it reads. */
typedef struct winograd_read {
    pons_type type;
    winograd_planes planes;         /* two: floats of WINOGRAD_PLAIN */
    winograd_line line[WINOGRAD_READS], second[WINOGRAD_READS]; /* of the first, the second plane */
    int first, width;               /* of the first tile, may be negative; of a line, in points */
    int tiles, channels;
    char *to;                       /* sources [along H][along W] */
    int64_t pitch, apart;           /* bytes from tile to tile, and from source to source */
    int64_t ahead;                  /* bytes from a point to the one to prefetch */
} winograd_read;

/* The channels of a tile are filled with zeros to whole pairs. One more tile may be written. */
void winograd_read_tiles(winograd_kind kind, const winograd_read *r);
/*
 * Read tiles of a convolution's forms with at most 16 channels: one row of tiles for each element
 * of a pair. The sources of a tile of all rows are a line of a panel (bf16_gemm.h); lines are
 * 'pitch' apart. row[0] has the type, the destination and the counts.
 */
void winograd_read_pairs(winograd_kind kind, const winograd_read row[2]);

/* A row of tiles and the lines of the target that it makes. */
typedef struct winograd_write {
    pons_type type;
    const char *from;               /* 16 channels of sums; as 'to' of winograd_read */
    int64_t pitch, apart;
    char *line[WINOGRAD_MAKES];     /* NULL: outside */
    int64_t step;                   /* bytes from a point to the next */
    int tiles, width, channels;     /* channels: at most 16 of them are written */
} winograd_write;

void winograd_write_tiles(winograd_kind kind, const winograd_write *w);

/* Transform 'count' sums of each source along D, 'apart' floats apart, to those of two planes. */
void winograd_write_planes(const float *from, int64_t apart, int count,
                           float *const to[WINOGRAD_DEEP_MAKES]);

/*
 * Transform weights of the type: 'taps' has a panel (bf16_gemm.h) for each position along H and W,
 * in reverse order if 'turned'. Factor f is written as a panel to to[f] by non-temporal stores.
 */
void winograd_factors(winograd_kind kind, pons_type type, bool turned, const char *taps,
                      char *const to[WINOGRAD_FACTORS * WINOGRAD_FACTORS]);

/*
 * Transform a channel of y's gradient at the four points of the tiles of 16 pairs. 16 pairs of bf16
 * have 32 tiles, of which k and 16 + k lie side by side. The gradients of all sums become rows
 * (bf16_gemm.h), 'apart' bytes apart. winograd_gradient_of_weights applies the sign of -y1.
 */
void winograd_gradient_of_sums(winograd_kind kind, pons_type type,
                               const char *const point[WINOGRAD_POINTS], char *to, int64_t apart);
/*
 * Transform the gradients of all factors, 16 channels each, 'apart' floats apart, into those of
 * 'count' channels of the weights, taps 'tap' floats apart. Prefetches to + next.
 */
void winograd_gradient_of_weights(winograd_kind kind, const float *from, int64_t apart, int count,
                                  float *to, int64_t tap, int64_t next);

/* The weights of a convolution or of its input gradient as panels of factors. */
typedef struct winograd_panels {
    winograd_kind kind;
    pons_type type;
    bool gradient, deep;    /* deep: the form is applied along D, too */
    int ins, outs, depth;   /* channels of what is read and made; planes of factors along D */
    int columns, steps;     /* blocks of GEMM_TILE channels of outs, and of pairs of ins */
} winograd_panels;

/* Bytes: panels lie as [factor][column][plane][step]. */
static inline int64_t winograd_panel_at(const winograd_panels *p, int factor, int column, int plane)
{
    return (((int64_t)factor * p->columns + column) * p->depth + plane) * p->steps * GEMM_PANEL;
}

/* The factors of a plane's weights. */
static inline int winograd_all_factors(winograd_kind kind)
{
    return winograd_forms[kind].factors * winograd_forms[kind].factors;
}

/* The weights of a plane. */
static inline int winograd_taps(winograd_kind kind)
{
    return winograd_forms[kind].kernel * winograd_forms[kind].kernel;
}

/* From [outs][depth][3][3][ins], or of a gradient [ins][depth][3][3][outs]; 5 x 5 of five. */
void winograd_pack(const winograd_panels *p, int threads, const void *from, void *to);

/*
 * A convolution or its input gradient. Supports bf16 and f32 without groups and dilations; along H
 * and W kernels of 3 and strides of 1 and 1 or 2 and 2, the input gradient of the latter with a
 * padding of 1; kernels of 5 and strides of 1.
 */
extern const conv_operations winograd_operations;
/* The weight gradient: also dilations along D, and any padding. */
extern const conv_operations winograd_gradient_operations;

/* winograd_cost.c */
bool winograd_profitable(const conv_problem *p, const conv_machine *machine);
bool winograd_gradient_profitable(const conv_problem *p, const conv_machine *machine);

#endif
