/*
 * swin_block.c - attention and perceptron of a Swin block, and the merge of neighbouring voxels.
 */
#include "swin_block.h"

static const pons_norm layer_norm = { .kind = PONS_NORM_LAYER, .affine = true };

/* Zero x for whole cases; the scale of the others is that of dropout. */
static pons_node *drop_path(pons_graph *g, const char *name, double p, pons_node *x)
{
    const int64_t shape[5] = { pons_shape_of(x).extent[0], 1, 1, 1, 1 };
    pons_node *kept;

    if (p <= 0)
        return x;
    kept = pons_broadcast(g, pons_scalar(g, 1), pons_shape_make(5, shape));
    return pons_mul(g, x, pons_dropout(g, kept, p, name));
}

static pons_node *perceptron(pons_graph *g, const char *name, const swin_block *b, pons_node *x)
{
    int64_t width = pons_channels_of(x);

    x = pons_layer_linear(g, pons_name(g, "%s.linear1", name),
                          (int64_t)((double)width * b->mlp_ratio), x);
    x = pons_dropout(g, pons_gelu(g, x), b->drop, pons_name(g, "%s.drop1", name));
    x = pons_layer_linear(g, pons_name(g, "%s.linear2", name), width, x);
    return pons_dropout(g, x, b->drop, pons_name(g, "%s.drop2", name));
}

pons_node *swin_block_apply(pons_graph *g, const char *name, const swin_block *b, pons_node *x)
{
    pons_node *y = pons_layer_norm(g, pons_name(g, "%s.norm1", name), &layer_norm, x);

    y = attend_in_windows(g, pons_name(g, "%s.attn", name), &b->attention, y);
    x = pons_add(g, x, drop_path(g, pons_name(g, "%s.drop_path1", name), b->skip, y));
    y = pons_layer_norm(g, pons_name(g, "%s.norm2", name), &layer_norm, x);
    y = perceptron(g, pons_name(g, "%s.mlp", name), b, y);
    return pons_add(g, x, drop_path(g, pons_name(g, "%s.drop_path2", name), b->skip, y));
}

/* The order of the voxels of a cube in D, H, W; a 2D network has those with D = 0. */
static const int64_t merge_orders[][8][3] = {
    [SWIN_MERGING] = { { 0, 0, 0 }, { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 },
                       { 1, 1, 0 }, { 1, 0, 1 }, { 0, 1, 1 }, { 1, 1, 1 } },
    [SWIN_MERGINGV2] = { { 0, 0, 0 }, { 0, 0, 1 }, { 0, 1, 0 }, { 0, 1, 1 },
                         { 1, 0, 0 }, { 1, 0, 1 }, { 1, 1, 0 }, { 1, 1, 1 } },
};

pons_node *swin_merge(pons_graph *g, const char *name, swin_order order, bool flat, pons_node *x)
{
    pons_shape s = pons_shape_of(x);
    const int64_t (*at)[3] = merge_orders[flat ? SWIN_MERGING : order];
    const int64_t step[5] = { 1, flat ? 1 : 2, 2, 2, 1 };
    pons_node *part[8];
    int parts = 0;

    for (int i = 1; i < 4; i++)
        s.extent[i] /= step[i];
    for (int i = 0; i < 8; i++)
        if (!flat || at[i][0] == 0)
            part[parts++] = pons_crop(g, x, (int64_t[]){ 0, at[i][0], at[i][1], at[i][2], 0 },
                                      s.extent, step);
    x = pons_layer_norm(g, pons_name(g, "%s.norm", name), &layer_norm,
                        pons_concatenate(g, parts, part, 4));
    return pons_layer_projection(g, pons_name(g, "%s.reduction", name), 2 * s.extent[4], x);
}
