/*
 * check_cuda_text.c - NVRTC compiles the text of the golden networks in training and evaluation, of
 * the direct convolutions of the published ones, of all losses, of all optimizers, of patches with
 * all transforms and of windows that are added up, for every architecture and precision; it needs
 * no card and no driver. Nothing runs: memory is that of this process. (NVRTC looks for a driver
 * too, so that of tests/fake must not be there.)
 *
 * Usually one kernel of each form, which is its text but for the numbers, is compiled, with SOAK
 * (make soak) all are.
 */
#include "cuda/cuda.h"
#include "convolutions.h"
#include "data/transform/pipeline.h"
#include "golden_program.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "plugin/plugin_search.h"
#include "replica/patch_nodes.h"
#include "replica/window_nodes.h"
#include "soak.h"
#include "suite.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pons_error error;

#define MUST(call) ck_assert_msg((error = (pons_error)PONS_ERROR_INIT, (call)) == PONS_OK, "%s",  \
                                 error.text)

/* ---- a device without a driver --------------------------------------------------------------- */

static int use(cuda_context context) { return 0; }

static int allocate(cuda_address *memory, size_t size)
{
    *memory = (cuda_address)(uintptr_t)aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    return *memory == 0;
}

static int release(cuda_address memory)
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

static device card(cuda_device *d)
{
    *d = (cuda_device){ .architecture = 90,
                        .driver = { .use = use, .allocate = allocate, .free = release,
                                    .clear = clear, .upload = upload,
                                    .stream_wait = stream_wait } };
    MUST(cuda_compiler_open(&d->compiler, CUDA_LATER - 1, 0, d->architecture, &error));
    return (device){ .operations = &cuda_operations, .handle = d,
                     .facts = { .name = "card", .threads = 1, .host_memory = true } };
}

static void card_close(cuda_device *d)
{
    cuda_library_free(d);
    cuda_compiler_close(&d->compiler);
}

/*
 * Bytes of registers that a kernel may keep in memory for want of room: none. A spill is read and
 * written in the innermost loops, and a kernel that is bound by memory has nothing to hide it.
 */
enum { SPILL = 0 };

/* "ptxas . 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads": of how many kernels. */
static int check_spills(const char *log, const char *what)
{
    static const char words[] = " bytes spill stores";
    const char *name = what;
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
        ck_assert_msg(atoi(found) <= SPILL, "%s: %d bytes spilled: %.120s", what, atoi(found),
                      name);
        kernels++;
    }
    return kernels;
}

/* ---- what is compiled ------------------------------------------------------------------------ */

static const int architectures[] = { 75, 80, 90, 100 };
enum { ARCHITECTURES = sizeof architectures / sizeof *architectures, UNIT = 250, FEW = 16 };

/* Kernels of one unit. */
static void compile_unit(const cuda_compiler *c, const cuda_library *l, int architecture,
                         const char *what)
{
    text unit = { .at = NULL };
    char *binary = NULL, *log = NULL;
    size_t size = 0;

    cuda_library_write(l, &unit);
    ck_assert_msg(cuda_compile(c, unit.at, architecture, &binary, &size, &log, &error) == PONS_OK,
                  "%s: %s", what, error.text);
    ck_assert(size > 4 && memcmp(binary, "\177ELF", 4) == 0);
    ck_assert_msg(log != NULL, "%s: no log", what);
    ck_assert_int_eq(check_spills(log, what), l->count);
    free(log);
    free(binary);
    text_free(&unit);
}

static bool is_of_name(char c) { return c == '_' || isalnum((unsigned char)c); }

/* A hash of the text in which all numbers are one. */
static uint64_t form_of(const char *at)
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

/* One kernel of each form. */
static int choose(const cuda_library *l, cuda_kernel **out)
{
    uint64_t *form = calloc((size_t)l->count, sizeof *form);
    int forms = 0;

    for (int i = 0; i < l->count; i++) {
        int k = 0;
        form[forms] = form_of(l->kernel[i]->text);
        while (form[k] != form[forms])
            k++;
        if (k == forms)
            out[forms++] = l->kernel[i];
    }
    free(form);
    return forms;
}

/* What waits on the device, or one kernel of each form where that is much. */
static void compile_waiting(const device *d, int number, const char *what)
{
    cuda_device *c = d->handle;
    cuda_kernel **chosen = calloc((size_t)c->library.count, sizeof *chosen);
    int count = c->library.count;

    if (count <= soak_times(FEW, count))
        memcpy(chosen, c->library.kernel, (size_t)count * sizeof *chosen);
    else
        count = choose(&c->library, chosen);
    ck_assert_int_gt(count, 0);
    for (int first = 0; first < count; first += UNIT) {
        const cuda_library part = { .count = count - first < UNIT ? count - first : UNIT,
                                    .kernel = chosen + first };
        compile_unit(&c->compiler, &part, architectures[number], what);
    }
    free(chosen);
}

static const precision precisions[] = { PRECISION_FP32, PRECISION_BF16, PRECISION_FP16 };
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

/* Plugins of a kind that are there. */
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

/* Names that differ, of at most 32. */
typedef struct names {
    int count;
    const char *item[32];
} names;

static void names_add(names *n, const char *name)
{
    for (int i = 0; i < n->count; i++)
        if (strcmp(n->item[i], name) == 0)
            return;
    ck_assert_int_lt(n->count, 32);
    n->item[n->count++] = name;
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

/* The network's programs of training and of evaluation; their kernels wait afterwards. */
static void add_network(const golden *g, const json_value *c, const device *d, precision how)
{
    const json_value *arguments = json_member(c, "arguments");
    bool flat = json_member(arguments, "spatial_dims")->number == 2;
    pons_shape image = golden_image_shape(golden_find(g, "%s/image", json_member(c, "name")->text));
    int classes = (int)json_member(arguments, "out_channels")->number;
    program_settings settings = { .precision = how, .micro_batches = 1, .accumulate = 1 };
    golden_plugin model, loss, optimizer;
    golden_net net;

    golden_load(&model, PONS_KIND_MODEL, golden_network_plugin(c),
                sizeof(pons_model_operations), arguments, flat);
    golden_load(&loss, PONS_KIND_LOSS, "dice_ce", sizeof(pons_loss_operations), NULL, false);
    golden_load(&optimizer, PONS_KIND_OPTIMIZER, "sgd", sizeof(pons_optimizer_operations), NULL,
                false);
    net = golden_build(&model, NULL, image, classes, flat, false);
    add_program_of(d, &net, &settings);
    settings.optimizer = optimizer.plugin->operations;
    settings.optimizer_config = optimizer.options;
    net = golden_build(&model, &loss, image, classes, flat, true);
    add_program_of(d, &net, &settings);
    golden_unload(&model);
    golden_unload(&loss);
    golden_unload(&optimizer);
}

START_TEST(every_network_compiles)
{
    int count = 0;
    names plugins = { 0 };
    golden g;
    cuda_device state;
    device d = card(&state);

    golden_open(&g, "networks");
    for (const json_value *c = g.cases.root->child; c != NULL; c = c->next)
        if (golden_network_plugin(c) != NULL && json_member(c, "arguments") != NULL) {
            for (int i = 0; i < PRECISIONS; i++)
                add_network(&g, c, &d, precisions[i]);
            names_add(&plugins, golden_network_plugin(c));
            count++;
        }
    ck_assert_int_eq(count, 10);
    ck_assert_int_eq(plugins.count, plugins_of(PONS_KIND_MODEL));
    compile_waiting(&d, _i, "networks");
    golden_close(&g);
    card_close(&state);
}
END_TEST

/* Tensor cores are the libraries': in tf32 our own kernels are those of fp32. */
START_TEST(tf32_has_the_kernels_of_fp32)
{
    golden g;
    cuda_device state;
    device d = card(&state);
    int count;

    golden_open(&g, "networks");
    add_network(&g, g.cases.root->child, &d, PRECISION_FP32);
    count = state.library.count;
    add_network(&g, g.cases.root->child, &d, PRECISION_TF32);
    ck_assert_int_eq(state.library.count, count);
    golden_close(&g);
    card_close(&state);
}
END_TEST

/* ---- direct convolutions --------------------------------------------------------------------- */

/*
 * Those of the published networks, at their extents: how many places a thread has, and so how many
 * registers, goes by them. The golden networks are too small for more than one.
 */
static const struct {
    int cases, extent, in, out, kernel, stride; /* of x; a transposed one's x is its result */
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

/* All of them, for this architecture. */
START_TEST(direct_convolutions_of_published_networks_compile)
{
    static const pons_kernel_kind kinds[] = {
        PONS_KERNEL_CONVOLUTION, PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT,
        PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT,
    };
    cuda_device state;
    device d = card(&state);

    for (int i = 0; i < LAYERS; i++)
        for (int k = 0; k < 3; k++) {
            add_layer(&d, i, kinds[k], PONS_F32);
            add_layer(&d, i, kinds[k], PONS_BF16);
        }
    ck_assert_int_gt(state.library.count, 2 * 3 * LAYERS);
    compile_unit(&state.compiler, &state.library, architectures[_i], "direct convolutions");
    card_close(&state);
}
END_TEST

/* ---- losses and optimizers ------------------------------------------------------------------- */

/* The sum of a parameter: what an optimizer needs to have something to do. */
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

static void add_loss(const golden *g, const json_value *c, const device *d, precision how,
                     const golden_plugin *optimizer)
{
    pons_graph *graph = graph_new(true, -1);
    pons_shape shape = golden_image_shape(golden_find(g, "%s/logits",
                                                      json_member(c, "name")->text));
    bool regions = strcmp(json_member(c, "activation")->text, "sigmoid") == 0;
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

    golden_load(&loss, PONS_KIND_LOSS, json_member(c, "loss")->text, sizeof(pons_loss_operations),
                json_member(c, "options"), false);
    operations = loss.plugin->operations;
    if (!regions)
        shape.extent[4] = 1;
    target.node = node_input(graph, "target", PONS_U8, shape);
    graph->scope = SCOPE_LOSS;
    MUST(operations->build(graph, loss.options, &task, logits, &target, &value, &error));
    add_program(d, graph, value, how, optimizer);
    golden_unload(&loss);
}

START_TEST(every_loss_compiles)
{
    golden_plugin sgd;
    names plugins = { 0 };
    golden g;
    cuda_device state;
    device d = card(&state);
    int count = 0;

    golden_open(&g, "losses");
    golden_load(&sgd, PONS_KIND_OPTIMIZER, "sgd", sizeof(pons_optimizer_operations), NULL, false);
    for (const json_value *c = g.cases.root->child; c != NULL; c = c->next, count++) {
        add_loss(&g, c, &d, precisions[count % PRECISIONS], &sgd);
        names_add(&plugins, json_member(c, "loss")->text);
    }
    ck_assert_int_gt(count, 20);
    ck_assert_int_eq(plugins.count, plugins_of(PONS_KIND_LOSS));
    compile_waiting(&d, _i, "losses");
    golden_unload(&sgd);
    golden_close(&g);
    card_close(&state);
}
END_TEST

START_TEST(every_optimizer_compiles)
{
    names plugins = { 0 };
    golden g;
    cuda_device state;
    device d = card(&state);
    int count = 0;

    golden_open(&g, "optimizers");
    for (const json_value *c = g.cases.root->child; c != NULL; c = c->next, count++) {
        pons_graph *graph = graph_new(true, -1);
        pons_node *weight = pons_parameter_leaf(graph, "weight", PONS_ROLE_WEIGHT,
                                                (pons_shape){ 2, { 100, 70 } },
                                                (pons_init){ PONS_INIT_UNIFORM, 1 });
        pons_node *bias = pons_parameter_leaf(graph, "bias", PONS_ROLE_BIAS,
                                              (pons_shape){ 1, { 70 } },
                                              (pons_init){ PONS_INIT_CONSTANT, 0 });
        golden_plugin optimizer;
        golden_load(&optimizer, PONS_KIND_OPTIMIZER, json_member(c, "optimizer")->text,
                    sizeof(pons_optimizer_operations), json_member(c, "options"), false);
        add_program(&d, graph,
                    pons_sum_all(graph, pons_square(graph, pons_add(graph, weight, bias))),
                    precisions[count % PRECISIONS], &optimizer);
        golden_unload(&optimizer);
        names_add(&plugins, json_member(c, "optimizer")->text);
    }
    ck_assert_int_gt(count, 3);
    ck_assert_int_eq(plugins.count, plugins_of(PONS_KIND_OPTIMIZER));
    compile_waiting(&d, _i, "optimizers");
    golden_close(&g);
    card_close(&state);
}
END_TEST

/* ---- patches --------------------------------------------------------------------------------- */

enum { PATCHES = 3, PATCH_CHANNELS = 2, PATCH_WIDTH = 8 };

static const char *const patch_settings[] = {
    "augment.steps=scale_intensity flip gaussian_noise rotate90 shift_intensity",
    "augment.flip.axes=0 1 2", "augment.rotate90.axes=0 1", "augment.scale_intensity.factors=0.2",
    "augment.shift_intensity.offsets=0.2", "augment.shift_intensity.channel_wise=yes",
    "augment.gaussian_noise.std=0.3", "augment.gaussian_noise.channels=1",
};
enum { PATCH_SETTINGS = sizeof patch_settings / sizeof *patch_settings };

/* The steps are all that draw: every transform of patches that is there. */
static void check_steps(const volume_chain *chain)
{
    const plugin *one;
    plugin_file *file;
    int count, able = 0;

    MUST(plugin_list(&file, &count, &error));
    for (int i = 0; i < count; i++)
        if (file[i].kind == PONS_KIND_TRANSFORM) {
            MUST(plugin_load(PONS_KIND_TRANSFORM, file[i].name, sizeof(pons_transform_operations),
                             NULL, &one, &error));
            able += ((const pons_transform_operations *)one->operations)->plan != NULL;
        }
    plugin_list_free(file, count);
    ck_assert_int_eq(able, chain->count);
}

/* Cases of whole numbers and of real ones, cut, changed, and read by a network's first layer. */
static void add_patches(const device *d, const experiment *e, precision how)
{
    const pons_convolution three = { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, 1 };
    const pons_shape weights = { 5, { PATCH_WIDTH, 3, 3, 3, PATCH_CHANNELS } };
    pons_shape shape = { 5, { PATCHES, e->patch[0], e->patch[1], e->patch[2], PATCH_CHANNELS } };
    pons_graph *g = graph_new(true, -1);
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
    device d = card(&state);
    volume_chain *chain;
    config *c;

    MUST(config_open(NULL, PATCH_SETTINGS, (const char **)patch_settings, &c, &error));
    MUST(volume_chain_open(c, "augment", true, PATCH_CHANNELS, &chain, &error));
    check_steps(chain);
    e.augment = chain;
    for (int i = 0; i < PRECISIONS; i++)
        add_patches(&d, &e, precisions[i]);
    compile_waiting(&d, _i, "patches");
    volume_chain_close(chain);
    config_close(c);
    card_close(&state);
}
END_TEST

/* ---- windows --------------------------------------------------------------------------------- */

/* Three windows of 5 classes, mirrored ones joined first. */
START_TEST(sums_of_windows_compile)
{
    const program_settings settings = { .precision = PRECISION_FP32 };
    const int64_t axes[] = { 0, 1, 2 };
    experiment e = { .class_count = 5, .window = { 64, 64, 64 },
                     .task = { .channels = 1, .classes = 5 } };
    pons_graph *g = graph_new(false, -1);
    cuda_device state;
    device d = card(&state);
    pons_node *sums;
    storage *s;
    program *p;

    e.sections.window.batch = 3;
    e.sections.window.mirror = (pons_integers){ 3, axes };
    sums = window_nodes_add(&e, g, node_input(g, "x", PONS_F32,
                                            (pons_shape){ 5, { 3, 64, 64, 64, 5 } }));
    MUST(storage_new(&d, &s, &error));
    MUST(program_new(s, &d, g, NULL, 1, &sums, &settings, &p, &error));
    ck_assert_int_ge(state.library.count, 3 + 1);
    program_free(p);
    storage_free(s);
    compile_waiting(&d, _i, "sums of windows");
    card_close(&state);
}
END_TEST

/* ---- cards that NVRTC does not know ---------------------------------------------------------- */

/* One from before all that NVRTC knows of. */
START_TEST(a_card_that_no_compiler_knows_is_refused)
{
    cuda_compiler c;

    error = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(cuda_compiler_open(&c, CUDA_LATER - 1, 1, 20, &error), PONS_DEVICE);
    ck_assert_ptr_null(c.library);
    ck_assert_msg(strstr(error.text, "'cuda:1': nothing here compiles for its sm_20: NVRTC ")
                  != NULL, "%s", error.text);
    ck_assert_msg(strstr(error.text, " 90 ") != NULL, "%s", error.text);
    ck_assert_msg(strstr(error.text, "hint: install the NVRTC of an older CUDA, too") != NULL, "%s",
                  error.text);
}
END_TEST

/* One that does not exist yet, with a driver that knows it and all that NVRTC writes. */
START_TEST(a_card_that_is_newer_than_the_compiler_gets_ptx)
{
    static const char source[] = "extern \"C\" __global__ void one(float *x) { *x = 1; }\n";
    char *ptx, target[32];
    cuda_compiler c;
    size_t size = 0;

    MUST(cuda_compiler_open(&c, CUDA_LATER - 1, 0, 999, &error));
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

/* One between two that NVRTC knows has the PTX of the first, not of the newest. */
START_TEST(a_card_gets_ptx_of_one_before_it)
{
    cuda_compiler c;

    MUST(cuda_compiler_open(&c, CUDA_LATER - 1, 0, 91, &error));
    ck_assert(c.translated);
    ck_assert_int_eq(c.target, 90);
    cuda_compiler_close(&c);
}
END_TEST

/* Which translates no PTX that is of a later CUDA than itself. */
START_TEST(an_old_driver_gets_none)
{
    cuda_compiler c;

    error = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(cuda_compiler_open(&c, CUDA_OLDEST - 1, 0, 999, &error), PONS_DEVICE);
    ck_assert_ptr_null(c.library);
    ck_assert_msg(strstr(error.text, "nothing here compiles for its sm_999") != NULL, "%s",
                  error.text);
}
END_TEST

/* Read by AddressSanitizer: NVRTC keeps memory when it is closed. Ours is weighed in check_cuda. */
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
    tcase_add_loop_test(c, sums_of_windows_compile, 0, ARCHITECTURES);
    tcase_add_test(c, a_card_that_no_compiler_knows_is_refused);
    tcase_add_test(c, a_card_that_is_newer_than_the_compiler_gets_ptx);
    tcase_add_test(c, a_card_gets_ptx_of_one_before_it);
    tcase_add_test(c, an_old_driver_gets_none);
    return suite_run();
}
