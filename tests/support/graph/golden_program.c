/*
 * golden_program.c - read golden cases, reorder arrays, build plugins with their options.
 */
#include "support/graph/golden_program.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "device/device_open.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "graph/reference/reference.h"
#include "support/data/golden_file.h"
#include "support/must.h"

void golden_open(golden *g, const char *name)
{
    char file[256];

    snprintf(file, sizeof file, "%s.json", name);
    g->cases = golden_json(file);
    snprintf(file, sizeof file, "%s.safetensors", name);
    MUST(safetensors_open(golden_path(file), &g->arrays, &error));
}

void golden_close(golden *g)
{
    safetensors_close(g->arrays);
    json_decref(g->cases);
}

const char *golden_text(const json_t *c, const char *key)
{
    const char *text = json_string_value(json_object_get(c, key));

    ck_assert_msg(text != NULL, "no text '%s'", key);
    return text;
}

double golden_number(const json_t *c, const char *key)
{
    const json_t *v = json_object_get(c, key);

    ck_assert_msg(json_is_number(v), "no number '%s'", key);
    return json_number_value(v);
}

const safetensor *golden_find(const golden *g, const char *name, ...)
{
    char text[512];
    va_list list;

    va_start(list, name);
    vsnprintf(text, sizeof text, name, list);
    va_end(list);
    return safetensors_find(g->arrays, text);
}

/* ---- devices --------------------------------------------------------------------------------- */

void golden_device(const golden_mode *m, device *d)
{
    pons_device_settings settings = { .index = 0, .count = 1, .threads = 1 };

    if (m->plugin == NULL) {
        device_reference(d, m->wide);
        return;
    }
    MUST(device_open(m->plugin, &settings, NULL, d, &error));
    MUST(device_attach(d, &error));
}

program_settings golden_settings(const golden_mode *m)
{
    return (program_settings){ .precision = m->precision, .fill_nan = m->fill_nan,
                               .micro_batches = 1,
                               .accumulate = 1 };
}

/* ---- plugins --------------------------------------------------------------------------------- */

static void put_number(char *out, const json_t *v)
{
    if (json_is_boolean(v))
        strcat(out, json_is_true(v) ? "yes" : "no");
    else
        sprintf(out + strlen(out), "%.17g", json_number_value(v));
}

/* MONAI takes names of layers in capitals too. */
static void put_word(char *out, const char *word)
{
    for (out += strlen(out); *word != '\0'; word++)
        *out++ = (char)tolower((unsigned char)*word);
    *out = '\0';
}

/* A number that stands for all axes, or that of one axis. */
static int number_of(const json_t *v, size_t axis)
{
    return (int)json_integer_value(json_is_array(v) ? json_array_get(v, axis) : v);
}

/* Items of a list, separated by 'between'. */
static void put_list(char *out, const json_t *list, const char *between, bool flat)
{
    const json_t *v;
    size_t i;

    if (flat)
        strcat(strcat(out, "1"), between);
    json_array_foreach(list, i, v) {
        if (i > 0)
            strcat(out, between);
        if (json_is_array(v))
            put_list(out, v, ",", false);
        else
            put_number(out, v);
    }
}

static const pons_option *option_named(const pons_option *options, const char *name)
{
    while (options->name != NULL && strcmp(options->name, name) != 0)
        options++;
    return options->name != NULL ? options : NULL;
}

/* Write an option as in "model.strides=2,2,1 2,2,2". */
static void put_option(char *out, const char *section, const pons_option *o, const json_t *v,
                       bool flat)
{
    const json_t *item;
    size_t i;

    sprintf(out, "%s.%s=", section, o->name);
    if (json_is_string(v)) {
        put_word(out, json_string_value(v));
    } else if (!json_is_array(v)) {
        put_number(out, v);
    } else if (flat && o->type == PONS_OPTION_TRIPLES) {
        json_array_foreach(v, i, item)
            sprintf(out + strlen(out), "%s1,%d,%d", i > 0 ? " " : "", number_of(item, 0),
                    number_of(item, 1));
    } else {
        put_list(out, v, " ", flat && o->type == PONS_OPTION_AXES);
    }
}

/* Assignments of options, as 'pons --set' takes them. */
typedef struct assignments {
    const plugin *plugin;
    const char *section;
    bool flat;
    int count;
    char text[32][256];
    const char *set[32];
} assignments;

static char *next_assignment(assignments *a)
{
    ck_assert_int_lt(a->count, 32);
    a->set[a->count] = a->text[a->count];
    return a->text[a->count++];
}

static void assign(assignments *a, json_t *options)
{
    const char *key;
    json_t *v;

    json_object_foreach(options, key, v) {
        const pons_option *o = option_named(a->plugin->descriptor->options, key);

        if (o == NULL || json_is_null(v))
            continue;
        if (json_is_array(v) && json_is_string(json_array_get(v, 0))) {
            assign(a, json_array_get(v, 1));
            v = json_array_get(v, 0);
        }
        put_option(next_assignment(a), a->section, o, v, a->flat);
    }
}

void golden_load(golden_plugin *p, pons_kind kind, const char *name, size_t operations_size,
                 json_t *options, bool flat)
{
    static assignments a;

    MUST(plugin_load(kind, name, operations_size, NULL, &p->plugin, &error));
    a = (assignments){ .plugin = p->plugin, .section = plugin_kind_name(kind), .flat = flat };
    assign(&a, options);
    for (const pons_option *o = p->plugin->descriptor->options; flat && o->name != NULL; o++)
        if (o->type == PONS_OPTION_AXES && json_object_get(options, o->name) == NULL)
            sprintf(next_assignment(&a), "%s.%s=1 3 3", a.section, o->name);
    MUST(config_open(NULL, a.count, a.set, &p->config, &error));
    p->options = calloc(1, p->plugin->descriptor->config_size + 1);
    MUST(config_fill(p->config, a.section, p->plugin->descriptor->options, p->options, &error));
}

void golden_unload(golden_plugin *p)
{
    free(p->options);
    config_close(p->config);
}

/* ---- axis orders ----------------------------------------------------------------------------- */

/*
 * order[i] is the axis of PyTorch's array that holds our axis i. -1: it has none, as the depth of a
 * 2D array, the extents of a vector per item, or the channels of one number per item.
 */
static void axis_order(const safetensor *t, int order[5])
{
    order[0] = 0;
    for (int i = 1; i < 4; i++)
        order[i] = t->rank - 4 + i > 1 ? t->rank - 4 + i : -1;
    order[4] = t->rank > 1 ? 1 : -1;
}

int64_t *golden_indices(const safetensor *t, pons_shape shape)
{
    int64_t count = shape_count(shape), stride[8], at[PONS_RANK_MAX] = { 0 };
    int64_t *index = malloc((size_t)count * sizeof *index);
    int order[5];

    ck_assert_msg(t->count == count, "'%s' has %lld elements, ours %lld", t->name,
                  (long long)t->count, (long long)count);
    axis_order(t, order);
    for (int i = t->rank - 1; i >= 0; i--)
        stride[i] = i == t->rank - 1 ? 1 : stride[i + 1] * t->extent[i + 1];
    for (int64_t k = 0; k < count; k++) {
        index[k] = 0;
        for (int i = 0; i < shape.rank; i++)
            if (shape.rank != 5 || order[i] >= 0)
                index[k] += at[i] * stride[shape.rank == 5 ? order[i] : i];
        for (int i = shape.rank - 1; i >= 0 && ++at[i] == shape.extent[i]; i--)
            at[i] = 0;
    }
    return index;
}

static double number_at(pons_type type, const void *memory, int64_t i)
{
    return type == PONS_F64 ? ((const double *)memory)[i] : ((const float *)memory)[i];
}

void golden_read(const safetensor *from, pons_tensor to, bool image, void *memory)
{
    int64_t *index = golden_indices(from, to.shape);
    double *values = malloc((size_t)from->count * sizeof *values);

    safetensor_doubles(from, values);
    for (int64_t i = 0; i < from->count; i++) {
        double value = values[index[i]];

        if (to.type == PONS_U8)
            ((uint8_t *)memory)[i] = (uint8_t)(int)value; /* modulo 256, as the files have it */
        else if (to.type == PONS_F64)
            ((double *)memory)[i] = value;
        else
            ((float *)memory)[i] = (float)value;
    }
    free(values);
    free(index);
}

golden_difference golden_compare(const safetensor *expected, pons_tensor found, bool image,
                                 const void *memory)
{
    int64_t *index = golden_indices(expected, found.shape);
    double *values = malloc((size_t)expected->count * sizeof *values);
    golden_difference d = { 0, 0 };

    safetensor_doubles(expected, values);
    for (int64_t i = 0; i < expected->count; i++) {
        double away = fabs(number_at(found.type, memory, i) - values[index[i]]);

        d.largest = away > d.largest || isnan(away) ? away : d.largest;
        d.of = fmax(d.of, fabs(values[index[i]]));
    }
    free(values);
    free(index);
    return d;
}

golden_difference golden_compare_sampled(const safetensor *expected, int step, pons_tensor found,
                                         const void *memory)
{
    pons_shape from = found.shape, to = from;
    double *kept;
    golden_difference d;

    for (int i = 1; i < 4; i++)
        to.extent[i] = (from.extent[i] + step - 1) / step;
    kept = malloc((size_t)shape_count(to) * sizeof *kept);
    for (int64_t k = 0; k < shape_count(to); k++) {
        int64_t rest = k, at = 0, stride = 1;

        for (int i = 4; i >= 0; i--) {
            at += rest % to.extent[i] * (i % 4 != 0 ? step : 1) * stride;
            rest /= to.extent[i];
            stride *= from.extent[i];
        }
        kept[k] = number_at(found.type, memory, at);
    }
    d = golden_compare(expected, (pons_tensor){ PONS_F64, to }, true, kept);
    free(kept);
    return d;
}

pons_shape golden_image_shape(const safetensor *t)
{
    pons_shape s = { 5, { 0 } };
    int order[5];

    axis_order(t, order);
    for (int i = 0; i < 5; i++)
        s.extent[i] = order[i] < 0 ? 1 : t->extent[order[i]];
    return s;
}

pons_tensor golden_tensor(const device *d, pons_shape shape)
{
    return (pons_tensor){ d->wide ? PONS_F64 : PONS_F32, shape };
}

pons_task golden_task(pons_shape image, int classes, bool flat)
{
    return (pons_task){ .size = sizeof(pons_task), .channels = (int)image.extent[4],
                        .classes = classes, .target = PONS_TARGET_LABELS, .flat = flat,
                        .flat_axis = flat ? 0 : -1 };
}

/* ---- cases of losses ------------------------------------------------------------------------- */

bool golden_loss_left_out(const json_t *c)
{
    static const char *const names[] = { "cldice", "dice_cldice", "focal_07" };
    const char *name = golden_text(c, "name");

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* ---- cases of networks ----------------------------------------------------------------------- */

const char *const golden_network_files[] = {
    "networks", "networks_more", "nnunet/networks", "networks_options", "fast_ddpm", "resnets",
    "swin_unetr", "mlp", NULL
};

static const char *const network_plugins[][2] = {
    { "UNet", "unet" }, { "SegResNet", "segresnet" }, { "DynUNet", "dynunet" },
    { "MeshNet", "meshnet" }, { "HighResNet", "highresnet" }, { "AttentionUnet", "attention_unet" },
    { "VNet", "vnet" }, { "BasicUNet", "basicunet" }, { "PlainConvUNet", "plain_unet" },
    { "ResidualEncoderUNet", "residual_unet" }, { "FastDDPM", "fast_ddpm" },
    { "ResNet", "resnet" }, { "XResNet", "xresnet" },
    { "SwinUNETR", "swin_unetr" }, { "MLP", "mlp" }, { "EfficientNetBN", "efficientnet" },
};

const char *golden_network_plugin(const json_t *c)
{
    const json_t *architecture = json_object_get(c, "architecture");
    const char *name = architecture != NULL ? strrchr(golden_text(architecture,
                                                                  "network_class_name"), '.') + 1
                                            : golden_text(c, "network");

    for (size_t i = 0; i < sizeof network_plugins / sizeof network_plugins[0]; i++)
        if (strcmp(name, network_plugins[i][0]) == 0)
            return network_plugins[i][1];
    return NULL;
}

/* A case of nnU-Net that has a state has arrays. */
json_t *golden_network_options(const json_t *c)
{
    if (json_object_get(c, "architecture") == NULL)
        return json_object_get(c, "arguments");
    if (json_object_get(c, "value") == NULL)
        return NULL;
    return json_object_get(json_object_get(c, "architecture"), "arch_kwargs");
}

bool golden_network_flat(const json_t *c)
{
    return json_array_size(json_object_get(c, "extent")) == 2;
}

/* Without its last convolution a SegResNet has as many logits as features. */
static int classes_of(const json_t *c, const json_t *options)
{
    static const char *const keys[] = { "out_channels", "n_classes", "out_ch", "num_classes",
                                        "n_out", NULL };

    if (json_object_get(c, "architecture") != NULL)
        return (int)golden_number(c, "heads");
    if (json_is_false(json_object_get(options, "use_conv_final")))
        return (int)golden_number(options, "init_filters");
    for (int i = 0; keys[i] != NULL; i++)
        if (json_object_get(options, keys[i]) != NULL)
            return (int)golden_number(options, keys[i]);
    return 1;
}

pons_task golden_network_task(const json_t *c, pons_shape image)
{
    const json_t *options = golden_network_options(c);
    const char *target = json_string_value(json_object_get(c, "target"));
    pons_task task = golden_task(image, classes_of(c, options), golden_network_flat(c));

    if (target != NULL && (strcmp(target, "regions") == 0 || strcmp(target, "binary_map") == 0))
        task.target = PONS_TARGET_REGIONS;
    if (target != NULL && strcmp(target, "noise") == 0)
        task.target = PONS_TARGET_IMAGE;
    return task;
}

const char *golden_network_loss(const json_t *c, const pons_task *task)
{
    static const char *const losses[] = {
        [PONS_TARGET_LABELS] = "dice_ce", [PONS_TARGET_REGIONS] = "dice",
        [PONS_TARGET_IMAGE] = "mse"
    };
    const char *loss = json_string_value(json_object_get(c, "loss"));

    if (loss != NULL && (strcmp(loss, "cross_entropy") == 0 || strcmp(loss, "bce") == 0))
        return loss;
    return losses[task->target];
}

/* ---- networks -------------------------------------------------------------------------------- */

/* The target has the extent of the first output. */
static pons_node *target_input(pons_graph *g, const pons_task *task, const pons_outputs *outputs)
{
    pons_shape shape = pons_shape_of(outputs->item[0]);

    shape.extent[4] = task->target == PONS_TARGET_LABELS ? 1 : task->classes;
    return node_input(g, "target", task->target == PONS_TARGET_IMAGE ? PONS_F32 : PONS_U8, shape);
}

static pons_node *build_loss(pons_graph *g, const golden_plugin *loss, const pons_task *task,
                             const pons_outputs *outputs)
{
    const pons_loss_operations *value = loss->plugin->operations;
    static const pons_activation activations[] = {
        [PONS_TARGET_LABELS] = PONS_ACTIVATION_SOFTMAX,
        [PONS_TARGET_REGIONS] = PONS_ACTIVATION_SIGMOID, [PONS_TARGET_IMAGE] = PONS_ACTIVATION_NONE
    };
    pons_target target = { .activation = activations[task->target] };
    pons_node *sum = NULL, *full = target_input(g, task, outputs);

    g->scope = SCOPE_LOSS;
    for (int i = 0; i < outputs->count; i++) {
        pons_shape to = pons_shape_of(outputs->item[i]);
        pons_node *of_head;
        target.node = to.extent[2] == pons_shape_of(full).extent[2]
                          ? full : pons_resize(g, full, PONS_RESIZE_NEAREST_EXACT, &to.extent[1]);
        MUST(value->build(g, loss->options, task, outputs->item[i], &target, &of_head, &error));
        of_head = i == 0 ? of_head : pons_scale(g, of_head, ldexp(1, -i));
        sum = i == 0 ? of_head : pons_add(g, sum, of_head);
    }
    return sum;
}

golden_net golden_build_task(const golden_plugin *model, const golden_plugin *loss,
                             pons_shape image, const pons_task *task, bool training)
{
    golden_net n = { .graph = graph_new(training) };
    pons_graph *g = n.graph;
    const pons_named_node named[] = {
        { "image", node_input(g, "image", PONS_F32, image) },
        { "timestep", node_input(g, "timestep", PONS_F32, pons_shape_make(1, image.extent)) }
    };
    const pons_inputs inputs = { 2, named };
    const pons_model_operations *build = model->plugin->operations;

    g->scope = SCOPE_MODEL;
    MUST(build->build(g, model->options, task, &inputs, &n.outputs, &error));
    n.logits = n.outputs.item[0];
    if (loss != NULL)
        n.loss = build_loss(g, loss, task, &n.outputs);
    return n;
}

golden_net golden_build(const golden_plugin *model, const golden_plugin *loss, pons_shape image,
                        int classes, bool flat, bool training)
{
    pons_task task = golden_task(image, classes, flat);

    return golden_build_task(model, loss, image, &task, training);
}

void golden_restore(const golden *g, const char *prefix, storage *s)
{
    static const storage_group groups[] = { STORAGE_PARAMETER, STORAGE_STATE };

    for (int k = 0; k < 2; k++)
        for (int i = 0; i < storage_count(s, groups[k]); i++) {
            storage_tensor t = storage_item(s, groups[k], i);
            const safetensor *from = golden_find(g, "%s/%s", prefix, t.name);

            ck_assert_msg(from != NULL, "no '%s/%s'", prefix, t.name);
            golden_read(from, (pons_tensor){ storage_type(s), t.shape }, false, t.memory);
        }
}
