/*
 * onnx_export.c - export a network: variants of its graph, weights, inputs, outputs and metadata.
 */
#include "onnx/onnx_export.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "checkpoint/tensor_names.h"
#include "config/list.h"
#include "data/dataset/class_list.h"
#include "graph/ir/build.h"
#include "graph/ir/shape.h"
#include "onnx/onnx_internal.h"
#include "replica/programs.h"

/* Names of free axes, and the bits of 'fixed'. */
static const char *const axis_names[FREE_AXES] = { "N", "D", "H", "W" };

/* ---- variants -------------------------------------------------------------------------------- */

typedef struct variants {
    pons_graph *graph[VARIANT_COUNT];
    pons_node *output[VARIANT_COUNT];
} variants;

/* The steps by which axis 'a' of a variant is larger than that of VARIANT_BASE. */
static int64_t steps_of(const onnx_graph *x, int variant, int a)
{
    static const int64_t checks[VARIANT_SMALLEST - VARIANT_CHECK][FREE_AXES] = {
        { 2, 2, 2, 2 }, { 3, 3, 5, 7 }, { 4, 16, 3, 5 }, { 5, 7, 33, 16 }
    };

    if (variant == VARIANT_SMALLEST)
        return a > 0 ? -x->fewer : -1;
    if (variant >= VARIANT_CHECK)
        return checks[variant - VARIANT_CHECK][a];
    return variant == 1 + a;
}

/* The extents of a variant. The base has two images, so that the smallest variant has one. */
static void variant_extents(onnx_graph *x, int variant)
{
    pons_shape base = programs_window_shape(x->experiment);

    for (int a = 0; a < FREE_AXES; a++) {
        bool free = (x->fixed & (1u << a)) == 0;
        x->extent[variant][a] = a == 0 ? (free ? 2 : 1) : base.extent[a] * (free ? x->scale : 1);
        if (free)
            x->extent[variant][a] += x->step[a] * steps_of(x, variant, a);
    }
}

/* Whether two graphs have the same nodes up to extents and numbers, and the same weights. */
static bool is_same_structure(const pons_graph *a, const pons_graph *b)
{
    if (a->node_count != b->node_count)
        return false;
    for (int i = 0; i < a->node_count; i++) {
        const pons_node *n = a->node[i], *m = b->node[i];
        if (n->kind != m->kind || n->shape.rank != m->shape.rank
            || n->input_count != m->input_count
            || (n->leaf != NULL && !shape_equal(n->shape, m->shape)))
            return false;
        for (int k = 0; k < n->input_count; k++)
            if (n->input[k]->number != m->input[k]->number)
                return false;
    }
    return true;
}

/* Build a variant; whether it has the nodes of the first one. */
static bool build_variant(onnx_graph *x, variants *v, int i, pons_error *problem)
{
    pons_shape shape = programs_window_shape(x->experiment);

    variant_extents(x, i);
    memcpy(shape.extent, x->extent[i], sizeof x->extent[i]);
    programs_graph_evaluation(x->experiment, shape, &v->graph[i], &v->output[i], problem);
    return problem->status == PONS_OK && is_same_structure(v->graph[VARIANT_BASE], v->graph[i]);
}

/* Find the smallest extents with the same nodes, and keep that variant. */
static void build_smallest(onnx_graph *x, variants *v)
{
    const int i = VARIANT_SMALLEST;

    for (int a = 1; a < FREE_AXES; a++)
        if ((x->fixed & (1u << a)) == 0)
            x->fewer = min_i64(x->fewer, (x->extent[VARIANT_BASE][a] - 1) / x->step[a]);
    for (; x->fewer > 0 && x->fewer < INT32_MAX; x->fewer -= (x->fewer + 31) / 32) {
        pons_error problem = PONS_ERROR_INIT;
        if (build_variant(x, v, i, &problem)) {
            x->variant[i] = v->graph[i];
            return;
        }
        if (v->graph[i] != NULL)
            graph_free(v->graph[i]);
        v->graph[i] = NULL;
    }
    x->fewer = 0;
}

/* Build the variants. An axis is doubtful whose variant fails to build or has other nodes. */
static pons_status build_variants(onnx_graph *x, variants *v, pons_error *err)
{
    if (!build_variant(x, v, VARIANT_BASE, err))
        return err->status;
    x->variant[VARIANT_BASE] = v->graph[VARIANT_BASE];
    for (int i = 1; i < VARIANT_SMALLEST; i++) {
        pons_error problem = PONS_ERROR_INIT;
        bool axis = i <= FREE_AXES;
        if (axis ? (x->fixed & (1u << (i - 1))) != 0 : x->fixed == 0xf)
            continue;
        if (build_variant(x, v, i, &problem))
            x->variant[i] = v->graph[i];
        else if (axis)
            x->doubtful |= 1u << (i - 1);
        else if (x->doubtful == 0)
            x->doubtful = onnx_spatial_doubt(x);
    }
    x->fewer = INT32_MAX;
    if (x->doubtful == 0 && (x->fixed & 0xe) != 0xe)
        build_smallest(x, v);
    return PONS_OK;
}

/*
 * Try a larger step for doubtful axes, as for a network that pads odd extents. Axes are fixed that
 * no step frees.
 */
static void settle_doubts(onnx_graph *x)
{
    enum { STEP_MAX = 64 };

    for (int a = 0; a < FREE_AXES; a++) {
        if ((x->doubtful & ~x->fixed & (1u << a)) == 0)
            continue;
        x->step[a] *= 2;
        if (a == 0 || x->step[a] > STEP_MAX)
            x->fixed |= 1u << a;
    }
}

/* ---- a pass ---------------------------------------------------------------------------------- */

static bool is_flat(const onnx_graph *x)
{
    const pons_graph *g = x->variant[VARIANT_BASE];

    for (int i = 0; i < g->node_count; i++)
        if (g->node[i]->shape.rank == 5 && g->node[i]->shape.extent[1] != 1)
            return false;
    return x->experiment->task.flat;
}

/* The extents of 'n' in LAYOUT_FIRST with the names of those that are free. */
static int describe(const onnx_graph *x, const pons_node *n, int64_t *extent, const char **symbol)
{
    int axis[PONS_RANK_MAX], count = onnx_axes(x, n, LAYOUT_FIRST, axis), kept = 0;

    for (int i = 0; i < count; i++) {
        onnx_quantity q = onnx_read(x, n, onnx_read_extent, axis[i]);
        bool free = axis[i] < FREE_AXES && !onnx_is_constant(&q);
        if (n->shape.rank == 5 && x->experiment->task.flat && axis[i] == 1)
            continue;
        extent[kept] = n->shape.extent[axis[i]];
        symbol[kept++] = free ? axis_names[axis[i]] : NULL;
    }
    return kept;
}

/* The inputs of the network. 'image' of a 2D network has no D. */
static void add_inputs(onnx_graph *x)
{
    const pons_graph *g = x->variant[VARIANT_BASE];
    int64_t extent[PONS_RANK_MAX], depth = 2;
    const char *symbol[PONS_RANK_MAX];

    for (int i = 0; i < g->node_count; i++) {
        pons_node *n = g->node[i];
        if (n->kind != NODE_INPUT)
            continue;
        const char *name = n->name;
        onnx_input(x->model, n->name, onnx_type(n->type), describe(x, n, extent, symbol), extent,
                   symbol);
        if (n->shape.rank == 5 && x->experiment->task.flat && !x->flat)
            name = onnx_apply2(x->model, "Unsqueeze", name, onnx_int64s(x->model, 1, &depth));
        x->value[n->number].made = true;
        onnx_set(x, n, LAYOUT_FIRST, name);
    }
}

/* The name of the output before its last node: activated if that is asked for. */
static const char *activated(onnx_graph *x, const char *name)
{
    onnx_node *n;

    if (x->experiment->activation == PONS_ACTIVATION_SIGMOID)
        return onnx_apply1(x->model, "Sigmoid", name);
    if (x->experiment->activation != PONS_ACTIVATION_SOFTMAX)
        return name;
    n = onnx_add(x->model, "Softmax", 1, &name);
    onnx_set_int(x->model, n, "axis", 1);
    return n->output[0];
}

static void add_output(onnx_graph *x, pons_node *n, bool probabilities)
{
    const experiment *e = x->experiment;
    const char *name = onnx_value_of(x, n, LAYOUT_FIRST), *symbol[PONS_RANK_MAX];
    int64_t extent[PONS_RANK_MAX], depth = 2;
    int rank = describe(x, n, extent, symbol);
    onnx_node *last;

    if (probabilities)
        name = activated(x, name);
    if (e->task.flat && !x->flat)
        name = onnx_apply2(x->model, "Squeeze", name, onnx_int64s(x->model, 1, &depth));
    if (e->task.whole) {
        name = onnx_apply2(x->model, "Reshape", name,
                           onnx_int64s(x->model, 2, (int64_t[]){ 0, -1 }));
        rank = 2;
    }
    last = onnx_add(x->model, "Identity", 1, &name);
    last->output[0] = probabilities ? "probabilities" : "logits";
    onnx_output(x->model, last->output[0], onnx_type(PONS_F32), rank, extent, symbol);
}

/* Run the rules of all nodes that the output depends on. */
static pons_status run_rules(onnx_graph *x, const onnx_request *q, pons_node *output)
{
    x->value = arena_alloc(x->model->memory,
                           (size_t)output->graph->node_count * sizeof *x->value);
    x->flat = is_flat(x);
    x->shape = NULL;
    memset(x->extent_name, 0, sizeof x->extent_name);
    add_inputs(x);
    add_output(x, output, q->probabilities);
    return x->err->status;
}

/* ---- metadata -------------------------------------------------------------------------------- */

/* Options of these sections are of use to the one who runs the model. */
static bool is_told(const char *section)
{
    return config_is_part(section, "preprocess") || strcmp(section, "model") == 0
           || strcmp(section, "window") == 0;
}

/* Names separated by commas; nothing where there are none. */
static void add_names(onnx_model *m, const char *key, int count, const char *const *name)
{
    const char *names = "";

    for (int i = 0; name != NULL && i < count; i++)
        names = arena_format(m->memory, "%s%s%s", names, i > 0 ? "," : "", name[i]);
    if (names[0] != '\0')
        onnx_metadata(m, key, names);
}

/* The values of classes in a label file as 'data.labels' or 'data.regions': "liver:1 tumour:2". */
static void add_label_ids(onnx_model *m, const experiment *e)
{
    const pons_integers *region = &e->sections.predict.region_ids;
    const char **item = arena_alloc(m->memory, (size_t)e->class_count * sizeof *item + 1);
    const char *ids = "";

    if (e->class_count == 0 || e->classes[0].id_count == 0)
        return;
    for (int i = 0; i < e->class_count; i++)
        item[i] = arena_format(m->memory, "%s:%s", e->classes[i].name,
                               class_ids_text(m->memory, &e->classes[i]));
    onnx_metadata(m, e->regions ? "data.regions" : "data.labels",
                  list_join(m->memory, e->class_count, item));
    for (int i = 0; i < region->count; i++)
        ids = arena_format(m->memory, "%s%s%d", ids, i > 0 ? " " : "", (int)region->item[i]);
    if (region->count > 0)
        onnx_metadata(m, "predict.region_ids", ids);
}

/*
 * Metadata: the options of [preprocess], [model] and [window] as 'section.key', the names of
 * classes and channels, separated by commas, and the values of classes in a label file.
 */
static void add_metadata(onnx_graph *x, const onnx_request *q)
{
    const experiment *e = x->experiment;
    onnx_model *m = x->model;
    const char *section, *key, *value;

    m->message.producer_name = "pons";
    m->message.producer_version = (char *)q->version;
    m->message.doc_string = arena_format(m->memory, "model '%s', trained by pons",
                                         e->model.plugin->descriptor->name);
    add_names(m, "classes", e->task.classes, e->task.class_names);
    add_names(m, "channels", e->task.channels, e->task.channel_names);
    add_label_ids(m, e);
    onnx_metadata(m, "axes", "D, H, W are the axes i, j, k of a file");
    for (int i = 0; i < config_count(e->config); i++) {
        config_item(e->config, i, &section, &key, &value);
        if (is_told(section))
            onnx_metadata(m, arena_format(m->memory, "%s.%s", section, key), value);
    }
}

/* ---- export ---------------------------------------------------------------------------------- */

/* One pass. With 'path' the model is written if no axis is doubtful. */
static pons_status try_to_export(onnx_graph *x, const onnx_request *q, const char *path,
                                 pons_error *err)
{
    variants v = { { NULL }, { NULL } };
    byte_progress progress = { .log = x->experiment->log, .verb = "writing", .path = path };
    arena *memory = arena_new();
    onnx_model model;

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    onnx_model_init(&model, memory);
    x->model = &model;
    x->err = err;
    x->doubtful = 0;
    memset(x->variant, 0, sizeof x->variant);
    if (build_variants(x, &v, err) == PONS_OK && x->doubtful == 0)
        run_rules(x, q, v.output[VARIANT_BASE]);
    if (err->status == PONS_OK && x->doubtful == 0 && path != NULL) {
        add_metadata(x, q);
        onnx_write(&model, path, &progress, err);
    }
    for (int i = 0; i < VARIANT_COUNT; i++)
        if (v.graph[i] != NULL)
            graph_free(v.graph[i]);
    arena_free(memory);
    return err->status;
}

/* D of a 2D network. */
static unsigned fixed_by_nature(const experiment *e)
{
    return e->task.flat ? 2 : 0;
}

/* Find the free axes and their steps, with images 'scale' times as large as the window. */
static pons_status find_freedom(onnx_graph *x, const onnx_request *q, int scale, pons_error *err)
{
    int divisor[3];

    if (experiment_divisor(x->experiment, divisor, err) != PONS_OK)
        return err->status;
    x->scale = scale;
    x->fixed = q->fixed ? 0xf : fixed_by_nature(x->experiment);
    for (int a = 0; a < FREE_AXES; a++)
        x->step[a] = a > 0 ? divisor[a - 1] : 1;
    while (try_to_export(x, q, NULL, err) == PONS_OK && x->doubtful != 0)
        settle_doubts(x);
    return err->status;
}

/*
 * A network whose last level has one voxel in a window has other nodes in larger ones. A larger
 * image shows what all of these have in common.
 */
static pons_status find_best_freedom(onnx_graph *x, const onnx_request *q, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    onnx_graph small;

    if (find_freedom(x, q, 1, err) != PONS_OK || q->fixed
        || x->fixed == fixed_by_nature(x->experiment))
        return err->status;
    small = *x;
    if (find_freedom(x, q, 2, &problem) != PONS_OK || (x->fixed & ~small.fixed) != 0)
        *x = small;
    return PONS_OK;
}

static pons_status export(onnx_graph *x, const onnx_request *q, const char *path,
                          onnx_freedom *out, pons_error *err)
{
    if (find_best_freedom(x, q, err) != PONS_OK || try_to_export(x, q, path, err) != PONS_OK)
        return err->status;
    for (int a = 0; a < FREE_AXES; a++) {
        out->step[a] = (x->fixed & (1u << a)) == 0 ? x->step[a] : 0;
        out->extent[a] = x->extent[VARIANT_BASE][a];
        out->smallest[a] = a == 0 ? 1 : out->extent[a] - x->fewer * out->step[a];
    }
    return PONS_OK;
}

/* Copy the weights in the order of axes that files have. */
static pons_status copy_weights(onnx_graph *x, const safetensors_content *weights, pons_error *err)
{
    size_t size = 0;
    char *at;

    for (int i = 0; i < weights->count; i++)
        size += onnx_tensor_size(&weights->item[i]);
    at = x->memory = malloc(size + 1);
    if (at == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the weights");
    for (int i = 0; i < weights->count; i++) {
        memcpy(at, weights->data(weights->context, i), onnx_tensor_size(&weights->item[i]));
        at += onnx_tensor_size(&weights->item[i]);
    }
    x->weights = weights;
    return PONS_OK;
}

pons_status onnx_export(const onnx_request *q, const char *path, onnx_freedom *out,
                        pons_error *err)
{
    const experiment *e = predictor_experiment(q->network);
    storage *s = predictor_replicas(q->network)->item[0].storage;
    tensor_format format = { .flat = e->task.flat, .wide = e->device.wide };
    tensor_names_list list = { .item = NULL };
    onnx_graph x = { .experiment = e };

    if (storage_fetch(s, err) == PONS_OK
        && tensor_names_list_make(&list, s, WEIGHTS_MODEL, &format, err) == PONS_OK
        && copy_weights(&x, &list.content, err) == PONS_OK)
        export(&x, q, path, out, err);
    free(x.memory);
    tensor_names_list_clear(&list);
    return err->status;
}
