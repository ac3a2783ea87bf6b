/*
 * resnet_blocks.h - the parts that residual classifiers share (He et al. 2016, arXiv:1512.03385):
 * the table of depths, the path of a residual block, the pools and the head of a classifier.
 */
#ifndef PLUGINS_MODELS_RESNET_BLOCKS_H
#define PLUGINS_MODELS_RESNET_BLOCKS_H

#include <pons/nn.h>

enum { RESNET_STAGES = 4 };

/* The words of a PONS_CHOICE: "10", "18", "34", "50", "101", "152", "200". */
extern const char *const resnet_depth_names[];

typedef struct resnet_depth {
    bool bottleneck;                   /* three convolutions a block, else two                    */
    int64_t layers[RESNET_STAGES];     /* blocks of each stage                                    */
} resnet_depth;

/* A row for each word of resnet_depth_names. */
extern const resnet_depth resnet_depths[];

/* Ratio of a bottleneck's output channels to its width. */
enum { RESNET_EXPANSION = 4 };

/*
 * The path of a block: two convolutions of extent 3 to 'width' channels. A bottleneck has extents
 * 1, 3 and 1 to 'width', 'width' and 4 'width' channels. The first convolution of extent 3 has the
 * stride.
 */
typedef struct resnet_path {
    const char *conv[3], *norm[3];     /* names of the convolutions and of their batch norms      */
    int64_t width;
    int stride;
    bool bottleneck, flat;
    bool zero;                         /* the scale of the last norm is 0 at first                */
    pons_conv_init init;
} resnet_path;

/* norm(conv(relu(norm(conv(x))))) */
pons_node *resnet_path_nodes(pons_graph *g, const resnet_path *p, pons_node *x);

/* A batch norm with a scale and a shift. */
pons_node *resnet_norm(pons_graph *g, const char *name, pons_node *x);
/* The maximum of 3 voxels along each axis, in steps of 2; the extent is n / 2, rounded up. */
pons_node *resnet_max_pool(pons_graph *g, bool flat, pons_node *x);
/* The mean over all voxels, [N, 1, 1, 1, C]. */
pons_node *resnet_global_mean(pons_graph *g, pons_node *x);
/* A fully connected layer 'name' on [N, 1, 1, 1, C]: logits [N, 1, 1, 1, classes]. */
pons_node *resnet_logits(pons_graph *g, const char *name, int64_t classes, pons_node *x);

#endif
