/*
 * check_cuda.c - the CUDA C that the cuda device generates. The host's compiler compiles it and an
 * executor runs it in place of the driver. The op table is compared with the reference in double.
 * Direct convolutions are larger than those of the table, so that they have tiles.
 *
 * The text and the calls of the driver are those of a real GPU. There NVRTC compiles the text, and
 * cuBLASLt computes products.
 */
#include "cuda/codegen/codegen.h"
#include "cuda/cuda.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/program/program_internal.h"
#include "graph/reference/reference.h"
#include "graph/storage/staging.h"
#include "support/graph/convolutions.h"
#include "support/graph/fakes.h"
#include "support/graph/op_table.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const pons_step_key step_key = { 7, 3, 2 };

/* Kinds that the device leaves to the core: sums over replicas, and the functions of plugins. */
static const bool exceptions[PONS_KERNEL_KIND_COUNT] = {
    [PONS_KERNEL_ALL_REDUCE] = true, [PONS_KERNEL_OP] = true,
};

static device card(void)
{
    const pons_device_settings settings = { .index = 0, .count = 1 };
    pons_error err = PONS_ERROR_INIT;
    device d = { .operations = &cuda_operations };

    ck_assert_msg(cuda_operations.open(&settings, &d.handle, &err) == PONS_OK, "%s", err.text);
    cuda_operations.facts(d.handle, &d.facts);
    ck_assert_int_eq(cuda_operations.attach(d.handle, &err), PONS_OK);
    return d;
}

/* ---- the op table ---------------------------------------------------------------------------- */

enum { BATCH = 96 };

typedef struct trial {
    op_graph graph;
    evaluation *expected, *found;
    const char *name;
} trial;

typedef struct table {
    device wide, card;
    pons_type storage;
    double tolerance;
    int requests[PONS_KERNEL_KIND_COUNT], declined[PONS_KERNEL_KIND_COUNT];
    int count;
    trial trial[BATCH];
} table;

/*
 * Every case of a batch is prepared before the first one runs, so that a batch is one compilation.
 */
static void run_batch(table *t)
{
    for (int i = 0; i < t->count; i++) {
        trial *x = &t->trial[i];
        pons_error err = PONS_ERROR_INIT;
        ck_assert_msg(evaluation_run(x->found, &step_key, &err) == PONS_OK, "%s: %s", x->name,
                      err.text);
        ck_assert_msg(op_graph_agrees(&x->graph, x->expected, x->found, t->tolerance, &err)
                      == PONS_OK, "%s: %s", x->name, err.text);
        evaluation_count(x->found, t->requests, t->declined);
        evaluation_free(x->found);
        evaluation_free(x->expected);
        op_graph_free(&x->graph);
    }
    t->count = 0;
}

static void add_trial(table *t, const op_case *c, int variant, uint64_t seed)
{
    trial *x = &t->trial[t->count++];
    pons_error err = PONS_ERROR_INIT;

    x->name = c->name;
    ck_assert_msg(op_graph_make(c, variant, seed, &x->graph, &err) == PONS_OK, "%s: %s", c->name,
                  err.text);
    x->expected = op_graph_evaluate(&x->graph, &t->wide, t->storage, &err);
    ck_assert_msg(x->expected != NULL, "%s: %s", c->name, err.text);
    x->found = evaluation_new(x->graph.g, &t->card, t->storage, &err);
    ck_assert_msg(x->found != NULL, "%s: %s", c->name, err.text);
    op_graph_fill(&x->graph, x->found);
    if (t->count == BATCH)
        run_batch(t);
}

static void table_agrees(pons_type storage, double tolerance, int rounds)
{
    static table t;
    pons_error err = PONS_ERROR_INIT;

    t = (table){ .card = card(), .storage = storage, .tolerance = tolerance };
    device_reference(&t.wide, true);
    ck_assert_msg(op_table_each(0, NULL, NULL, &err) == PONS_OK, "%s", err.text);
    for (int i = 0; i < op_case_count; i++)
        for (int round = 0; round < rounds * op_cases[i].variants; round++)
            add_trial(&t, &op_cases[i], round % op_cases[i].variants,
                      (uint64_t)(1000 * i + round));
    run_batch(&t);
    for (int kind = 1; kind < PONS_KERNEL_KIND_COUNT; kind++) {
        const char *name = kernel_kind_name((pons_kernel_kind)kind);
        ck_assert_msg(exceptions[kind] == (t.declined[kind] > 0), "%d of %d requests for '%s' are "
                      "declined", t.declined[kind], t.requests[kind], name);
        ck_assert_msg(t.requests[kind] > 0 || kind == PONS_KERNEL_COPY, "the table has no '%s'",
                      name);
    }
    cuda_operations.close(t.card.handle);
}

START_TEST(every_op_case_agrees_on_the_gpu)
{
    table_agrees(PONS_F32, FLOAT_OF_LARGEST, 1);
}
END_TEST

START_TEST(every_op_case_agrees_in_bf16_on_the_gpu)
{
    table_agrees(PONS_BF16, BF16_OF_LARGEST, 1);
}
END_TEST

/*
 * The device gets no other call between preparation and run: the first launch itself waits for the
 * copy of its tables.
 */
START_TEST(a_kernel_runs_directly_after_its_preparation)
{
    const pons_resize_attributes nearest = { PONS_RESIZE_NEAREST };
    const pons_tensor small = { PONS_F32, { 5, { 1, 2, 1, 1, 1 } } };
    const pons_tensor large = { PONS_F32, { 5, { 1, 4, 1, 1, 1 } } };
    const pons_request request = { .kind = PONS_KERNEL_RESIZE, .name = "y", .input_count = 1,
                                   .output_count = 1, .input = &small, .output = &large,
                                   .attributes = &nearest };
    const float numbers[] = { 3, 5 }, expected[] = { 3, 3, 5, 5 };
    float found[4];
    device d = card();
    pons_error err = PONS_ERROR_INIT;
    void *x = cuda_operations.memory.allocate(d.handle, sizeof numbers, &err);
    void *y = cuda_operations.memory.allocate(d.handle, sizeof found, &err);
    const pons_call call = { .input = &x, .output = &y };
    pons_kernel k = { .run = NULL };
    bool supported;

    ck_assert_int_eq(staging_write(&d, x, numbers, sizeof numbers, &err), PONS_OK);
    ck_assert_int_eq(cuda_prepare(d.handle, &request, &k, &supported, &err), PONS_OK);
    ck_assert(supported);
    ck_assert_msg(k.run(&k, &call, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(staging_read(&d, found, y, sizeof found, &err), PONS_OK);
    ck_assert_mem_eq(found, expected, sizeof found);
    k.free(&k);
    cuda_operations.memory.release(d.handle, x, sizeof numbers);
    cuda_operations.memory.release(d.handle, y, sizeof found);
    cuda_operations.close(d.handle);
}
END_TEST

/* ---- timers ---------------------------------------------------------------------------------- */

/* Time of a small kernel that the host launches 'us' microseconds after the timer starts. */
static double time_of_late_launch(const device *d, const pons_kernel *k, const pons_call *call,
                                  useconds_t us)
{
    pons_error err = PONS_ERROR_INIT;
    double seconds;

    ck_assert_msg(cuda_operations.profiling.timer_start(d->handle, &err) == PONS_OK, "%s",
                  err.text);
    usleep(us);
    ck_assert_msg(k->run(k, call, &err) == PONS_OK, "%s", err.text);
    ck_assert_msg(cuda_operations.profiling.timer_stop(d->handle, &seconds, &err) == PONS_OK, "%s",
                  err.text);
    return seconds;
}

/* The minimum of several times counts, because other work may pause a made-up GPU. */
START_TEST(a_timer_excludes_the_host_before_the_launch)
{
    const pons_tensor numbers = { PONS_F32, { 1, { 4 } } };
    const pons_request request = { .kind = PONS_KERNEL_COPY, .name = "y", .input_count = 1,
                                   .output_count = 1, .input = &numbers, .output = &numbers };
    device d = card();
    pons_error err = PONS_ERROR_INIT;
    void *x = cuda_operations.memory.allocate(d.handle, 16, &err);
    void *y = cuda_operations.memory.allocate(d.handle, 16, &err);
    const pons_call call = { .input = &x, .output = &y };
    pons_kernel k = { .run = NULL };
    double least = 1;
    bool supported;

    ck_assert_int_eq(cuda_prepare(d.handle, &request, &k, &supported, &err), PONS_OK);
    ck_assert(supported);
    ck_assert_msg(k.run(&k, &call, &err) == PONS_OK, "%s", err.text);
    for (int i = 0; i < 10; i++)
        least = fmin(least, time_of_late_launch(&d, &k, &call, 10000));
    ck_assert_msg(least < 0.005, "%g s", least);
    k.free(&k);
    cuda_operations.memory.release(d.handle, x, 16);
    cuda_operations.memory.release(d.handle, y, 16);
    cuda_operations.close(d.handle);
}
END_TEST

START_TEST(a_synchronize_while_a_timer_runs_returns)
{
    device d = card();
    pons_error err = PONS_ERROR_INIT;
    double seconds;

    ck_assert_int_eq(cuda_operations.profiling.timer_start(d.handle, &err), PONS_OK);
    ck_assert_int_eq(cuda_operations.streams.synchronize(d.handle, &err), PONS_OK);
    ck_assert_int_eq(cuda_operations.profiling.timer_stop(d.handle, &seconds, &err), PONS_OK);
    /* A timer that never stops does not prevent closing. */
    ck_assert_int_eq(cuda_operations.profiling.timer_start(d.handle, &err), PONS_OK);
    cuda_operations.close(d.handle);
}
END_TEST

/* ---- tiles of direct convolutions ------------------------------------------------------------ */

/*
 * Shapes that the op table is too small for. A thread computes several points of the output if at
 * least 528 blocks remain. A prime number of channels makes as many tiles, so that few points
 * suffice. The generated text contains the first word and not the second; otherwise a row tests
 * nothing. Tests choose the types.
 */
typedef struct tiling {
    const char *name;
    sliding of;
    const char *has, *lacks;
} tiling;

static const tiling tilings[] = {
    { "several places of a thread",
      { PONS_KERNEL_CONVOLUTION, 1, { 65, 64, 65 }, 1, 2, { 1, 1, 3 }, { 1, 1, 1 }, { 1, 1, 1 },
        { 0, 0, 1 }, { 0, 0, 1 }, PONS_F32 }, "EACH(p, ", "EACH(p, 1)" },
    { "several places, channels in parts",
      { PONS_KERNEL_CONVOLUTION, 1, { 25, 25, 26 }, 30, 17, { 1, 3, 3 }, { 1, 1, 1 }, { 1, 1, 1 },
        { 0, 1, 1 }, { 0, 1, 1 }, PONS_F32 }, "part[p * 1", "EACH(p, 1)" },
    { "several places of each class",
      { PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT, 1, { 65, 66, 65 }, 1, 2, { 3, 3, 3 }, { 2, 2, 2 },
        { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, PONS_F32 }, "EACH(p, ", "EACH(p, 1)" },
    { "nine along W",
      { PONS_KERNEL_CONVOLUTION, 2, { 1, 2, 14 }, 3, 6, { 1, 1, 9 }, { 1, 1, 1 }, { 1, 1, 1 },
        { 0, 0, 4 }, { 0, 0, 4 }, PONS_F32 }, "k3 < 9", "(\"unroll\")" },
    { "more weights than a block keeps",
      { PONS_KERNEL_CONVOLUTION, 1, { 3, 4, 5 }, 36, 12, { 3, 3, 3 }, { 1, 1, 1 }, { 1, 1, 1 },
        { 1, 1, 1 }, { 1, 1, 1 }, PONS_F32 }, "EACH(p, ", "held" },
    { "more weights than a block keeps, by the input",
      { PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT, 1, { 3, 4, 5 }, 12, 36, { 3, 3, 3 }, { 1, 1, 1 },
        { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, PONS_F32 }, "EACH(p, ", "held" },
    { "more pieces than warps",
      { PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT, 2, { 17, 16, 17 }, 3, 6, { 3, 3, 3 }, { 1, 1, 1 },
        { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, PONS_F32 }, "scratch[piece", "out0[at" },
    { "pieces of more turns",
      { PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT, 1, { 12, 9, 14 }, 17, 53, { 1, 1, 1 },
        { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, { 0, 0, 0 }, PONS_F32 }, "scratch[piece",
      "piece * 1024;" },
    { "nine along W, in tiles",
      { PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT, 1, { 1, 2, 40 }, 3, 6, { 1, 1, 9 }, { 1, 1, 1 },
        { 1, 1, 1 }, { 0, 0, 4 }, { 0, 0, 4 }, PONS_F32 }, "k3 = t3 * 3,", "k3 = t3 * 1," },
};

static void expect_words(const tiling *of, const pons_request *request)
{
    codegen s;
    const char *text;

    ck_assert_msg(codegen_make(&s, request), "%s", of->name);
    text = s.launch[0].body.at;
    ck_assert_msg(strstr(text, of->has) != NULL, "%s: no '%s' in%s", of->name, of->has, text);
    ck_assert_msg(strstr(text, of->lacks) == NULL, "%s: '%s' in%s", of->name, of->lacks, text);
    codegen_free(&s);
}

static pons_node *result_node(pons_graph *g, const pons_request *r, pons_node *a, pons_node *b)
{
    const int64_t *extent = r->output[0].shape.extent + 1;

    if (r->kind == PONS_KERNEL_CONVOLUTION)
        return pons_convolve(g, a, b, r->attributes);
    if (r->kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT)
        return pons_convolve_input_gradient(g, a, b, r->attributes, extent);
    return pons_convolve_weight_gradient(g, a, b, r->attributes, extent);
}

static void add_tiling(table *t, const tiling *of)
{
    trial *x = &t->trial[t->count++];
    op_graph *o = &x->graph;
    sliding s = of->of;
    pons_error err = PONS_ERROR_INIT;
    sliding_request r;

    s.type = t->storage;
    sliding_make(&s, &r);
    expect_words(of, &r.request);
    x->name = of->name;
    *o = (op_graph){ .g = graph_new(true), .random = 5, .leaf_count = 2 };
    for (int i = 0; i < 2; i++)
        o->leaf[i] = (op_leaf){ .low = -1, .high = 1,
                                .node = node_input(o->g, i == 0 ? "a" : "b", PONS_F32,
                                                   r.input[i].shape) };
    o->y = result_node(o->g, &r.request, o->leaf[0].node, o->leaf[1].node);
    ck_assert_msg(pons_graph_status(o->g, &err) == PONS_OK, "%s: %s", x->name, err.text);
    x->expected = op_graph_evaluate(o, &t->wide, t->storage, &err);
    ck_assert_msg(x->expected != NULL, "%s: %s", x->name, err.text);
    x->found = evaluation_new(o->g, &t->card, t->storage, &err);
    ck_assert_msg(x->found != NULL, "%s: %s", x->name, err.text);
    ck_assert_str_eq(evaluation_implementation(x->found, o->y), "nvrtc");
    op_graph_fill(o, x->found);
}

START_TEST(direct_convolutions_of_every_tiling_agree)
{
    static const struct { pons_type storage; double tolerance; } types[] = {
        { PONS_F32, FLOAT_OF_LARGEST }, { PONS_BF16, BF16_OF_LARGEST },
    };
    static table t;

    t = (table){ .card = card(), .storage = types[_i].storage, .tolerance = types[_i].tolerance };
    device_reference(&t.wide, true);
    for (size_t i = 0; i < sizeof tilings / sizeof *tilings; i++)
        add_tiling(&t, &tilings[i]);
    run_batch(&t);
    cuda_operations.close(t.card.handle);
}
END_TEST

/* ---- accesses out of bounds, in a build with AddressSanitizer -------------------------------- */

/*
 * A kernel has four adjacent buffers of 64 numbers. The first statement stays inside of them; each
 * of the others goes out of bounds by one element.
 */
static const char *const statements[] = {
    "out0[63] = in0[63] + in1[0] + scratch[63] + shared[7] + own[3];",
    "out0[0] = in0[64 + zero];", "out0[0] = in1[-1 + zero];", "out0[64 + zero] = 0.0f;",
    "out0[-1 + zero] = 0.0f;", "out0[0] = scratch[-1 + zero];", "scratch[64 + zero] = 0.0f;",
    "shared[8 + zero] = 0.0f;", "own[4 + zero] = 0.0f; out0[0] = own[zero];",
};
enum { STRAYED = 23, PARAMETERS = 4, ROW = 64 * sizeof(float) };

static cuda_function compile_statement(const cuda_device *d, const char *deed)
{
    text t = { .at = NULL };
    pons_error err = PONS_ERROR_INIT;
    cuda_function function;
    cuda_module module;
    char *binary;
    size_t size;

    text_add(&t, "%s", text_preamble);
    text_add(&t, "KERNEL stray(const float *in0 /* 64 */, const float *in1 /* 64 */, "
             "float *out0 /* 64 */, float *scratch /* 64 */)\n{\n"
             "    __shared__ float shared[8];\n    float own[4] = { 0.0f };\n"
             "    const int zero = (int)in0[0];\n    if (threadIdx.x != 0)\n        return;\n"
             "    %s\n}\n", deed);
    ck_assert_msg(cuda_compile(&d->compiler, t.at, d->architecture, &binary, &size, NULL, &err)
                  == PONS_OK, "%s", err.text);
    ck_assert_int_eq(d->driver.module_load(&module, binary), 0);
    ck_assert_int_eq(d->driver.function(&function, module, "stray"), 0);
    free(binary);
    text_free(&t);
    return function;
}

static void run_statement(const char *deed)
{
    device d = card();
    const cuda_device *c = d.handle;
    cuda_function function = compile_statement(c, deed);
    cuda_stream stream = c->stream[PONS_STREAM_KERNELS];
    cuda_address memory, at[PARAMETERS];
    void *parameter[PARAMETERS];

    ck_assert_int_eq(c->driver.allocate(&memory, PARAMETERS * ROW), 0);
    ck_assert_int_eq(c->driver.clear(memory, 0, PARAMETERS * ROW), 0);
    ck_assert_int_eq(c->driver.stream_wait(NULL), 0);
    for (int i = 0; i < PARAMETERS; i++) {
        at[i] = memory + (cuda_address)i * ROW;
        parameter[i] = &at[i];
    }
    ck_assert_int_eq(c->driver.launch(function, 1, 1, 1, CUDA_THREADS, 1, 1, 0, stream, parameter,
                                      NULL), 0);
    ck_assert_int_eq(c->driver.stream_wait(stream), 0);
    ck_assert_int_eq(c->driver.free(memory), 0);
    cuda_operations.close(d.handle);
}

START_TEST(a_kernel_may_touch_its_parameters)
{
    run_statement(statements[0]);
}
END_TEST

START_TEST(a_kernel_access_out_of_bounds_is_found)
{
    run_statement(statements[_i]);
}
END_TEST

/* Options that the sanitizers read: the exit status of a process whose kernel fails. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "exitcode=23"; }
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "exitcode=23"; }

/* ---- toolkits -------------------------------------------------------------------------------- */

/* A library for each CUDA: 11, 12, 13, and one whose name has no version. */
static const char *const toolkits[] = {
    "tests/fake/.libs/libnvrtc.so.13", "tests/fake/.libs/libcublasLt.so.13",
    "tests/fake/.libs/libcuda.so.1", "libm.so.6"
};
enum { TOOLKITS = sizeof toolkits / sizeof *toolkits };

/*
 * Bits of 'there' are the installed libraries, those of 'refused' the ones that do not serve.
 * 'taken' is the CUDA version of the selected library, or 0. 'said' has the reasons, here the
 * versions, in the order of the search.
 */
typedef struct machine {
    int driver;
    unsigned there, refused;
    int taken;
    const char *said;
} machine;

static const machine machines[] = {
    { 13, 0xf, 0, 13, "" }, { 12, 0xf, 0, 12, "" }, { 11, 0xf, 0, 11, "" }, { 13, 0xb, 0, 12, "" },
    { 13, 0x9, 0, 11, "" }, { 12, 0xc, 0, 13, "" }, { 10, 0x6, 0, 12, "" },
    { 13, 0x8, 0, TOOLKIT_LATER, "" }, { 99, 0xf, 0, TOOLKIT_LATER, "" }, { 99, 0x7, 0, 13, "" },
    { 0, 0xf, 0, 11, "" }, { 13, 0, 0, 0, "" }, { 13, 0xf, 0x4, 12, "13" },
    { 13, 0x5, 0x4, 11, "13" }, { 12, 0xf, 0x3, 13, "12; 11" },
    { 13, 0xf, 0xf, 0, "13; 12; 11; 14" }, { 13, 0x8, 0x8, 0, "14" },
};
enum { MACHINES = sizeof machines / sizeof *machines };

static bool serves(void *context, const char *name, void *library, char *why, size_t size)
{
    int i = 0;

    ck_assert_ptr_nonnull(library);
    while (strcmp(name, toolkits[i]) != 0)
        i++;
    snprintf(why, size, "%d", TOOLKIT_OLDEST + i);
    return !(*(const unsigned *)context >> i & 1);
}

START_TEST(the_newest_toolkit_that_the_driver_supports_is_selected)
{
    unsigned refused = machines[_i].refused;
    toolkit_search search = { .flags = RTLD_LOCAL, .serves = serves, .context = &refused };
    toolkit_file list[TOOLKITS + 1] = { { 0, NULL } };
    void *expected = NULL, *found;

    for (int i = 0; i < TOOLKITS; i++) {
        bool there = machines[_i].there >> i & 1;
        list[i] = (toolkit_file){ TOOLKIT_OLDEST + i, there ? toolkits[i] : "/nowhere/at/all" };
        if (list[i].cuda == machines[_i].taken)
            expected = dlopen(toolkits[i], RTLD_NOW);
    }
    found = toolkit_open(list, machines[_i].driver, &search);
    ck_assert_ptr_eq(found, expected);
    ck_assert_int_eq(found != NULL, machines[_i].taken != 0);
    ck_assert_str_eq(search.refused, machines[_i].said);
}
END_TEST

START_TEST(a_library_with_two_names_has_one_reason)
{
    const toolkit_file list[] = { { 13, toolkits[0] }, { 13, toolkits[0] }, { 0, NULL } };
    unsigned refused = 0xf;
    toolkit_search search = { .flags = RTLD_LOCAL, .serves = serves, .context = &refused };

    ck_assert_ptr_null(toolkit_open(list, 13, &search));
    ck_assert_str_eq(search.refused, "11");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("cuda");
    bool guarded = dlsym(RTLD_DEFAULT, "__asan_init") != NULL && !fakes_are_away();

    setenv("FAKE_CUBLAS", "start", 1); /* so that our kernels compute products, too */
    if (!fakes_open())
        return 1;
    tcase_add_test(c, every_op_case_agrees_on_the_gpu);
    tcase_add_test(c, every_op_case_agrees_in_bf16_on_the_gpu);
    tcase_add_loop_test(c, direct_convolutions_of_every_tiling_agree, 0, 2);
    tcase_add_test(c, a_kernel_runs_directly_after_its_preparation);
    tcase_add_test(c, a_timer_excludes_the_host_before_the_launch);
    tcase_add_test(c, a_synchronize_while_a_timer_runs_returns);
    fakes_add_loop_test(c, the_newest_toolkit_that_the_driver_supports_is_selected,
                        0, MACHINES);
    fakes_add_test(c, a_library_with_two_names_has_one_reason);
    tcase_add_test(c, a_kernel_may_touch_its_parameters);
    tcase_add_loop_exit_test(c, a_kernel_access_out_of_bounds_is_found, STRAYED, 1,
                             guarded ? sizeof statements / sizeof *statements : 1);
    return suite_run();
}
