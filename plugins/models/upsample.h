/*
 * upsample.h - ways to double the extent of feature maps, as MONAI's UpSample has them.
 */
#ifndef PLUGINS_MODELS_UPSAMPLE_H
#define PLUGINS_MODELS_UPSAMPLE_H

#include <pons/nn.h>

typedef enum upsample_mode {
    UPSAMPLE_NONTRAINABLE, UPSAMPLE_DECONV, UPSAMPLE_PIXELSHUFFLE
} upsample_mode;

/* The words of a PONS_CHOICE, in that order: "nontrainable", "deconv", "pixelshuffle". */
extern const char *const upsample_names[];

typedef struct upsampling {
    upsample_mode mode;
    int64_t out;           /* channels of the result                                              */
    bool align_corners;    /* of the linear interpolation                                         */
    bool flat;             /* the extent of D stays                                               */
} upsampling;

/*
 * x on twice the extent:
 *
 *   nontrainable   linear interpolation, after NAME.preconv (kernel 1) if 'out' differs from the
 *                  channels of x
 *   deconv         NAME.deconv, a transposed convolution of kernel and stride 2
 *   pixelshuffle   NAME.pixelshuffle.conv_block (kernel 3) to 2^axes times the channels, which
 *                  move into space, and a mean over two voxels of each axis (Aitken et al. 2017,
 *                  arXiv:1707.02937). Initial weights are independent. MONAI repeats each of them.
 */
pons_node *upsample(pons_graph *g, const char *name, const upsampling *u, pons_node *x);

#endif
