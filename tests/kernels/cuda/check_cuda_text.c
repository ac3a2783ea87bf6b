/*
 * check_cuda_text.c - NVRTC compiles the generated text for every architecture and precision. The
 * text has the golden networks in training and evaluation and the direct convolutions of the
 * published ones. It also has all losses, all optimizers, patches with all transforms, and
 * accumulated windows.
 *
 * The test needs neither a GPU nor a driver, and runs no kernel: device memory is host memory.
 * NVRTC looks for a driver, too, so that of tests/fake must not be in the library path.
 *
 * With SOAK (make soak) every kernel is compiled. Otherwise one kernel of each form is; a form is
 * the text without its numbers.
 */
#include "cuda/cuda.h"
#include "data/transform/pipeline.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "plugin/plugin_search.h"
#include "replica/patch_nodes.h"
#include "replica/window_nodes.h"
#include "support/graph/convolutions.h"
#include "support/graph/golden_formula.h"
#include "support/graph/golden_program.h"
#include "support/soak.h"
#include "support/must.h"
#include "support/suite.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a device without a driver --------------------------------------------------------------- */

static int use(cuda_context context) { return 0; }

static int allocate(cuda_address *memory, size_t size)
{
    *memory = (cuda_address)(uintptr_t)aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    return *memory == 0;
}

static int release_memory(cuda_address memory)
{
    free((void *)(uintptr_t)memory);
    return 0;
}

static int clear(cuda_address memory, unsigned char value, size_t size)
{
    memset((void *)(uintptr_t)memory, value, size);
    return 0;
}

static int upload(cuda_address to, const void *from, size_t size)
{
    memcpy((void *)(uintptr_t)to, from, size);
    return 0;
}

static int stream_wait(cuda_stream stream) { return 0; }

static device open_gpu(cuda_device *d)
{
    *d = (cuda_device){ .architecture = 90,
                        .driver = { .use = use, .allocate = allocate, .free = release_memory,
                                    .clear = clear, .upload = upload,
                                    .stream_wait = stream_wait } };
    MUST(cuda_compiler_open(&d->compiler, TOOLKIT_LATER - 1, 0, d->architecture, &error));
    return (device){ .operations = &cuda_operations, .handle = d,
                     .facts = { .name = "card", .threads = 1, .host_memory = true } };
}

static void close_gpu(cuda_device *d)
{
    module_cache_free(d);
    cuda_compiler_close(&d->compiler);
}

/*
 * Bytes of registers that a kernel may spill: none. A spill is read and written in the innermost
 * loops, and a memory-bound kernel cannot hide that.
 */
enum { SPILL = 0 };

/*
 * A map in channel form keeps several arrays of all channels. Registers cannot hold them where they
 * have more elements than this together, one and a half times the number of registers.
 */
enum { ELEMENTS_IN_REGISTERS = 192 };

/* Elements of the arrays of a kernel, as "    float w0[48];". */
static int array_elements(const char *text)
{
    int elements = 0;

    while ((text = strstr(text, "    float ")) != NULL) {
        text += strcspn(text, "[;=\n");
        elements += *text == '[' ? atoi(text + 1) : 0;
    }
    return elements;
}

/* Whether the kernel named in a line of the log has arrays that registers cannot hold. */
static bool has_long_arrays(const module_cache *l, const char *line)
{
    size_t size = strcspn(line, "\n");

    for (int i = 0; i < l->count; i++) {
        const char *name = strstr(line, l->kernel[i]->name);
        if (name != NULL && name < line + size)
            return array_elements(l->kernel[i]->text) > ELEMENTS_IN_REGISTERS;
    }
    return false;
}

/*
 * Number of kernels in the log of ptxas. Its lines are "ptxas . 0 bytes stack frame, 0 bytes spill
 * stores, 0 bytes spill loads". Kernels with long arrays may spill, a gap that docs/cuda.md names.
 */
static int check_spills(const module_cache *l, const char *log, const char *what)
{
    static const char words[] = " bytes spill stores";
    const char *name = log;
    int kernels = 0;

    for (const char *line = log; line != NULL; line = strchr(line, '\n'), line += line != NULL) {
        const char *found = strstr(line, words), *end = line + strcspn(line, "\n");
        const char *entry = strstr(line, "Compiling entry function '");
        if (entry != NULL && entry < end)
            name = entry;
        if (found == NULL || found > end)
            continue;
        while (found[-1] >= '0' && found[-1] <= '9')
            found--;
        ck_assert_msg(atoi(found) <= SPILL || has_long_arrays(l, name), "%s: %d bytes spilled: "
                      "%.120s", what, atoi(found), name);
        kernels++;
    }
    return kernels;
}

/* ---- compilation ----------------------------------------------------------------------------- */

static const int architectures[] = { 75, 80, 90, 100 };
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures, UNIT = 250, FEW = 16 };

/* Compilation of all kernels of a unit. */
static void compile_unit(const cuda_compiler *c, const module_cache *l, int architecture,
                         const char *what)
{
    text unit = { .at = NULL };
    char *binary = NULL, *log = NULL;
    size_t size = 0;

    module_cache_write(l, &unit);
    ck_assert_msg(cuda_compile(c, unit.at, architecture, &binary, &size, &log, &error) == PONS_OK,
                  "%s: %s", what, error.text);
    ck_assert(size > 4 && memcmp(binary, "\177ELF", 4) == 0);
    ck_assert_msg(log != NULL, "%s: no log", what);
    ck_assert_int_eq(check_spills(l, log, what), l->count);
    free(log);
    free(binary);
    text_free(&unit);
}

static bool is_of_name(char c) { return c == '_' || isalnum((unsigned char)c); }

/* Hash of the text, in which all numbers are equal. */
static uint64_t form_hash(const char *at)
{
    uint64_t hash = TEXT_HASH;
    char before = ' ';

    while (*at != '\0') {
        char c = *at++;
        if (isdigit((unsigned char)c) && !is_of_name(before)) {
            at += strspn(at, "0123456789abcdefxuln.");
            c = '0';
        }
        hash = (hash ^ (unsigned char)c) * UINT64_C(0x100000001b3);
        before = c;
    }
    return hash;
}

/* Selection of one kernel of each form. */
static int choose_kernels(const module_cache *l, cuda_kernel **out)
{
    uint64_t *form = calloc((size_t)l->count, sizeof *form);
    int forms = 0;

    for (int i = 0; i < l->count; i++) {
        int k = 0;
        form[forms] = form_hash(l->kernel[i]->text);
        while (form[k] != form[forms])
            k++;
        if (k == forms)
            out[forms++] = l->kernel[i];
    }
    free(form);
    return forms;
}

/* Compilation of the device's waiting kernels, or of one of each form where they are many. */
static void compile_waiting(const device *d, int number, const char *what)
{
    cuda_device *c = d->handle;
    cuda_kernel **chosen = calloc((size_t)c->cache.count, sizeof *chosen);
    int count = c->cache.count;

    if (count <= soak_times(FEW, count))
        memcpy(chosen, c->cache.kernel, (size_t)count * sizeof *chosen);
    else
        count = choose_kernels(&c->cache, chosen);
    ck_assert_int_gt(count, 0);
    for (int first = 0; first < count; first += UNIT) {
        const module_cache part = { .count = count - first < UNIT ? count - first : UNIT,
                                    .kernel = chosen + first };
        compile_unit(&c->compiler, &part, architectures[number], what);
    }
    free(chosen);
}

static const precision precisions[] = { PRECISION_FP32, PRECISION_BF16, PRECISION_FP16 };
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

/* Number of installed plugins of a kind. */
static int plugins_of(pons_kind kind)
{
    plugin_file *file;
    int count, found = 0;

    MUST(plugin_list(&file, &count, &error));
    for (int i = 0; i < count; i++)
        found += file[i].kind == kind;
    plugin_list_free(file, count);
    return found;
}

/* At most 32 different names. */
typedef struct names {
    int count;
    char item[32][PONS_NAME_SIZE];
} names;

static void names_add(names *n, const char *name)
{
    for (int i = 0; i < n->count; i++)
        if (strcmp(n->item[i], name) == 0)
            return;
    ck_assert_int_lt(n->count, 32);
    snprintf(n->item[n->count++], PONS_NAME_SIZE, "%s", name);
}

/* ---- networks -------------------------------------------------------------------------------- */

static void add_program_of(const device *d, const golden_net *net, const program_settings *settings)
{
    storage *s;
    program *p;

    MUST(storage_new(d, &s, &error));
    MUST(program_new(s, d, net->graph, net->loss, 1, &net->logits, settings, &p, &error));
    program_free(p);
    storage_free(s);
}

/* The network's training and evaluation programs; their kernels wait for compilation. */
static void add_network(const golden *g, const json_t *c, const device *d, precision how)
{
    pons_shape image = golden_case_image(g, c);
    pons_task task = golden_network_task(c, image);
    program_settings settings = { .precision = how, .micro_batches = 1, .accumulate = 1 };
    golden_plugin model, loss, optimizer;
    golden_net net;

    golden_load(&model, PONS_KIND_MODEL, golden_network_plugin(c),
                sizeof(pons_model_operations), golden_network_options(c), task.flat);
    if (task.target == PONS_TARGET_REGIONS)
        task.target = PONS_TARGET_LABELS;
    golden_load(&loss, PONS_KIND_LOSS, golden_network_loss(c, &task),
                sizeof(pons_loss_operations), NULL, false);
    golden_load(&optimizer, PONS_KIND_OPTIMIZER, "sgd", sizeof(pons_optimizer_operations), NULL,
                false);
    net = golden_build_task(&model, NULL, image, &task, false);
    add_program_of(d, &net, &settings);
    settings.optimizer = optimizer.plugin->operations;
    settings.optimizer_config = optimizer.options;
    net = golden_build_task(&model, &loss, image, &task, true);
    add_program_of(d, &net, &settings);
    golden_unload(&model);
    golden_unload(&loss);
    golden_unload(&optimizer);
}

/* Networks whose kernels wait: their number, and the plugins that they are of. */
typedef struct networks {
    int count;
    names plugins;
} networks;

/*
 * A network is compiled for each architecture in one precision, since it has hundreds of kernels
 * and their text does not depend on the architecture. The precisions take turns: four architectures
 * see a network in all of them, and all of them are compiled for each architecture.
 */
static void add_network_in_turn(const golden *g, const json_t *c, const device *d, int turn)
{
    for (int i = 0; i < soak_times(1, PRECISIONS); i++)
        add_network(g, c, d, precisions[(turn + i) % PRECISIONS]);
}

/* The networks of a file whose plugin no earlier case had, or all of the first file. */
static void add_networks(const char *file, const device *d, int architecture, networks *n)
{
    const bool all = n->count == 0;
    const int before = n->count;
    const json_t *c;
    size_t i;
    golden g;

    golden_open(&g, file);
    json_array_foreach(g.cases, i, c) {
        int known = n->plugins.count;
        if (golden_network_plugin(c) == NULL || golden_network_options(c) == NULL)
            continue;
        names_add(&n->plugins, golden_network_plugin(c));
        if (all || n->plugins.count > known)
            add_network_in_turn(&g, c, d, n->count++ + architecture);
    }
    ck_assert_int_gt(n->count, before);
    golden_close(&g);
}

START_TEST(every_network_compiles)
{
    networks added = { 0 };
    cuda_device state;
    device d = open_gpu(&state);

    for (int i = 0; golden_network_files[i] != NULL; i++)
        add_networks(golden_network_files[i], &d, _i, &added);
    add_networks("efficientnet", &d, _i, &added);
    ck_assert_int_eq(added.plugins.count, plugins_of(PONS_KIND_MODEL));
    compile_waiting(&d, _i, "networks");
    close_gpu(&state);
}
END_TEST

/* The libraries use tensor cores; our kernels are the same ones in tf32 and in fp32. */
START_TEST(tf32_has_the_kernels_of_fp32)
{
    golden g;
    cuda_device state;
    device d = open_gpu(&state);
    int count;

    golden_open(&g, "networks");
    add_network(&g, json_array_get(g.cases, 0), &d, PRECISION_FP32);
    count = state.cache.count;
    add_network(&g, json_array_get(g.cases, 0), &d, PRECISION_TF32);
    ck_assert_int_eq(state.cache.count, count);
    golden_close(&g);
    close_gpu(&state);
}
END_TEST

/* ---- direct convolutions --------------------------------------------------------------------- */

/*
 * Direct convolutions of the published networks, at their extents. The extents determine how many
 * points a thread computes, and so how many registers it needs. The golden networks have one point.
 */
static const struct {
    int cases, extent, in, out, kernel, stride; /* of x; a transposed layer has x as its result */
} layers[] = {
    { 8, 96, 1, 16, 3, 2 }, { 8, 96, 2, 2, 3, 1 }, { 8, 96, 2, 32, 3, 2 },
    { 2, 128, 4, 32, 3, 1 }, { 2, 128, 32, 3, 1, 1 }, { 2, 128, 32, 6, 1, 1 },
};
enum { LAYERS = sizeof layers / sizeof *layers };

static void add_layer(const device *d, int i, pons_kernel_kind kind, pons_type type)
{
    const int e = layers[i].extent, k = layers[i].kernel, s = layers[i].stride, p = k / 2;
    const sliding of = { kind, layers[i].cases, { e, e, e }, layers[i].in, layers[i].out,
                         { k, k, k }, { s, s, s }, { 1, 1, 1 }, { p, p, p }, { p, p, p }, type };
    pons_kernel kernel = { .run = NULL };
    sliding_request r;
    bool supported;

    sliding_make(&of, &r);
    MUST(cuda_prepare_own(d->handle, &r.request, &kernel, &supported, &error));
    ck_assert(supported);
    kernel.free(&kernel);
}

/* Every layer is compiled for this architecture. */
START_TEST(direct_convolutions_of_published_networks_compile)
{
    static const pons_kernel_kind kinds[] = {
        PONS_KERNEL_CONVOLUTION, PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT,
        PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT,
    };
    cuda_device state;
    device d = open_gpu(&state);

    for (int i = 0; i < LAYERS; i++)
        for (int k = 0; k < 3; k++) {
            add_layer(&d, i, kinds[k], PONS_F32);
            add_layer(&d, i, kinds[k], PONS_BF16);
        }
    ck_assert_int_gt(state.cache.count, 2 * 3 * LAYERS);
    compile_unit(&state.compiler, &state.cache, architectures[_i], "direct convolutions");
    close_gpu(&state);
}
END_TEST

/* ---- losses and optimizers ------------------------------------------------------------------- */

/* The sum of a parameter is a loss that gives an optimizer a gradient. */
static void add_program(const device *d, pons_graph *g, pons_node *loss, precision how,
                        const golden_plugin *optimizer)
{
    program_settings settings = { .precision = how, .micro_batches = 2, .accumulate = 2,
                                  .clip_norm = 1, .ema_decay = 0.5 };
    storage *s;
    program *p;

    settings.optimizer = optimizer->plugin->operations;
    settings.optimizer_config = optimizer->options;
    MUST(storage_new(d, &s, &error));
    MUST(program_new(s, d, g, loss, 0, NULL, &settings, &p, &error));
    program_free(p);
    storage_free(s);
}

static void add_loss(const golden *g, const json_t *c, const device *d, precision how,
                     const golden_plugin *optimizer)
{
    pons_graph *graph = graph_new(true);
    pons_shape shape = golden_image_shape(golden_find(g, "%s/logits",
                                                      golden_text(c, "name")));
    bool regions = strcmp(golden_text(c, "activation"), "softmax") != 0;
    pons_task task = { .size = sizeof task, .channels = 1, .classes = (int)shape.extent[4],
                       .target = regions ? PONS_TARGET_REGIONS : PONS_TARGET_LABELS,
                       .flat_axis = -1 };
    pons_target target = { .activation = regions ? PONS_ACTIVATION_SIGMOID
                                                 : PONS_ACTIVATION_SOFTMAX };
    const pons_loss_operations *operations;
    pons_node *logits = pons_parameter_leaf(graph, "logits", PONS_ROLE_WEIGHT, shape,
                                            (pons_init){ PONS_INIT_CONSTANT, 0 });
    pons_node *value;
    golden_plugin loss;

    golden_load(&loss, PONS_KIND_LOSS, golden_text(c, "loss"), sizeof(pons_loss_operations),
                json_object_get(c, "options"), false);
    operations = loss.plugin->operations;
    if (!regions)
        shape.extent[4] = 1;
    target.node = node_input(graph, "target", PONS_U8, shape);
    graph->scope = SCOPE_LOSS;
    MUST(operations->build(graph, loss.options, &task, logits, &target, &value, &error));
    add_program(d, graph, value, how, optimizer);
    golden_unload(&loss);
}

/* All cases of a file with one output. */
static void add_losses(const char *file, const device *d, const golden_plugin *optimizer,
                       names *plugins)
{
    const json_t *c;
    golden g;
    size_t count;

    golden_open(&g, file);
    json_array_foreach(g.cases, count, c) {
        if (golden_loss_left_out(c) || json_object_get(c, "weights") != NULL)
            continue;
        add_loss(&g, c, d, precisions[count % PRECISIONS], optimizer);
        names_add(plugins, golden_text(c, "loss"));
    }
    ck_assert_int_gt((int)count, 20);
    golden_close(&g);
}

START_TEST(every_loss_compiles)
{
    golden_plugin sgd;
    names plugins = { 0 };
    cuda_device state;
    device d = open_gpu(&state);

    golden_load(&sgd, PONS_KIND_OPTIMIZER, "sgd", sizeof(pons_optimizer_operations), NULL, false);
    add_losses("losses", &d, &sgd, &plugins);
    add_losses("losses_more", &d, &sgd, &plugins);
    ck_assert_int_eq(plugins.count, plugins_of(PONS_KIND_LOSS));
    compile_waiting(&d, _i, "losses");
    golden_unload(&sgd);
    close_gpu(&state);
}
END_TEST

static void add_optimizer(const json_t *c, const device *d, precision how)
{
    pons_graph *graph = graph_new(true);
    pons_node *weight = pons_parameter_leaf(graph, "weight", PONS_ROLE_WEIGHT,
                                            (pons_shape){ 2, { 100, 70 } },
                                            (pons_init){ PONS_INIT_UNIFORM, 1 });
    pons_node *bias = pons_parameter_leaf(graph, "bias", PONS_ROLE_BIAS,
                                          (pons_shape){ 1, { 70 } },
                                          (pons_init){ PONS_INIT_CONSTANT, 0 });
    golden_plugin optimizer;

    golden_load(&optimizer, PONS_KIND_OPTIMIZER, golden_text(c, "optimizer"),
                sizeof(pons_optimizer_operations), json_object_get(c, "options"), false);
    add_program(d, graph, pons_sum_all(graph, pons_square(graph, pons_add(graph, weight, bias))),
                how, &optimizer);
    golden_unload(&optimizer);
}

START_TEST(every_optimizer_compiles)
{
    static const char *const files[] = { "optimizers", "optimizers_more" };
    names plugins = { 0 };
    const json_t *c;
    cuda_device state;
    device d = open_gpu(&state);

    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        golden g;
        size_t count;
        golden_open(&g, files[f]);
        json_array_foreach(g.cases, count, c) {
            add_optimizer(c, &d, precisions[count % PRECISIONS]);
            names_add(&plugins, golden_text(c, "optimizer"));
        }
        ck_assert_int_gt((int)count, 3);
        golden_close(&g);
    }
    ck_assert_int_eq(plugins.count, plugins_of(PONS_KIND_OPTIMIZER));
    compile_waiting(&d, _i, "optimizers");
    close_gpu(&state);
}
END_TEST

/* ---- patches --------------------------------------------------------------------------------- */

enum { PATCHES = 3, PATCH_CHANNELS = 2, PATCH_WIDTH = 8 };

static const char *const patch_settings[] = {
    "augment.steps=scale_intensity flip gaussian_noise rotate90 shift_intensity brightness "
    "channel_dropout",
    "augment.flip.axes=0 1 2", "augment.rotate90.axes=0 1", "augment.scale_intensity.factors=0.2",
    "augment.shift_intensity.offsets=0.2", "augment.shift_intensity.channel_wise=yes",
    "augment.gaussian_noise.std=0.3", "augment.gaussian_noise.channels=1",
};
enum { PATCH_SETTINGS = sizeof patch_settings / sizeof *patch_settings };

/* The steps are all transforms of patches that devices can apply. */
static void check_steps(const pipeline *chain)
{
    const plugin *one;
    plugin_file *file;
    int count, able = 0;

    MUST(plugin_list(&file, &count, &error));
    for (int i = 0; i < count; i++)
        if (file[i].kind == PONS_KIND_TRANSFORM) {
            MUST(plugin_load(PONS_KIND_TRANSFORM, file[i].name, sizeof(pons_transform_operations),
                             NULL, &one, &error));
            const pons_transform_operations *o = one->operations;
            able += o->plan != NULL && !o->resamples
                    && (o->build != NULL || o->apply_patch == NULL);
        }
    plugin_list_free(file, count);
    ck_assert_int_eq(able, chain->count);
}

/*
 * Patches of integer and of real cases, extracted, augmented and read by a network's first layer.
 */
static void add_patches(const device *d, const experiment *e, precision how)
{
    const pons_convolution three = { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, 1 };
    const pons_shape weights = { 5, { PATCH_WIDTH, 3, 3, 3, PATCH_CHANNELS } };
    pons_shape shape = { 5, { PATCHES, e->patch[0], e->patch[1], e->patch[2], PATCH_CHANNELS } };
    pons_graph *g = graph_new(true);
    pons_node *x = patch_nodes_image(e, g, shape, &error), *target, *y;
    golden_plugin sgd;

    golden_load(&sgd, PONS_KIND_OPTIMIZER, "sgd", sizeof(pons_optimizer_operations), NULL, false);
    shape.extent[4] = 1;
    target = patch_nodes_target(e, g, shape, &error);
    g->scope = SCOPE_MODEL;
    y = pons_convolve(g, x, pons_parameter_leaf(g, "weight", PONS_ROLE_WEIGHT, weights,
                                                (pons_init){ PONS_INIT_UNIFORM, 1 }), &three);
    g->scope = SCOPE_LOSS;
    y = pons_sub(g, y, pons_cast(g, target, PONS_F32));
    add_program(d, g, pons_mean_all(g, pons_square(g, y)), how, &sgd);
    golden_unload(&sgd);
}

START_TEST(patches_with_every_transform_compile)
{
    experiment e = { .class_count = 2, .patch = { 24, 20, 18 },
                     .task = { .channels = PATCH_CHANNELS, .classes = 2 } };
    cuda_device state;
    device d = open_gpu(&state);
    pipeline *chain;
    config *c;

    MUST(config_open(NULL, PATCH_SETTINGS, (const char **)patch_settings, &c, &error));
    MUST(pipeline_open(c, "augment", true, PATCH_CHANNELS, &chain, &error));
    check_steps(chain);
    e.augment = chain;
    for (int i = 0; i < PRECISIONS; i++)
        add_patches(&d, &e, precisions[i]);
    compile_waiting(&d, _i, "patches");
    pipeline_close(chain);
    config_close(c);
    close_gpu(&state);
}
END_TEST

/* ---- windows --------------------------------------------------------------------------------- */

/* Three windows of 5 classes; mirrored windows are averaged first. */
START_TEST(window_accumulation_compiles)
{
    const program_settings settings = { .precision = PRECISION_FP32 };
    const int64_t axes[] = { 0, 1, 2 };
    experiment e = { .class_count = 5, .window = { 64, 64, 64 },
                     .task = { .channels = 1, .classes = 5 } };
    pons_graph *g = graph_new(false);
    cuda_device state;
    device d = open_gpu(&state);
    pons_node *sums;
    storage *s;
    program *p;

    e.sections.window.batch = 3;
    e.sections.window.mirror = (pons_integers){ 3, axes };
    sums = window_nodes_add(&e, g, node_input(g, "x", PONS_F32,
                                            (pons_shape){ 5, { 3, 64, 64, 64, 5 } }));
    MUST(storage_new(&d, &s, &error));
    MUST(program_new(s, &d, g, NULL, 1, &sums, &settings, &p, &error));
    ck_assert_int_ge(state.cache.count, 3 + 1);
    program_free(p);
    storage_free(s);
    compile_waiting(&d, _i, "sums of windows");
    close_gpu(&state);
}
END_TEST

/* ---- architectures that NVRTC does not know -------------------------------------------------- */

/* An architecture older than all that NVRTC knows. */
START_TEST(a_gpu_older_than_every_compiler_is_refused)
{
    cuda_compiler c;

    error = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(cuda_compiler_open(&c, TOOLKIT_LATER - 1, 1, 20, &error), PONS_DEVICE);
    ck_assert_ptr_null(c.library);
    ck_assert_msg(strstr(error.text, "'cuda:1': nothing here compiles for its sm_20: NVRTC ")
                  != NULL, "%s", error.text);
    ck_assert_msg(strstr(error.text, " 90 ") != NULL, "%s", error.text);
    ck_assert_msg(strstr(error.text, "hint: install the NVRTC of an older CUDA, too") != NULL, "%s",
                  error.text);
}
END_TEST

/* An architecture of the future. The driver supports it and all PTX of NVRTC. */
START_TEST(a_gpu_newer_than_the_compiler_gets_ptx)
{
    static const char source[] = "extern \"C\" __global__ void one(float *x) { *x = 1; }\n";
    char *ptx, target[32];
    cuda_compiler c;
    size_t size = 0;

    MUST(cuda_compiler_open(&c, TOOLKIT_LATER - 1, 0, 999, &error));
    ck_assert(c.translated);
    ck_assert_int_ge(c.target, 90);
    ck_assert_int_lt(c.target, 999);
    MUST(cuda_compile(&c, source, c.target, &ptx, &size, NULL, &error));
    ck_assert_ptr_nonnull(memchr(ptx, '\0', size));
    snprintf(target, sizeof target, "\n.target sm_%d\n", c.target);
    ck_assert_msg(strstr(ptx, target) != NULL, "expected '%s' in\n%s", target, ptx);
    free(ptx);
    cuda_compiler_close(&c);
}
END_TEST

/* An architecture between two known ones gets the PTX of the lower one, not of the newest. */
START_TEST(a_gpu_gets_ptx_of_the_next_older_architecture)
{
    cuda_compiler c;

    MUST(cuda_compiler_open(&c, TOOLKIT_LATER - 1, 0, 91, &error));
    ck_assert(c.translated);
    ck_assert_int_eq(c.target, 90);
    cuda_compiler_close(&c);
}
END_TEST

/* A driver does not translate PTX of a CUDA that is newer than the driver. */
START_TEST(an_old_driver_gets_no_ptx)
{
    cuda_compiler c;

    error = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(cuda_compiler_open(&c, TOOLKIT_OLDEST - 1, 0, 999, &error), PONS_DEVICE);
    ck_assert_ptr_null(c.library);
    ck_assert_msg(strstr(error.text, "nothing here compiles for its sm_999") != NULL, "%s",
                  error.text);
}
END_TEST

/*
 * Options that AddressSanitizer reads. NVRTC does not free all of its memory when it is closed.
 * check_cuda finds leaks of our memory.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

int main(void)
{
    TCase *c = suite_new("cuda text");

    tcase_add_loop_test(c, every_network_compiles, 0, ARCHITECTURES);
    tcase_add_test(c, tf32_has_the_kernels_of_fp32);
    tcase_add_loop_test(c, direct_convolutions_of_published_networks_compile, 0, ARCHITECTURES);
    tcase_add_loop_test(c, every_loss_compiles, 0, ARCHITECTURES);
    tcase_add_loop_test(c, every_optimizer_compiles, 0, ARCHITECTURES);
    tcase_add_loop_test(c, patches_with_every_transform_compile, 0, ARCHITECTURES);
    tcase_add_loop_test(c, window_accumulation_compiles, 0, ARCHITECTURES);
    tcase_add_test(c, a_gpu_older_than_every_compiler_is_refused);
    tcase_add_test(c, a_gpu_newer_than_the_compiler_gets_ptx);
    tcase_add_test(c, a_gpu_gets_ptx_of_the_next_older_architecture);
    tcase_add_test(c, an_old_driver_gets_no_ptx);
    return suite_run();
}
