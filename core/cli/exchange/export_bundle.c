/*
 * export_bundle.c - the network, its windows and the way to the file's grid in the terms of MONAI
 * (mb_specification.rst of MONAI).
 */
#include "cli/exchange/export_bundle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/weights/weights_path.h"
#include "cli/exchange/bundle_state.h"
#include "cli/exchange/bundle_transforms.h"
#include "cli/exchange/export_folder.h"
#include "cli/exchange/monai_classes.h"
#include "cli/exchange/option_json.h"

#define MONAI "MONAI"

static const char licence[] =
    "The authors of this bundle have not stated a licence for its weights. Until they write one\n"
    "here, all rights are reserved.\n";

/* ---- the network ----------------------------------------------------------------------------- */

/* A list of equal numbers becomes the number, a word of digits too. */
static json_t *shortened(json_t *value)
{
    const char *word = json_string_value(value);
    json_t *first = json_array_get(value, 0);

    if (word != NULL && isdigit((unsigned char)word[0]))
        return json_integer(atoi(word));
    for (size_t i = 1; first != NULL && i < json_array_size(value); i++)
        if (!json_equal(first, json_array_get(value, i)))
            return json_incref(value);
    return first != NULL ? json_incref(first) : json_incref(value);
}

/* The value of an argument: extents along all axes are one number where they are equal. */
static json_t *argument(const pons_option *o, const void *config)
{
    json_t *value = option_json_value(o, config), *out;

    if (o->type == PONS_OPTION_TRIPLES) {
        out = json_array();
        for (size_t i = 0; i < json_array_size(value); i++)
            json_array_append_new(out, shortened(json_array_get(value, i)));
    } else if (o->type == PONS_OPTION_AXES || o->type == PONS_OPTION_CHOICE) {
        out = shortened(value);
    } else {
        out = json_incref(value);
    }
    json_decref(value);
    return out;
}

/* Move an option into the arguments of a layer: ["group", {"num_groups": 8}]. */
static void move_into(json_t *network, const char *layer, const char *option, bool used)
{
    json_t *value = json_object_get(network, option), *at = json_object_get(network, layer);

    if (value == NULL || at == NULL)
        return;
    if (used && json_is_string(at)) {
        json_object_set_new(network, layer, json_pack("[O, {}]", at));
        at = json_object_get(network, layer);
    }
    if (used)
        json_object_set(json_array_get(at, 1), option, value);
    json_object_del(network, option);
}

/* Options of layers under the names that the argument for the layer has. */
static void move_options(json_t *network)
{
    static const char *const norms[] = { "norm", "norm_name" };

    for (int i = 0; i < 2; i++) {
        const char *norm = json_string_value(json_object_get(network, norms[i]));
        bool group = norm != NULL && strcmp(norm, "group") == 0;
        move_into(network, norms[i], "num_groups", group);
        move_into(network, norms[i], "affine", true);
    }
    const char *act = json_string_value(json_object_get(network, "act"));
    move_into(network, "act", "negative_slope", act != NULL && strcmp(act, "leakyrelu") == 0);
}

static json_t *network_of(const experiment *e, pons_error *err)
{
    const pons_plugin *plugin = e->model.plugin->descriptor;
    const char *class = monai_class_of(plugin->name);
    json_t *out;

    if (class == NULL) {
        pons_fail(err, PONS_CONFIG, "[model] plugin: found %s, of which " MONAI " has no class\n"
                  "hint: -o MODEL.onnx takes every network, --nnunet DIR those of nnU-Net",
                  plugin->name);
        return NULL;
    }
    out = json_pack("{s:s, s:i, s:i, s:i}", "_target_", class, "spatial_dims", 3, "in_channels",
                    e->task.channels, "out_channels", e->task.classes);
    for (const pons_option *o = plugin->options; o != NULL && o->name != NULL; o++) {
        json_t *value = argument(o, e->model.options);
        if (!json_is_array(value) || json_array_size(value) > 0)
            json_object_set(out, o->name, value);
        json_decref(value);
    }
    move_options(out);
    return out;
}

/* ---- windows --------------------------------------------------------------------------------- */

static json_t *inferer_of(const experiment *e, pons_error *err)
{
    static const char *const paddings[] = { "constant", "reflect", "replicate", "circular" };
    const window_options *w = &e->sections.window;

    if (w->mode == WINDOW_NNUNET)
        pons_fail(err, PONS_CONFIG, "[window] mode: found nnunet, expected constant or gaussian as "
                  MONAI " has it (--set window.mode=gaussian)");
    else if (w->mirror.count > 0)
        pons_fail(err, PONS_CONFIG, "[window] mirror: found axes, expected none, since windows of "
                  MONAI " are not flipped (--set window.mirror=)");
    return json_pack("{s:s, s:[i,i,i], s:I, s:f, s:s, s:f, s:s}", "_target_",
                     "SlidingWindowInferer", "roi_size", e->window[0], e->window[1], e->window[2],
                     "sw_batch_size", (json_int_t)w->batch, "overlap", w->overlap, "mode",
                     w->mode == WINDOW_GAUSSIAN ? "gaussian" : "constant", "sigma_scale",
                     w->sigma_scale, "padding_mode", paddings[w->padding_mode]);
}

/* ---- transforms ------------------------------------------------------------------------------ */

static json_t *preprocessing_of(const experiment *e, bool *moves, pons_error *err)
{
    json_t *list = json_pack("[{s:s, s:s, s:b}, {s:s, s:s}]", "_target_", "LoadImaged", "keys",
                             "image", "image_only", 1, "_target_", "EnsureChannelFirstd", "keys",
                             "image");

    bundle_transforms_add(e, list, moves, err);
    return json_pack("{s:s, s:o}", "_target_", "Compose", "transforms", list);
}

static void add_activation(const experiment *e, json_t *list)
{
    const char *kind = e->activation == PONS_ACTIVATION_SIGMOID ? "sigmoid" : "softmax";

    if (e->activation != PONS_ACTIVATION_NONE)
        json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "_target_", "Activationsd",
                                              "keys", "pred", kind, 1));
}

static void add_decision(const experiment *e, json_t *list)
{
    bool apart = e->regions || e->task.classes == 1;
    json_t *t = json_pack("{s:s, s:s}", "_target_", "AsDiscreted", "keys", "pred");

    json_object_set_new(t, apart ? "threshold" : "argmax", apart ? json_real(0.5) : json_true());
    json_array_append_new(list, t);
}

static void add_inverse(bool labels, json_t *list)
{
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "_target_", "Invertd",
                                          "keys", "pred", "transform", "@preprocessing",
                                          "orig_keys", "image", "nearest_interp", labels,
                                          "to_tensor", 1));
}

static void check_predict(const experiment *e, pons_error *err)
{
    const predict_options *p = &e->sections.predict;

    if (p->keep_largest.count > 0)
        pons_fail(err, PONS_CONFIG, "[predict] keep_largest: found %s, expected nothing "
                  "(--set predict.keep_largest=)", p->keep_largest.item[0]);
    else if (p->region_ids.count > 0)
        pons_fail(err, PONS_CONFIG, "[predict] region_ids: found ids, expected none, since " MONAI
                  " writes a channel for each region (--set predict.region_ids=)");
    else if (p->separate_slices != PONS_SLICES_NO && p->resample == RESAMPLE_LOGITS)
        pons_fail(err, PONS_CONFIG, "[predict] separate_slices: expected no as " MONAI " has it "
                  "(--set predict.separate_slices=no)");
}

/* The order of [predict] resample: what is resampled to the file's grid, and what after it. */
static json_t *postprocessing_of(const experiment *e, bool moves, pons_error *err)
{
    json_t *list = json_array();
    int what = e->sections.predict.resample;

    check_predict(e, err);
    if (what != RESAMPLE_LOGITS)
        add_activation(e, list);
    if (what == RESAMPLE_LABELS)
        add_decision(e, list);
    if (moves)
        add_inverse(what == RESAMPLE_LABELS, list);
    if (what == RESAMPLE_LOGITS)
        add_activation(e, list);
    if (what != RESAMPLE_LABELS)
        add_decision(e, list);
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "_target_",
                                          "SaveImaged", "keys", "pred", "output_dir",
                                          "@output_dir", "output_postfix", "", "output_dtype",
                                          "$torch.uint8", "separate_folder", 0));
    return json_pack("{s:s, s:o}", "_target_", "Compose", "transforms", list);
}

/* ---- inference.json -------------------------------------------------------------------------- */

/* A file for each case, or of several channels a folder with a file for each. */
static const char *datalist_of(const experiment *e)
{
    return e->task.channels == 1
           ? "$sorted(glob.glob(@dataset_dir + '/*.nii.gz'))"
           : "$[sorted(glob.glob(d + '/*.nii.gz')) "
             "for d in sorted(glob.glob(@dataset_dir + '/*'))]";
}

static json_t *evaluator_of(void)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "_target_", "SupervisedEvaluator",
                     "device", "@device", "val_data_loader", "@dataloader", "network", "@network",
                     "inferer", "@inferer", "postprocessing", "@postprocessing", "val_handlers",
                     "@handlers", "amp", 0);
}

static json_t *handlers_of(void)
{
    return json_pack("[{s:s, s:s, s:{s:s}, s:s}]", "_target_", "CheckpointLoader", "load_path",
                     "$@bundle_root + '/" WEIGHTS_OF_BUNDLE "'", "load_dict", "model", "@network",
                     "map_location", "@device");
}

static json_t *inference_of(const experiment *e, pons_error *err)
{
    bool moves = false;
    json_t *network = network_of(e, err);
    json_t *before = preprocessing_of(e, &moves, err), *inferer = inferer_of(e, err);
    json_t *after = postprocessing_of(e, moves, err);

    return json_pack("{s:[s,s], s:s, s:s, s:s, s:s, s:s, s:o*, s:s, s:o, s:{s:s, s:s, s:s}, "
                     "s:{s:s, s:s, s:i, s:b}, s:o, s:o, s:o, s:o, s:[s], s:[s]}",
                     "imports", "$import glob", "$import os", "bundle_root", ".", "output_dir",
                     "$@bundle_root + '/eval'", "dataset_dir", "/workspace/data", "datalist",
                     datalist_of(e), "device",
                     "$torch.device('cuda:0' if torch.cuda.is_available() else 'cpu')",
                     "network_def", network, "network", "$@network_def.to(@device)",
                     "preprocessing", before, "dataset", "_target_", "Dataset", "data",
                     "$[{'image': i} for i in @datalist]", "transform", "@preprocessing",
                     "dataloader", "_target_", "DataLoader", "dataset", "@dataset", "batch_size",
                     1, "shuffle", 0, "inferer", inferer, "postprocessing", after, "handlers",
                     handlers_of(), "evaluator", evaluator_of(), "initialize",
                     "$setattr(torch.backends.cudnn, 'benchmark', False)", "run",
                     "$@evaluator.run()");
}

/* ---- metadata.json --------------------------------------------------------------------------- */

static json_t *names(const char *const *name, int count, const char *other)
{
    json_t *out = json_object();
    char key[16];

    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof key, "%d", i);
        json_object_set_new(out, key, name != NULL ? json_string(name[i])
                                                   : json_sprintf("%s %d", other, i));
    }
    return out;
}

static json_t *format_of(const experiment *e, bool output)
{
    const pons_task *t = &e->task;
    int channels = output ? t->classes : t->channels;
    bool indices = !e->regions && t->classes > 1;

    return json_pack("{s:s, s:s, s:s, s:i, s:[i,i,i], s:s, s:[i,i], s:b, s:o}", "type",
                     "image", "format", output ? "segmentation" : "magnitude",
                     "modality", "n/a", "num_channels", channels, "spatial_shape", e->window[0],
                     e->window[1], e->window[2], "dtype", "float32", "value_range", 0,
                     output && indices ? channels - 1 : 1, "is_patch_data", 1, "channel_def",
                     names(output ? t->class_names : t->channel_names, channels, "channel"));
}

static json_t *metadata_of(const experiment *e, const char *version)
{
    const char *run = e->sections.experiment.name;
    const char *plugin = e->model.plugin->descriptor->name;

    return json_pack("{s:s, s:s, s:{s:s}, s:s, s:s, s:s, s:{s:s, s:s}, s:s, s:s, s:o, s:s, s:s, "
                     "s:s, s:s, s:{s:{s:o}, s:{s:o}}}",
                     "schema", "https://github.com/Project-MONAI/MONAI-extra-test-data/releases/"
                     "download/0.8.1/meta_schema_20240725.json", "version", "0.1.0", "changelog",
                     "0.1.0", "exported", "monai_version", "1.4.0", "pytorch_version", "2.4.0",
                     "numpy_version", "1.24.4", "required_packages_version", "nibabel", "5.2.1",
                     "pytorch-ignite", "0.4.11", "name", run != NULL ? run : plugin, "task",
                     "segmentation of volumes", "description",
                     json_sprintf("Network '%s', trained by pons %s.", plugin, version),
                     "authors", "not stated", "copyright", "not stated", "data_type", "nibabel",
                     "image_classes", "float images", "network_data_format", "inputs", "image",
                     format_of(e, false), "outputs", "pred", format_of(e, true));
}

/* ---- the folder ------------------------------------------------------------------------------ */

static const char *readme_of(const experiment *e, arena *memory)
{
    const char *text = arena_format(memory, "# %s\n\nA network `%s`, trained by pons and exported "
                                    "by `pons export --bundle`. Its outputs are\n\n",
                                    e->sections.experiment.name != NULL
                                    ? e->sections.experiment.name : "Model",
                                    e->model.plugin->descriptor->name);

    for (int i = 0; i < e->task.classes; i++)
        text = arena_format(memory, "%s- %d: %s\n", text, i, e->task.class_names[i]);
    return arena_format(memory, "%s\n    python -m monai.bundle run --config_file "
                        "configs/inference.json --bundle_root . --dataset_dir IMAGES\n\nsegments "
                        "%s and writes to `eval`.\n", text,
                        e->task.channels == 1 ? "the files .nii.gz of the folder IMAGES"
                        : "the cases of the folder IMAGES, a folder with a file .nii.gz for each "
                          "channel in order of their names,");
}

static pons_status write_folder(const predictor *p, const json_t *inference,
                                const json_t *metadata, const char *folder, pons_error *err)
{
    arena *memory = arena_new();
    torch_value *state;

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    state = export_state(p, memory, err);
    if (err->status == PONS_OK) {
        bundle_state_complete(state, json_object_get(inference, "network_def"), memory);
        const export_file files[] = {
            { .name = "configs/metadata.json", .json = metadata },
            { .name = "configs/inference.json", .json = inference },
            { .name = WEIGHTS_OF_BUNDLE, .torch = state },
            { .name = "docs/README.md", .text = readme_of(predictor_experiment(p), memory) },
            { .name = "LICENSE", .text = licence }
        };
        export_folder_write(folder, sizeof files / sizeof files[0], files,
                            predictor_experiment(p)->log, err);
    }
    arena_free(memory);
    return err->status;
}

pons_status export_bundle(const predictor *p, const char *version, const char *folder,
                          pons_error *err)
{
    const experiment *e = predictor_experiment(p);
    json_t *inference = NULL, *metadata = NULL;

    if (export_folder_check(folder, err) != PONS_OK)
        return err->status;
    if (e->sections.experiment.task != TASK_SEGMENTATION || e->task.flat)
        return pons_fail(err, PONS_CONFIG, "%s: bundles are written of 3D segmentation only",
                         e->task.flat ? "a 2D network" : "[experiment] task");
    inference = inference_of(e, err);
    metadata = metadata_of(e, version);
    if (err->status == PONS_OK && (inference == NULL || metadata == NULL))
        pons_fail(err, PONS_DEVICE, "'%s': out of memory", folder);
    if (err->status == PONS_OK)
        write_folder(p, inference, metadata, folder, err);
    json_decref(inference);
    json_decref(metadata);
    return err->status;
}
