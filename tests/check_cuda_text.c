/*
 * check_cuda_text.c - NVRTC compiles the text of the golden networks in training and evaluation, of
 * all losses, of all optimizers and of windows that are added up; it needs no card and no driver.
 * Nothing runs: memory is that of this process. (NVRTC looks for a driver too, so that of tests/fake
 * must not be there.)
 */
#include "../plugins/devices/cuda/cuda.h"
#include "golden_program.h"
#include "suite.h"

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
    MUST(cuda_compiler_open(&d->compiler, &error));
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

/* "ptxas . 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", of every kernel. */
static void check_spills(const char *log, const char *what)
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
    ck_assert_msg(kernels > 0, "%s: ptxas says nothing", what);
}

/* All that waits on the device, as one translation unit. */
static void compile_all(const device *d, int architecture, const char *what)
{
    cuda_device *c = d->handle;
    text unit = { .at = NULL };
    char *binary = NULL, *log = NULL;
    size_t size = 0;

    ck_assert_int_gt(c->library.count, 0);
    cuda_library_write(&c->library, &unit);
    ck_assert_msg(cuda_compile(&c->compiler, unit.at, architecture, &binary, &size, &log,
                               &error) == PONS_OK, "%s: %s", what, error.text);
    ck_assert(size > 4 && memcmp(binary, "\177ELF", 4) == 0);
    ck_assert_msg(log != NULL, "%s: no log", what);
    check_spills(log, what);
    free(log);
    free(binary);
    text_free(&unit);
}

/* ---- networks -------------------------------------------------------------------------------- */

/* The network's training program; its kernels wait afterwards. */
static void add_network(const golden *g, const json_value *c, const device *d, precision how)
{
    const json_value *arguments = json_member(c, "arguments");
    bool flat = json_member(arguments, "spatial_dims")->number == 2;
    pons_shape image = golden_image_shape(golden_find(g, "%s/image", json_member(c, "name")->text));
    int classes = (int)json_member(arguments, "out_channels")->number;
    program_settings settings = { .precision = how, .micro_batches = 1, .accumulate = 1 };
    golden_plugin model, loss, optimizer;
    golden_net net;
    storage *s;
    program *p;

    golden_load(&model, PONS_KIND_MODEL, golden_network_plugin(c),
                sizeof(pons_model_operations), arguments, flat);
    golden_load(&loss, PONS_KIND_LOSS, "dice_ce", sizeof(pons_loss_operations), NULL, false);
    golden_load(&optimizer, PONS_KIND_OPTIMIZER, "sgd", sizeof(pons_optimizer_operations), NULL,
                false);
    settings.optimizer = optimizer.plugin->operations;
    settings.optimizer_config = optimizer.options;
    net = golden_build(&model, &loss, image, classes, flat, true);
    MUST(storage_new(d, &s, &error));
    MUST(program_new(s, d, net.graph, net.loss, 1, &net.logits, &settings, &p, &error));
    program_free(p);
    storage_free(s);
    golden_unload(&model);
    golden_unload(&loss);
    golden_unload(&optimizer);
}

/* In fp32 and bf16 by turns. */
static int add_networks(const device *d, int most)
{
    golden g;
    int count = 0;

    golden_open(&g, "networks");
    for (const json_value *c = g.cases.root->child; c != NULL && count < most; c = c->next)
        if (golden_network_plugin(c) != NULL && json_member(c, "arguments") != NULL) {
            add_network(&g, c, d, count % 2 == 0 ? PRECISION_FP32 : PRECISION_BF16);
            count++;
        }
    golden_close(&g);
    return count;
}

START_TEST(every_network_compiles)
{
    cuda_device state;
    device d = card(&state);

    ck_assert_int_eq(add_networks(&d, 1000), 10);
    compile_all(&d, 90, "networks");
    card_close(&state);
}
END_TEST

START_TEST(a_network_compiles_for_every_architecture)
{
    static const int architectures[] = { 75, 80, 100 };
    cuda_device state;
    device d = card(&state);

    ck_assert_int_eq(add_networks(&d, 1), 1);
    compile_all(&d, architectures[_i], "a network");
    card_close(&state);
}
END_TEST

/* ---- losses and optimizers ------------------------------------------------------------------- */

/* The sum of a parameter: what an optimizer needs to have something to do. */
static void add_program(const device *d, pons_graph *g, pons_node *loss,
                        const golden_plugin *optimizer)
{
    program_settings settings = { .precision = PRECISION_FP32, .micro_batches = 2, .accumulate = 2,
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

static void add_loss(const golden *g, const json_value *c, const device *d,
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
    add_program(d, graph, value, optimizer);
    golden_unload(&loss);
}

START_TEST(every_loss_compiles)
{
    golden_plugin sgd;
    golden g;
    cuda_device state;
    device d = card(&state);
    int count = 0;

    golden_open(&g, "losses");
    golden_load(&sgd, PONS_KIND_OPTIMIZER, "sgd", sizeof(pons_optimizer_operations), NULL, false);
    for (const json_value *c = g.cases.root->child; c != NULL; c = c->next, count++)
        add_loss(&g, c, &d, &sgd);
    ck_assert_int_gt(count, 20);
    compile_all(&d, 90, "losses");
    golden_unload(&sgd);
    golden_close(&g);
    card_close(&state);
}
END_TEST

START_TEST(every_optimizer_compiles)
{
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
                    &optimizer);
        golden_unload(&optimizer);
    }
    ck_assert_int_gt(count, 3);
    compile_all(&d, 90, "optimizers");
    golden_close(&g);
    card_close(&state);
}
END_TEST

/* ---- windows --------------------------------------------------------------------------------- */

/* Three windows of 5 classes: one kernel each. */
START_TEST(sums_of_windows_compile_for_every_architecture)
{
    static const int architectures[] = { 75, 80, 90, 100 };
    const program_settings settings = { .precision = PRECISION_FP32 };
    const pons_shape rows = { 2, { 3, PONS_PATCH_PLACE + 2 * 3 * 64 } };
    pons_graph *g = graph_new(false, -1);
    cuda_device state;
    device d = card(&state);
    pons_node *x = node_input(g, "x", PONS_F32, (pons_shape){ 5, { 3, 64, 64, 64, 5 } });
    pons_node *sums = node_patch_add(g, node_held(g, "sums"), node_input(g, "row", PONS_I32, rows),
                                     node_held_tensor(g, "weight", PONS_F32,
                                                      (pons_shape){ 3, { 64, 64, 64 } }), x);
    storage *s;
    program *p;

    MUST(storage_new(&d, &s, &error));
    MUST(program_new(s, &d, g, NULL, 1, &sums, &settings, &p, &error));
    ck_assert_int_eq(state.library.count, 3);
    program_free(p);
    storage_free(s);
    compile_all(&d, architectures[_i], "sums of windows");
    card_close(&state);
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
    cuda_compiler nvrtc;
    pons_error err = PONS_ERROR_INIT;

    if (cuda_compiler_open(&nvrtc, &err) != PONS_OK) {
        fprintf(stderr, "configure has found it: %s\n", err.text);
        return 1;
    }
    cuda_compiler_close(&nvrtc);
    tcase_add_test(c, every_network_compiles);
    tcase_add_loop_test(c, a_network_compiles_for_every_architecture, 0, 3);
    tcase_add_test(c, every_loss_compiles);
    tcase_add_test(c, every_optimizer_compiles);
    tcase_add_loop_test(c, sums_of_windows_compile_for_every_architecture, 0, 4);
    return suite_run();
}
