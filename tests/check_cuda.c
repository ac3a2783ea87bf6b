/*
 * check_cuda.c - the kernels that the cuda device writes, compiled by the host's compiler and run
 * by an executor in place of the driver: the op table against the reference in double, and direct
 * convolutions in tiles that it is too small for.
 *
 * What runs is the text that NVRTC compiles, through the calls that the driver gets. On a real card
 * it is compiled by NVRTC and runs there, products by cuBLASLt.
 */
#include "cuda/cuda.h"
#include "cuda/codegen/codegen.h"
#include "convolutions.h"
#include "fakes.h"
#include "graph/ir/build.h"
#include "graph/program/program_internal.h"
#include "graph/ir/leaf.h"
#include "graph/storage/staging.h"
#include "graph/reference/reference.h"
#include "op_table.h"
#include "suite.h"
#include "tolerance.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const pons_step_key step_key = { 7, 3, 2 };

/* Left to the core: sums over replicas, and the functions of plugins. */
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

/* All of a batch is prepared before any of it runs, so that it is one translation unit. */
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

START_TEST(every_case_agrees)
{
    table_agrees(PONS_F32, FLOAT_OF_LARGEST, 1);
}
END_TEST

START_TEST(every_case_agrees_in_16_bits)
{
    table_agrees(PONS_BF16, BF16_OF_LARGEST, 1);
}
END_TEST

/* Nothing is asked of the card between both: no other call waits for the tables. */
START_TEST(a_kernel_that_was_just_prepared_can_run)
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

    ck_assert_int_eq(mirror_write(&d, x, numbers, sizeof numbers, &err), PONS_OK);
    ck_assert_int_eq(cuda_prepare(d.handle, &request, &k, &supported, &err), PONS_OK);
    ck_assert(supported);
    ck_assert_msg(k.run(&k, &call, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(mirror_read(&d, found, y, sizeof found, &err), PONS_OK);
    ck_assert_mem_eq(found, expected, sizeof found);
    k.free(&k);
    cuda_operations.memory.release(d.handle, x, sizeof numbers);
    cuda_operations.memory.release(d.handle, y, sizeof found);
    cuda_operations.close(d.handle);
}
END_TEST

/* ---- time ------------------------------------------------------------------------------------ */

/* Seconds of a small kernel that this process runs so long after the time begins. */
static double time_late(const device *d, const pons_kernel *k, const pons_call *call, useconds_t us)
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

/* The least of several times counts: other work may pause a made-up card. */
START_TEST(launches_of_the_host_are_no_part_of_a_time)
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
        least = fmin(least, time_late(&d, &k, &call, 10000));
    ck_assert_msg(least < 0.005, "%g s", least);
    k.free(&k);
    cuda_operations.memory.release(d.handle, x, 16);
    cuda_operations.memory.release(d.handle, y, 16);
    cuda_operations.close(d.handle);
}
END_TEST

START_TEST(who_waits_in_a_time_is_not_held_for_ever)
{
    device d = card();
    pons_error err = PONS_ERROR_INIT;
    double seconds;

    ck_assert_int_eq(cuda_operations.profiling.timer_start(d.handle, &err), PONS_OK);
    ck_assert_int_eq(cuda_operations.streams.synchronize(d.handle, &err), PONS_OK);
    ck_assert_int_eq(cuda_operations.profiling.timer_stop(d.handle, &seconds, &err), PONS_OK);
    /* One that never ends keeps nobody from closing. */
    ck_assert_int_eq(cuda_operations.profiling.timer_start(d.handle, &err), PONS_OK);
    cuda_operations.close(d.handle);
}
END_TEST

/* ---- tiles of direct convolutions ------------------------------------------------------------ */

/*
 * What the op table is too small for. A thread has several places of the result where there are
 * still 528 blocks then; a prime number of channels is as many tiles, so that takes few places. The
 * text that is written has the first word and not the second: else a row is of no use. Types are
 * the test's.
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
    cuda_source s;
    const char *text;

    ck_assert_msg(cuda_source_make(&s, request), "%s", of->name);
    text = s.launch[0].body.at;
    ck_assert_msg(strstr(text, of->has) != NULL, "%s: no '%s' in%s", of->name, of->has, text);
    ck_assert_msg(strstr(text, of->lacks) == NULL, "%s: '%s' in%s", of->name, of->lacks, text);
    cuda_source_free(&s);
}

static pons_node *result_of(pons_graph *g, const pons_request *r, pons_node *a, pons_node *b)
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
    *o = (op_graph){ .g = graph_new(true, -1), .random = 5, .leaf_count = 2 };
    for (int i = 0; i < 2; i++)
        o->leaf[i] = (op_leaf){ .low = -1, .high = 1,
                                .node = node_input(o->g, i == 0 ? "a" : "b", PONS_F32,
                                                   r.input[i].shape) };
    o->y = result_of(o->g, &r.request, o->leaf[0].node, o->leaf[1].node);
    ck_assert_msg(pons_graph_status(o->g, &err) == PONS_OK, "%s: %s", x->name, err.text);
    x->expected = op_graph_evaluate(o, &t->wide, t->storage, &err);
    ck_assert_msg(x->expected != NULL, "%s: %s", x->name, err.text);
    x->found = evaluation_new(o->g, &t->card, t->storage, &err);
    ck_assert_msg(x->found != NULL, "%s: %s", x->name, err.text);
    ck_assert_str_eq(evaluation_implementation(x->found, o->y), "own");
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

/* ---- memory of others, in a build with AddressSanitizer -------------------------------------- */

/*
 * Four parameters of 64 numbers that lie beside each other, and what a kernel does with them: all
 * of the first is right, each of the others goes one step too far.
 */
static const char *const deeds[] = {
    "out0[63] = in0[63] + in1[0] + scratch[63] + shared[7] + own[3];",
    "out0[0] = in0[64 + zero];", "out0[0] = in1[-1 + zero];", "out0[64 + zero] = 0.0f;",
    "out0[-1 + zero] = 0.0f;", "out0[0] = scratch[-1 + zero];", "scratch[64 + zero] = 0.0f;",
    "shared[8 + zero] = 0.0f;", "own[4 + zero] = 0.0f; out0[0] = own[zero];",
};
enum { STRAYED = 23, PARAMETERS = 4, ROW = 64 * sizeof(float) };

static cuda_function compile_deed(const cuda_device *d, const char *deed)
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

static void do_deed(const char *deed)
{
    device d = card();
    const cuda_device *c = d.handle;
    cuda_function function = compile_deed(c, deed);
    cuda_stream stream = c->queue[PONS_STREAM_KERNELS];
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
    do_deed(deeds[0]);
}
END_TEST

START_TEST(a_kernel_that_leaves_its_memory_is_found)
{
    do_deed(deeds[_i]);
}
END_TEST

/* Read by the sanitizers: what a kernel's process ends with. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "exitcode=23"; }
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "exitcode=23"; }

/* ---- toolkits -------------------------------------------------------------------------------- */

/* A library for each CUDA, any: 11, 12, 13, and one that the name does not tell of. */
static const char *const toolkits[] = {
    "tests/fake/.libs/libnvrtc.so.13", "tests/fake/.libs/libcublasLt.so.13",
    "tests/fake/.libs/libcuda.so.1", "libm.so.6"
};
enum { TOOLKITS = sizeof toolkits / sizeof *toolkits };

/*
 * 'there': a bit of each that is installed; 'refused': of each that does not serve. taken: the CUDA
 * of one; 0: none. said: the reasons, which are their CUDAs, in the order in which they were asked.
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
    { 13, 0x8, 0, CUDA_LATER, "" }, { 99, 0xf, 0, CUDA_LATER, "" }, { 99, 0x7, 0, 13, "" },
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
    snprintf(why, size, "%d", CUDA_OLDEST + i);
    return !(*(const unsigned *)context >> i & 1);
}

START_TEST(the_newest_toolkit_is_taken_that_serves_and_is_not_newer_than_the_driver)
{
    unsigned refused = machines[_i].refused;
    cuda_search search = { .flags = RTLD_LOCAL, .serves = serves, .context = &refused };
    cuda_toolkit list[TOOLKITS + 1] = { { 0, NULL } };
    void *expected = NULL, *found;

    for (int i = 0; i < TOOLKITS; i++) {
        bool there = machines[_i].there >> i & 1;
        list[i] = (cuda_toolkit){ CUDA_OLDEST + i, there ? toolkits[i] : "/nowhere/at/all" };
        if (list[i].cuda == machines[_i].taken)
            expected = dlopen(toolkits[i], RTLD_NOW);
    }
    found = cuda_toolkit_open(list, machines[_i].driver, &search);
    ck_assert_ptr_eq(found, expected);
    ck_assert_int_eq(found != NULL, machines[_i].taken != 0);
    ck_assert_str_eq(search.refused, machines[_i].said);
}
END_TEST

START_TEST(a_library_of_two_names_is_refused_in_one_word)
{
    const cuda_toolkit list[] = { { 13, toolkits[0] }, { 13, toolkits[0] }, { 0, NULL } };
    unsigned refused = 0xf;
    cuda_search search = { .flags = RTLD_LOCAL, .serves = serves, .context = &refused };

    ck_assert_ptr_null(cuda_toolkit_open(list, 13, &search));
    ck_assert_str_eq(search.refused, "11");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("cuda");
    bool guarded = dlsym(RTLD_DEFAULT, "__asan_init") != NULL && !fakes_are_away();

    setenv("FAKE_CUBLAS", "start", 1); /* so that products are our own, too */
    if (!fakes_open())
        return 1;
    tcase_add_test(c, every_case_agrees);
    tcase_add_test(c, every_case_agrees_in_16_bits);
    tcase_add_loop_test(c, direct_convolutions_of_every_tiling_agree, 0, 2);
    tcase_add_test(c, a_kernel_that_was_just_prepared_can_run);
    tcase_add_test(c, launches_of_the_host_are_no_part_of_a_time);
    tcase_add_test(c, who_waits_in_a_time_is_not_held_for_ever);
    fakes_add_loop_test(c, the_newest_toolkit_is_taken_that_serves_and_is_not_newer_than_the_driver,
                        0, MACHINES);
    fakes_add_test(c, a_library_of_two_names_is_refused_in_one_word);
    tcase_add_test(c, a_kernel_may_touch_its_parameters);
    tcase_add_loop_exit_test(c, a_kernel_that_leaves_its_memory_is_found, STRAYED, 1,
                             guarded ? sizeof deeds / sizeof *deeds : 1);
    return suite_run();
}
