/*
 * export_nnunet.c - plans, labels and checkpoint of a run in nnU-Net's terms.
 *
 * nnU-Net's way of a case is fixed: turn to RAS or not, crop to the voxels that are not 0,
 * normalise each channel by its scheme, resample. Steps of [preprocess] are read in this order.
 */
#include "cli/exchange/export_nnunet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/torch/pickle_names.h"
#include "cli/exchange/export_folder.h"
#include "cli/exchange/option_json.h"

#define NNUNET "nnU-Net"

typedef struct plan_export {
    const experiment *experiment;
    arena *memory;
    bool flat;
    int axis[3];              /* file axis of each plan axis; 2D: the first is flat               */
    int rank;                 /* of the last step                                                 */
    bool cropped, turned;
    json_t *spacing;          /* options of the step; NULL: no resampling                         */
    json_t *schemes;          /* array: a normalisation for each channel                          */
    json_t *masks;            /* array: whether it looks at the inside of the image alone         */
    json_t *intensities;      /* object: statistics of each channel, by its number as text        */
    pons_error *err;
} plan_export;

/* ---- axes ------------------------------------------------------------------------------------ */

static void find_axes(plan_export *x)
{
    int flat = x->experiment->task.flat_axis, count = 0;

    x->flat = x->experiment->task.flat;
    if (x->flat)
        x->axis[count++] = flat;
    for (int a = 0; a < 3; a++)
        if (!x->flat || a != flat)
            x->axis[count++] = a;
}

/* The items of a list along i j k that the plan has, in its order. */
static json_t *planned(const plan_export *x, const json_t *list)
{
    json_t *out = json_array();

    for (int t = x->flat; t < 3; t++)
        json_array_append(out, json_array_get(list, (size_t)x->axis[t]));
    return out;
}

/* Array axis a is axis 2 - a of the file. */
static json_t *transpose(const plan_export *x, bool backward)
{
    int forward[3], back[3] = { 0 };

    for (int t = 0; t < 3; t++)
        forward[t] = 2 - x->axis[t];
    for (int t = 0; t < 3; t++)
        back[forward[t]] = t;
    return option_json_integers(3, backward ? back : forward);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void read_orient(plan_export *x, const char *section, const pipeline_step *s,
                        const json_t *options)
{
    (void)s;
    x->turned = true;
    export_expect(section, options, "axes", "\"RAS\"", NNUNET, x->err);
}

static void read_crop(plan_export *x, const char *section, const pipeline_step *s,
                      const json_t *options)
{
    static const char *const rows[][2] = {
        { "select", "\"nonzero\"" }, { "source", "\"image\"" }, { "margin", "[0, 0, 0]" },
        { "k_divisible", "[1, 1, 1]" }, { "channel_indices", "[]" }
    };

    (void)s;
    x->cropped = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && x->err->status == PONS_OK; i++)
        export_expect(section, options, rows[i][0], rows[i][1], NNUNET, x->err);
}

/* The class of a scheme; of MONAI's rule with the statistics of each channel too. NULL: none. */
static const char *class_of(const plan_export *x, const json_t *options)
{
    static const char *const rows[][2] = {
        { "zscore", "ZScoreNormalization" }, { "ct", "CTNormalization" },
        { "rescale_to_0_1", "RescaleTo01Normalization" },
        { "rgb_to_0_1", "RGBTo01Normalization" }, { "nonorm", "NoNormalization" }
    };
    const char *word = json_string_value(json_object_get(options, "scheme"));
    bool apart = json_is_true(json_object_get(options, "channel_wise"))
                 || x->experiment->task.channels == 1;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i][0], word) == 0)
            return rows[i][1];
    return apart && json_is_false(json_object_get(options, "nonzero"))
           && json_array_size(json_object_get(options, "subtrahend")) == 0
           && json_array_size(json_object_get(options, "divisor")) == 0 ? rows[0][1] : NULL;
}

/* The number of a channel in a list in which one number may stand for all; 0: there is no list. */
static json_t *number_of(const json_t *options, const char *key, int channel)
{
    const json_t *list = json_object_get(options, key);
    size_t index = json_array_size(list) > 1 ? (size_t)channel : 0;

    return json_real(json_number_value(json_array_get(list, index)));
}

static json_t *intensities_of(const json_t *options, int channel)
{
    static const char *const rows[][2] = {
        { "mean", "subtrahend" }, { "median", "subtrahend" }, { "std", "divisor" },
        { "min", "lower" }, { "max", "upper" }, { "percentile_00_5", "lower" },
        { "percentile_99_5", "upper" }
    };
    json_t *out = json_object();

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        json_object_set_new(out, rows[i][0], number_of(options, rows[i][1], channel));
    return out;
}

static void read_normalize(plan_export *x, const char *section, const pipeline_step *s,
                           const json_t *options)
{
    const char *class = class_of(x, options);
    bool masked = json_is_true(json_object_get(options, "use_mask_for_norm"));
    pons_transform_scope scope = volume_step_scope(s);

    if (class == NULL) {
        export_refuse(section, "scheme", json_object_get(options, "scheme"),
                      "zscore or another scheme of " NNUNET, x->err);
        return;
    }
    for (int c = 0; c < x->experiment->task.channels && x->err->status == PONS_OK; c++) {
        if (!pons_scope_has(&scope, c))
            continue;
        if (!json_is_null(json_array_get(x->schemes, (size_t)c)))
            pons_fail(x->err, PONS_CONFIG, "[%s]: channel %d has a second normalisation, expected "
                      "one as " NNUNET " has it", section, c);
        json_array_set_new(x->schemes, (size_t)c, json_string(class));
        json_array_set_new(x->masks, (size_t)c, json_boolean(masked));
        if (strcmp(class, "CTNormalization") == 0)
            json_object_set_new(x->intensities, arena_format(x->memory, "%d", c),
                                intensities_of(options, c));
    }
}

static void read_spacing(plan_export *x, const char *section, const pipeline_step *s,
                         const json_t *options)
{
    const json_t *mm = json_object_get(options, "mm");

    (void)s;
    if (export_expect(section, options, "method", "\"nnunet\"", NNUNET, x->err) != PONS_OK)
        return;
    for (int t = 0; t < 3 && x->err->status == PONS_OK; t++) {
        bool kept = json_number_value(json_array_get(mm, (size_t)x->axis[t])) == 0;
        if (kept != (x->flat && t == 0))
            export_refuse(section, "mm", mm, x->flat ? "0 along the flat axis, and millimetres"
                          : "millimetres along each axis", x->err);
    }
    x->spacing = json_incref((json_t *)(uintptr_t)options);
}

/* Steps in the order of nnU-Net. Masked z-scores look at the image as it was read. */
static const struct { const char *plugin; int rank;
                      void (*read)(plan_export *x, const char *section, const pipeline_step *s,
                                   const json_t *options); } rules[] = {
    { "orient", 1, read_orient }, { "crop_foreground", 2, read_crop },
    { "normalize", 4, read_normalize }, { "spacing", 5, read_spacing }
};

static void read_step(plan_export *x, const pipeline_step *s)
{
    json_t *options = option_json_object(s->options, s->config);
    const char *section = arena_format(x->memory, "preprocess.%s", s->name);
    size_t i = 0, count = sizeof rules / sizeof rules[0];

    while (i < count && strcmp(rules[i].plugin, s->plugin) != 0)
        i++;
    int rank = i == count ? 0
             : json_is_true(json_object_get(options, "use_mask_for_norm")) ? 3 : rules[i].rank;
    if (i == count)
        pons_fail(x->err, PONS_CONFIG, "[preprocess] steps: found '%s', which " NNUNET " does not "
                  "have", s->name);
    else if (rank < x->rank || (rank == x->rank && rank != 3 && rank != 4))
        pons_fail(x->err, PONS_CONFIG, "[preprocess] steps: found '%s' too late, expected orient, "
                  "crop_foreground, normalize and spacing in the order of " NNUNET, s->name);
    else
        rules[i].read(x, section, s, options);
    x->rank = rank;
    json_decref(options);
}

static void read_steps(plan_export *x)
{
    const pipeline *chain = x->experiment->preprocess;

    x->schemes = json_array();
    x->masks = json_array();
    x->intensities = json_object();
    for (int c = 0; c < x->experiment->task.channels; c++) {
        json_array_append_new(x->schemes, json_null());
        json_array_append_new(x->masks, json_false());
        json_object_set_new(x->intensities, arena_format(x->memory, "%d", c),
                            intensities_of(NULL, c));
    }
    for (int i = 0; i < chain->count && x->err->status == PONS_OK; i++)
        if ((chain->step[i].cases & PIPELINE_VALIDATION) != 0)
            read_step(x, &chain->step[i]);
    if (x->err->status == PONS_OK && !x->cropped)
        pons_fail(x->err, PONS_CONFIG, "[preprocess] steps: found no crop_foreground with select = "
                  "nonzero, expected it as " NNUNET " always crops");
    for (int c = 0; c < x->experiment->task.channels; c++)
        if (json_is_null(json_array_get(x->schemes, (size_t)c)))
            json_array_set_new(x->schemes, (size_t)c, json_string("NoNormalization"));
}

/* ---- windows and export ---------------------------------------------------------------------- */

static void check_window(const plan_export *x)
{
    const window_options *w = &x->experiment->sections.window;

    if (w->mode != WINDOW_NNUNET)
        pons_fail(x->err, PONS_CONFIG, "[window] mode: found %s, expected nnunet as " NNUNET
                  " has it (--set window.mode=nnunet)",
                  w->mode == WINDOW_GAUSSIAN ? "gaussian" : "constant");
    else if (w->overlap != 0.5)
        pons_fail(x->err, PONS_CONFIG, "[window] overlap: found %g, expected 0.5 as " NNUNET
                  " has it (--set window.overlap=0.5)", w->overlap);
    else if (w->padding_mode != WINDOW_PAD_CONSTANT)
        pons_fail(x->err, PONS_CONFIG, "[window] padding_mode: expected constant as " NNUNET
                  " has it");
}

/* Probabilities, labels and logits give the same classes where no resampling follows. */
static void check_predict(const plan_export *x)
{
    const predict_options *p = &x->experiment->sections.predict;

    if (x->spacing != NULL && p->resample != RESAMPLE_LOGITS)
        pons_fail(x->err, PONS_CONFIG, "[predict] resample: found %s, expected logits as " NNUNET
                  " has it (--set predict.resample=logits)",
                  p->resample == RESAMPLE_LABELS ? "labels" : "probabilities");
    else if (p->keep_largest.count > 0)
        pons_fail(x->err, PONS_CONFIG, "[predict] keep_largest: found %s, expected nothing, since "
                  "nnUNetv2_predict has no components (--set predict.keep_largest=)",
                  p->keep_largest.item[0]);
    else if (x->experiment->regions && p->region_ids.count == 0)
        pons_fail(x->err, PONS_CONFIG, "[predict] region_ids: expected an id for each of %d "
                  "regions, which " NNUNET " writes", x->experiment->task.classes);
    for (int a = 0; x->spacing != NULL && a < 3 && x->err->status == PONS_OK; a++) {
        double mm = json_number_value(json_array_get(json_object_get(x->spacing, "mm"), (size_t)a));
        if (p->separate_slices == PONS_SLICES_AUTO && p->spacing[a] != 0 && p->spacing[a] != mm)
            pons_fail(x->err, PONS_CONFIG, "[predict] spacing: found %g along axis %d, expected %g "
                      "of [preprocess.spacing] mm", p->spacing[a], a, mm);
    }
}

/* ---- the network ----------------------------------------------------------------------------- */

/* A list in which one item may stand for 'count'; of extents the flat one is left out. */
static json_t *stages(const plan_export *x, const json_t *list, int count)
{
    json_t *out = json_array();

    for (int i = 0; i < count; i++) {
        json_t *item = json_array_get(list, json_array_size(list) > 1 ? (size_t)i : 0);
        json_t *copy = json_deep_copy(item);
        if (json_is_array(copy) && x->flat)
            json_array_remove(copy, 0);
        json_array_append_new(out, copy);
    }
    return out;
}

static json_t *act_arguments(const json_t *o, bool relu)
{
    json_t *out = json_pack("{s:b}", "inplace", 1);

    if (!relu)
        json_object_set(out, "negative_slope", json_object_get(o, "negative_slope"));
    return out;
}

static json_t *layers(const plan_export *x, const json_t *o, bool residual)
{
    const char *counts = residual ? "n_blocks_per_stage" : "n_conv_per_stage";
    int n = (int)json_array_size(json_object_get(o, "features_per_stage")), d = x->flat ? 2 : 3;
    bool relu = strcmp(json_string_value(json_object_get(o, "act")), "relu") == 0;

    return json_pack("{s:i, s:O, s:o, s:o, s:o, s:o, s:o, s:O, s:o, s:{s:O, s:b}, s:n, s:n, s:s, "
                     "s:o}",
                     "n_stages", n, "features_per_stage", json_object_get(o, "features_per_stage"),
                     "conv_op", json_sprintf("torch.nn.modules.conv.Conv%dd", d),
                     "kernel_sizes", stages(x, json_object_get(o, "kernel_sizes"), n),
                     "strides", stages(x, json_object_get(o, "strides"), n),
                     counts, stages(x, json_object_get(o, counts), n), "n_conv_per_stage_decoder",
                     stages(x, json_object_get(o, "n_conv_per_stage_decoder"), n - 1),
                     "conv_bias", json_object_get(o, "conv_bias"), "norm_op",
                     json_sprintf("torch.nn.modules.instancenorm.InstanceNorm%dd", d),
                     "norm_op_kwargs", "eps", json_object_get(o, "eps"), "affine", 1,
                     "dropout_op", "dropout_op_kwargs",
                     "nonlin", relu ? "torch.nn.ReLU" : "torch.nn.LeakyReLU",
                     "nonlin_kwargs", act_arguments(o, relu));
}

static json_t *architecture(plan_export *x)
{
    static const char path[] = "dynamic_network_architectures.architectures.unet.";
    const loaded_plugin *model = &x->experiment->model;
    const char *name = model->plugin->descriptor->name;
    json_t *options, *act, *out = NULL;
    bool residual = strcmp(name, "residual_unet") == 0;

    if (!residual && strcmp(name, "plain_unet") != 0) {
        pons_fail(x->err, PONS_CONFIG, "[model] plugin: found %s, expected plain_unet or "
                  "residual_unet, the networks of " NNUNET, name);
        return NULL;
    }
    options = option_json_object(model->plugin->descriptor->options, model->options);
    act = json_object_get(options, "act");
    if (strcmp(json_string_value(act), "leakyrelu") != 0
        && strcmp(json_string_value(act), "relu") != 0)
        export_refuse("model", "act", act, "leakyrelu or relu", x->err);
    else
        out = json_pack("{s:o, s:o, s:[s,s,s]}", "network_class_name",
                        json_sprintf("%s%s", path, residual ? "ResidualEncoderUNet"
                                                            : "PlainConvUNet"),
                        "arch_kwargs", layers(x, options, residual), "_kw_requires_import",
                        "conv_op", "norm_op", "nonlin");
    json_decref(options);
    return out;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* null, true or false for auto, yes and no. */
static json_t *separation(int slices)
{
    return slices == PONS_SLICES_AUTO ? json_null() : json_boolean(slices == PONS_SLICES_YES);
}

static int order_of(const json_t *options, const char *key)
{
    return atoi(json_string_value(json_object_get(options, key)));
}

static void put_resampling(json_t *c, const char *what, bool labels, int order, int order_z,
                           json_t *separate)
{
    char key[64];

    snprintf(key, sizeof key, "resampling_fn_%s", what);
    json_object_set_new(c, key, json_string("resample_data_or_seg_to_shape"));
    strcat(key, "_kwargs");
    json_object_set_new(c, key, json_pack("{s:b, s:i, s:i, s:o}", "is_seg", labels, "order", order,
                                          "order_z", order_z, "force_separate_z", separate));
}

static void put_resamplings(const plan_export *x, json_t *c)
{
    static const char *const names[] = { "data", "seg", "probabilities" };
    char key[64];

    for (int i = 0; x->spacing == NULL && i < 3; i++) {
        snprintf(key, sizeof key, "resampling_fn_%s", names[i]);
        json_object_set_new(c, key, json_string("no_resampling_hack"));
        strcat(key, "_kwargs");
        json_object_set_new(c, key, json_object());
    }
    if (x->spacing == NULL)
        return;
    const char *word = json_string_value(json_object_get(x->spacing, "force_separate_z"));
    int slices = strcmp(word, "auto") == 0 ? PONS_SLICES_AUTO
               : strcmp(word, "yes") == 0 ? PONS_SLICES_YES : PONS_SLICES_NO;
    put_resampling(c, "data", false, order_of(x->spacing, "order"),
                   order_of(x->spacing, "order_z"), separation(slices));
    put_resampling(c, "seg", true, 1, 0, separation(slices));
    put_resampling(c, "probabilities", false, 1, 0,
                   separation(x->experiment->sections.predict.separate_slices));
}

static json_t *configuration(plan_export *x, const char *name)
{
    json_t *extent = option_json_integers(3, x->experiment->window);
    json_t *ones = option_json_integers(3, (int[]){ 1, 1, 1 });
    const json_t *mm = x->spacing != NULL ? json_object_get(x->spacing, "mm") : ones;
    json_t *network = architecture(x), *c;

    c = json_pack("{s:o, s:s, s:i, s:o, s:o, s:o, s:O, s:O, s:o, s:b}",
                  "data_identifier", json_sprintf("nnUNetPlans_%s", name),
                  "preprocessor_name", "DefaultPreprocessor", "batch_size", 2,
                  "patch_size", planned(x, extent), "median_image_size_in_voxels",
                  planned(x, extent), "spacing", planned(x, mm), "normalization_schemes",
                  x->schemes, "use_mask_for_norm", x->masks, "architecture",
                  network != NULL ? network : json_null(), "batch_dice", 0);
    put_resamplings(x, c);
    json_decref(extent);
    json_decref(ones);
    return c;
}

/* The step that turns images to RAS stands for a reader of nnU-Net. */
static json_t *plans_json(plan_export *x, const char *name)
{
    const char *run = x->experiment->sections.experiment.name;
    json_t *c = configuration(x, name), *mm;
    json_t *extent = option_json_integers(3, x->experiment->window);

    mm = x->spacing != NULL ? json_incref(json_object_get(x->spacing, "mm"))
                            : option_json_integers(3, (int[]){ 1, 1, 1 });
    return json_pack("{s:o, s:s, s:o, s:o, s:s, s:o, s:o, s:{s:o}, s:s, s:s, s:O}",
                     "dataset_name", json_sprintf("Dataset001_%s", run != NULL ? run : "run"),
                     "plans_name", "nnUNetPlans", "original_median_spacing_after_transp", mm,
                     "original_median_shape_after_transp", extent, "image_reader_writer",
                     x->turned ? "NibabelIOWithReorient" : "SimpleITKIO",
                     "transpose_forward", transpose(x, false),
                     "transpose_backward", transpose(x, true), "configurations", name, c,
                     "experiment_planner_used", "pons", "label_manager", "LabelManager",
                     "foreground_intensity_properties_per_channel", x->intensities);
}

/* ---- labels ---------------------------------------------------------------------------------- */

static json_t *labels(const experiment *e)
{
    json_t *out = json_object();

    if (e->regions)
        json_object_set_new(out, "background", json_integer(0));
    for (int i = 0; i < e->task.classes; i++)
        json_object_set_new(out, i == 0 && !e->regions ? "background" : e->task.class_names[i],
                            e->regions ? option_json_integers(e->classes[i].id_count,
                                                              e->classes[i].id)
                                       : json_integer(i));
    return out;
}

static json_t *dataset_json(plan_export *x)
{
    const experiment *e = x->experiment;
    const pons_integers *ids = &e->sections.predict.region_ids;
    json_t *channels = json_object(), *order = json_array(), *out;

    for (int c = 0; c < e->task.channels; c++)
        json_object_set_new(channels, arena_format(x->memory, "%d", c),
                            e->task.channel_names != NULL
                            ? json_string(e->task.channel_names[c])
                            : json_sprintf("channel_%d", c));
    out = json_pack("{s:o, s:o, s:i, s:s}", "channel_names", channels, "labels", labels(e),
                    "numTraining", 1, "file_ending", ".nii.gz");
    for (int i = 0; i < ids->count; i++)
        json_array_append_new(order, json_integer(ids->item[i]));
    if (e->regions)
        json_object_set(out, "regions_class_order", order);
    json_decref(order);
    return out;
}

/* ---- checkpoint ------------------------------------------------------------------------------ */

/* nnU-Net's second name of a layer within a block: all_modules.0 and .1 for conv and norm. */
static const char *second_name(const plan_export *x, const char *name)
{
    static const char *const rows[][2] = { { ".conv.", "0" }, { ".norm.", "1" } };

    for (int i = 0; i < 2; i++) {
        const char *at = strstr(name, rows[i][0]);
        if (at != NULL)
            return arena_format(x->memory, "%.*s.all_modules.%s.%s", (int)(at - name), name,
                                rows[i][1], at + strlen(rows[i][0]));
    }
    return NULL;
}

/* The decoder holds the encoder, so that its tensors have names there too. */
static void put_names(const plan_export *x, torch_value *out, const char *name,
                      torch_value *tensor)
{
    export_put(out, name, tensor, x->memory);
    if (strncmp(name, "encoder.", 8) == 0)
        export_put(out, arena_format(x->memory, "decoder.%s", name), tensor, x->memory);
}

static torch_value *all_names(const plan_export *x, const torch_value *state)
{
    torch_value *out = pickle_value_new(x->memory, TORCH_DICTIONARY);

    for (int i = 0; i < torch_value_count(state); i++) {
        const char *name = torch_value_text(torch_value_key(state, i));
        const char *second = second_name(x, name);
        torch_value *tensor = state->list.item[2 * i + 1];
        put_names(x, out, name, tensor);
        if (second != NULL)
            put_names(x, out, second, tensor);
    }
    return out;
}

/* The plan's axes along which windows are flipped; none: None. */
static torch_value *mirror_axes(const plan_export *x)
{
    const pons_integers *mirror = &x->experiment->sections.window.mirror;
    torch_value *list = pickle_value_new(x->memory, TORCH_TUPLE);

    for (int t = x->flat; t < 3; t++)
        for (int i = 0; i < mirror->count; i++)
            if (mirror->item[i] == x->axis[t]) {
                torch_value *axis = pickle_value_new(x->memory, TORCH_INTEGER);
                axis->integer = t - x->flat;
                pickle_value_append(x->memory, list, axis);
            }
    return list->list.count > 0 ? list : pickle_value_new(x->memory, TORCH_NONE);
}

static torch_value *checkpoint(const plan_export *x, const torch_value *state, const char *name,
                               const json_t *plan, const json_t *data)
{
    torch_value *root = pickle_value_new(x->memory, TORCH_DICTIONARY);
    const loaded_plugin *model = &x->experiment->model;
    json_t *o = option_json_object(model->plugin->descriptor->options, model->options);
    json_t *start = json_pack("{s:O, s:s, s:i, s:O}", "plans", plan, "configuration", name,
                              "fold", 0, "dataset_json", data);
    bool batch = strcmp(json_string_value(json_object_get(o, "norm")), "batch") == 0;
    const char *trainer = batch ? "nnUNetTrainerBN" : "nnUNetTrainer";

    export_put(root, "network_weights", all_names(x, state), x->memory);
    export_put(root, "init_args", export_value(start, x->memory), x->memory);
    export_put(root, "trainer_name", pickle_value_bytes(x->memory, TORCH_TEXT, trainer,
                                                        strlen(trainer)), x->memory);
    export_put(root, "inference_allowed_mirroring_axes", mirror_axes(x), x->memory);
    json_decref(o);
    json_decref(start);
    return root;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static void check_all(plan_export *x)
{
    const experiment *e = x->experiment;

    if (e->sections.experiment.task != 0)
        pons_fail(x->err, PONS_CONFIG, "[experiment] task: " NNUNET " has segmentation only");
    if (x->err->status == PONS_OK)
        json_decref(architecture(x));
    if (x->err->status == PONS_OK)
        read_steps(x);
    if (x->err->status == PONS_OK)
        check_window(x);
    if (x->err->status == PONS_OK)
        check_predict(x);
}

static pons_status write_folder(plan_export *x, const predictor *p, const char *folder)
{
    const char *name = x->flat ? "2d" : "3d_fullres";
    json_t *plan = plans_json(x, name), *data = dataset_json(x);
    torch_value *state = export_state(p, x->memory, x->err);

    if (plan == NULL || data == NULL)
        pons_fail(x->err, PONS_DEVICE, "'%s': out of memory", folder);
    if (x->err->status == PONS_OK) {
        const export_file files[] = {
            { .name = "plans.json", .json = plan }, { .name = "dataset.json", .json = data },
            { .name = "fold_0/checkpoint_final.pth",
              .torch = checkpoint(x, state, name, plan, data) }
        };
        export_folder_write(folder, sizeof files / sizeof files[0], files, x->experiment->log,
                            x->err);
    }
    json_decref(plan);
    json_decref(data);
    return x->err->status;
}

pons_status export_nnunet(const predictor *p, const char *folder, pons_error *err)
{
    plan_export x = { .experiment = predictor_experiment(p), .memory = arena_new(), .err = err };

    if (x.memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    find_axes(&x);
    if (export_folder_check(folder, err) == PONS_OK)
        check_all(&x);
    if (err->status == PONS_OK)
        write_folder(&x, p, folder);
    json_decref(x.spacing);
    json_decref(x.schemes);
    json_decref(x.masks);
    json_decref(x.intensities);
    arena_free(x.memory);
    return err->status;
}
