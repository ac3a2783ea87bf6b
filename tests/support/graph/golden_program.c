/*
 * golden_program.c - read golden cases, reorder arrays, build plugins with their options.
 */
#include "support/graph/golden_program.h"

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
#include "support/asserts.h"

static pons_error golden_error;

#define MUST(call) ck_assert_msg((golden_error = (pons_error)PONS_ERROR_INIT, (call)) == PONS_OK, \
                                 "%s",                                                            \
                                 golden_error.text)

void golden_open(golden *g, const char *name)
{
    const char *folder = getenv("srcdir");
    char path[1024], *text;
    size_t size;

    folder = folder != NULL ? folder : ".";
    snprintf(path, sizeof path, "%s/tests/golden/%s.json", folder, name);
    MUST(file_read(path, 1 << 24, &text, &size, PONS_DATA, &golden_error));
    MUST(json_parse(text, size, path, PONS_DATA, &g->cases, &golden_error));
    free(text);
    snprintf(path, sizeof path, "%s/tests/golden/%s.safetensors", folder, name);
    MUST(safetensors_open(path, &g->arrays, &golden_error));
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
    MUST(device_open(m->plugin, &settings, NULL, d, &golden_error));
    MUST(device_attach(d, &golden_error));
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
        strcat(out, json_string_value(v));
    } else if (!json_is_array(v)) {
        put_number(out, v);
    } else if (flat && o->type == PONS_OPTION_TRIPLES) {
        json_array_foreach(v, i, item)
            sprintf(out + strlen(out), "%s1,%d,%d", i > 0 ? " " : "",
                    (int)json_integer_value(item), (int)json_integer_value(item));
    } else {
        put_list(out, v, " ", flat && o->type == PONS_OPTION_AXES);
    }
}

void golden_load(golden_plugin *p, pons_kind kind, const char *name, size_t operations_size,
                 json_t *options, bool flat)
{
    static char text[32][256];
    const char *key;
    json_t *v;
    const char *set[32], *section = plugin_kind_name(kind);
    int count = 0;

    MUST(plugin_load(kind, name, operations_size, NULL, &p->plugin, &golden_error));
    json_object_foreach(options, key, v) {
        const pons_option *o = option_named(p->plugin->descriptor->options, key);

        if (o == NULL)
            continue;
        put_option(text[count], section, o, v, flat);
        set[count] = text[count];
        count++;
    }
    for (const pons_option *o = p->plugin->descriptor->options; flat && o->name != NULL; o++)
        if (o->type == PONS_OPTION_AXES && json_object_get(options, o->name) == NULL) {
            sprintf(text[count], "%s.%s=1 3 3", section, o->name);
            set[count] = text[count];
            count++;
        }
    MUST(config_open(NULL, count, set, &p->config, &golden_error));
    p->options = calloc(1, p->plugin->descriptor->config_size + 1);
    MUST(config_fill(p->config, section, p->plugin->descriptor->options, p->options,
                     &golden_error));
}

void golden_unload(golden_plugin *p)
{
    free(p->options);
    config_close(p->config);
}

const char *golden_network_plugin(const json_t *c)
{
    static const char *const plugins[][2] = {
        { "UNet", "unet" }, { "SegResNet", "segresnet" }, { "DynUNet", "dynunet" }
    };

    for (int i = 0; i < 3; i++)
        if (strcmp(golden_text(c, "network"), plugins[i][0]) == 0)
            return plugins[i][1];
    return NULL;
}

/* ---- axis orders ----------------------------------------------------------------------------- */

/* order[i] is the axis of PyTorch's array that holds our axis i; -1: a 2D array has none. */
static void axis_order(const safetensor *t, int rank, bool image, int order[5])
{
    bool flat = t->rank == 4 && rank == 5;

    for (int i = 0; i < 5; i++)
        order[i] = i;
    if (rank != 5)
        return;
    order[0] = 0;
    order[1] = flat ? -1 : 2;
    order[2] = flat ? 2 : 3;
    order[3] = flat ? 3 : 4;
    order[4] = 1;
}

/* The index in PyTorch's array for each of our elements, in order. */
static int64_t *source_indices(const safetensor *t, pons_shape shape, bool image)
{
    int64_t count = shape_count(shape), stride[8], at[PONS_RANK_MAX] = { 0 };
    int64_t *index = malloc((size_t)count * sizeof *index);
    int order[5];

    ck_assert_msg(t->count == count, "'%s' has %lld elements, ours %lld", t->name,
                  (long long)t->count, (long long)count);
    axis_order(t, shape.rank, image, order);
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
    int64_t *index = source_indices(from, to.shape, image);
    double *values = malloc((size_t)from->count * sizeof *values);

    safetensor_doubles(from, values);
    for (int64_t i = 0; i < from->count; i++) {
        double value = values[index[i]];

        if (to.type == PONS_U8)
            ((uint8_t *)memory)[i] = (uint8_t)value;
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
    int64_t *index = source_indices(expected, found.shape, image);
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

pons_shape golden_image_shape(const safetensor *t)
{
    bool flat = t->rank == 4;

    return (pons_shape){ 5, { t->extent[0], flat ? 1 : t->extent[2], t->extent[flat ? 2 : 3],
                              t->extent[flat ? 3 : 4], t->extent[1] } };
}

pons_tensor golden_tensor(const device *d, pons_shape shape)
{
    return (pons_tensor){ d->wide ? PONS_F64 : PONS_F32, shape };
}

/* ---- networks -------------------------------------------------------------------------------- */

golden_net golden_build(const golden_plugin *model, const golden_plugin *loss, pons_shape image,
                        int classes, bool flat, bool training)
{
    golden_net n = { graph_new(training), NULL, NULL };
    pons_graph *g = n.graph;
    pons_named_node named = { "image", node_input(g, "image", PONS_F32, image) };
    pons_task task = { .size = sizeof task, .channels = (int)image.extent[4], .classes = classes,
                       .target = PONS_TARGET_LABELS, .flat = flat, .flat_axis = flat ? 0 : -1 };
    pons_inputs inputs = { 1, &named };
    pons_outputs outputs = { 0 };
    const pons_model_operations *build = model->plugin->operations;

    g->scope = SCOPE_MODEL;
    MUST(build->build(g, model->options, &task, &inputs, &outputs, &golden_error));
    n.logits = outputs.item[0];
    if (loss != NULL) {
        const pons_loss_operations *value = loss->plugin->operations;
        pons_shape labels = image;
        pons_target target = { .activation = PONS_ACTIVATION_SOFTMAX };

        labels.extent[4] = 1;
        target.node = node_input(g, "target", PONS_U8, labels);
        g->scope = SCOPE_LOSS;
        for (int i = 0; i < outputs.count; i++) {
            pons_node *of_head;
            MUST(value->build(g, loss->options, &task, outputs.item[i], &target, &of_head,
                              &golden_error));
            of_head = i == 0 ? of_head : pons_scale(g, of_head, ldexp(1, -i));
            n.loss = i == 0 ? of_head : pons_add(g, n.loss, of_head);
        }
    }
    return n;
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
