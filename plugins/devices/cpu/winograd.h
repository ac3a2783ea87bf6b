/*
 * winograd.h - bf16 convolutions with fewer products: Winograd's F(2x2, 3x3) along H and W, a sum
 * over the kernel positions along D (A. Lavin, S. Gray, Fast algorithms for convolutional neural
 * networks, 2015).
 *
 * A tile is 2 x 2 points of the target. It reads 4 x 4 points d of a plane of the source by 3 x 3
 * weights g of a plane of the kernel:
 *
 *   y = A^T [ sum over kernel planes and channels of (G g G^T) * (B^T d B) ] A
 *
 *         | 1  0 -1  0 |       | 1    0    0   |         | 1  1  1  0 |
 *   B^T = | 0  1  1  0 |   G = | 1/2  1/2  1/2 |   A^T = | 0  1 -1 -1 |
 *         | 0 -1  1  0 |       | 1/2 -1/2  1/2 |
 *         | 0  1  0 -1 |       | 0    0    1   |
 *
 * with * element by element: 16 products where the sums as they stand have 36. What is multiplied is
 * rounded to bf16 once more. 16 components of a tile, [4 along H][4 along W], are kept apart.
 */
#ifndef CPU_WINOGRAD_H
#define CPU_WINOGRAD_H

#include "wide.h"

enum {
    WINOGRAD_KERNEL = 3,
    WINOGRAD_POINTS = 2,            /* of a tile, along H and W */
    WINOGRAD_READ = 4,              /* points that it reads */
    WINOGRAD_COMPONENTS = WINOGRAD_READ * WINOGRAD_READ
};

/* A row of tiles and the four lines of the source that it reads. */
typedef struct winograd_read {
    const char *line[WINOGRAD_READ];
    int64_t step[WINOGRAD_READ];    /* bytes from a point to the next; 0: a line of zeros */
    int first, width;               /* the first tile's first point, may be negative; points there are */
    int tiles, channels;
    char *to;                       /* tiles 'pitch' bytes apart, components 'apart' */
    int64_t pitch, apart;
} winograd_read;

/* Behind the channels a tile has zeros up to an even number. */
void winograd_read_tiles(const winograd_read *r);

/* A row of tiles and the lines of the target that it makes. */
typedef struct winograd_write {
    const float *from;              /* 16 channels; as 'to' of winograd_read */
    int64_t pitch, apart;
    char *line[WINOGRAD_POINTS];    /* NULL: outside */
    int64_t step;                   /* bytes from a point to the next */
    int tiles, width, channels;     /* channels: at most 16 of them are written */
} winograd_write;

void winograd_write_tiles(const winograd_write *w);

/* The components of 16 weights; at tap[position along H and W] 'count' numbers, zeros behind. */
void winograd_weights(const char *const tap[WINOGRAD_KERNEL * WINOGRAD_KERNEL], int count,
                      char *const to[WINOGRAD_COMPONENTS]);

/*
 * As pons_device_operations.prepare: a convolution or its gradient by the input. Declines other
 * types than bf16, groups, strides, dilations, and kernels that are not 3 wide along H and W.
 */
pons_status winograd_prepare(const wide_unit *unit, int threads, const pons_request *request,
                             pons_kernel *kernel, bool *supported, pons_error *err);

#endif
