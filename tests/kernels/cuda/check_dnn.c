/*
 * check_dnn.c - convolutions of the cuda device by cuDNN, whose library is that of tests/fake:
 * which convolutions it computes, with which engine, their values, and the requests that it
 * refuses. On a real GPU the library selects its engines itself, and only the values are compared.
 */
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/reference/reference.h"
#include "graph/storage/staging.h"
#include "support/graph/card_trial.h"
#include "support/graph/fakes.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <string.h>

static int execution_count(int engine)
{
    int (*count)(int) = NULL;

    *(void **)&count = fakes_function("fake_dnn_executed");
    ck_assert_ptr_nonnull(count);
    return count(engine);
}

static device gpu; /* open during each test, with the settings that most of them need */

static void open_gpu(void) { gpu = gpu_open(&(pons_device_settings){ .count = 1 }); }
static void close_gpu(void) { cuda_operations.close(gpu.handle); }

/* ---- one convolution in three directions ----------------------------------------------------- */

typedef struct shape_case {
    const char *name;
    int64_t x[5], kernel[3], out;      /* [N, D, H, W, I], kernel extents, O                      */
    pons_convolution c;
    bool taken;                        /* cuDNN supports it                                       */
    bool common;                       /* every GPU has an engine for it                          */
} shape_case;

static const shape_case shapes[] = {
    { "3x3x3", { 2, 5, 4, 6, 8 }, { 3, 3, 3 }, 16,
      { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, 1 }, true, true },
    { "strided", { 1, 6, 5, 7, 16 }, { 3, 3, 3 }, 8,
      { { 2, 1, 2 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, 1 }, true, true },
    { "1x1x1", { 2, 3, 2, 3, 8 }, { 1, 1, 1 }, 24,
      { { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, { 0, 0, 0 }, 1 }, true, true },
    { "unequal pads, dilated", { 1, 5, 6, 5, 8 }, { 2, 3, 2 }, 8,
      { { 1, 2, 1 }, { 1, 1, 2 }, { 0, 1, 2 }, { 1, 0, 1 }, 1 }, true, false },
    { "groups", { 1, 3, 4, 3, 16 }, { 3, 1, 3 }, 16,
      { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 0, 1 }, { 1, 0, 1 }, 2 }, true, false },
    { "2D", { 3, 1, 5, 7, 8 }, { 1, 3, 3 }, 8,
      { { 1, 2, 2 }, { 1, 1, 1 }, { 0, 1, 1 }, { 0, 1, 1 }, 1 }, true, false },
    { "one channel in", { 2, 3, 4, 3, 1 }, { 3, 3, 3 }, 8,
      { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, 1 }, false, false },
    { "12 channels out", { 2, 3, 4, 3, 8 }, { 3, 3, 3 }, 12,
      { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, 1 }, false, false },
    { "groups of four", { 1, 3, 4, 3, 16 }, { 3, 1, 3 }, 16,
      { { 1, 1, 1 }, { 1, 1, 1 }, { 1, 0, 1 }, { 1, 0, 1 }, 4 }, false, false },
};
enum { SHAPES = sizeof shapes / sizeof *shapes, NODES = 3 };

/* A smaller version of the first shape, as a request. */
static const pons_tensor plain_tensors[] = {
    { PONS_F32, { 5, { 1, 4, 4, 4, 8 } } }, { PONS_F32, { 5, { 8, 3, 3, 3, 8 } } },
    { PONS_F32, { 5, { 1, 4, 4, 4, 8 } } },
};
static const pons_request plain_request = {
    .kind = PONS_KERNEL_CONVOLUTION, .name = "y", .input_count = 2, .output_count = 1,
    .input = plain_tensors, .output = plain_tensors + 2, .attributes = &shapes[0].c
};

typedef struct trio {
    pons_graph *g;
    pons_node *x, *w, *dy, *node[NODES];
} trio;

static trio build_convolutions(const shape_case *s)
{
    trio t = { .g = graph_new(true) };
    pons_shape x = { 5, { s->x[0], s->x[1], s->x[2], s->x[3], s->x[4] } };
    pons_shape w = { 5, { s->out, s->kernel[0], s->kernel[1], s->kernel[2],
                          s->x[4] / s->c.groups } };

    t.x = node_input(t.g, "x", PONS_F32, x);
    t.w = node_input(t.g, "w", PONS_F32, w);
    t.node[0] = pons_convolve(t.g, t.x, t.w, &s->c);
    t.dy = node_input(t.g, "dy", PONS_F32, t.node[0]->shape);
    t.node[1] = pons_convolve_input_gradient(t.g, t.dy, t.w, &s->c, s->x + 1);
    t.node[2] = pons_convolve_weight_gradient(t.g, t.x, t.dy, &s->c, s->kernel);
    return t;
}

static evaluation *filled_evaluation(const trio *t, const device *d, pons_type storage)
{
    return evaluation_filled(t->g, d, storage, 3, (pons_node *[]){ t->x, t->w, t->dy });
}

static evaluation *evaluate(const trio *t, const device *d, pons_type storage)
{
    evaluation *e = filled_evaluation(t, d, storage);

    expect_run(e);
    return e;
}

/* A real library may lack an engine for shapes that no network has. */
static bool is_computed_by(const shape_case *s, const char *by)
{
    if (fakes_are_away() && s->taken && !s->common && strcmp(by, "nvrtc") == 0) {
        printf("%s: no engine on this card\n", s->name);
        return true;
    }
    return strcmp(by, s->taken ? "cudnn" : "nvrtc") == 0;
}

static void case_agrees(const shape_case *s, const device *d, pons_type storage, double tolerance)
{
    device wide;
    trio t = build_convolutions(s);
    evaluation *expected, *found;

    device_reference(&wide, true);
    expected = evaluate(&t, &wide, storage);
    found = evaluate(&t, d, storage);
    for (int k = 0; k < NODES; k++) {
        const char *by = evaluation_implementation(found, t.node[k]);
        ck_assert_msg(is_computed_by(s, by), "%s, direction %d: by '%s'", s->name, k, by);
        expect_near(s->name, t.node[k], expected, found, tolerance);
    }
    evaluation_free(expected);
    evaluation_free(found);
    graph_free(t.g);
}

static void all_cases_agree(pons_type storage, double tolerance)
{
    for (int i = 0; i < SHAPES; i++)
        case_agrees(&shapes[i], &gpu, storage, tolerance);
}

START_TEST(multiples_of_8_channels_are_computed_by_cudnn)
{
    all_cases_agree(PONS_F32, FLOAT_OF_LARGEST);
}
END_TEST

START_TEST(multiples_of_8_channels_are_computed_by_cudnn_in_bf16)
{
    all_cases_agree(PONS_BF16, BF16_OF_LARGEST);
}
END_TEST

START_TEST(multiples_of_8_channels_are_computed_by_cudnn_in_fp16)
{
    all_cases_agree(PONS_F16, BF16_OF_LARGEST);
}
END_TEST

/* ---- engines --------------------------------------------------------------------------------- */

/*
 * The argument is an engine of the made-up library. Its order is 31 to 37, 5, 58; engine 30 is used
 * where none of them works.
 */
static void expect_engine(const pons_device_settings *settings, pons_type storage, int engine)
{
    device d = gpu_open(settings);
    trio t = build_convolutions(&shapes[0]);
    int before = execution_count(engine);

    evaluation_free(evaluate(&t, &d, storage));
    ck_assert_int_eq(execution_count(engine) - before, NODES);
    graph_free(t.g);
    cuda_operations.close(d.handle);
}

START_TEST(the_first_engine_that_keeps_the_precision_is_selected)
{
    expect_engine(&(pons_device_settings){ .count = 1 }, PONS_F32, 35);
}
END_TEST

START_TEST(equal_bits_need_a_deterministic_engine)
{
    const pons_device_settings equal = { .count = 1, .deterministic = true };

    expect_engine(&equal, PONS_F32, 58);
    expect_engine(&equal, PONS_BF16, 5);
}
END_TEST

static int64_t engine_of(device d, const pons_request *request, const cudnn_constraints *wishes)
{
    const cudnn_library *dnn = &((cuda_device *)d.handle)->dnn;
    pons_error err = PONS_ERROR_INIT;
    cudnn_convolution c;
    cudnn_plan plan;
    int64_t engine;

    ck_assert(cudnn_supports(request, &c));
    ck_assert_int_eq(cudnn_plan_make(dnn, &c, wishes, &plan, &err), PONS_OK);
    engine = plan.engine;
    cudnn_plan_free(&plan);
    return engine;
}

START_TEST(tensor_cores_are_used_for_tf32_only)
{
    const cudnn_constraints wishes = { .architecture = 90, .deterministic = true, .workspace
        = 1 << 20 };
    pons_request rounded = plain_request;

    rounded.tf32 = true;
    ck_assert_int_eq(engine_of(gpu, &plain_request, &wishes), 58);
    ck_assert_int_eq(engine_of(gpu, &rounded, &wishes), 5);
    ((cuda_device *)gpu.handle)->dnn.version = 91002; /* a version that is wrong */
    ck_assert_int_eq(engine_of(gpu, &rounded, &wishes), 58);
}
END_TEST

/* The made-up library has two of the engines with known errors. */
static const struct {
    int architecture;
    pons_kernel_kind kind;
    pons_type type;
    bool deterministic;
    size_t workspace;
    int64_t engine;
} wrong[] = {
    { 90, PONS_KERNEL_CONVOLUTION, PONS_BF16, true, 200, 5 },
    { 86, PONS_KERNEL_CONVOLUTION, PONS_BF16, true, 200, 30 },
    { 86, PONS_KERNEL_CONVOLUTION, PONS_BF16, false, 200, 5 },
    { 86, PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT, PONS_BF16, true, 200, 5 },
    { 90, PONS_KERNEL_CONVOLUTION, PONS_F32, true, 1000, 58 },
    { 120, PONS_KERNEL_CONVOLUTION, PONS_F32, true, 1000, 30 },
};

START_TEST(engines_that_are_wrong_on_a_gpu_are_excluded)
{
    const cudnn_constraints wishes = { .architecture = wrong[_i].architecture,
                                       .deterministic = wrong[_i].deterministic,
                                       .workspace = wrong[_i].workspace };
    pons_request request = plain_request;
    pons_tensor tensor[3];

    memcpy(tensor, plain_tensors, sizeof tensor);
    for (int i = 0; i < 3; i++)
        tensor[i].type = wrong[_i].type;
    request.kind = wrong[_i].kind;
    request.input = tensor;
    request.output = tensor + 2;
    ck_assert_int_eq(engine_of(gpu, &request, &wishes), wrong[_i].engine);
}
END_TEST

START_TEST(the_workspace_of_an_engine_is_bounded)
{
    const pons_device_settings small = { .count = 1, .deterministic = true,
                                         .workspace_limit = 999 };

    expect_engine(&small, PONS_F32, 30);
}
END_TEST

START_TEST(a_known_bad_version_is_excluded)
{
    device d;
    trio deep = build_convolutions(&shapes[0]), flat = build_convolutions(&shapes[5]);
    evaluation *e;

    setenv("FAKE_CUDNN", "version=91002", 1);
    d = gpu_open(&(pons_device_settings){ .count = 1 });
    e = evaluate(&deep, &d, PONS_BF16);
    ck_assert_str_eq(evaluation_implementation(e, deep.node[0]), "nvrtc");
    evaluation_free(e);
    e = evaluate(&deep, &d, PONS_F32);
    ck_assert_str_eq(evaluation_implementation(e, deep.node[0]), "cudnn");
    evaluation_free(e);
    e = evaluate(&flat, &d, PONS_BF16);
    ck_assert_str_eq(evaluation_implementation(e, flat.node[0]), "cudnn");
    evaluation_free(e);
    graph_free(deep.g);
    graph_free(flat.g);
    cuda_operations.close(d.handle);
}
END_TEST

/* ---- autotuning ------------------------------------------------------------------------------ */

static pons_kernel prepared(const device *d, const pons_request *request)
{
    pons_error err = PONS_ERROR_INIT;
    pons_kernel k = { .run = NULL };
    bool supported;

    ck_assert_msg(cudnn_prepare(d->handle, request, &k, &supported, &err) == PONS_OK, "%s",
                  err.text);
    ck_assert(supported);
    return k;
}

/* The choice for the plain request: its workspace and its name, stored with the workspace limit. */
static void expect_choice_within(const device *d, notes *n, size_t workspace, const char *choice,
                                 size_t room)
{
    const pons_autotune_cache tuning = { n, find_note, keep_note };
    char kept[PONS_AUTOTUNE_ENTRY_SIZE] = "";
    int before = fakes_left_over();
    pons_kernel k;

    cuda_operations.autotune(d->handle, &tuning);
    k = prepared(d, &plain_request);
    ck_assert_uint_eq(k.scratch_size, workspace);
    ck_assert_int_eq(n->count, 1);
    if (choice[0] != '\0')
        snprintf(kept, sizeof kept, "%s within %zu", choice, room);
    ck_assert_str_eq(n->note[0].choice, kept);
    k.free(&k);
    ck_assert_int_le(fakes_left_over(), before + 2); /* the device keeps two events */
    cuda_operations.autotune(d->handle, NULL);
}

static void expect_choice(const device *d, notes *n, size_t workspace, const char *choice)
{
    expect_choice_within(d, n, workspace, choice, ((cuda_device *)d->handle)->workspace_limit);
}

#define PLAIN_KEY "convolution fp32 x 1 4 4 4 8 w 8 3 3 3 8 stride 1 1 1 dilation 1 1 1 "         \
                  "low 1 1 1 high 1 1 1 groups 1"
#define TIMES "takes-35=4000 takes-58=3000 takes-30=2000 knob-58=1000"

START_TEST(the_fastest_engine_is_selected_and_stored)
{
    notes n = { .count = 0 };

    setenv("FAKE_CUDNN", TIMES, 1);
    expect_choice(&gpu, &n, 30000, "engine 58, knobs 2=2");
    ck_assert_str_eq(n.note[0].key, PLAIN_KEY);
    ck_assert_double_eq_tol(n.note[0].seconds, 1, 0.5);
}
END_TEST

START_TEST(an_engine_with_a_large_workspace_is_not_selected)
{
    device d = gpu_open(&(pons_device_settings){ .count = 1, .workspace_limit = 29999 });
    notes n = { .count = 0 };

    setenv("FAKE_CUDNN", TIMES, 1);
    expect_choice(&d, &n, 0, "engine 30");
    cuda_operations.close(d.handle);
}
END_TEST

START_TEST(a_known_bad_engine_is_not_selected)
{
    notes n = { .count = 0 };
    int before = execution_count(58);

    ((cuda_device *)gpu.handle)->architecture = 120;
    setenv("FAKE_CUDNN", TIMES, 1);
    expect_choice(&gpu, &n, 0, "engine 30");
    ck_assert_int_eq(execution_count(58), before);
}
END_TEST

START_TEST(an_engine_that_fails_is_not_selected)
{
    notes n = { .count = 0 };

    setenv("FAKE_CUDNN", TIMES " refuses-58", 1);
    expect_choice(&gpu, &n, 0, "engine 30");
}
END_TEST

START_TEST(if_no_engine_runs_the_first_of_cudnn_is_selected)
{
    notes n = { .count = 0 };

    setenv("FAKE_CUDNN", "refuses-30 refuses-35 refuses-58", 1);
    expect_choice(&gpu, &n, 512, "");
    ck_assert(isnan(n.note[0].seconds));
    expect_choice(&gpu, &n, 512, "");
    ck_assert_int_eq(n.kept, 1);
}
END_TEST

START_TEST(a_single_candidate_is_selected_without_timing)
{
    device d = gpu_open(&(pons_device_settings){ .count = 1, .workspace_limit = 1 });
    notes n = { .count = 0 };
    int before = execution_count(30);

    expect_choice(&d, &n, 0, "engine 30");
    ck_assert(isnan(n.note[0].seconds));
    ck_assert_int_eq(execution_count(30), before);
    cuda_operations.close(d.handle);
}
END_TEST

START_TEST(without_memory_for_a_workspace_other_engines_are_timed)
{
    notes n = { .count = 0 };

    setenv("FAKE_CUDNN", TIMES, 1);
    setenv("FAKE_CUDA_MOST", "8192", 1);
    expect_choice(&gpu, &n, 0, "engine 30");
}
END_TEST

START_TEST(without_memory_for_operands_the_first_engine_is_selected)
{
    notes n = { .count = 0 };

    setenv("FAKE_CUDNN", TIMES, 1);
    setenv("FAKE_CUDA_MOST", "4096", 1);
    expect_choice(&gpu, &n, 512, "");
}
END_TEST

START_TEST(a_stored_engine_is_reused_without_timing)
{
    notes n = { .count = 0 };
    int before;

    setenv("FAKE_CUDNN", TIMES, 1);
    expect_choice(&gpu, &n, 30000, "engine 58, knobs 2=2");
    setenv("FAKE_CUDNN", "knob-58=9000", 1);
    before = execution_count(58) + execution_count(35) + execution_count(30);
    expect_choice(&gpu, &n, 30000, "engine 58, knobs 2=2");
    ck_assert_int_eq(execution_count(58) + execution_count(35) + execution_count(30), before);
    ck_assert_int_eq(n.kept, 1);
}
END_TEST

START_TEST(a_stored_engine_that_is_missing_is_replaced)
{
    device d = gpu_open(&(pons_device_settings){ .count = 1, .workspace_limit = 29999 });
    notes n = { .count = 0 };

    setenv("FAKE_CUDNN", TIMES, 1);
    expect_choice(&d, &n, 0, "engine 30");
    strcpy(n.note[0].choice, "engine 58, knobs 2=2 within 30000");
    expect_choice(&d, &n, 0, "engine 30");
    ck_assert_int_eq(n.kept, 2);
    cuda_operations.close(d.handle);
}
END_TEST

START_TEST(an_engine_of_a_smaller_workspace_is_replaced)
{
    device d = gpu_open(&(pons_device_settings){ .count = 1, .workspace_limit = 29999 });
    notes n = { .count = 0 };

    setenv("FAKE_CUDNN", TIMES, 1);
    expect_choice(&d, &n, 0, "engine 30");
    ((cuda_device *)d.handle)->workspace_limit = 30000;
    expect_choice(&d, &n, 30000, "engine 58, knobs 2=2");
    ck_assert_int_eq(n.kept, 2);
    cuda_operations.close(d.handle);
}
END_TEST

START_TEST(a_stored_engine_that_fits_a_smaller_workspace_is_reused)
{
    size_t room = ((cuda_device *)gpu.handle)->workspace_limit;
    notes n = { .count = 0 };

    setenv("FAKE_CUDNN", TIMES, 1);
    expect_choice(&gpu, &n, 30000, "engine 58, knobs 2=2");
    ((cuda_device *)gpu.handle)->workspace_limit = 30000;
    expect_choice_within(&gpu, &n, 30000, "engine 58, knobs 2=2", room);
    ck_assert_int_eq(n.kept, 1);
}
END_TEST

/* A replica may have a larger workspace than the first one. */
START_TEST(a_replica_without_cache_takes_the_engine_of_a_smaller_workspace)
{
    notes n = { .count = 1 };
    const pons_autotune_cache tuning = { &n, find_note, NULL };
    pons_kernel k;

    strcpy(n.note[0].key, PLAIN_KEY);
    strcpy(n.note[0].choice, "engine 58, knobs 2=2 within 30000");
    cuda_operations.autotune(gpu.handle, &tuning);
    k = prepared(&gpu, &plain_request);
    ck_assert_uint_eq(k.scratch_size, 30000);
    k.free(&k);
}
END_TEST

START_TEST(a_replica_without_cache_times_no_engine)
{
    notes n = { .count = 0 };
    const pons_autotune_cache tuning = { &n, find_note, NULL };
    int before = execution_count(35) + execution_count(58) + execution_count(30);
    pons_kernel k;

    cuda_operations.autotune(gpu.handle, &tuning);
    k = prepared(&gpu, &plain_request);
    ck_assert_uint_eq(k.scratch_size, 512);
    ck_assert_int_eq(execution_count(35) + execution_count(58) + execution_count(30), before);
    k.free(&k);
}
END_TEST

START_TEST(each_shape_and_direction_has_an_autotune_entry)
{
    notes n = { .count = 0 };
    const pons_autotune_cache tuning = { &n, find_note, keep_note };
    trio t = build_convolutions(&shapes[0]);

    cuda_operations.autotune(gpu.handle, &tuning);
    evaluation_free(evaluate(&t, &gpu, PONS_BF16));
    ck_assert_int_eq(n.count, NODES);
    evaluation_free(evaluate(&t, &gpu, PONS_BF16));
    ck_assert_int_eq(n.kept, NODES);
    graph_free(t.g);
}
END_TEST

static int lose_context(cuda_event e)
{
    return 700; /* an illegal address: the context cannot run anything after it */
}

START_TEST(a_gpu_lost_during_autotuning_ends_with_one_line)
{
    int (*wait)(cuda_event) = ((cuda_device *)gpu.handle)->driver.event_wait;
    notes n = { .count = 0 };
    const pons_autotune_cache tuning = { &n, find_note, keep_note };
    pons_error err = PONS_ERROR_INIT;
    pons_kernel k = { .run = NULL };
    bool supported;

    ((cuda_device *)gpu.handle)->driver.event_wait = lose_context;
    cuda_operations.autotune(gpu.handle, &tuning);
    ck_assert_int_eq(cudnn_prepare(gpu.handle, &plain_request, &k, &supported, &err),
                     PONS_DEVICE);
    ck_assert_ptr_nonnull(strstr(err.text, "cannot time the engines for 'y': cannot run kernels"));
    ck_assert_ptr_nonnull(strstr(err.text, "hint: --set device.autotune=no"));
    ck_assert_int_eq(n.count, 0);
    ((cuda_device *)gpu.handle)->driver.event_wait = wait;
    cuda_operations.streams.synchronize(gpu.handle, &err);
}
END_TEST

/* ---- addresses ------------------------------------------------------------------------------- */

enum { WEIGHTS = 8 * 27 * 8, NUMBERS = 64 * 8, PLACES = 3, PASSES = 2, WORKSPACE = 1000 };

/* Device memory with 'count' numbers. */
static void *place_tensor(const device *d, const float *from, int count)
{
    size_t size = (size_t)count * sizeof *from;
    pons_error err = PONS_ERROR_INIT;
    void *at = cuda_operations.memory.allocate(d->handle, size, &err);

    ck_assert_msg(at != NULL && staging_write(d, at, from, size, &err) == PONS_OK, "%s", err.text);
    return at;
}

/* Weights of y = x: the centre of each channel's own kernel is 1. */
static void *place_identity(const device *d)
{
    float weight[WEIGHTS] = { 0 };

    for (int o = 0; o < 8; o++)
        weight[(o * 27 + 13) * 8 + o] = 1;
    return place_tensor(d, weight, WEIGHTS);
}

static void run_kernel_at(const device *d, const pons_kernel *k, void *x, void *w, void *y,
                          void *scratch)
{
    void *in[] = { x, w };
    const pons_call call = { .input = in, .output = &y, .scratch = scratch };
    float expected[NUMBERS], found[NUMBERS];
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(k->run(k, &call, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(staging_read(d, expected, x, sizeof expected, &err), PONS_OK);
    ck_assert_int_eq(staging_read(d, found, y, sizeof found, &err), PONS_OK);
    ck_assert_mem_eq(found, expected, sizeof found);
    ck_assert_int_eq(staging_write(d, y, (const float[NUMBERS]){ 0 }, sizeof found, &err), PONS_OK);
}

START_TEST(each_run_uses_the_addresses_of_its_call)
{
    device d = gpu_open(&(pons_device_settings){ .count = 1, .deterministic = true });
    void *x[PLACES], *y[PLACES], *scratch[PASSES], *w = place_identity(&d);
    pons_error err = PONS_ERROR_INIT;
    pons_kernel k = { .run = NULL };
    float image[NUMBERS] = { 0 };
    bool supported;

    ck_assert_int_eq(cudnn_prepare(d.handle, &plain_request, &k, &supported, &err), PONS_OK);
    ck_assert(fakes_are_away() || k.scratch_size == WORKSPACE);
    for (int p = 0; p < PLACES; p++) {
        y[p] = place_tensor(&d, image, NUMBERS);
        for (int i = 0; i < NUMBERS; i++)
            image[i] = (float)(i + p);
        x[p] = place_tensor(&d, image, NUMBERS);
    }
    for (int pass = 0; pass < PASSES; pass++)
        scratch[pass] = cuda_operations.memory.allocate(d.handle, k.scratch_size + 1, &err);
    for (int pass = 0; pass < PASSES; pass++) {
        for (int p = 0; p < PLACES; p++)
            run_kernel_at(&d, &k, x[p], w, y[p], scratch[pass]);
        cuda_operations.memory.release(d.handle, scratch[pass], k.scratch_size + 1);
    }
    for (int p = 0; p < PLACES; p++) {
        cuda_operations.memory.release(d.handle, x[p], sizeof image);
        cuda_operations.memory.release(d.handle, y[p], sizeof image);
    }
    cuda_operations.memory.release(d.handle, w, WEIGHTS * sizeof *image);
    k.free(&k);
    cuda_operations.close(d.handle);
}
END_TEST

/* ---- what goes wrong ------------------------------------------------------------------------- */

START_TEST(a_cudnn_that_fails_to_start_is_named_and_not_used)
{
    device d;

    setenv("FAKE_CUDNN", "start", 1);
    d = gpu_open(&(pons_device_settings){ .count = 1 });
    ck_assert_ptr_nonnull(strstr(d.facts.library,
                                 "no cuDNN (it does not start: the card does not answer)"));
    ck_assert_ptr_nonnull(strstr(d.facts.features, "cudnn_0"));
    for (int i = 0; i < SHAPES; i++) {
        shape_case own = shapes[i];
        own.taken = false;
        case_agrees(&own, &d, PONS_F32, FLOAT_OF_LARGEST);
    }
    cuda_operations.close(d.handle);
}
END_TEST

START_TEST(the_version_of_cudnn_is_reported)
{
    ck_assert_ptr_nonnull(strstr(gpu.facts.library, "cuDNN 9.19.0"));
    ck_assert_ptr_nonnull(strstr(gpu.facts.features, "cudnn_91900"));
}
END_TEST

START_TEST(a_failing_plan_ends_with_one_line)
{
    trio t = build_convolutions(&shapes[0]);
    evaluation *e;
    device d;

    setenv("FAKE_CUDNN", "run=2", 1);
    d = gpu_open(&(pons_device_settings){ .count = 1 });
    e = filled_evaluation(&t, &d, PONS_F32);
    expect_run_fails(e, "on device 'cuda:0': cuDNN says 5000 (a kernel of the library ended)");
    evaluation_free(e);
    graph_free(t.g);
    cuda_operations.close(d.handle);
}
END_TEST

/* ---- the made-up library is as strict as the real one ---------------------------------------- */

/*
 * Attributes of a graph are left out or mistyped one at a time, and the library refuses the
 * descriptor.
 */
static int skipped_attribute, skipped_type;
static int (*real_set)(cudnn_descriptor, int, int, int64_t, const void *);

static int set_all_but_one(cudnn_descriptor d, int attribute, int type, int64_t count,
                           const void *values)
{
    if (attribute != skipped_attribute)
        return real_set(d, attribute, type, count, values);
    return skipped_type < 0 ? 0 : real_set(d, attribute, skipped_type, count, values);
}

static int graph_status(cuda_device *d, const cudnn_convolution *c)
{
    cudnn_list l = { .dnn = &d->dnn };
    int status;

    cudnn_graph(&l, c, d->dnn.handle);
    status = l.status;
    cudnn_list_free(&l);
    return status;
}

START_TEST(a_missing_or_mistyped_attribute_is_refused)
{
    static const int attributes[] = {
        DNN_TENSOR_NUMBER, DNN_TENSOR_TYPE, DNN_TENSOR_ALIGNMENT, DNN_TENSOR_EXTENTS,
        DNN_TENSOR_STRIDES, DNN_CONVOLUTION_COMPUTE, DNN_CONVOLUTION_MODE, DNN_CONVOLUTION_RANK,
        DNN_CONVOLUTION_DILATIONS, DNN_CONVOLUTION_STRIDES, DNN_CONVOLUTION_PADS_LOW,
        DNN_CONVOLUTION_PADS_HIGH, DNN_FORWARD_ALPHA, DNN_FORWARD_BETA, DNN_FORWARD_CONVOLUTION,
        DNN_FORWARD_W, DNN_FORWARD_X, DNN_FORWARD_Y, DNN_GRAPH_OPERATIONS
    };
    cuda_device *cuda = gpu.handle;
    cudnn_convolution c;

    ck_assert(cudnn_supports(&plain_request, &c));
    ck_assert_int_eq(graph_status(cuda, &c), 0);
    real_set = cuda->dnn.set;
    cuda->dnn.set = set_all_but_one;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        skipped_attribute = attributes[i];
        skipped_type = -1;
        ck_assert_msg(graph_status(cuda, &c) == 2000, "without attribute %d", attributes[i]);
        skipped_type = DNN_TYPE_CHAR;
        ck_assert_msg(graph_status(cuda, &c) == 2010, "attribute %d as text", attributes[i]);
    }
}
END_TEST

START_TEST(tensors_with_wrong_extents_are_refused)
{
    const pons_tensor longer = { PONS_F32, { 5, { 1, 4, 4, 5, 8 } } };
    pons_request request = plain_request;
    pons_error err = PONS_ERROR_INIT;
    pons_kernel kernel = { .run = NULL };
    bool supported;

    request.output = &longer;
    ck_assert_int_eq(cudnn_prepare(gpu.handle, &request, &kernel, &supported, &err), PONS_DEVICE);
    ck_assert_str_eq(err.text, "cannot plan 'y': cuDNN ended finishing a descriptor with 2000 "
                               "(extents 4 and 5 along axis 2 make no convolution)");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("dnn");

    if (!fakes_open())
        return 1;
    tcase_add_checked_fixture(c, open_gpu, close_gpu);
    tcase_add_test(c, multiples_of_8_channels_are_computed_by_cudnn);
    tcase_add_test(c, multiples_of_8_channels_are_computed_by_cudnn_in_bf16);
    tcase_add_test(c, multiples_of_8_channels_are_computed_by_cudnn_in_fp16);
    fakes_add_test(c, the_first_engine_that_keeps_the_precision_is_selected);
    fakes_add_test(c, equal_bits_need_a_deterministic_engine);
    fakes_add_test(c, tensor_cores_are_used_for_tf32_only);
    fakes_add_loop_test(c, engines_that_are_wrong_on_a_gpu_are_excluded, 0,
                        (int)(sizeof wrong / sizeof *wrong));
    fakes_add_test(c, the_workspace_of_an_engine_is_bounded);
    fakes_add_test(c, a_known_bad_version_is_excluded);
    fakes_add_test(c, the_fastest_engine_is_selected_and_stored);
    fakes_add_test(c, an_engine_with_a_large_workspace_is_not_selected);
    fakes_add_test(c, a_known_bad_engine_is_not_selected);
    fakes_add_test(c, an_engine_that_fails_is_not_selected);
    fakes_add_test(c, if_no_engine_runs_the_first_of_cudnn_is_selected);
    fakes_add_test(c, a_single_candidate_is_selected_without_timing);
    fakes_add_test(c, without_memory_for_a_workspace_other_engines_are_timed);
    fakes_add_test(c, without_memory_for_operands_the_first_engine_is_selected);
    fakes_add_test(c, a_stored_engine_is_reused_without_timing);
    fakes_add_test(c, a_stored_engine_that_is_missing_is_replaced);
    fakes_add_test(c, an_engine_of_a_smaller_workspace_is_replaced);
    fakes_add_test(c, a_stored_engine_that_fits_a_smaller_workspace_is_reused);
    fakes_add_test(c, a_replica_without_cache_takes_the_engine_of_a_smaller_workspace);
    fakes_add_test(c, a_replica_without_cache_times_no_engine);
    tcase_add_test(c, each_shape_and_direction_has_an_autotune_entry);
    tcase_add_test(c, a_gpu_lost_during_autotuning_ends_with_one_line);
    tcase_add_test(c, each_run_uses_the_addresses_of_its_call);
    fakes_add_test(c, a_cudnn_that_fails_to_start_is_named_and_not_used);
    fakes_add_test(c, the_version_of_cudnn_is_reported);
    fakes_add_test(c, a_failing_plan_ends_with_one_line);
    fakes_add_test(c, a_missing_or_mistyped_attribute_is_refused);
    fakes_add_test(c, tensors_with_wrong_extents_are_refused);
    return suite_run();
}
