/*
 * swin_unetr - a Swin transformer as the encoder of a U-Net (Hatamizadeh et al. 2022,
 * arXiv:2201.01266; MONAI's class SwinUNETR, whose arguments and tensor names it keeps).
 *
 *   embed(x)  = conv(x)                                         kernel and stride 2
 *   block(x)  = y + mlp(norm(y)),  y = x + attention(norm(x))   every other one in shifted windows
 *   merge(x)  = reduction(norm(the 8 voxels of a cube))         half the extent, twice the channels
 *   stage(x)  = merge(block(... block(x)))                      after a residual block if use_v2
 *   up(x, s)  = res(concatenate(transposed(x), s))
 *
 * The skips s are res(image), res(norm(embed)), res(norm(stage1)) and so on. Norms are layer norms.
 */
#include "swin_block.h"
#include "unet_block.h"

enum { STAGES = 4 };

typedef struct swin_unetr {
    int64_t feature_size, num_groups;
    pons_integers depths, num_heads;
    int window_size[3], patch_size, norm_name, downsample;
    double mlp_ratio, drop_rate, attn_drop_rate, dropout_path_rate;
    bool affine, qkv_bias, normalize, patch_norm, use_v2;
} swin_unetr;

/* The decoder doubles the extent of the tokens, so that no other size fits. */
static const char *const patch_sizes[] = { "2", NULL };
static const char *const downsample_names[] = { "merging", "mergingv2", NULL };

static const pons_option options[] = {
    PONS_INTEGER(swin_unetr, feature_size, "24", 12, 65532,
                 "Features of the first level; a multiple of 12."),
    PONS_CHOICE(swin_unetr, patch_size, "2", patch_sizes, "Extent of a token in voxels."),
    PONS_INTEGERS(swin_unetr, depths, "2 2 2 2", 1, 64, "Transformer blocks of each stage.",
                  .count_min = STAGES, .count_max = STAGES),
    PONS_INTEGERS(swin_unetr, num_heads, "3 6 12 24", 1, 4096, "Attention heads of each stage, "
                  "divisors of its features.", .count_min = STAGES, .count_max = STAGES),
    PONS_AXES(swin_unetr, window_size, "7", 1, 32, "Extent of the attention windows in tokens."),
    PONS_FLAG(swin_unetr, qkv_bias, "yes", "Whether query, key and value add a bias."),
    PONS_REAL(swin_unetr, mlp_ratio, "4", 0.1, 64,
              "Ratio of hidden to outer features of the perceptrons."),
    PONS_CHOICE(swin_unetr, norm_name, "instance", pons_norm_names, "Norm of the convolutions."),
    PONS_FLAG(swin_unetr, affine, "no", "Whether the instance norm has a scale and a shift."),
    PONS_INTEGER(swin_unetr, num_groups, "4", 1, 4096, "Groups of channels of norm_name = group."),
    PONS_REAL(swin_unetr, drop_rate, "0", 0, 1, "Probability that a token's element is zeroed."),
    PONS_REAL(swin_unetr, attn_drop_rate, "0", 0, 1, "Dropout of attention weights."),
    PONS_REAL(swin_unetr, dropout_path_rate, "0", 0, 1, "Probability that the last block is "
              "skipped for a case; it grows linearly from 0 at the first block."),
    PONS_FLAG(swin_unetr, normalize, "yes", "Whether skips pass a layer norm."),
    PONS_FLAG(swin_unetr, patch_norm, "no", "Whether a layer norm follows the embedding."),
    PONS_CHOICE(swin_unetr, downsample, "merging", downsample_names,
                "MONAI's way of merging the voxels of a cube."),
    PONS_FLAG(swin_unetr, use_v2, "no", "Whether a residual block precedes each stage."),
    PONS_OPTIONS_END
};

/* The context of all builders. */
typedef struct net {
    pons_graph *g;
    const swin_unetr *c;
    unet_style style;
    bool flat;
    int block, blocks;     /* blocks of all stages: built so far, and in total                    */
} net;

static const int ones[3] = { 1, 1, 1 }, flat_3[3] = { 1, 3, 3 }, flat_2[3] = { 1, 2, 2 };
static const int cube_3[3] = PONS_CUBE(3), cube_2[3] = PONS_CUBE(2);
static const pons_norm layer_norm = { .kind = PONS_NORM_LAYER, .affine = true };
static const pons_norm skip_norm = { .kind = PONS_NORM_LAYER };
/* The blocks of use_v2 have instance norms whatever norm_name says. */
static const unet_style plain_style = { .norm = { .kind = PONS_NORM_INSTANCE },
                                        .act = PONS_ACT_LEAKYRELU };

static pons_node *residual(const net *n, const unet_style *s, const char *name, int64_t out,
                           pons_node *x)
{
    const unet_layer first = { out, n->flat ? flat_3 : cube_3, ones, false, false };

    return unet_block(n->g, s, name, &first, true, x);
}

static pons_node *encoder(const net *n, int number, int64_t out, pons_node *x)
{
    return residual(n, &n->style, pons_name(n->g, "encoder%d.layer", number), out, x);
}

static pons_node *up(const net *n, int level, pons_node *x, pons_node *skip)
{
    pons_graph *g = n->g;
    const char *name = pons_name(g, "decoder%d", level);
    const int *two = n->flat ? flat_2 : cube_2;
    const unet_layer transposed = { pons_channels_of(skip), two, two, false, true };

    x = unet_convolve(g, &n->style, pons_name(g, "%s.transp_conv", name), &transposed, x);
    x = pons_concatenate(g, 2, (pons_node *[]){ x, skip }, 4);
    return residual(n, &n->style, pons_name(g, "%s.conv_block", name), transposed.out, x);
}

static pons_node *stage(net *n, int i, pons_node *x)
{
    const swin_unetr *c = n->c;
    pons_graph *g = n->g;
    const char *name = pons_name(g, "swinViT.layers%d.0", i + 1);
    swin_block b = {
        .attention = { .window = { n->flat ? 1 : c->window_size[0], c->window_size[1],
                                   c->window_size[2] },
                       .heads = c->num_heads.item[i], .qkv_bias = c->qkv_bias,
                       .attention_drop = c->attn_drop_rate, .projection_drop = c->drop_rate },
        .mlp_ratio = c->mlp_ratio, .drop = c->drop_rate
    };

    if (c->use_v2)
        x = residual(n, &plain_style, pons_name(g, "swinViT.layers%dc.0.layer", i + 1),
                     pons_channels_of(x), x);
    for (int k = 0; k < c->depths.item[i]; k++, n->block++) {
        b.attention.shifted = k % 2 == 1;
        b.skip = n->blocks > 1 ? c->dropout_path_rate * n->block / (n->blocks - 1) : 0;
        x = swin_block_apply(g, pons_name(g, "%s.blocks.%d", name, k), &b, x);
    }
    return swin_merge(g, pons_name(g, "%s.downsample", name), (swin_order)c->downsample, n->flat,
                      x);
}

static pons_node *embed(const net *n, pons_node *x)
{
    const int *two = n->flat ? flat_2 : cube_2;
    const pons_conv conv = { .out = n->c->feature_size, .kernel = { two[0], two[1], two[2] },
                             .stride = { two[0], two[1], two[2] }, .bias = true };

    x = pons_layer_conv(n->g, "swinViT.patch_embed.proj", &conv, x);
    if (n->c->patch_norm)
        x = pons_layer_norm(n->g, "swinViT.patch_embed.norm", &layer_norm, x);
    return pons_dropout(n->g, x, n->c->drop_rate, "swinViT.pos_drop");
}

static pons_status check(const void *config, pons_error *err)
{
    const swin_unetr *c = config;

    if (c->feature_size % 12 != 0)
        return pons_option_fail(err, "feature_size", "found %d, expected a multiple of 12",
                                (int)c->feature_size);
    for (int i = 0; i < STAGES; i++)
        if ((c->feature_size << i) % c->num_heads.item[i] != 0)
            return pons_option_fail(err, "num_heads", "found %d in stage %d, expected a divisor of "
                                    "its %d features", (int)c->num_heads.item[i], i,
                                    (int)c->feature_size << i);
    return unet_check_groups(c->norm_name, c->num_groups, c->feature_size, 0, err);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         const pons_inputs *inputs, pons_outputs *outputs, pons_error *err)
{
    const swin_unetr *c = config;
    net n = { .g = g, .c = c, .flat = task->flat,
              .style = { .norm = { c->norm_name, c->affine || c->norm_name != PONS_NORM_INSTANCE,
                                   (int)c->num_groups, 0 }, .act = PONS_ACT_LEAKYRELU } };
    const pons_conv logits = { .out = task->classes, .bias = true };
    pons_node *at[STAGES + 1], *image = pons_input_named(g, inputs, "image"), *x = embed(&n, image);

    for (int i = 0; i < STAGES; i++)
        n.blocks += (int)c->depths.item[i];
    for (int i = 0; i <= STAGES; i++) {
        at[i] = c->normalize ? pons_layer_norm(g, "skip", &skip_norm, x) : x;
        x = i < STAGES ? stage(&n, i, x) : x;
    }
    x = encoder(&n, 10, c->feature_size << STAGES, at[STAGES]);
    x = up(&n, 5, x, at[3]);
    for (int i = 4; i > 1; i--)
        x = up(&n, i, x, encoder(&n, i, c->feature_size << (i - 2), at[i - 2]));
    x = up(&n, 1, x, encoder(&n, 1, c->feature_size, image));
    outputs->count = 1;
    outputs->item[0] = pons_layer_conv(g, "out.conv.conv", &logits, x);
    return pons_graph_status(g, err);
}

static pons_status divisor(const void *config, int product[3], pons_error *err)
{
    for (int axis = 0; axis < 3; axis++)
        product[axis] = 2 << STAGES;
    return PONS_OK;
}

static const pons_model_operations operations = {
    .check = check, .build = build, .divisor = divisor
};

PONS_MODEL(swin_unetr, "1.0", "U-Net whose encoder is a Swin transformer", options, operations);
