/*
 * unet_block.h - the convolution block that MONAI's DynUNet and SwinUNETR are made of.
 */
#ifndef PLUGINS_MODELS_UNET_BLOCK_H
#define PLUGINS_MODELS_UNET_BLOCK_H

#include <pons/nn.h>

/* The norm, the activation and so on of all blocks of a network. */
typedef struct unet_style {
    pons_norm norm;
    pons_act act;
    pons_conv_init init;
    double dropout;        /* after each convolution                                              */
} unet_style;

/* One convolution with its dropout. Its parameters are NAME.conv.weight and NAME.conv.bias. */
typedef struct unet_layer {
    int64_t out;
    const int *kernel, *stride;
    bool bias, transposed;
} unet_layer;

/*
 * Refuse the option num_groups if 'norm' is by groups and they are no divisor of the features of a
 * level.
 */
pons_status unet_check_groups(int norm, int64_t groups, int64_t features, int level,
                              pons_error *err);
/* The padding is half of kernel - stride + 1, rounded down. */
pons_node *unet_convolve(pons_graph *g, const unet_style *s, const char *name, const unet_layer *l,
                         pons_node *x);

/*
 * Two convolutions, the first as 'first' says, the second without its stride:
 *
 *   act(norm2(conv2(act(norm1(conv1(x))))))              MONAI's UnetBasicBlock
 *   act(norm2(conv2(act(norm1(conv1(x))))) + short(x))   MONAI's UnetResBlock, if 'residual'
 *
 * short(x) is x, or norm3(conv3(x)) of kernel 1 where the channels or the extent differ.
 */
pons_node *unet_block(pons_graph *g, const unet_style *s, const char *name, const unet_layer *first,
                      bool residual, pons_node *x);

#endif
