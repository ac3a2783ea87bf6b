/*
 * plugin_check_graph.c - check models, losses and optimizers on small graphs, in double on the
 * reference device.
 *
 * Gradients agree with finite differences. Both builds of a model have the same parameters. Steps
 * can be repeated, and they descend.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pons/loss.h>

#include "base/integer.h"
#include "base/random.h"
#include "cli/plugin/plugin_check.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "graph/program/program.h"
#include "graph/reference/reference.h"
#include "replica/plugin_build.h"

enum { CHANNELS = 2, CLASSES = 3, BATCH = 2, SAMPLES = 5, PARAMETERS = 10 };

/* A compiled step of a graph. */
typedef struct trial {
    device device;
    storage *storage;
    program *program;
} trial;

static void trial_close(trial *t)
{
    program_free(t->program);
    storage_free(t->storage);
}

/* ---- the update of finite differences: p - lr g ---------------------------------------------- */

static pons_status descend(pons_graph *g, const void *config, const pons_parameter *p,
                           pons_error *err)
{
    pons_assign(g, p->value, pons_sub(g, p->value, pons_mul(g, p->lr, p->gradient)));
    return pons_graph_status(g, err);
}

static const pons_slot no_slots[] = { PONS_SLOTS_END };
const pons_optimizer_operations plugin_check_descent = {
    .slots = no_slots, .update = descend
};

/* Compile a step. The trial owns 'g'. */
static pons_status trial_open(trial *t, pons_graph *g, pons_node *loss,
                              const pons_optimizer_operations *optimizer, const void *config,
                              pons_error *err)
{
    program_settings settings = { .precision = PRECISION_FP32, .micro_batches = 1, .accumulate = 1,
                                  .optimizer = optimizer, .optimizer_config = config, .seed = 1 };
    pons_status status;

    memset(t, 0, sizeof *t);
    device_reference(&t->device, true);
    status = storage_new(&t->device, &t->storage, err);
    if (status != PONS_OK) {
        graph_free(g);
        return status;
    }
    status = program_new(t->storage, &t->device, g, loss, 0, NULL, &settings, &t->program, err);
    if (status == PONS_OK)
        status = storage_initialise(t->storage, 1, err);
    if (status != PONS_OK)
        trial_close(t);
    return status;
}

/*
 * Run one step at 'lr', always on the same micro-batch with the same number. *loss is the loss
 * before the update.
 */
static pons_status trial_step(trial *t, double lr, double *loss, pons_error *err)
{
    step_result result;

    if (program_step_begin(t->program, 0, err) != PONS_OK
        || program_micro(t->program, 0, err) != PONS_OK
        || program_step_finish(t->program, lr, &result, err) != PONS_OK)
        return err->status;
    if (!isfinite(result.loss))
        return pons_fail(err, PONS_PLUGIN, "the loss is %g on small random numbers", result.loss);
    *loss = result.loss;
    return PONS_OK;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static void fill_real(void *memory, pons_type type, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t word[4];
        float normal[2];
        random_voxels(7, (uint64_t)i, word);
        random_normal(word[0], word[1], normal);
        if (type == PONS_F64)
            ((double *)memory)[i] = normal[0];
        else
            ((float *)memory)[i] = normal[0];
    }
}

static void fill_labels(uint8_t *memory, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t word[4];
        random_voxels(11, (uint64_t)i, word);
        memory[i] = (uint8_t)(word[0] % CLASSES);
    }
}

static void fill_input(program *p, const char *name)
{
    pons_tensor tensor;
    void *memory = program_input(p, name, &tensor);

    if (memory == NULL)
        return;
    if (tensor.type == PONS_U8)
        fill_labels(memory, shape_count(tensor.shape));
    else
        fill_real(memory, tensor.type, shape_count(tensor.shape));
}

static const pons_task *small_task(void)
{
    static const char *const classes[] = { "background", "one", "two" };
    static const pons_task task = {
        .size = sizeof task, .channels = CHANNELS, .classes = CLASSES, .class_names = classes,
        .target = PONS_TARGET_LABELS, .flat_axis = -1
    };
    return &task;
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* A direction in the space of a parameter: one element, or all of them, up or down at random. */
typedef struct direction {
    storage_tensor parameter;
    int64_t element;         /* EACH: all                                                         */
} direction;

enum { EACH = -1 };

static double direction_sign(int64_t element)
{
    uint32_t word[4];

    random_voxels(13, (uint64_t)element, word);
    return (word[0] & 1) != 0 ? 1 : -1;
}

/* Move a parameter from 'at' along a direction. */
static void move_parameter(trial *t, const direction *d, const double *at, double by)
{
    double *value = d->parameter.memory;
    int64_t count = shape_count(d->parameter.shape);

    for (int64_t k = 0; k < count; k++)
        value[k] = d->element == EACH ? at[k] + by * direction_sign(k)
                 : k == d->element ? at[k] + by : at[k];
    program_weights_changed(t->program);
}

/* The central difference of the loss along a direction, with step h. */
static pons_status difference(trial *t, const direction *d, const double *at, double h,
                              double *slope, pons_error *err)
{
    double above = 0, below = 0;

    move_parameter(t, d, at, h);
    if (trial_step(t, 0, &above, err) == PONS_OK) {
        move_parameter(t, d, at, -h);
        trial_step(t, 0, &below, err);
    }
    move_parameter(t, d, at, 0);
    *slope = (above - below) / (2 * h);
    return err->status;
}

static double gradient_along(const direction *d, const double *gradient)
{
    double sum = 0;

    if (d->element != EACH)
        return gradient[d->element];
    for (int64_t k = 0; k < shape_count(d->parameter.shape); k++)
        sum += gradient[k] * direction_sign(k);
    return sum;
}

static pons_status refuse_gradient(const direction *d, double gradient, double slope,
                                   pons_error *err)
{
    char place[64] = "along random signs";

    if (d->element != EACH)
        snprintf(place, sizeof place, "at element %lld", (long long)d->element);
    return pons_fail(err, PONS_PLUGIN, "gradient of '%s' %s is %.9g, by finite differences %.9g",
                     d->parameter.name, place, gradient, slope);
}

/*
 * Check a direction with ever smaller steps, because a kink (relu, max) may lie in a large one. A
 * step has the same length along all elements as along one.
 */
static pons_status check_direction(trial *t, const direction *d, const double *at,
                                   const double *gradient, pons_error *err)
{
    static const double steps[] = { 1e-5, 1e-6, 1e-7 };
    double slope = 0, expected = gradient_along(d, gradient);
    double length = d->element == EACH ? sqrt((double)shape_count(d->parameter.shape)) : 1;

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (difference(t, d, at, steps[i] / length, &slope, err) != PONS_OK)
            return err->status;
        if (fabs(slope - expected) <= 1e-5 + 1e-3 * fabs(slope))
            return PONS_OK;
    }
    return refuse_gradient(d, expected, slope, err);
}

/* Check a few elements, the first among them, and all along random signs. */
static pons_status check_parameter(trial *t, const storage_tensor *p, int samples,
                                   const double *gradient, pons_error *err)
{
    int64_t count = shape_count(p->shape), checked = min_i64(count, samples);
    double *at = malloc((size_t)count * sizeof *at + 1);

    if (at == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    memcpy(at, p->memory, (size_t)count * sizeof *at);
    for (int64_t s = 0; s < checked && err->status == PONS_OK; s++)
        check_direction(t, &(direction){ *p, s * count / checked }, at, gradient, err);
    if (err->status == PONS_OK && count > checked)
        check_direction(t, &(direction){ *p, EACH }, at, gradient, err);
    free(at);
    return err->status;
}

/* Take the gradients as the change of the parameters in one step with lr 1. */
static pons_status take_gradients(trial *t, double **gradient, pons_error *err)
{
    int count = storage_count(t->storage, STORAGE_PARAMETER);
    double loss;

    for (int i = 0; i < count; i++) {
        storage_tensor p = storage_item(t->storage, STORAGE_PARAMETER, i);
        size_t size = (size_t)shape_count(p.shape) * sizeof(double);
        gradient[i] = malloc(size + 1);
        if (gradient[i] == NULL)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        memcpy(gradient[i], p.memory, size);
    }
    program_weights_changed(t->program);
    if (trial_step(t, 1, &loss, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count; i++) {
        storage_tensor p = storage_item(t->storage, STORAGE_PARAMETER, i);
        for (int64_t k = 0; k < shape_count(p.shape); k++) {
            double before = gradient[i][k];
            gradient[i][k] = before - ((double *)p.memory)[k];
            ((double *)p.memory)[k] = before;
        }
    }
    program_weights_changed(t->program);
    return PONS_OK;
}

/* A model with many parameters gets one element of each, which keeps its check quick. */
static pons_status compare_gradients(trial *t, double *const *gradient, pons_error *err)
{
    int count = storage_count(t->storage, STORAGE_PARAMETER);
    int samples = count > PARAMETERS ? 1 : SAMPLES;

    for (int i = 0; i < count; i++) {
        storage_tensor p = storage_item(t->storage, STORAGE_PARAMETER, i);
        if (check_parameter(t, &p, samples, gradient[i], err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

static pons_status check_gradients(trial *t, pons_error *err)
{
    int count = storage_count(t->storage, STORAGE_PARAMETER);
    double **gradient = calloc((size_t)count + 1, sizeof *gradient);
    pons_status status;

    if (gradient == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    status = take_gradients(t, gradient, err);
    if (status == PONS_OK)
        status = compare_gradients(t, gradient, err);
    for (int i = 0; i < count; i++)
        free(gradient[i]);
    free(gradient);
    return status;
}

pons_status plugin_check_differences(pons_graph *g, pons_node *loss, pons_error *err)
{
    trial t;

    if (trial_open(&t, g, loss, &plugin_check_descent, NULL, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < g->node_count; i++)
        if (g->node[i]->kind == NODE_INPUT)
            fill_input(t.program, g->node[i]->name);
    check_gradients(&t, err);
    trial_close(&t);
    return err->status;
}

/* ---- model ----------------------------------------------------------------------------------- */

/*
 * Build the model with the inputs of all tasks; it reads those that it knows. 'whole': the model
 * gives one row of logits for the whole image.
 */
static pons_status build_model(const plugin *p, const void *config, bool whole,
                               const int64_t extent[3], pons_graph *g, pons_outputs *out,
                               pons_error *err)
{
    pons_task task = *small_task();
    pons_shape shape = pons_shape_make(5, (int64_t[]){ BATCH, extent[0], extent[1], extent[2],
                                                       CHANNELS });

    const pons_named_node named[] = {
        { "image", node_input(g, "image", PONS_F32, shape) },
        { "timestep", node_input(g, "timestep", PONS_F32, pons_shape_make(1, shape.extent)) }
    };

    task.whole = whole;
    g->scope = SCOPE_MODEL;
    plugin_build_model(p, config, &task, &(pons_inputs){ 2, named }, g, out, err);
    g->scope = SCOPE_CORE;
    return err->status;
}

/* The status of building the model for an image of an extent, without its message. */
static pons_status try_model(const plugin *p, const void *config, bool whole,
                             const int64_t extent[3])
{
    pons_error ignored = PONS_ERROR_INIT;
    pons_graph *g = graph_new(true);
    pons_outputs outputs;
    pons_status status = g == NULL ? PONS_DEVICE
                                   : build_model(p, config, whole, extent, g, &outputs, &ignored);

    graph_free(g);
    return status;
}

/* Whether the model gives one row of logits for a whole image instead of one for each voxel. */
static bool gives_whole(const plugin *p, const void *config, const int64_t extent[3])
{
    return try_model(p, config, true, extent) == PONS_OK;
}

/* Whether the model refuses an image. One without a divisor may, if its levels need more voxels. */
static bool refuses(const plugin *p, const void *config, const int64_t extent[3])
{
    return try_model(p, config, false, extent) == PONS_CONFIG;
}

/* The smallest extent with more than one voxel on every level, or a small one that is taken. */
static pons_status model_extent(const plugin *p, const void *config, int64_t extent[3],
                                pons_error *err)
{
    const pons_model_operations *o = p->operations;
    int divisor[3] = { 1, 1, 1 };

    if (o->divisor != NULL && o->divisor(config, divisor, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < 3; i++) {
        if (divisor[i] < 1)
            return pons_fail(err, PONS_PLUGIN, "divisor along axis %d is %d, expected at least 1",
                             i, divisor[i]);
        extent[i] = max_int(divisor[i] * 2, 4);
    }
    for (int k = 0; k < 12 && refuses(p, config, extent); k++)
        extent[k % 3] *= 2;
    return PONS_OK;
}

/* The sum of all outputs with a different weight for each element, so that no gradient cancels. */
static pons_node *mixed_sum(pons_graph *g, const pons_outputs *outputs)
{
    pons_node *sum = pons_scalar(g, 0);

    for (int i = 0; i < outputs->count; i++) {
        pons_shape shape = pons_shape_of(outputs->item[i]);
        pons_node *weight = pons_scalar(g, 0.3 + i);
        for (int axis = 0; axis < shape.rank; axis++) {
            pons_node *place = pons_iota(g, shape.rank, axis, shape.extent[axis]);
            weight = pons_add(g, weight, pons_sin(g, pons_scale(g, place, 1.7 + 0.9 * axis)));
        }
        sum = pons_add(g, sum, pons_mean_all(g, pons_mul(g, outputs->item[i], weight)));
    }
    return sum;
}

/* Check that a build for evaluation finds all of its parameters and states. */
static pons_status check_evaluate(trial *t, const plugin *p, const void *config, bool whole,
                                  const int64_t extent[3], pons_error *err)
{
    program_settings settings = { .precision = PRECISION_FP32, .micro_batches = 1,
                                  .accumulate = 1 };
    pons_graph *g = graph_new(false);
    program *evaluate = NULL;
    pons_outputs outputs;

    if (g == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (build_model(p, config, whole, extent, g, &outputs, err) != PONS_OK) {
        graph_free(g);
        return err->status;
    }
    if (program_new(t->storage, &t->device, g, NULL, 1, outputs.item, &settings, &evaluate, err)
        == PONS_OK) {
        fill_input(evaluate, "image");
        fill_input(evaluate, "timestep");
        program_evaluate(evaluate, err);
    }
    program_free(evaluate);
    return err->status;
}

static pons_status check_model_with(const plugin *p, const void *config, pons_error *err)
{
    pons_graph *g = graph_new(true);
    int64_t extent[3];
    pons_outputs outputs;
    bool whole = false;
    trial t;

    if (g == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (model_extent(p, config, extent, err) == PONS_OK)
        whole = gives_whole(p, config, extent);
    if (err->status != PONS_OK
        || build_model(p, config, whole, extent, g, &outputs, err) != PONS_OK) {
        graph_free(g);
        return err->status;
    }
    if (trial_open(&t, g, mixed_sum(g, &outputs), &plugin_check_descent, NULL, err) != PONS_OK)
        return err->status;
    fill_input(t.program, "image");
    fill_input(t.program, "timestep");
    if (check_gradients(&t, err) == PONS_OK)
        check_evaluate(&t, p, config, whole, extent, err);
    trial_close(&t);
    return err->status;
}

/* ---- loss ------------------------------------------------------------------------------------ */

static pons_status check_loss_with(const plugin *p, const void *config, pons_error *err)
{
    pons_graph *g = graph_new(true);
    pons_shape shape = pons_shape_make(5, (int64_t[]){ BATCH, 3, 4, 5, CLASSES });
    pons_shape labels = pons_shape_make(5, (int64_t[]){ BATCH, 3, 4, 5, 1 });
    pons_target target = { .activation = PONS_ACTIVATION_SOFTMAX };
    pons_node *logits, *value = NULL;
    trial t;

    if (g == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    g->scope = SCOPE_MODEL;
    logits = pons_parameter_leaf(g, "logits", PONS_ROLE_WEIGHT, shape,
                                 (pons_init){ PONS_INIT_NORMAL, 1 });
    target.node = node_input(g, "target", PONS_U8, labels);
    g->scope = SCOPE_LOSS;
    plugin_build_loss(p, config, small_task(), logits, &target, g, &value, err);
    g->scope = SCOPE_CORE;
    if (err->status != PONS_OK) {
        graph_free(g);
        return err->status;
    }
    if (trial_open(&t, g, value, &plugin_check_descent, NULL, err) != PONS_OK)
        return err->status;
    fill_input(t.program, "target");
    check_gradients(&t, err);
    trial_close(&t);
    return err->status;
}

/* ---- optimizer ------------------------------------------------------------------------------- */

/* Build half the squared distance from a fixed point, for a weight and a bias. */
static pons_status open_bowl(const plugin *p, const void *config, trial *t, pons_error *err)
{
    pons_graph *g = graph_new(true);
    pons_shape shapes[2] = { pons_shape_make(2, (int64_t[]){ 3, 5 }),
                             pons_shape_make(1, (int64_t[]){ 7 }) };
    static const char *const names[] = { "weight", "bias" };
    pons_node *loss;

    if (g == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    g->scope = SCOPE_MODEL;
    loss = pons_scalar(g, 0);
    for (int i = 0; i < 2; i++) {
        pons_node *x = pons_parameter_leaf(g, names[i], i == 0 ? PONS_ROLE_WEIGHT : PONS_ROLE_BIAS,
                                           shapes[i], (pons_init){ PONS_INIT_NORMAL, 1 });
        pons_node *aim = pons_iota(g, shapes[i].rank, shapes[i].rank - 1,
                                   shapes[i].extent[shapes[i].rank - 1]);
        pons_node *square = pons_square(g, pons_sub(g, x, aim));
        loss = pons_add(g, loss, pons_scale(g, pons_sum_all(g, square), 0.5));
    }
    return trial_open(t, g, loss, p->operations, config, err);
}

/* Run steps from the same start. *first and *last are the first and the last loss. */
static pons_status descend_bowl(const plugin *p, const void *config, double *first, double *last,
                                pons_error *err)
{
    enum { STEPS = 100 };
    trial t;

    if (open_bowl(p, config, &t, err) != PONS_OK)
        return err->status;
    for (int i = 0; i <= STEPS && err->status == PONS_OK; i++)
        trial_step(&t, 1e-2, i == 0 ? first : last, err);
    trial_close(&t);
    return err->status;
}

static pons_status check_optimizer_with(const plugin *p, const void *config, pons_error *err)
{
    double first = 0, last = 0, again = 0;

    if (descend_bowl(p, config, &first, &last, err) != PONS_OK
        || descend_bowl(p, config, &first, &again, err) != PONS_OK)
        return err->status;
    if (last != again)
        return pons_fail(err, PONS_PLUGIN, "100 steps end at loss %.17g and, repeated, at %.17g",
                         last, again);
    if (last >= first)
        return pons_fail(err, PONS_PLUGIN, "100 steps with learning rate 0.01 on a quadratic bowl "
                         "lead from loss %g to %g, expected a smaller one", first, last);
    return PONS_OK;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Run a check with options. 'there': the plugin has the required operation 'name'. */
static pons_status check_with(const plugin *p, const invocation *call, const char *name, bool there,
                              pons_status (*check)(const plugin *p, const void *config,
                                                   pons_error *err),
                              pons_error *err)
{
    config *values;
    void *options;

    if (!there)
        return pons_fail(err, PONS_PLUGIN, "operation '%s' is missing", name);
    if (plugin_check_options(p, call, &options, &values, err) != PONS_OK)
        return err->status;
    check(p, options, err);
    config_close(values);
    free(options);
    return err->status;
}

/*
 * The check first takes small values in place of defaults. If the model refuses them, its defaults
 * are checked.
 */
pons_status plugin_check_model(const plugin *p, const invocation *call, pons_error *err)
{
    const pons_model_operations *o = p->operations;
    pons_error cause = PONS_ERROR_INIT;
    config *values;
    void *options;
    char *used;

    if (o->build == NULL
        || plugin_check_quick_options(p, call, &options, &values, &used, &cause) != PONS_OK)
        return check_with(p, call, "build", o->build != NULL, check_model_with, err);
    check_model_with(p, options, &cause);
    if (cause.status == PONS_OK && used[0] != '\0')
        printf("model %s: checked with %s\n", p->descriptor->name, used);
    bool again = cause.status != PONS_OK && used[0] != '\0';
    config_close(values);
    free(options);
    free(used);
    if (again)
        return check_with(p, call, "build", o->build != NULL, check_model_with, err);
    return cause.status == PONS_OK ? PONS_OK : pons_fail(err, cause.status, "%s", cause.text);
}

pons_status plugin_check_loss(const plugin *p, const invocation *call, pons_error *err)
{
    const pons_loss_operations *o = p->operations;

    return check_with(p, call, "build", o->build != NULL, check_loss_with, err);
}

pons_status plugin_check_optimizer(const plugin *p, const invocation *call, pons_error *err)
{
    const pons_optimizer_operations *o = p->operations;

    if (o->slots == NULL)
        return pons_fail(err, PONS_PLUGIN, "the table 'slots' is missing");
    return check_with(p, call, "update", o->update != NULL, check_optimizer_with, err);
}
