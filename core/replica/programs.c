/*
 * programs.c - model and loss plugins asked for their nodes, heads added up, programs compiled.
 */
#include "replica/programs.h"

#include <math.h>

#include "data/loader/loader.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/sort.h"
#include "replica/mixing_nodes.h"
#include "replica/patch_nodes.h"
#include "replica/plugin_build.h"
#include "replica/task_nodes.h"
#include "replica/window_nodes.h"

/* [N, D, H, W, C] of patches or windows of 'extent' (i j k). */
static pons_shape batch_shape(const int extent[3], int64_t batch, int channels)
{
    int dhw[3], flat;

    loader_patch_shape(extent, dhw, &flat);
    return pons_shape_make(5, (int64_t[]){ batch, dhw[0], dhw[1], dhw[2], channels });
}

/* Refuse a model whose prediction does not depend on an input of the task. */
static pons_status check_inputs(const experiment *e, const pons_inputs *inputs,
                                const pons_node *prediction, pons_error *err)
{
    for (int i = 0; i < inputs->count; i++)
        if (!node_is_computed_from(prediction, inputs->item[i].node))
            return pons_fail(err, PONS_CONFIG, "model '%s' does not read the input '%s', expected "
                             "one for task = %s", e->model.plugin->descriptor->name,
                             inputs->item[i].name, task_words[e->sections.experiment.task]);
    return PONS_OK;
}

static pons_status build_model(const experiment *e, pons_graph *g, const task_inputs *named,
                               pons_outputs *out, pons_error *err)
{
    const pons_inputs inputs = { named->count, named->item };

    if (plugin_build_model(e->model.plugin, e->model.options, &e->task, &inputs, g, out, err)
            != PONS_OK
        || check_inputs(e, &inputs, out->item[0], err) != PONS_OK)
        return config_location_add(e->config, "model", "plugin", err);
    return PONS_OK;
}

static double head_weight(const experiment *e, int head)
{
    const pons_reals *heads = &e->sections.loss.heads;

    return heads->count > 0 ? heads->item[head] : ldexp(1, -head);
}

/* The target on the grid of a head. */
static pons_node *shrink(pons_graph *g, pons_node *target, pons_node *head)
{
    pons_shape to = pons_shape_of(head), from = pons_shape_of(target);

    if (to.extent[1] == from.extent[1] && to.extent[2] == from.extent[2]
        && to.extent[3] == from.extent[3])
        return target;
    return pons_resize(g, target, PONS_RESIZE_NEAREST_EXACT, &to.extent[1]);
}

/* Split a target with TARGET_IGNORED into the target and its mask, which is returned. */
static pons_node *split_ignored(pons_graph *g, pons_node **target)
{
    pons_node *valid = pons_not_equal(g, *target, pons_scalar(g, TARGET_IGNORED));
    pons_node *kept = pons_select(g, valid, pons_cast(g, *target, PONS_F32), pons_scalar(g, 0));
    pons_shape s = pons_shape_of(valid);

    if (s.rank == 5 && s.extent[4] > 1) {
        s.extent[4] = 1;
        valid = pons_crop(g, valid, (int64_t[]){ 0, 0, 0, 0, 0 }, s.extent, NULL);
    }
    *target = pons_cast(g, kept, PONS_U8);
    return pons_cast(g, valid, PONS_U8);
}

/* The target of a head. A voxel of two mixed targets counts if it counts in both. */
static pons_target target_of_head(const experiment *e, pons_graph *g, const mixed_target *mixed,
                                  pons_node *head)
{
    pons_target t = { .node = shrink(g, mixed->node, head), .activation = e->activation,
                      .share = mixed->share };

    if (mixed->other != NULL)
        t.other = shrink(g, mixed->other, head);
    if (e->data->ignored == NULL && e->sections.patch.count_padding)
        return t;
    t.valid = split_ignored(g, &t.node);
    if (t.other != NULL)
        t.valid = pons_and(g, t.valid, split_ignored(g, &t.other));
    return t;
}

/* The loss of one output. */
static pons_status build_output_loss(const experiment *e, pons_graph *g, const mixed_target *target,
                                     pons_node *output, pons_node **out, pons_error *err)
{
    pons_target t = target_of_head(e, g, target, output);

    return plugin_build_loss(e->loss.plugin, e->loss.options, &e->task, output, &t, g, out, err);
}

static pons_status build_loss(const experiment *e, pons_graph *g, const pons_outputs *outputs,
                              const mixed_target *target, pons_node **out, pons_error *err)
{
    pons_node *sum = NULL;

    if (e->sections.loss.heads.count > 0 && e->sections.loss.heads.count != outputs->count)
        return pons_fail(err, PONS_CONFIG, "%s: [loss] heads has %d number%s, expected %d, one for "
                         "each output of the model", config_location(e->config, "loss", "heads"),
                         e->sections.loss.heads.count,
                         e->sections.loss.heads.count == 1 ? "" : "s", outputs->count);
    for (int i = 0; i < outputs->count; i++) {
        pons_node *value;
        double weight = head_weight(e, i);
        if (weight == 0) {
            graph_leave_out(g, outputs->item[i]);
            continue;
        }
        if (build_output_loss(e, g, target, outputs->item[i], &value, err) != PONS_OK)
            return config_location_add(e->config, "loss", "plugin", err);
        if (weight != 1)
            value = pons_scale(g, value, weight);
        sum = sum == NULL ? value : pons_add(g, sum, value);
    }
    if (sum == NULL)
        return pons_fail(err, PONS_CONFIG, "%s: [loss] heads has only zeros, expected a number "
                         "above 0", config_location(e->config, "loss", "heads"));
    *out = sum;
    return pons_graph_status(g, err);
}

static program_settings settings_of(const experiment *e, bool training)
{
    const train_options *t = &e->sections.train;
    program_settings s = {
        .precision = e->precision, .recompute = t->recompute, .testing = e->testing,
        .micro_batches = e->micro_batches, .accumulate = e->accumulate,
        .fill_nan = e->debug, .clip_norm = t->clip_norm, .ema_decay = t->ema_decay,
        .scaling = { t->loss_scale_growth, t->loss_scale_backoff, t->loss_scale_interval },
        .seed = (uint64_t)e->sections.experiment.seed
    };

    if (!training) {
        s.precision = e->window_precision;
        s.micro_batches = s.accumulate = 1;
        s.clip_norm = 0;
        return s;
    }
    s.optimizer = e->optimizer.plugin->operations;
    s.optimizer_config = e->optimizer.options;
    return s;
}

/* Image and target: inputs, or cut by the device. */
static pons_status build_patches(const experiment *e, bool cuts, pons_graph *g, pons_node **image,
                                 pons_node **target, pons_error *err)
{
    int64_t batch = e->sections.train.batch * e->sections.patch.per_case;
    pons_shape images = batch_shape(e->patch, batch, e->task.channels);
    pons_shape targets = e->task.whole ? (pons_shape){ 5, { batch, 1, 1, 1, 1 } }
                         : batch_shape(e->patch, batch, e->regions ? e->class_count : 1);

    *image = cuts ? patch_nodes_image(e, g, images, err)
                  : node_input(g, "image", PONS_F32, images);
    if (!task_nodes_of(e)->labels)
        return err->status != PONS_OK ? err->status : pons_graph_status(g, err);
    *target = cuts ? patch_nodes_target(e, g, targets, err)
                   : node_input(g, "target", e->task.whole ? PONS_I32 : PONS_U8, targets);
    return err->status != PONS_OK ? err->status : pons_graph_status(g, err);
}

pons_status programs_graph_training(const experiment *e, bool cuts, pons_graph **out,
                                    pons_node **loss, pons_error *err)
{
    pons_graph *g = graph_new(true);
    pons_node *image, *label = NULL;
    mixed_target target;
    task_inputs inputs;
    pons_outputs outputs;

    if (g == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the graph");
    if (build_patches(e, cuts, g, &image, &label, err) == PONS_OK
        && task_nodes_of(e)->train(e, g, image, label, &inputs, err) == PONS_OK)
        mixing_nodes_add(e, g, &inputs.item[0].node, inputs.target, &target, err);
    g->scope = SCOPE_MODEL;
    g->join_norms = e->sections.distribute.sync_batchnorm && e->replicas > 1;
    g->join_loss = e->sections.loss.sync && e->replicas > 1;
    if (err->status == PONS_OK)
        build_model(e, g, &inputs, &outputs, err);
    g->scope = SCOPE_LOSS;
    if (err->status == PONS_OK)
        build_loss(e, g, &outputs, &target, loss, err);
    g->scope = SCOPE_CORE;
    if (err->status != PONS_OK)
        graph_free(g);
    else
        *out = g;
    return err->status;
}

static pons_status build_evaluated_loss(const experiment *e, pons_graph *g, pons_node **loss,
                                        pons_error *err)
{
    mixed_target target = { NULL };
    pons_node *image, *label = NULL;
    task_inputs inputs;
    pons_outputs outputs;

    if (build_patches(e, false, g, &image, &label, err) != PONS_OK
        || task_nodes_of(e)->train(e, g, image, label, &inputs, err) != PONS_OK)
        return err->status;
    target.node = inputs.target;
    g->scope = SCOPE_MODEL;
    if (build_model(e, g, &inputs, &outputs, err) != PONS_OK)
        return err->status;
    g->scope = SCOPE_LOSS;
    build_output_loss(e, g, &target, outputs.item[0], loss, err);
    g->scope = SCOPE_CORE;
    return err->status;
}

pons_status programs_build_loss(const experiment *e, const device *d, storage *s, program **out,
                                pons_error *err)
{
    program_settings settings = settings_of(e, false);
    pons_graph *g = graph_new(false);
    pons_node *loss;

    if (g == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the graph");
    settings.precision = e->precision;
    if (build_evaluated_loss(e, g, &loss, err) == PONS_OK)
        return program_new(s, d, g, NULL, 1, &loss, &settings, out, err);
    graph_free(g);
    return err->status;
}

static bool joins_anything(const pons_graph *g, node_scope scope)
{
    for (int i = 0; i < g->node_count; i++)
        if (g->node[i]->kind == NODE_ALL_REDUCE && g->node[i]->scope == scope)
            return true;
    return false;
}

static void warn_of_nothing_joined(const experiment *e, const pons_graph *g)
{
    if (g->join_norms && !joins_anything(g, SCOPE_MODEL))
        log_warning(e->log, "[distribute] sync_batchnorm = yes changes nothing: the network has no "
                    "batch norm");
    if (g->join_loss && !joins_anything(g, SCOPE_LOSS))
        log_warning(e->log, "[loss] sync = yes changes nothing: the loss is a mean over cases");
}

pons_status programs_build_training(const experiment *e, const program_seat *place, storage *s,
                                    program **out, pons_error *err)
{
    program_settings settings = settings_of(e, true);
    pons_graph *g = NULL;
    pons_node *loss = NULL;

    if (programs_graph_training(e, place->cuts, &g, &loss, err) != PONS_OK)
        return err->status;
    if (place->collective != NULL && place->collective->rank == 0)
        warn_of_nothing_joined(e, g);
    settings.collective = place->collective;
    settings.bucket = (size_t)e->sections.distribute.bucket;
    if (program_new(s, place->device, g, loss, 0, NULL, &settings, out, err) != PONS_OK)
        return config_location_add(e->config, "optimizer", "plugin", err);
    return PONS_OK;
}

static bool has_dropout(const pons_graph *g)
{
    for (int i = 0; i < g->node_count; i++)
        if (g->node[i]->kind == NODE_UNIFORM)
            return true;
    return false;
}

/* Add the network of an evaluation, on images of 'shape'. */
static pons_status build_network(const experiment *e, pons_graph *g, pons_shape shape, bool drops,
                                 pons_outputs *out, pons_error *err)
{
    task_inputs inputs;

    g->drops = drops;
    if (task_nodes_of(e)->evaluate(e, g, node_input(g, "image", PONS_F32, shape), &inputs, err)
            == PONS_OK
        && build_model(e, g, &inputs, out, err) == PONS_OK && drops && !has_dropout(g))
        pons_fail(err, PONS_CONFIG, "%s: model '%s' has no dropout, which random passes vary",
                  config_location(e->config, "model", "plugin"),
                  e->model.plugin->descriptor->name);
    return err->status;
}

pons_shape programs_window_shape(const experiment *e)
{
    return batch_shape(e->window, e->sections.window.batch, e->task.channels);
}

/* A graph of the network of an evaluation, which the caller frees. */
static pons_status open_network(const experiment *e, pons_shape shape, bool drops, pons_graph **out,
                                pons_node **logits, pons_error *err)
{
    pons_graph *g = graph_new(false);
    pons_outputs outputs;

    if (g == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the graph");
    if (build_network(e, g, shape, drops, &outputs, err) != PONS_OK) {
        graph_free(g);
        return err->status;
    }
    *out = g;
    *logits = outputs.item[0];
    return PONS_OK;
}

pons_status programs_graph_evaluation(const experiment *e, pons_shape shape, pons_graph **out,
                                      pons_node **logits, pons_error *err)
{
    return open_network(e, shape, false, out, logits, err);
}

pons_status programs_build_evaluation(const experiment *e, const device *d, storage *s, bool drops,
                                      program **out, pons_error *err)
{
    program_settings settings = settings_of(e, false);
    pons_graph *g;
    pons_node *output[2];
    bool holds = window_nodes_wanted(e, d);

    if (open_network(e, programs_window_shape(e), drops, &g, &output[0], err) != PONS_OK)
        return err->status;
    if (holds)
        output[1] = window_nodes_add(e, g, output[0]);
    if (program_new(s, d, g, NULL, holds ? 2 : 1, output, &settings, out, err) == PONS_OK)
        window_nodes_clear(*out);
    return err->status;
}

/* ---- windows --------------------------------------------------------------------------------- */

static pons_status run_program(void *context, const float **logits, pons_error *err)
{
    pons_tensor tensor;

    if (logits == NULL) {
        if (program_evaluate_ahead(context, err) == PONS_OK)
            program_input(context, "image", &tensor); /* until they have left the host */
        return err->status;
    }
    if (program_evaluate(context, err) != PONS_OK)
        return err->status;
    *logits = program_output(context, 0, &tensor);
    return *logits != NULL ? PONS_OK
         : pons_fail(err, PONS_DEVICE, "cannot read the logits of a window from the device");
}

pons_status programs_predictor(const experiment *e, program *p, window_predictor *out,
                               pons_error *err)
{
    pons_tensor tensor = { 0 };
    float *input = program_input(p, "image", &tensor);

    if (input == NULL)
        return pons_fail(err, PONS_PLUGIN, "model '%s' does not use its image",
                         e->model.plugin->descriptor->name);
    *out = (window_predictor){ .input = input, .place = program_input(p, HELD_PLACES, NULL),
                               .flip = program_input(p, HELD_FLIPS, NULL),
                               .whole = program_input(p, HELD_WHOLE, NULL),
                               .channels = e->task.channels, .classes = e->task.classes,
                               .run = run_program, .context = p };
    return PONS_OK;
}
