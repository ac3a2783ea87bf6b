/*
 * nnunet_plan.c - axes, grid, windows and export of a configuration of plans.json.
 */
#include "nnunet/nnunet_plan.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* ---- lines ----------------------------------------------------------------------------------- */

void nnunet_plan_put(nnunet_plan *p, const char *section, const char *key, const char *format, ...)
{
    va_list list;

    if (p->line_count == p->line_room) {
        int room = 2 * p->line_room + 32;
        p->line = arena_grow(p->memory, p->line, (size_t)p->line_count * sizeof *p->line,
                             (size_t)room * sizeof *p->line);
        p->line_room = room;
    }
    va_start(list, format);
    p->line[p->line_count++] = (config_line){ section, key,
                                              arena_vformat(p->memory, format, list) };
    va_end(list);
}

const char *nnunet_plan_join(const nnunet_plan *p, const char *list, const char *word)
{
    return list[0] == '\0' ? word : arena_format(p->memory, "%s %s", list, word);
}

const char *nnunet_plan_axes(const nnunet_plan *p, const double value[3], const char *divider)
{
    return arena_format(p->memory, "%.17g%s%.17g%s%.17g", value[p->order[0]], divider,
                        value[p->order[1]], divider, value[p->order[2]]);
}

/* Numbers of a list along the plan's axes; that of a flat axis is 'flat'. */
static void read_axes(const nnunet_plan *p, const nnunet_json *j, const char *key, double flat,
                      double out[3])
{
    out[0] = flat;
    nnunet_json_numbers(j, key, p->axes, out + 3 - p->axes);
}

/* ---- axes ------------------------------------------------------------------------------------ */

/* 'order' from transpose_forward: array axis a is axis 2 - a of the file. */
static void read_order(nnunet_plan *p, const nnunet_json *plans)
{
    double forward[3] = { 0 }, back[3] = { 0 };
    bool good = true;

    nnunet_json_numbers(plans, "transpose_forward", 3, forward);
    nnunet_json_numbers(plans, "transpose_backward", 3, back);
    for (int a = 0; a < 3 && plans->err->status == PONS_OK; a++) {
        good = good && (forward[a] == 0 || forward[a] == 1 || forward[a] == 2);
        if (good)
            p->order[2 - (int)forward[a]] = a;
        for (int b = 0; b < a; b++)
            good = good && forward[a] != forward[b];
    }
    if (!good)
        nnunet_json_refuse(plans, "transpose_forward", "each of 0, 1 and 2 once");
    for (int a = 0; a < 3 && plans->err->status == PONS_OK; a++)
        if (back[(int)forward[a]] != a)
            nnunet_json_refuse(plans, "transpose_backward", "the inverse of transpose_forward");
}

/* ---- grid ------------------------------------------------------------------------------------ */

typedef enum plan_resampling {
    RESAMPLING_NONE, RESAMPLING_SPLINE, RESAMPLING_TORCH
} plan_resampling;

static plan_resampling read_function(const nnunet_json *c, const char *key)
{
    static const char *const names[] = { "no_resampling_hack", "resample_data_or_seg_to_shape",
                                         "resample_torch_fornnunet" };
    const char *found = nnunet_json_text(c, key);

    for (int i = 0; found != NULL && i < 3; i++)
        if (strcmp(found, names[i]) == 0)
            return (plan_resampling)i;
    if (found != NULL)
        nnunet_json_refuse(c, key, "resample_data_or_seg_to_shape, resample_torch_fornnunet or "
                           "no_resampling_hack");
    return RESAMPLING_NONE;
}

static const char *slices_word(const nnunet_json *arguments)
{
    if (!nnunet_json_has(arguments, "force_separate_z"))
        return "auto";
    return nnunet_json_flag(arguments, "force_separate_z") ? "yes" : "no";
}

static const char *const spline_keys[] = { "is_seg", "order", "order_z", "force_separate_z",
                                           NULL };

/*
 * Arguments of a resampling that is not of labels. PyTorch's variant is linear, and takes the
 * nearest slice; it repeats the rule of a spacing over 3 times another.
 */
static void check_arguments(const nnunet_json *a, plan_resampling how)
{
    static const char *const torch[] = { "is_seg", "force_separate_z", "mode", "aniso_axis_mode",
                                         "memefficient_seg_resampling",
                                         "separate_z_anisotropy_threshold", NULL };

    nnunet_json_refuse_unknown(a, how == RESAMPLING_TORCH ? torch : spline_keys);
    if (json_object_get(a->object, "is_seg") != NULL && nnunet_json_flag(a, "is_seg"))
        nnunet_json_refuse(a, "is_seg", "false");
    if (how != RESAMPLING_TORCH)
        return;
    if (nnunet_json_has(a, "separate_z_anisotropy_threshold"))
        nnunet_json_integer(a, "separate_z_anisotropy_threshold", 3, 3);
    nnunet_json_expect(a, "mode", "linear", NULL);
    nnunet_json_expect(a, "aniso_axis_mode", "nearest-exact", NULL);
}

/* An order of splines with a default; 2 is none of ours. */
static int read_spline(const nnunet_json *a, const char *key, int missing)
{
    int order = nnunet_json_has(a, key) ? nnunet_json_integer(a, key, 0, 3) : missing;

    if (order == 2)
        nnunet_json_refuse(a, key, "0, 1 or 3");
    return order;
}

static const char *put_spacing(nnunet_plan *p, const nnunet_json *c)
{
    plan_resampling how = read_function(c, "resampling_fn_data");
    nnunet_json a = nnunet_json_object(c, "resampling_fn_data_kwargs");
    double mm[3] = { 0 };

    read_axes(p, c, "spacing", 0, mm);
    for (int i = 3 - p->axes; i < 3 && c->err->status == PONS_OK; i++)
        if (!(mm[i] > 0 && mm[i] <= 1000))
            nnunet_json_refuse(c, "spacing", "millimetres above 0, at most 1000");
    if (how == RESAMPLING_NONE)
        return "";
    check_arguments(&a, how);
    nnunet_plan_put(p, "preprocess.spacing", "mm", "%s", nnunet_plan_axes(p, mm, " "));
    nnunet_plan_put(p, "preprocess.spacing", "method", "nnunet");
    nnunet_plan_put(p, "preprocess.spacing", "order", "%d",
                    how == RESAMPLING_TORCH ? 1 : read_spline(&a, "order", 3));
    nnunet_plan_put(p, "preprocess.spacing", "order_z", "%d",
                    how == RESAMPLING_TORCH ? 0 : read_spline(&a, "order_z", 0));
    nnunet_plan_put(p, "preprocess.spacing", "force_separate_z", "%s", slices_word(&a));
    return "spacing";
}

static void put_export(nnunet_plan *p, const nnunet_json *c)
{
    plan_resampling how = read_function(c, "resampling_fn_probabilities");
    nnunet_json a = nnunet_json_object(c, "resampling_fn_probabilities_kwargs");
    double mm[3] = { 0 };

    nnunet_plan_put(p, "predict", "resample", "logits");
    if (how == RESAMPLING_NONE)
        return;
    check_arguments(&a, how);
    if (how == RESAMPLING_SPLINE && read_spline(&a, "order", 1) != 1)
        nnunet_json_refuse(&a, "order", "1");
    if (how == RESAMPLING_SPLINE && read_spline(&a, "order_z", 0) != 0)
        nnunet_json_refuse(&a, "order_z", "0");
    read_axes(p, c, "spacing", 0, mm);
    nnunet_plan_put(p, "predict", "separate_slices", "%s", slices_word(&a));
    nnunet_plan_put(p, "predict", "spacing", "%s", nnunet_plan_axes(p, mm, " "));
}

/* The step that turns the image before all others; "": none. */
static const char *put_orient(nnunet_plan *p, const nnunet_json *plans)
{
    static const char *const plain[] = { "SimpleITKIO", "NibabelIO" };
    static const char *const turned[] = { "SimpleITKIOWithReorient", "NibabelIOWithReorient" };
    const char *found = nnunet_json_text(plans, "image_reader_writer");

    for (int i = 0; found != NULL && i < 2; i++) {
        if (strcmp(found, plain[i]) == 0)
            return "";
        if (strcmp(found, turned[i]) == 0) {
            nnunet_plan_put(p, "preprocess.orient", "axes", "RAS");
            return "orient";
        }
    }
    if (found != NULL)
        nnunet_json_refuse(plans, "image_reader_writer", "SimpleITKIO, NibabelIO or one of both "
                           "WithReorient");
    return "";
}

static void put_preprocess(nnunet_plan *p, const nnunet_json *plans, const nnunet_json *c)
{
    const char *steps = nnunet_plan_join(p, put_orient(p, plans), "crop_foreground");

    nnunet_plan_put(p, "preprocess.crop_foreground", "select", "nonzero");
    steps = nnunet_plan_join(p, steps, nnunet_values_put(p, plans, c));
    nnunet_plan_put(p, "preprocess", "steps", "%s", nnunet_plan_join(p, steps, put_spacing(p, c)));
}

/* ---- windows --------------------------------------------------------------------------------- */

static void put_window(nnunet_plan *p, const nnunet_json *c, const nnunet_facts *facts)
{
    double extent[3];
    const char *mirror = "";

    read_axes(p, c, "patch_size", 1, extent);
    for (int a = 3 - p->axes; a < 3 && c->err->status == PONS_OK; a++)
        if (!(extent[a] >= 1 && extent[a] <= 65536 && extent[a] == floor(extent[a])))
            nnunet_json_refuse(c, "patch_size", "whole numbers from 1 to 65536");
    nnunet_plan_put(p, "window", "extent", "%s", nnunet_plan_axes(p, extent, " "));
    nnunet_plan_put(p, "window", "mode", "nnunet");
    nnunet_plan_put(p, "window", "overlap", "0.5");
    nnunet_plan_put(p, "window", "batch", "1");
    nnunet_plan_put(p, "window", "precision", "fp32");
    for (int file = 0; file < 3; file++)
        for (int i = 0; i < facts->mirror_count; i++)
            if (p->order[file] == facts->mirror[i] + 3 - p->axes)
                mirror = nnunet_plan_join(p, mirror, arena_format(p->memory, "%d", file));
    nnunet_plan_put(p, "window", "mirror", "%s", mirror);
}

/* ---- configurations -------------------------------------------------------------------------- */

static const char *const plan_keys[] = {
    "dataset_name", "plans_name", "original_median_spacing_after_transp",
    "original_median_shape_after_transp", "image_reader_writer", "transpose_forward",
    "transpose_backward", "configurations", "experiment_planner_used", "label_manager",
    "foreground_intensity_properties_per_channel", "foreground_intensity_properties_by_modality",
    NULL
};

static const char *const configuration_keys[] = {
    "data_identifier", "preprocessor_name", "batch_size", "patch_size",
    "median_image_size_in_voxels", "spacing", "normalization_schemes", "use_mask_for_norm",
    "resampling_fn_data", "resampling_fn_seg", "resampling_fn_data_kwargs",
    "resampling_fn_seg_kwargs", "resampling_fn_probabilities",
    "resampling_fn_probabilities_kwargs", "architecture", "batch_dice", "inherits_from",
    "previous_stage", "next_stage", "UNet_class_name", "UNet_base_num_features",
    "n_conv_per_stage_encoder", "n_conv_per_stage_decoder", "num_pool_per_axis",
    "pool_op_kernel_sizes", "conv_kernel_sizes", "unet_max_num_features", NULL
};

/*
 * Merge a configuration with those that it inherits from; its own keys win. The result is released
 * by json_decref.
 */
static json_t *merged_configuration(const nnunet_json *all, const char *name)
{
    enum { DEPTH = 16 };
    json_t *out = json_object();

    for (int depth = 0; out != NULL && name != NULL && all->err->status == PONS_OK; depth++) {
        nnunet_json c = nnunet_json_object(all, name);
        if (c.err->status != PONS_OK)
            break;
        nnunet_json_refuse_unknown(&c, configuration_keys);
        json_object_update_missing(out, (json_t *)c.object);
        if (depth == DEPTH)
            nnunet_json_refuse(&c, "inherits_from", "a configuration that does not inherit "
                               "from itself");
        name = nnunet_json_has(&c, "inherits_from") ? nnunet_json_text(&c, "inherits_from") : NULL;
    }
    return out;
}

/* Expect the labels of a first stage to be resampled as the step 'spacing' resamples labels. */
static void check_label_resampling(const nnunet_json *c)
{
    static const char spline[] = "resample_data_or_seg_to_shape";
    nnunet_json data = nnunet_json_object(c, "resampling_fn_data_kwargs");
    nnunet_json a = nnunet_json_object(c, "resampling_fn_seg_kwargs");

    nnunet_json_expect(c, "resampling_fn_seg", spline, spline);
    if (c->err->status != PONS_OK)
        return;
    nnunet_json_refuse_unknown(&a, spline_keys);
    if (json_object_get(a.object, "is_seg") == NULL || !nnunet_json_flag(&a, "is_seg"))
        nnunet_json_refuse(&a, "is_seg", "true");
    if (read_spline(&a, "order", 3) != 1)
        nnunet_json_refuse(&a, "order", "1");
    if (read_spline(&a, "order_z", 0) != 0)
        nnunet_json_refuse(&a, "order_z", "0");
    if (c->err->status == PONS_OK && strcmp(slices_word(&a), slices_word(&data)) != 0)
        nnunet_json_refuse(&a, "force_separate_z", "that of resampling_fn_data_kwargs");
}

/* The labels of the first stage are numbered from 1 in bytes, of which 255 is no label. */
static void put_previous(nnunet_plan *p, const nnunet_json *c)
{
    const char *name = nnunet_json_text(c, "previous_stage");

    if (name != NULL && p->id_count > 254)
        nnunet_json_refuse(c, "previous_stage", "at most 254 labels of a first stage");
    if (name != NULL && read_function(c, "resampling_fn_data") != RESAMPLING_NONE)
        check_label_resampling(c);
    if (name != NULL)
        p->previous = arena_string(p->memory, name);
}

static void put_configuration(nnunet_plan *p, const nnunet_json *plans, const nnunet_json *c,
                              const nnunet_facts *facts)
{
    const json_t *extent = nnunet_json_member(c, "patch_size");

    p->axes = json_array_size(extent) == 2 ? 2 : 3;
    nnunet_json_expect(c, "preprocessor_name", "DefaultPreprocessor", "DefaultPreprocessor");
    if (nnunet_json_has(c, "previous_stage"))
        put_previous(p, c);
    if (c->err->status == PONS_OK)
        put_preprocess(p, plans, c);
    put_window(p, c, facts);
    put_export(p, c);
    nnunet_network_put(p, c, facts);
}

static void put_plans(nnunet_plan *p, const nnunet_json *plans, const nnunet_facts *facts)
{
    nnunet_json all = nnunet_json_object(plans, "configurations");
    nnunet_json c = all;
    json_t *merged;

    nnunet_json_refuse_unknown(plans, plan_keys);
    nnunet_json_expect(plans, "label_manager", "LabelManager", NULL);
    read_order(p, plans);
    if (plans->err->status != PONS_OK)
        return;
    merged = merged_configuration(&all, facts->configuration);
    c.object = merged;
    c.path = arena_format(p->memory, "configurations.%s", facts->configuration);
    if (merged == NULL)
        pons_fail(plans->err, PONS_DEVICE, "out of memory");
    if (plans->err->status == PONS_OK)
        put_configuration(p, plans, &c, facts);
    json_decref(merged);
}

pons_status nnunet_plan_read(nnunet_plan *out, arena *memory, const char *folder,
                             const nnunet_facts *facts, pons_error *err)
{
    const char *plans = arena_format(memory, "%s/plans.json", folder);
    const char *dataset = arena_format(memory, "%s/dataset.json", folder);
    json_t *root = NULL;
    nnunet_json j;

    *out = (nnunet_plan){ .memory = memory, .where = plans };
    if (nnunet_json_read(&j, memory, dataset, &root, err) == PONS_OK)
        nnunet_labels_put(out, &j);
    json_decref(root);
    if (err->status != PONS_OK)
        return err->status;
    if (nnunet_json_read(&j, memory, plans, &root, err) == PONS_OK)
        put_plans(out, &j, facts);
    json_decref(root);
    return err->status;
}
