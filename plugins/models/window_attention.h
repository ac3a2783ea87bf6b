/*
 * window_attention.h - multi-head self-attention within windows of a feature map (Swin: Liu et al.
 * 2021, arXiv:2103.14030), with the tensor names of MONAI's WindowAttention.
 */
#ifndef PLUGINS_MODELS_WINDOW_ATTENTION_H
#define PLUGINS_MODELS_WINDOW_ATTENTION_H

#include <pons/nn.h>

typedef struct window_attention {
    int64_t window[3];     /* voxels along D, H, W; a shorter axis is one window without a shift  */
    bool shifted;          /* windows start at half of their extent                               */
    int64_t heads;         /* a divisor of the channels                                           */
    bool qkv_bias;
    double attention_drop; /* dropout of the weights after the softmax                            */
    double projection_drop;
} window_attention;

/*
 * The feature map [N, D, H, W, C] after attention, in its shape:
 *
 *   softmax(q k' / sqrt(C / heads) + bias + mask) v, then the projection NAME.proj
 *
 * q, k and v are thirds of the layer NAME.qkv. bias is the entry of
 * NAME.relative_position_bias_table [(2 wd - 1) (2 wh - 1) (2 ww - 1), heads] for the distance of
 * two voxels. The map is padded with zeros to whole windows. Shifted windows wrap around the ends;
 * mask is -100 between voxels of a window that come from opposite ends of the map.
 */
pons_node *attend_in_windows(pons_graph *g, const char *name, const window_attention *a,
                             pons_node *x);

#endif
