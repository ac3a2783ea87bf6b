/*
 * experiment_task.c - the table of tasks, and how each takes its classes from a dataset or from the
 * configuration alone.
 */
#include "experiment/experiment_internal.h"

#include <string.h>

#include "config/diffusion_table.h"
#include "config/list.h"
#include "data/dataset/class_list.h"
#include "experiment/data_settings.h"

/* ---- options that a task does not know ------------------------------------------------------- */

typedef struct refused_option {
    bool given;
    const char *section, *key, *reason;
} refused_option;

static pons_status refuse_options(experiment *e, const refused_option *option, size_t count,
                                  pons_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (option[i].given)
            return pons_fail(err, PONS_CONFIG, "%s: [%s] %s: task = %s %s",
                             experiment_location(e, option[i].section, option[i].key),
                             option[i].section, option[i].key,
                             task_words[e->sections.experiment.task], option[i].reason);
    return PONS_OK;
}

/* ---- segmentation --------------------------------------------------------------------------- */

static void resolve_list(experiment *e, const char *key, const data_class *classes, int count,
                         const char *origin)
{
    const char **item = arena_alloc(e->memory, (size_t)count * sizeof *item);

    for (int i = 0; i < count; i++)
        item[i] = arena_format(e->memory, "%s:%s", classes[i].name,
                               class_ids_text(e->memory, &classes[i]));
    config_resolve(e->config, "data", key, list_join(e->memory, count, item),
                   arena_format(e->memory, "as %s says", origin));
}

/*
 * Record the labels and regions of the dataset or of a table, so that resolved.ini is sufficient
 * for a prediction. Their ids include 'map', which is then empty.
 */
static void resolve_classes(experiment *e)
{
    const dataset *d = e->data;
    const char *table = data_label_table(e->config, &e->sections);
    bool regions = config_given(e->config, "data", "regions");

    if (table == NULL && (config_given(e->config, "data", "labels") || regions))
        return;
    data_class *all = arena_alloc(e->memory, ((size_t)d->class_count + 1) * sizeof *all);
    memcpy(all, d->classes, (size_t)d->class_count * sizeof *all);
    if (d->ignored != NULL)
        all[d->class_count] = *d->ignored;
    resolve_list(e, "labels", all, d->class_count + (d->ignored != NULL),
                 table != NULL ? table : d->origin);
    if (d->region_count > 0)
        resolve_list(e, "regions", d->regions, d->region_count, d->origin);
    if (e->sections.data.map.count > 0)
        config_resolve(e->config, "data", "map", "", "labels and regions include it");
}

static pons_status segmentation_take_dataset(experiment *e, pons_error *err)
{
    e->regions = e->data->region_count > 0;
    e->classes = e->regions ? e->data->regions : e->data->classes;
    e->class_count = e->regions ? e->data->region_count : e->data->class_count;
    dataset_task(e->data, &e->task);
    resolve_classes(e);
    return PONS_OK;
}

/* No file of [data] is opened for a prediction, so the labels of a dataset are not known. */
static pons_status require_labels(const data_options *d, pons_error *err)
{
    pons_error missing = PONS_ERROR_INIT;

    sections_require("data", "labels", &missing);
    return pons_fail(err, missing.status, "%s%s", missing.text, d->source == NULL ? "" :
                     "\nhint: the labels of [data] source are in resolved.ini of a run that was "
                     "trained on it; copy the line, or give that file");
}

/*
 * The task of a prediction, with at most 'most' class names from 'labels' or 'regions'; no data
 * file is opened.
 */
static pons_status take_names(experiment *e, const experiment_overrides *known, int most,
                              pons_error *err)
{
    const data_options *d = &e->sections.data;
    int channels = d->image.count > 0 ? d->image.count : known->image_channels;
    const char **names;
    const data_class *ignored;

    e->regions = d->regions.count > 0;
    if (!e->regions && d->labels.count == 0)
        return require_labels(d, err);
    const char *table = e->regions ? NULL : data_label_table(e->config, &e->sections);
    if (table != NULL)
        class_list_read_table(e->memory, table, &e->classes, &e->class_count, err);
    else
        class_list_parse(e->memory, e->regions ? "regions" : "labels",
                         e->regions ? &d->regions : &d->labels, most, &e->classes, &e->class_count,
                         err);
    if (err->status != PONS_OK
        || class_list_map(e->memory, &d->map, &e->classes, e->class_count, err) != PONS_OK)
        return config_location_add(e->config, "data", "labels", err);
    if (!e->regions && class_list_take_ignored(e->memory, &e->classes, &e->class_count, &ignored,
                                               err) != PONS_OK)
        return config_location_add(e->config, "data", "labels", err);
    names = arena_alloc(e->memory, (size_t)e->class_count * sizeof *names);
    for (int i = 0; i < e->class_count; i++)
        names[i] = e->classes[i].name;
    e->task.channels = known->channels > 0 ? known->channels : channels > 0 ? channels : 1;
    e->task.classes = e->class_count;
    e->task.class_names = names;
    e->task.target = e->regions ? PONS_TARGET_REGIONS : PONS_TARGET_LABELS;
    return PONS_OK;
}

static pons_status segmentation_take_names(experiment *e, const experiment_overrides *known,
                                           pons_error *err)
{
    return take_names(e, known, CLASS_COUNT_MAX, err);
}

static pons_activation segmentation_activation(const experiment *e)
{
    static const pons_activation given[] = {
        [ACTIVATION_SOFTMAX] = PONS_ACTIVATION_SOFTMAX,
        [ACTIVATION_SIGMOID] = PONS_ACTIVATION_SIGMOID, [ACTIVATION_NONE] = PONS_ACTIVATION_NONE
    };

    if (e->sections.loss.activation != ACTIVATION_AUTO)
        return given[e->sections.loss.activation];
    return !e->regions && e->class_count > 1 ? PONS_ACTIVATION_SOFTMAX : PONS_ACTIVATION_SIGMOID;
}

/* ---- synthesis ------------------------------------------------------------------------------ */

/*
 * The network of a synthesis has one output, the noise of the modality that is drawn as target.
 * Validation summarises by modality, so the modalities are the classes of the experiment, without
 * ids.
 */
static void set_modalities(experiment *e, int count, const char *const *name)
{
    static const char *const outputs[] = { "noise" };
    data_class *classes = arena_alloc(e->memory, (size_t)count * sizeof *classes + 1);

    for (int i = 0; i < count; i++)
        classes[i] = (data_class){ .name = name[i] };
    e->regions = false;
    e->classes = classes;
    e->class_count = count;
    e->task.channels = count;
    e->task.channel_names = name;
    e->task.classes = 1;
    e->task.class_names = outputs;
    e->task.target = PONS_TARGET_IMAGE;
}

bool experiment_is_target(const experiment *e, int modality)
{
    for (int i = 0; i < e->target_count; i++)
        if (e->targets[i] == modality)
            return true;
    return false;
}

/* Set the modalities that are made: those of 'targets', or all. */
static pons_status set_targets(experiment *e, pons_error *err)
{
    const pons_texts *given = &e->sections.diffusion.targets;
    int count = given->count > 0 ? given->count : e->class_count;
    int *target = arena_alloc(e->memory, (size_t)count * sizeof *target);
    const char *where = experiment_location(e, "diffusion", "targets");

    for (int i = 0; i < count; i++) {
        target[i] = i;
        if (given->count == 0)
            continue;
        target[i] = class_index_of_name(e->classes, e->class_count, given->item[i]);
        if (target[i] < 0)
            return pons_fail(err, PONS_CONFIG, "%s: [diffusion] targets: found '%s', expected some "
                             "of %s", where, given->item[i],
                             list_join(e->memory, e->class_count, e->task.channel_names));
        for (int k = 0; k < i; k++)
            if (target[k] == target[i])
                return pons_fail(err, PONS_CONFIG, "%s: [diffusion] targets: found '%s' twice",
                                 where, given->item[i]);
    }
    e->target_count = count;
    e->targets = target;
    return PONS_OK;
}

static pons_status refuse_for_synthesis(experiment *e, pons_error *err)
{
    const sections *s = &e->sections;
    const refused_option wrong[] = {
        { s->data.labels.count > 0, "data", "labels", "reads no labels" },
        { s->data.regions.count > 0, "data", "regions", "reads no labels" },
        { s->data.label != NULL, "data", "label", "reads no labels" },
        { s->data.map.count > 0, "data", "map", "reads no labels" },
        { s->data.cache == CACHE_DEVICE, "data", "cache", "has no patches cut by the device" },
        { s->patch.sampling != SAMPLING_UNIFORM && s->patch.sampling != SAMPLING_WHOLE, "patch",
          "sampling", "takes uniform or whole, since there are no labels" },
        { s->patch.foreground_share > 0, "patch", "foreground_share", "reads no labels" },
        { !s->patch.count_padding, "patch", "count_padding", "counts every voxel" },
        { s->loss.class_weights != 0, "loss", "class_weights", "has no classes" },
        { s->loss.activation != ACTIVATION_AUTO && s->loss.activation != ACTIVATION_NONE, "loss",
          "activation", "has values without an activation" },
        { s->predict.keep_largest.count > 0, "predict", "keep_largest", "has no classes" },
        { s->predict.resample != 0, "predict", "resample", "has no labels" },
    };

    return refuse_options(e, wrong, sizeof wrong / sizeof *wrong, err);
}

/* Check the names, and that the schedule fits into the timesteps. */
static pons_status check_modalities(experiment *e, int count, const char *const *name,
                                    pons_error *err)
{
    diffusion_table table;
    const char *where = experiment_location(e, "diffusion", "modalities");

    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(name[i], name[k]) == 0)
                return pons_fail(err, PONS_CONFIG, "%s: [diffusion] modalities: found '%s' twice",
                                 where, name[i]);
    if (count >= 2)
        return diffusion_table_make(&e->sections.diffusion, &table, err);
    return pons_fail(err, PONS_CONFIG, "%s: task = synthesis has %d modality, expected at least 2: "
                     "one is made from the others", where, count);
}

/* The names of the dataset's channels, or their numbers. */
static const char *const *channel_names(experiment *e)
{
    const dataset *d = e->data;
    const char **name = arena_alloc(e->memory, (size_t)d->channels * sizeof *name + 1);

    for (int i = 0; i < d->channels; i++)
        name[i] = d->channel_names != NULL ? d->channel_names[i]
                                           : arena_format(e->memory, "%d", i);
    return name;
}

static pons_status synthesis_take_dataset(experiment *e, pons_error *err)
{
    const pons_texts *given = &e->sections.diffusion.modalities;
    int channels = e->data->channels;
    const char *const *name = given->count > 0 ? given->item : channel_names(e);

    if (refuse_for_synthesis(e, err) != PONS_OK)
        return err->status;
    if (given->count > 0 && given->count != channels)
        return pons_fail(err, PONS_CONFIG, "%s: [diffusion] modalities: found %d names, expected "
                         "%d, one for each channel",
                         experiment_location(e, "diffusion", "modalities"), given->count, channels);
    if (check_modalities(e, channels, name, err) != PONS_OK)
        return err->status;
    set_modalities(e, channels, name);
    if (set_targets(e, err) != PONS_OK)
        return err->status;
    if (given->count == 0)
        config_resolve(e->config, "diffusion", "modalities",
                       list_join(e->memory, channels, (const char **)name),
                       e->data->channel_names != NULL ? "the dataset's" : "numbers of channels");
    return PONS_OK;
}

static pons_status synthesis_take_names(experiment *e, const experiment_overrides *known,
                                        pons_error *err)
{
    const pons_texts *given = &e->sections.diffusion.modalities;

    if (given->count == 0)
        return sections_require("diffusion", "modalities", err);
    if (check_modalities(e, given->count, given->item, err) != PONS_OK)
        return err->status;
    set_modalities(e, given->count, given->item);
    return set_targets(e, err);
}

static pons_activation synthesis_activation(const experiment *e)
{
    return PONS_ACTIVATION_NONE;
}

/* ---- classification -------------------------------------------------------------------------- */

static pons_status refuse_for_classification(experiment *e, pons_error *err)
{
    static const char voxels[] = "has one class for a whole image";
    static const char windows[] = "gives the whole image to the network at once";
    const sections *s = &e->sections;
    const refused_option wrong[] = {
        { s->data.regions.count > 0, "data", "regions", voxels },
        { s->data.label != NULL, "data", "label", voxels },
        { s->data.map.count > 0, "data", "map", voxels },
        { s->data.cache == CACHE_DEVICE, "data", "cache", "has no patches cut by the device" },
        { s->patch.sampling != SAMPLING_UNIFORM && s->patch.sampling != SAMPLING_WHOLE, "patch",
          "sampling", "takes uniform or whole, since voxels have no labels" },
        { s->patch.foreground_share > 0, "patch", "foreground_share", voxels },
        { !s->patch.count_padding, "patch", "count_padding", voxels },
        { s->loss.activation == ACTIVATION_NONE, "loss", "activation",
          "has probabilities, which need an activation" },
        { s->window.mirror.count > 0, "window", "mirror", windows },
        { s->window.overlap != 0.25, "window", "overlap", windows },
        { s->window.mode != 0, "window", "mode", windows },
        { s->window.padding_mode != 0, "window", "padding_mode", windows },
        { s->predict.keep_largest.count > 0, "predict", "keep_largest", voxels },
        { s->predict.resample != 0, "predict", "resample", voxels },
    };

    return refuse_options(e, wrong, sizeof wrong / sizeof *wrong, err);
}

static pons_status classification_take_dataset(experiment *e, pons_error *err)
{
    if (refuse_for_classification(e, err) != PONS_OK)
        return err->status;
    e->classes = e->data->classes;
    e->class_count = e->data->class_count;
    dataset_task(e->data, &e->task);
    e->task.whole = true;
    resolve_classes(e);
    return PONS_OK;
}

static pons_status classification_take_names(experiment *e, const experiment_overrides *known,
                                             pons_error *err)
{
    if (refuse_for_classification(e, err) == PONS_OK)
        take_names(e, known, CASE_CLASS_COUNT_MAX, err);
    e->task.whole = true;
    return err->status;
}

static pons_activation classification_activation(const experiment *e)
{
    return e->sections.loss.activation == ACTIVATION_SIGMOID ? PONS_ACTIVATION_SIGMOID
                                                             : PONS_ACTIVATION_SOFTMAX;
}

/* ---- the table ------------------------------------------------------------------------------ */

#define METRIC(NAME) ((metric_set)1 << METRIC_##NAME)

enum {
    OF_IMAGES = METRIC(PSNR) | METRIC(SSIM) | METRIC(MAE),
    OF_CLASSES = (METRIC(KIND_COUNT) - 1) & ~OF_IMAGES & ~METRICS_OF_DECISIONS
};

static const task_rules rules[TASK_COUNT] = {
    [TASK_SEGMENTATION] = {
        .target = TARGET_OF_VOXELS, .background = true, .best = "dice.mean",
        .recorded = METRIC(DICE) | METRIC(IOU), .evaluated = METRICS_USUAL,
        .selecting = OF_CLASSES,
        .take_dataset = segmentation_take_dataset, .take_names = segmentation_take_names,
        .activation = segmentation_activation
    },
    [TASK_SYNTHESIS] = {
        .target = TARGET_NONE, .best = "psnr.mean", .recorded = OF_IMAGES, .evaluated = OF_IMAGES,
        .selecting = OF_IMAGES,
        .take_dataset = synthesis_take_dataset, .take_names = synthesis_take_names,
        .activation = synthesis_activation
    },
    [TASK_CLASSIFICATION] = {
        .target = TARGET_OF_CASE, .best = "accuracy.mean", .recorded = METRICS_OF_DECISIONS,
        .evaluated = METRICS_OF_DECISIONS, .selecting = METRICS_OF_DECISIONS,
        .take_dataset = classification_take_dataset, .take_names = classification_take_names,
        .activation = classification_activation
    },
};

const task_rules *task_rules_of(const sections *s)
{
    return &rules[s->experiment.task];
}
