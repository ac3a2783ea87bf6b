/*
 * experiment.c - make an experiment from sections: plugins, devices, classes and extents.
 *
 * Errors of the INI file are found here, before a volume is read and before a network is built.
 */
#include "experiment/experiment_internal.h"

#include <stdlib.h>
#include <string.h>

#include <pons/model.h>

#include "data/dataset/class_list.h"
#include "data/loader/loader.h"
#include "device/device_open.h"
#include "experiment/agreement.h"
#include "experiment/class_weights.h"
#include "experiment/data_settings.h"
#include "experiment/processes.h"
#include "experiment/resolved.h"
#include "experiment/tuning.h"
#include "plugin/plugin_options.h"
#include "plugin/plugin_status.h"
#include "plugin/sink_load.h"

const char *experiment_location(experiment *e, const char *section, const char *key)
{
    const config_entry *entry = config_find(e->config, section, key);

    if (entry == NULL)
        return arena_format(e->memory, "[%s]", section);
    if (entry->line == 0)
        return entry->file;
    return arena_format(e->memory, "%s:%d", entry->file, entry->line);
}

/* ---- plugins --------------------------------------------------------------------------------- */

/* Leave out the file's keys of a plugin in whose place --set names 'p'. */
static void leave_out_replaced(experiment *e, const char *section, const plugin *p,
                               size_t operations_size)
{
    const config_entry *given = config_find(e->config, section, "plugin");
    const char *replaced = given != NULL ? given->replaced : NULL, *names;
    pons_error ignored = PONS_ERROR_INIT;
    const plugin *before;

    if (replaced == NULL || strcmp(replaced, p->descriptor->name) == 0
        || plugin_load((pons_kind)p->descriptor->kind, replaced, operations_size, NULL, &before,
                       &ignored) != PONS_OK)
        return;
    names = config_leave_out(e->config, section, before->descriptor->options,
                             p->descriptor->options);
    if (names != NULL)
        log_warning(e->log, "[%s] %s: left out, since --set replaces the %s '%s'", section, names,
                    plugin_kind_name((pons_kind)p->descriptor->kind), replaced);
}

static pons_status load_plugin(experiment *e, pons_kind kind, const char *section, const char *name,
                               size_t operations_size, loaded_plugin *out, pons_error *err)
{
    const pons_plugin *d;

    if (name == NULL || name[0] == '\0') {
        if (config_refuse_misspelt(e->config, section, "plugin", err) != PONS_OK)
            return err->status;
        return sections_require(section, "plugin", err);
    }
    if (plugin_load(kind, name, operations_size, experiment_location(e, section, "plugin"),
                    &out->plugin, err) != PONS_OK)
        return err->status;
    d = out->plugin->descriptor;
    out->options = arena_alloc(e->memory, d->config_size + 1);
    leave_out_replaced(e, section, out->plugin, operations_size);
    return plugin_options_fill(e->config, section, out->plugin, out->options, err);
}

static pons_status load_plugins(experiment *e, pons_error *err)
{
    const sections *s = &e->sections;

    if (load_plugin(e, PONS_KIND_MODEL, "model", s->model.plugin, sizeof(pons_model_operations),
                    &e->model, err) != PONS_OK)
        return err->status;
    if (e->purpose == EXPERIMENT_PREDICT)
        return PONS_OK;
    if (load_plugin(e, PONS_KIND_LOSS, "loss", s->loss.plugin, sizeof(pons_loss_operations),
                    &e->loss, err) != PONS_OK
        || load_plugin(e, PONS_KIND_OPTIMIZER, "optimizer", s->optimizer.plugin,
                       sizeof(pons_optimizer_operations), &e->optimizer, err) != PONS_OK)
        return err->status;
    return load_plugin(e, PONS_KIND_SCHEDULE, "schedule", s->schedule.plugin,
                       sizeof(pons_schedule_operations), &e->schedule, err);
}

/* Load the sinks before any file changes. */
static pons_status load_sinks(experiment *e, pons_error *err)
{
    const pons_texts *names = &e->sections.log.sinks;

    e->sink = arena_alloc(e->memory, (size_t)names->count * sizeof *e->sink + 1);
    for (int i = 0; i < names->count; i++)
        if (sink_load(e->config, e->memory, names->item[i],
                      experiment_location(e, "log", "sinks"), &e->sink[i].plugin,
                      &e->sink[i].options, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

/* ---- data and task --------------------------------------------------------------------------- */

/* Refuse a smart cache that would leave cases out of all epochs, or lanes without a case. */
static pons_status resolve_epoch(experiment *e, pons_error *err)
{
    const data_options *d = &e->sections.data;
    int total = e->data->training_count;

    e->epoch = data_case_window(d, total, e->micro_batches);
    if (d->cache_share != 0 && d->cache != CACHE_SMART)
        return pons_fail(err, PONS_CONFIG, "%s: [data] cache_share = rank needs cache = smart",
                         config_origin(e->config, "data", "cache_share"));
    if (e->epoch.count == 0 && total > 0)
        return pons_fail(err, PONS_CONFIG, "%s: [data] cache_share = rank divides the cases among "
                         "the %d micro-batches of a step, but there are %d",
                         config_origin(e->config, "data", "cache_share"), e->micro_batches, total);
    if (e->epoch.replaced > 0 || e->epoch.count == e->epoch.total)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: [data] smart_replace = 0 leaves %d of %d training "
                     "cases unused, expected a share above 0",
                     config_origin(e->config, "data", "smart_replace"), total - e->epoch.count,
                     total);
}

const char *experiment_epoch_text(const experiment *e, const case_window *w)
{
    if (e->sections.data.cache != CACHE_SMART)
        return NULL;
    const char *lanes = w->lanes == 1 ? ""
                        : arena_format(e->memory, ", in parts of %d for each micro-batch of a step",
                                       w->count / w->lanes);

    if (w->replaced == 0 && w->lanes == 1)
        return arena_format(e->memory, "all %d training cases are in the cache", w->total);
    return arena_format(e->memory, "%d of %d training cases are in the cache, %d of them are "
                        "replaced each epoch%s", w->count, w->total, w->replaced, lanes);
}

static pons_status open_dataset(experiment *e, pons_error *err)
{
    dataset_settings settings;

    dataset_settings_fill(e->config, &e->sections, &settings);
    if (dataset_open(&settings, &e->data, err) != PONS_OK)
        return dataset_blame(e->config, &e->sections, err);
    if (task_rules_of(&e->sections)->take_dataset(e, err) != PONS_OK
        || resolve_epoch(e, err) != PONS_OK)
        return err->status;
    return case_list_make(e->memory, e->data, NULL, &e->cases, err);
}

/* ---- precision ------------------------------------------------------------------------------- */

static bool precision_exists(const pons_device_facts *facts, precision p)
{
    return (p != PRECISION_FP16 || facts->fp16) && (p != PRECISION_TF32 || facts->tf32);
}

static const char *device_name(const pons_device_facts *facts)
{
    return facts->host_memory ? "a cpu" : facts->name;
}

/* The precision of windows, known once that of training is. */
static pons_status resolve_window_precision(experiment *e, pons_error *err)
{
    precision asked = (precision)e->sections.window.precision;

    e->window_precision = asked != PRECISION_AUTO ? asked : e->precision;
    if (precision_exists(&e->device.facts, e->window_precision))
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: [window] precision %s does not exist on %s\nhint: "
                     "--set window.precision=bf16, or fp32", experiment_location(e, "window",
                     "precision"), precision_name(asked), device_name(&e->device.facts));
}

static pons_status resolve_precision(experiment *e, const experiment_overrides *known,
                                     pons_error *err)
{
    static const struct { precision precision; const char *reason; } best[] = {
        { PRECISION_FP32, "the processor has no bf16 instructions" },
        { PRECISION_FP16, "the processor has fp16 instructions, and none of bf16" },
        { PRECISION_BF16, "the processor has bf16 instructions" },
    };
    const pons_device_facts *facts = &e->device.facts;
    bool given = e->sections.train.precision != PRECISION_AUTO;
    precision asked = given ? (precision)e->sections.train.precision : known->precision;
    int most = facts->bf16 ? 2 : facts->fp16 ? 1 : 0;
    bool trains = e->purpose == EXPERIMENT_TRAIN
               || e->sections.window.precision == PRECISION_AUTO;

    if (trains && !precision_exists(facts, asked))
        return pons_fail(err, PONS_CONFIG, "[train] precision %s%s does not exist on %s\nhint: %s",
                         precision_name(asked), given ? "" : ", the checkpoint's,",
                         device_name(facts),
                         given || e->purpose != EXPERIMENT_TRAIN ? "--set train.precision=bf16, "
                         "or fp32" : "--fresh (or no --resume) starts anew");
    if (processes_minimum(e->group, most, &most, err) != PONS_OK)
        return err->status;
    e->precision = asked != PRECISION_AUTO ? asked : best[most].precision;
    if (given)
        return PONS_OK;
    e->sections.train.precision = e->precision;
    config_resolve(e->config, "train", "precision", precision_name(e->precision),
                   asked != PRECISION_AUTO ? "the checkpoint's" : best[most].reason);
    return PONS_OK;
}

/* Values of [train] that only fp16 reads. */
static void warn_of_idle_scale(const experiment *e)
{
    const train_options *t = &e->sections.train;
    const struct { const char *key; double value, usual; } values[] = {
        { "loss_scale", t->loss_scale, 65536 }, { "loss_scale_growth", t->loss_scale_growth, 2 },
        { "loss_scale_backoff", t->loss_scale_backoff, 0.5 },
        { "loss_scale_interval", (double)t->loss_scale_interval, 2000 }
    };

    for (size_t i = 0; e->precision != PRECISION_FP16 && i < sizeof values / sizeof *values; i++)
        if (values[i].value != values[i].usual)
            log_warning(e->log, "[train] %s changes nothing: the precision is %s, and only fp16 "
                        "scales the loss", values[i].key, precision_name(e->precision));
}

/* ---- extents --------------------------------------------------------------------------------- */

pons_status experiment_divisor(const experiment *e, int divisor[3], pons_error *err)
{
    const pons_model_operations *model = e->model.plugin->operations;

    divisor[0] = divisor[1] = divisor[2] = 1;
    if (model->divisor == NULL)
        return PONS_OK;
    if (plugin_status(model->divisor(e->model.options, divisor, err), "the model", "divisor", err)
        != PONS_OK)
        return config_location_add(e->config, "model", "plugin", err);
    if (e->task.flat) /* the model does not divide the flat axis */
        divisor[0] = 1;
    return PONS_OK;
}

/* R33: check extents along i j k against the model's divisor; 'what' is "patch" or "window". */
static pons_status check_divisor(const experiment *e, const char *what, const int extent[3],
                                 pons_error *err)
{
    static const int order_of[4][3] = { { 0, 1, 2 }, { 0, 1, 2 }, { 1, 0, 2 }, { 2, 0, 1 } };
    const int *order = order_of[e->task.flat_axis + 1]; /* file axis of D, H, W */
    int divisor[3];

    if (experiment_divisor(e, divisor, err) != PONS_OK)
        return err->status;
    for (int a = 0; a < 3; a++)
        if (divisor[a] > 1 && extent[order[a]] % divisor[a] != 0)
            pons_fail(err, PONS_CONFIG, "%s %d is not divisible by %d along %c", what,
                      extent[order[a]], divisor[a], "ijk"[order[a]]);
    return config_location_add(e->config, what, "extent", err);
}

static pons_status check_extents(experiment *e, pons_error *err)
{
    int dhw[3], flat = -1;
    bool patch = e->sections.patch.extent[0] > 0, window = e->sections.window.extent[0] > 0;

    if (!patch && (e->purpose == EXPERIMENT_TRAIN || !window))
        return sections_require("patch", "extent", err);
    memcpy(e->patch, patch ? e->sections.patch.extent : e->sections.window.extent, sizeof e->patch);
    memcpy(e->window, window ? e->sections.window.extent : e->patch, sizeof e->window);
    loader_patch_shape(e->patch, dhw, &flat);
    if (!window)
        config_resolve(e->config, "window", "extent",
                       arena_format(e->memory, "%d %d %d", e->patch[0], e->patch[1], e->patch[2]),
                       "the patch's");
    e->task.flat = flat >= 0;
    e->task.flat_axis = flat;
    if (flat >= 0 && e->window[flat] != 1)
        return pons_fail(err, PONS_CONFIG, "%s: window %d along %c, expected 1: the patch is flat "
                         "there", experiment_location(e, "window", "extent"), e->window[flat],
                         "ijk"[flat]);
    if (experiment_reorder_axes(e, err) != PONS_OK
        || (patch && check_divisor(e, "patch", e->patch, err) != PONS_OK))
        return err->status;
    return check_divisor(e, "window", e->window, err);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* The metric of [train] best, or of the task. */
static pons_status find_best(experiment *e, pons_error *err)
{
    const task_rules *rules = task_rules_of(&e->sections);
    const char **best = &e->sections.train.best;

    if (!config_given(e->config, "train", "best") && strcmp(*best, rules->best) != 0)
        *best = config_resolve(e->config, "train", "best", rules->best, "that of the task");
    if (best_metric_find(*best, e->class_count, e->classes, &e->best, err) != PONS_OK)
        return err->status;
    if (e->target_count > 0 && e->best.class_index >= 0
        && !experiment_is_target(e, e->best.class_index))
        return pons_fail(err, PONS_CONFIG, "%s: [train] best is '%s', a modality that is not among "
                         "[diffusion] targets", experiment_location(e, "train", "best"), *best);
    if (metric_set_has(rules->selecting, e->best.kind))
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: [train] best is '%s', which task = %s does not measure"
                     "\nhint: --set train.best=%s", experiment_location(e, "train", "best"), *best,
                     task_words[e->sections.experiment.task], rules->best);
}

/* Refuse rules of sampling that a step of [augment] would pass over. */
static pons_status check_crop(experiment *e, pons_error *err)
{
    const char *step = pipeline_cropping_step(e->augment);
    const patch_options *p = &e->sections.patch;

    if (step == NULL || (p->sampling == SAMPLING_UNIFORM && p->foreground_share == 0))
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: [patch] %s: step '%s' of [augment] chooses the box of "
                     "a patch, expected sampling = uniform without foreground_share",
                     experiment_location(e, "patch", p->foreground_share > 0 ? "foreground_share"
                                                                             : "sampling"),
                     p->foreground_share > 0 ? "foreground_share" : "sampling", step);
}

static pons_status open_training(experiment *e, pons_error *err)
{
    if (experiment_resolve_steps(e, err) != PONS_OK || open_dataset(e, err) != PONS_OK
        || find_best(e, err) != PONS_OK)
        return err->status;
    if (class_weights_resolve(e, err) != PONS_OK)
        return err->status;
    if (pipeline_open(e->config, "augment", true, e->task.channels, &e->augment, err) != PONS_OK
        || check_crop(e, err) != PONS_OK || !experiment_device_extracts(e))
        return err->status;
    return pipeline_check_device(e->augment, err);
}

/* Refuse options of [predict] that the others make idle. */
static pons_status check_prediction(experiment *e, pons_error *err)
{
    const predict_options *p = &e->sections.predict;
    bool late = p->resample == RESAMPLE_LOGITS;
    bool spaced = p->spacing[0] > 0 || p->spacing[1] > 0 || p->spacing[2] > 0;
    const char *idle = late ? NULL : p->separate_slices != PONS_SLICES_NO ? "separate_slices"
                       : spaced ? "spacing" : NULL;

    if (idle != NULL)
        return pons_fail(err, PONS_CONFIG, "%s: [predict] %s is for resample = logits",
                         experiment_location(e, "predict", idle), idle);
    for (int i = 0; i < p->tables.count; i++)
        if (strcmp(p->tables.item[i], "slicer") != 0 && strcmp(p->tables.item[i], "itksnap") != 0
            && strcmp(p->tables.item[i], "bids") != 0)
            return pons_fail(err, PONS_CONFIG, "%s: [predict] tables: found '%s', expected some of "
                             "slicer, itksnap and bids",
                             experiment_location(e, "predict", "tables"), p->tables.item[i]);
    if (p->region_ids.count == 0 || (e->regions && p->region_ids.count == e->class_count))
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: [predict] region_ids: found %d ids, expected one for "
                     "each of %d regions", experiment_location(e, "predict", "region_ids"),
                     p->region_ids.count, e->regions ? e->class_count : 0);
}

/* Refuse unknown keys, and class names that no class has. */
static pons_status check_names(experiment *e, pons_error *err)
{
    if (e->purpose == EXPERIMENT_PREDICT)
        sections_skip_plugins(e->config, &e->sections,
                              (const char *const[]){ "model", "preprocess", NULL });
    if (class_list_check_names("[predict] keep_largest", &e->sections.predict.keep_largest,
                               e->classes, e->class_count, err) != PONS_OK
        || check_prediction(e, err) != PONS_OK)
        return err->status;
    return config_refuse_unknown(e->config, err);
}

/*
 * Resolve the remaining 'auto' values. 'backend' stays 'auto' if there is nothing to join, since
 * no other value would be true.
 */
static void resolve_autos(experiment *e)
{
    static const char *const activations[] = {
        [PONS_ACTIVATION_SOFTMAX] = "softmax", [PONS_ACTIVATION_SIGMOID] = "sigmoid",
        [PONS_ACTIVATION_NONE] = "none"
    };
    const sections *s = &e->sections;
    const struct { bool is_auto; const char *section, *key, *value, *reason; } autos[] = {
        { e->data->own_split, "data", "validation", "own", "the dataset has a split" },
        { s->data.layout == 0, "data", "layout", e->data->layout, "as it was recognised" },
        { s->data.loader_threads == OPTION_AUTO, "data", "loader_threads",
          arena_format(e->memory, "%d", loader_threads_chosen()),
          "one for every two processors of this process, four at most" },
        { s->loss.activation == ACTIVATION_AUTO, "loss", "activation", activations[e->activation],
          e->regions ? "regions overlap" : e->class_count > 1 ? "several classes" : "one class" },
        { s->distribute.mode == MODE_AUTO, "distribute", "mode", experiment_mode(e),
          experiment_mode_reason(e) },
        { e->chosen != NULL, "distribute", "devices", e->chosen,
          experiment_devices_reason(e) },
        { s->distribute.backend == 0, "distribute", "backend",
          e->comm != NULL ? e->comm->descriptor->name : "auto",
          e->group != NULL ? "joins processes on processors"
          : e->comm != NULL ? "joins the GPUs of this process"
          : e->replicas > 1 ? "replicas of one process need none" : "one replica needs none" }
    };

    for (size_t i = 0; i < sizeof autos / sizeof *autos; i++)
        if (autos[i].is_auto)
            config_resolve(e->config, autos[i].section, autos[i].key, autos[i].value,
                           autos[i].reason);
}

static pons_status fill_experiment(experiment *e, const experiment_overrides *known,
                                   pons_error *err)
{
    e->task.size = sizeof e->task;
    e->task.flat_axis = -1;
    sections_leave_out(e->config, e->log); /* a run's own file has not been through a command     */
    if (sections_fill(e->config, &e->sections, err) != PONS_OK
        || experiment_find_devices(e, known, err) != PONS_OK || load_plugins(e, err) != PONS_OK)
        return err->status;
    if (e->purpose == EXPERIMENT_TRAIN && load_sinks(e, err) == PONS_OK)
        open_training(e, err);
    else if (e->purpose == EXPERIMENT_PREDICT)
        task_rules_of(&e->sections)->take_names(e, known, err);
    if (err->status != PONS_OK)
        return err->status;
    e->task.size = sizeof e->task;
    e->activation = task_rules_of(&e->sections)->activation(e);
    if (e->purpose == EXPERIMENT_TRAIN)
        resolve_autos(e);
    if (pipeline_open(e->config, "preprocess", false, e->task.channels, &e->preprocess, err)
        != PONS_OK)
        return err->status;
    if (check_names(e, err) != PONS_OK || check_extents(e, err) != PONS_OK
        || experiment_open_devices(e, known, err) != PONS_OK)
        return err->status;
    experiment_add_remarks(e);
    if (resolve_precision(e, known, err) != PONS_OK || resolve_window_precision(e, err) != PONS_OK
        || tuning_open(e, &e->tuning, err) != PONS_OK)
        return err->status;
    if (e->purpose == EXPERIMENT_TRAIN)
        warn_of_idle_scale(e);
    return agreement_on_experiment(e->group, e, err);
}

pons_status experiment_open(config *c, experiment_purpose purpose,
                            const experiment_overrides *known,
                            logger *l, experiment **out, pons_error *err)
{
    experiment *e = calloc(1, sizeof *e);

    if (e == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    e->config = c;
    e->log = l;
    e->purpose = purpose;
    e->debug = known->debug;
    e->processes = known->processes;
    e->group = known->processes != NULL ? known->processes->group : NULL;
    e->comm = known->processes != NULL ? known->processes->comm : NULL;
    e->memory = arena_new();
    if (e->memory == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory");
    else
        fill_experiment(e, known, err);
    plugin_warn_hidden(l);
    if (config_location_add(c, NULL, NULL, err) != PONS_OK) {
        resolved_hint_plugins(config_file(c), err);
        experiment_close(e);
        return err->status;
    }
    *out = e;
    return PONS_OK;
}

void experiment_close(experiment *e)
{
    if (e == NULL)
        return;
    pipeline_close(e->preprocess);
    pipeline_close(e->augment);
    if (e->data != NULL)
        dataset_close(e->data);
    for (int i = 0; i < e->device_count && e->devices != NULL; i++)
        device_close(&e->devices[i]);
    tuning_close(e->tuning);
    if (e->memory != NULL)
        arena_free(e->memory);
    free(e);
}
