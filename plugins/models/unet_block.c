/*
 * unet_block.c - the convolution block that MONAI's DynUNet and SwinUNETR are made of.
 */
#include "unet_block.h"

#include <string.h>

static const int one[3] = { 1, 1, 1 };

pons_status unet_check_groups(int norm, int64_t groups, int64_t features, int level,
                              pons_error *err)
{
    if (norm != PONS_NORM_GROUP || features % groups == 0)
        return PONS_OK;
    return pons_option_fail(err, "num_groups", "found %d, expected a divisor of the %lld features "
                            "of level %d", (int)groups, (long long)features, level);
}

pons_node *unet_convolve(pons_graph *g, const unet_style *s, const char *name, const unet_layer *l,
                         pons_node *x)
{
    pons_conv how = { .out = l->out, .bias = l->bias, .transposed = l->transposed,
                      .init = s->init };

    for (int i = 0; i < 3; i++) {
        how.kernel[i] = l->kernel[i];
        how.stride[i] = l->stride[i];
        how.padding[i] = (l->kernel[i] - l->stride[i] + 1) / 2;
        how.output_padding[i] = 2 * how.padding[i] + l->stride[i] - l->kernel[i];
    }
    x = pons_layer_conv(g, pons_name(g, "%s.conv", name), &how, x);
    return pons_dropout(g, x, s->dropout, pons_name(g, "%s.adn.D", name));
}

pons_node *unet_block(pons_graph *g, const unet_style *s, const char *name, const unet_layer *first,
                      bool residual, pons_node *x)
{
    unet_layer second = { first->out, first->kernel, one, false, false };
    unet_layer shortcut = { first->out, one, first->stride, false, false };
    const char *slope = pons_name(g, "%s.lrelu", name);
    pons_node *y = unet_convolve(g, s, pons_name(g, "%s.conv1", name), first, x);

    y = pons_layer_norm(g, pons_name(g, "%s.norm1", name), &s->norm, y);
    y = pons_layer_act(g, slope, s->act, y);
    y = unet_convolve(g, s, pons_name(g, "%s.conv2", name), &second, y);
    y = pons_layer_norm(g, pons_name(g, "%s.norm2", name), &s->norm, y);
    if (residual && (pons_channels_of(x) != first->out
                     || memcmp(first->stride, one, sizeof one) != 0)) {
        x = unet_convolve(g, s, pons_name(g, "%s.conv3", name), &shortcut, x);
        x = pons_layer_norm(g, pons_name(g, "%s.norm3", name), &s->norm, x);
    }
    return pons_layer_act(g, slope, s->act, residual ? pons_add(g, y, x) : y);
}
