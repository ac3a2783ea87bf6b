/*
 * nnunet_plan_network.c - the architecture of a configuration as [model].
 *
 * Plans before version 2.4 name a class and pools; the rest of such a network is fixed.
 */
#include "nnunet/nnunet_plan.h"

#include <math.h>
#include <string.h>

#include <pons/plugin.h>

enum { STAGES_MAX = 64 };

static const char *const argument_keys[] = {
    "n_stages", "features_per_stage", "conv_op", "kernel_sizes", "strides", "n_conv_per_stage",
    "n_blocks_per_stage", "n_conv_per_stage_decoder", "conv_bias", "norm_op", "norm_op_kwargs",
    "dropout_op", "dropout_op_kwargs", "nonlin", "nonlin_kwargs", "block", "bottleneck_channels",
    "stem_channels", "deep_supervision", NULL
};

/* ---- lists ----------------------------------------------------------------------------------- */

static bool is_count(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 1
        && json_integer_value(value) <= 65536;
}

/* "2 2 2": numbers of a list, or one number for all. */
static const char *counts_text(const nnunet_plan *p, const nnunet_json *a, const char *key,
                               int count)
{
    const json_t *value = nnunet_json_member(a, key);
    bool list = json_is_array(value);
    const char *text = "";

    for (int i = 0; i < (list ? count : 1) && value != NULL; i++) {
        const json_t *item = list ? json_array_get(value, (size_t)i) : value;
        if (!is_count(item) || (list && (int)json_array_size(value) != count)) {
            nnunet_json_refuse(a, key, arena_format(p->memory, "a number, or one for each of %d "
                                                    "stages", count));
            break;
        }
        text = nnunet_plan_join(p, text, arena_format(p->memory, "%d",
                                                      (int)json_integer_value(item)));
    }
    return text;
}

/* The extents of a stage, in the order of the file; NULL: there are none. */
static const char *triple_text(const nnunet_plan *p, const json_t *item)
{
    double value[3] = { 1, 1, 1 };

    if (json_is_array(item) && (int)json_array_size(item) != p->axes)
        return NULL;
    for (int t = 3 - p->axes; t < 3; t++) {
        const json_t *number = json_is_array(item)
                             ? json_array_get(item, (size_t)(t - (3 - p->axes))) : item;
        if (!is_count(number))
            return NULL;
        value[t] = (double)json_integer_value(number);
    }
    return nnunet_plan_axes(p, value, ",");
}

/* "3,3,3 3,3,3": extents of all stages; a number stands for a stage's, or for all. */
static const char *triples_text(const nnunet_plan *p, const nnunet_json *a, const char *key,
                                int stages)
{
    const json_t *value = nnunet_json_member(a, key);
    const char *text = "";

    for (int i = 0; i < stages && value != NULL; i++) {
        const json_t *item = json_is_array(value) ? json_array_get(value, (size_t)i) : value;
        const char *one = triple_text(p, item);
        if (one == NULL || (json_is_array(value) && (int)json_array_size(value) != stages)) {
            nnunet_json_refuse(a, key, arena_format(p->memory, "%d extents for each of %d stages",
                                                    p->axes, stages));
            break;
        }
        text = nnunet_plan_join(p, text, one);
    }
    return text;
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* Expect an operation of the network's dimensions: "torch.nn.modules.conv.Conv3d". */
static void expect_operation(const nnunet_plan *p, const nnunet_json *a, const char *key,
                             const char *name)
{
    const char *one = arena_format(p->memory, "%s%dd", name, p->axes);

    nnunet_json_expect(a, key, one, one);
}

/* A number of an operation's arguments as an option; PyTorch's default is that of the option. */
static void put_number(nnunet_plan *p, const nnunet_json *arguments, const char *key, double low,
                       double high)
{
    const json_t *value = json_object_get(arguments->object, key);
    double number = json_number_value(value);

    if (!nnunet_json_has(arguments, key))
        return;
    if (json_is_number(value) && number >= low && number <= high)
        nnunet_plan_put(p, "model", key, "%.15g", number);
    else
        nnunet_json_refuse(arguments, key, arena_format(p->memory, "a number from %g to %g", low,
                                                        high));
}

static void put_norm(nnunet_plan *p, const nnunet_json *a, const nnunet_facts *facts)
{
    static const char *const keys[] = { "eps", "affine", NULL };
    nnunet_json norm = nnunet_json_object(a, "norm_op_kwargs");

    expect_operation(p, a, "norm_op", "torch.nn.modules.instancenorm.InstanceNorm");
    if (a->err->status != PONS_OK)
        return;
    nnunet_json_refuse_unknown(&norm, keys);
    put_number(p, &norm, "eps", 1e-12, 1);
    if (!nnunet_json_flag(&norm, "affine"))
        nnunet_json_refuse(&norm, "affine", "true");
    nnunet_plan_put(p, "model", "norm", "%s", facts->batch_norm ? "batch" : "instance");
}

static void put_activation(nnunet_plan *p, const nnunet_json *a)
{
    static const char *const keys[] = { "inplace", "negative_slope", NULL };
    const char *found = nnunet_json_text(a, "nonlin");

    nnunet_json_expect(a, "nonlin", "torch.nn.LeakyReLU", "torch.nn.ReLU");
    if (a->err->status == PONS_OK && nnunet_json_has(a, "nonlin_kwargs")) {
        nnunet_json options = nnunet_json_object(a, "nonlin_kwargs");
        nnunet_json_refuse_unknown(&options, keys);
        put_number(p, &options, "negative_slope", 0, 1);
    }
    if (a->err->status == PONS_OK)
        nnunet_plan_put(p, "model", "act", "%s",
                        strcmp(found, "torch.nn.ReLU") == 0 ? "relu" : "leakyrelu");
}

/* Dropout has no effect on a prediction. */
static void check_dropout(const nnunet_plan *p, const nnunet_json *a)
{
    nnunet_json_expect(a, "dropout_op", NULL,
                       arena_format(p->memory, "torch.nn.modules.dropout.Dropout%dd", p->axes));
}

static void check_residual(const nnunet_json *a)
{
    static const char block[] = "dynamic_network_architectures.building_blocks.residual."
                                "BasicBlockD";
    const json_t *features = json_object_get(a->object, "features_per_stage");
    int first = (int)json_integer_value(json_is_array(features) ? json_array_get(features, 0)
                                                                : features);

    nnunet_json_expect(a, "block", block, NULL);
    if (nnunet_json_has(a, "bottleneck_channels"))
        nnunet_json_refuse(a, "bottleneck_channels", "null");
    if (nnunet_json_has(a, "stem_channels"))
        nnunet_json_integer(a, "stem_channels", first, first);
}

static void put_layers(nnunet_plan *p, const nnunet_json *a, bool residual,
                       const nnunet_facts *facts)
{
    int stages = nnunet_json_integer(a, "n_stages", 2, STAGES_MAX);
    const char *counts = residual ? "n_blocks_per_stage" : "n_conv_per_stage";

    nnunet_json_refuse_unknown(a, argument_keys);
    nnunet_plan_put(p, "model", "features_per_stage", "%s",
                    counts_text(p, a, "features_per_stage", stages));
    nnunet_plan_put(p, "model", "kernel_sizes", "%s", triples_text(p, a, "kernel_sizes", stages));
    nnunet_plan_put(p, "model", "strides", "%s", triples_text(p, a, "strides", stages));
    nnunet_plan_put(p, "model", counts, "%s", counts_text(p, a, counts, stages));
    nnunet_plan_put(p, "model", "n_conv_per_stage_decoder", "%s",
                    counts_text(p, a, "n_conv_per_stage_decoder", stages - 1));
    nnunet_plan_put(p, "model", "conv_bias", "%s", nnunet_json_flag(a, "conv_bias") ? "yes" : "no");
    expect_operation(p, a, "conv_op", "torch.nn.modules.conv.Conv");
    put_norm(p, a, facts);
    put_activation(p, a);
    check_dropout(p, a);
    if (residual)
        check_residual(a);
}

static void put_architecture(nnunet_plan *p, const nnunet_json *c, const nnunet_facts *facts)
{
    static const char *const keys[] = { "network_class_name", "arch_kwargs", "_kw_requires_import",
                                        NULL };
    static const char plain[] = "dynamic_network_architectures.architectures.unet.PlainConvUNet";
    static const char residual[] = "dynamic_network_architectures.architectures.unet."
                                   "ResidualEncoderUNet";
    nnunet_json architecture = nnunet_json_object(c, "architecture");
    nnunet_json arguments;

    if (c->err->status != PONS_OK)
        return;
    nnunet_json_refuse_unknown(&architecture, keys);
    nnunet_json_expect(&architecture, "network_class_name", plain, residual);
    arguments = nnunet_json_object(&architecture, "arch_kwargs");
    if (c->err->status != PONS_OK)
        return;
    bool is_residual = strcmp(nnunet_json_text(&architecture, "network_class_name"), residual) == 0;
    nnunet_plan_put(p, "model", "plugin", is_residual ? "residual_unet" : "plain_unet");
    put_layers(p, &arguments, is_residual, facts);
}

/* ---- plans before 2.4 ------------------------------------------------------------------------ */

static void put_old(nnunet_plan *p, const nnunet_json *c, const nnunet_facts *facts)
{
    const json_t *encoder = nnunet_json_member(c, "n_conv_per_stage_encoder");
    int stages = (int)json_array_size(encoder);
    int base = nnunet_json_integer(c, "UNet_base_num_features", 1, 65536);
    int most = nnunet_json_integer(c, "unet_max_num_features", 1, 65536);
    const char *features = "";

    nnunet_json_expect(c, "UNet_class_name", "PlainConvUNet", "ResidualEncoderUNet");
    if (encoder != NULL && (stages < 2 || stages > STAGES_MAX))
        nnunet_json_refuse(c, "n_conv_per_stage_encoder", "a list of 2 numbers or more");
    if (c->err->status != PONS_OK)
        return;
    bool residual = strcmp(nnunet_json_text(c, "UNet_class_name"), "ResidualEncoderUNet") == 0;
    for (int i = 0; i < stages; i++)
        features = nnunet_plan_join(p, features, arena_format(p->memory, "%.0f",
                                                              fmin(ldexp(base, i), most)));
    nnunet_plan_put(p, "model", "plugin", residual ? "residual_unet" : "plain_unet");
    nnunet_plan_put(p, "model", "features_per_stage", "%s", features);
    nnunet_plan_put(p, "model", "kernel_sizes", "%s",
                    triples_text(p, c, "conv_kernel_sizes", stages));
    nnunet_plan_put(p, "model", "strides", "%s",
                    triples_text(p, c, "pool_op_kernel_sizes", stages));
    nnunet_plan_put(p, "model", residual ? "n_blocks_per_stage" : "n_conv_per_stage", "%s",
                    counts_text(p, c, "n_conv_per_stage_encoder", stages));
    nnunet_plan_put(p, "model", "n_conv_per_stage_decoder", "%s",
                    counts_text(p, c, "n_conv_per_stage_decoder", stages - 1));
    nnunet_plan_put(p, "model", "norm", "%s", facts->batch_norm ? "batch" : "instance");
}

void nnunet_network_put(nnunet_plan *p, const nnunet_json *configuration,
                        const nnunet_facts *facts)
{
    if (configuration->err->status != PONS_OK)
        return;
    if (nnunet_json_has(configuration, "UNet_class_name"))
        put_old(p, configuration, facts);
    else
        put_architecture(p, configuration, facts);
}
