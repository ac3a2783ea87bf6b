/*
 * swin_block.h - the transformer block of a Swin network and the merge behind its stages (Liu et
 * al. 2021, arXiv:2103.14030), with the tensor names of MONAI's SwinTransformer.
 */
#ifndef PLUGINS_MODELS_SWIN_BLOCK_H
#define PLUGINS_MODELS_SWIN_BLOCK_H

#include "window_attention.h"

typedef struct swin_block {
    window_attention attention;
    double mlp_ratio;      /* of hidden to outer features of the perceptron                       */
    double drop;           /* probability that an element of the perceptron is zeroed             */
    double skip;           /* probability that a branch is left out for a case                    */
} swin_block;

/*
 * The feature map [N, D, H, W, C] after a block, in its shape. The norms are layer norms:
 *
 *   y + mlp(norm2(y)),  y = x + attention(norm1(x))
 */
pons_node *swin_block_apply(pons_graph *g, const char *name, const swin_block *b, pons_node *x);

typedef enum swin_order { SWIN_MERGING = 0, SWIN_MERGINGV2 } swin_order;

/*
 * Half the extent of x and twice its channels: NAME.reduction of the norm of the 8 voxels of each
 * cube, in the order of MONAI's class. A 'flat' map has squares of 4.
 */
pons_node *swin_merge(pons_graph *g, const char *name, swin_order order, bool flat, pons_node *x);

#endif
