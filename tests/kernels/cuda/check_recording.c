/*
 * check_recording.c - training steps as captured graphs. A step has few launches, no wait inside,
 * and the bits of a step that runs kernel by kernel. Graphs are captured again when addresses
 * change.
 *
 * The device is cuda, on the driver of tests/fake, which checks the memory of each launch and
 * counts launches; or on a real GPU, where bits are compared.
 */
#include "cuda/cuda.h"
#include "device/device_open.h"
#include "fake/fake.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "graph/program/explain.h"
#include "graph/program/program.h"
#include "plugin/plugin_load.h"
#include "replica/programs.h"
#include "support/graph/descent.h"
#include "support/graph/fakes.h"
#include "support/graph/graphs.h"
#include "support/must.h"
#include "support/suite.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENTS = 6, STEPS = 5 };

static long (*count)(fake_deed deed); /* NULL: a real GPU does not count                          */

static device card;
static void open_card(void)
{
    const pons_device_settings settings = { .index = 0, .count = 1 };

    error = (pons_error)PONS_ERROR_INIT;
    card = (device){ .operations = &cuda_operations };
    MUST(cuda_operations.open(&settings, &card.handle, &error));
    cuda_operations.facts(card.handle, &card.facts);
    MUST(cuda_operations.attach(card.handle, &error));
}

static void close_card(void)
{
    cuda_operations.close(card.handle);
}

/* ---- a network ------------------------------------------------------------------------------- */

typedef struct net {
    storage *storage;
    program *program;
} net;

/* A network of two layers, one of them with state, and random numbers. */
static pons_node *build_network(pons_graph *g, int64_t images)
{
    pons_node *x = node_input(g, "image", PONS_F32, image_shape_of(images, 4, 3, 5, 2));

    g->scope = SCOPE_MODEL;
    x = graph_layer(g, x, "first", 3, 1, true);
    x = pons_dropout(g, x, 0.25, "dropped");
    x = graph_layer(g, x, "second", 2, 1, false);
    g->scope = SCOPE_CORE;
    return x;
}

static program *training_program(storage *s, const program_settings *settings)
{
    pons_graph *g = graph_new(true);
    pons_node *loss = pons_mean_all(g, pons_square(g, build_network(g, 2)));
    program *p;

    MUST(program_new(s, &card, g, loss, 0, NULL, settings, &p, &error));
    return p;
}

static program *evaluation_program(storage *s, int64_t images)
{
    const program_settings settings = { .precision = PRECISION_FP32 };
    pons_graph *g = graph_new(false);
    pons_node *y = build_network(g, images);
    program *p;

    MUST(program_new(s, &card, g, NULL, 1, &y, &settings, &p, &error));
    return p;
}

static program_settings settings_of(int accumulate)
{
    return (program_settings){ .precision = PRECISION_FP32, .accumulate = accumulate,
                               .micro_batches = accumulate, .optimizer = &descent, .seed = 3 };
}

static net net_open(const program_settings *settings)
{
    net n;

    MUST(storage_new(&card, &n.storage, &error));
    n.program = training_program(n.storage, settings);
    MUST(storage_initialise(n.storage, 1, &error));
    return n;
}

static void net_close(net *n)
{
    program_free(n->program);
    storage_free(n->storage);
}

static void fill_inputs(program *p, unsigned seed)
{
    pons_tensor t;
    float *image = program_input(p, "image", &t);

    for (int64_t i = 0; i < shape_count(t.shape); i++) {
        seed = seed * 1664525u + 1013904223u;
        image[i] = (float)(seed >> 9) / (1 << 22) - 1;
    }
}

static pons_status run_step(program *p, int number, int accumulate)
{
    step_result result;

    if (program_step_begin(p, (uint64_t)number, &error) != PONS_OK)
        return error.status;
    for (int m = 0; m < accumulate; m++) {
        fill_inputs(p, (unsigned)(100 * number + m));
        if (program_micro(p, (uint64_t)m, &error) != PONS_OK)
            return error.status;
    }
    return program_step_finish(p, 0.1, &result, &error);
}

/* A program whose kernels are watched runs kernel by kernel. */
static void ignore_time(void *context, int kernel, double seconds, double host) { }

static void same_bits(const net *a, const net *b)
{
    for (storage_group group = STORAGE_PARAMETER; group <= STORAGE_STATE; group++)
        for (int i = 0; i < storage_count(a->storage, group); i++) {
            storage_tensor x = storage_item(a->storage, group, i);
            storage_tensor y = storage_item(b->storage, group, i);

            ck_assert_msg(memcmp(x.memory, y.memory,
                                 (size_t)shape_count(x.shape) * sizeof(float)) == 0,
                          "'%s' has other bits", x.name);
        }
}

/* ---- launches and waits ---------------------------------------------------------------------- */

static void count_step(const program_settings *settings, int most)
{
    net n = net_open(settings);
    program_facts facts;
    step_result result;
    long launches, graphs, waits, plain;

    program_describe(n.program, &facts);
    ck_assert_int_ge(facts.captured_graph_count, 3);
    ck_assert_int_le(facts.captured_graph_count, most);
    for (int i = 0; i < 2; i++)
        MUST(run_step(n.program, i, settings->accumulate));
    launches = count(FAKE_LAUNCHES);
    graphs = count(FAKE_GRAPH_LAUNCHES);
    waits = count(FAKE_WAITS);
    plain = count(FAKE_PLAIN_COPIES);
    MUST(program_step_begin(n.program, 2, &error));
    for (int m = 0; m < settings->accumulate; m++) {
        fill_inputs(n.program, 1);
        MUST(program_micro(n.program, (uint64_t)m, &error));
    }
    MUST(program_step_end(n.program, 0.1, &error));
    /* A second micro-batch waits only until the inputs of the first one have been copied. */
    ck_assert_int_eq(count(FAKE_WAITS) - waits,
                     settings->collective != NULL ? facts.bucket_count : settings->accumulate - 1);
    MUST(program_step_result(n.program, &result, &error));
    ck_assert_int_eq(count(FAKE_LAUNCHES) - launches, 0);
    ck_assert_int_eq(count(FAKE_GRAPH_LAUNCHES) - graphs, facts.captured_graph_count);
    ck_assert_int_eq(count(FAKE_PLAIN_COPIES) - plain, 0);
    net_close(&n);
}

START_TEST(a_step_has_few_launches_and_waits_at_its_end)
{
    const program_settings settings = settings_of(1);

    count_step(&settings, SEGMENTS);
}
END_TEST

START_TEST(each_micro_batch_is_one_launch)
{
    const program_settings settings = settings_of(4);

    count_step(&settings, SEGMENTS);
}
END_TEST

/* ---- buckets --------------------------------------------------------------------------------- */

typedef struct sums {
    int started, waited;
    long graphs_at_first;
} sums;

static pons_status start_sum(void *context, void *buffer, int64_t size, pons_type type,
                             void **pending, pons_error *e)
{
    sums *s = context;

    if (s->started++ == 0)
        s->graphs_at_first = count(FAKE_GRAPH_LAUNCHES);
    return PONS_OK;
}

static pons_status wait_sum(void *context, void *pending, pons_error *e)
{
    ((sums *)context)->waited++;
    return PONS_OK;
}

START_TEST(many_buckets_are_summed_in_few_groups)
{
    sums s = { 0 };
    const program_collective alone = { 1, 0, &s, start_sum, wait_sum, NULL, NULL };
    program_settings settings = settings_of(1);
    program_facts facts;
    net n;

    settings.collective = &alone;
    settings.bucket = 256;
    count_step(&settings, SEGMENTS);
    n = net_open(&settings);
    program_describe(n.program, &facts);
    ck_assert_int_gt(facts.bucket_count, SEGMENTS);
    ck_assert_int_eq(s.started, 3 * facts.bucket_count);
    ck_assert_int_eq(s.waited, 3 * facts.bucket_count);
    net_close(&n);
}
END_TEST

START_TEST(sums_on_the_gpu_overlap_the_last_gradients)
{
    sums s = { 0 };
    const program_collective alone = { 1, 0, &s, start_sum, wait_sum, NULL,
                                       cuda_operations.streams.comm_stream(card.handle, &error) };
    program_settings settings = settings_of(1);
    program_facts facts;
    long graphs;
    net n;

    settings.collective = &alone;
    settings.bucket = 256;
    n = net_open(&settings);
    program_describe(n.program, &facts);
    for (int i = 0; i < 2; i++)
        MUST(run_step(n.program, i, 1));
    s.started = 0;
    graphs = count(FAKE_GRAPH_LAUNCHES);
    MUST(run_step(n.program, 2, 1));
    /* After the first sum come other gradients, their reduction and the update. */
    ck_assert_int_ge(facts.captured_graph_count - (s.graphs_at_first - graphs), 3);
    net_close(&n);
}
END_TEST

/* ---- bits ------------------------------------------------------------------------------------ */

/* 'steps' steps as captured graphs have the bits of steps that run kernel by kernel. */
static void compare_steps(int accumulate, int steps, void (*run)(net *n, int number,
                                                                 int accumulate))
{
    const program_settings settings = settings_of(accumulate);
    net recorded = net_open(&settings), watched = net_open(&settings);

    program_watch(watched.program, ignore_time, NULL);
    for (int i = 0; i < steps; i++) {
        run(&recorded, i, accumulate);
        MUST(run_step(watched.program, i, accumulate));
        same_bits(&recorded, &watched);
    }
    net_close(&recorded);
    net_close(&watched);
}

static void run_plain(net *n, int number, int accumulate)
{
    MUST(run_step(n->program, number, accumulate));
}

START_TEST(captured_steps_have_the_bits_of_uncaptured_ones)
{
    compare_steps(_i, STEPS, run_plain);
}
END_TEST

/* In every third step other inputs are sent first, and then replaced. */
static void run_early(net *n, int number, int accumulate)
{
    step_result result;

    MUST(program_step_begin(n->program, (uint64_t)number, &error));
    if (number % 3 == 0)
        fill_inputs(n->program, (unsigned)(100 * number));
    MUST(program_micro(n->program, 0, &error));
    MUST(program_step_end(n->program, 0.1, &error));
    fill_inputs(n->program, (unsigned)(100 * (number + 1)) + (number % 3 == 2 ? 7 : 0));
    MUST(program_send(n->program, (uint64_t)number + 1, 0, &error));
    MUST(program_step_result(n->program, &result, &error));
}

START_TEST(inputs_sent_early_belong_to_the_next_step)
{
    compare_steps(1, 2 * STEPS, run_early);
}
END_TEST

/* The next step's inputs are already being copied when the current step is searched for NaN. */
static void run_looked_at(net *n, int number, int accumulate)
{
    program_nonfinite found;
    step_result result;

    MUST(program_step_begin(n->program, (uint64_t)number, &error));
    fill_inputs(n->program, (unsigned)(100 * number));
    MUST(program_micro(n->program, 0, &error));
    MUST(program_step_end(n->program, 0.1, &error));
    fill_inputs(n->program, (unsigned)(100 * (number + 1)));
    MUST(program_send(n->program, (uint64_t)number + 1, 0, &error));
    MUST(program_step_result(n->program, &result, &error));
    fill_inputs(n->program, (unsigned)(100 * number));
    MUST(program_find_nonfinite(n->program, 0, &found, &error));
    ck_assert_ptr_null(found.name);
    ((float *)program_input(n->program, "image", &(pons_tensor){ 0 }))[number] = NAN;
    MUST(program_find_nonfinite(n->program, 0, &found, &error));
    ck_assert_str_eq(found.name, "image");
}

START_TEST(a_search_for_nan_leaves_the_next_step_unchanged)
{
    compare_steps(1, 2 * STEPS, run_looked_at);
}
END_TEST

/* In the middle of the run a program that needs more memory is created and freed. */
static void run_moved(net *n, int number, int accumulate)
{
    if (number == STEPS) {
        program *larger = evaluation_program(n->storage, 64);
        fill_inputs(larger, 1);
        MUST(program_evaluate(larger, &error));
        program_free(larger);
    }
    MUST(run_step(n->program, number, accumulate));
}

START_TEST(moved_memory_is_captured_again)
{
    compare_steps(1, 2 * STEPS, run_moved);
}
END_TEST

START_TEST(an_evaluation_is_one_launch)
{
    const program_settings settings = settings_of(1);
    net n = net_open(&settings);
    program *p = evaluation_program(n.storage, 2), *watched = evaluation_program(n.storage, 2);
    pons_tensor t;

    program_watch(watched, ignore_time, NULL);
    for (int i = 0; i < STEPS; i++) {
        long graphs = count != NULL ? count(FAKE_GRAPH_LAUNCHES) : 0;
        long launches = count != NULL ? count(FAKE_LAUNCHES) : 0;
        float *y;
        size_t size;

        storage_use_ema(n.storage, i == 3); /* without averages the addresses stay the same */
        fill_inputs(p, (unsigned)i);
        MUST(program_evaluate(p, &error));
        if (i > 0 && count != NULL) {
            ck_assert_int_eq(count(FAKE_GRAPH_LAUNCHES) - graphs, 1);
            ck_assert_int_eq(count(FAKE_LAUNCHES) - launches, 0);
        }
        program_output(p, 0, &t);
        size = (size_t)shape_count(t.shape) * sizeof(float);
        y = malloc(size);
        memcpy(y, program_output(p, 0, &t), size);
        fill_inputs(watched, (unsigned)i);
        MUST(program_evaluate(watched, &error));
        ck_assert_mem_eq(y, program_output(watched, 0, &t), size);
        free(y);
    }
    program_free(p);
    program_free(watched);
    net_close(&n);
}
END_TEST

/* ---- faults ---------------------------------------------------------------------------------- */

static const struct { const char *fault, *line; } faults[] = {
    { "capture:2", "cannot record kernels on device 'cuda:0': out of memory "
                   "(CUDA_ERROR_OUT_OF_MEMORY)" },
    { "graph:5", "cannot run recorded kernels on device 'cuda:0': unspecified launch failure "
                 "(CUDA_ERROR_LAUNCH_FAILED)" },
};

START_TEST(a_failure_of_the_device_is_reported_once)
{
    const program_settings settings = settings_of(1);
    pons_status status = PONS_OK;
    net n;

    ck_assert_int_eq(setenv("FAKE_CUDA_FAIL", faults[_i].fault, 1), 0);
    n = net_open(&settings);
    for (int i = 0; i < STEPS && status == PONS_OK; i++)
        status = run_step(n.program, i, 1);
    ck_assert_int_eq(status, PONS_DEVICE);
    ck_assert_str_eq(error.text, faults[_i].line);
    error = (pons_error)PONS_ERROR_INIT;
    MUST(run_step(n.program, STEPS, 1));
    net_close(&n);
}
END_TEST

/* A device that fails without a message, in the named operation only. */
static pons_device_operations failing_operations;

static pons_status fail_copy(void *device, pons_stream queue, void *to, const void *from,
                             size_t size, pons_error *e)
{
    return PONS_DEVICE;
}

static pons_status fail_event(void *device, pons_stream queue, int number, pons_error *e)
{
    return PONS_DEVICE;
}

static pons_status fail_operation(void *device, pons_error *e)
{
    return PONS_DEVICE;
}

static pons_status fail_launch(void *device, void *recording, pons_error *e)
{
    return PONS_DEVICE;
}

static pons_status fail_capture_end(void *device, void **recording, pons_error *e)
{
    cuda_operations.capture.end(device, recording, e);
    return PONS_DEVICE;
}

static pons_status fail_kernel(const pons_kernel *kernel, const pons_call *call, pons_error *e)
{
    return PONS_DEVICE;
}

static pons_status prepare_failing_kernel(void *device, const pons_request *request,
                                          pons_kernel *kernel, bool *supported, pons_error *e)
{
    pons_status status = cuda_operations.prepare(device, request, kernel, supported, e);

    if (*supported)
        kernel->run = fail_kernel;
    return status;
}

#define MUTE(operation, function)                                                                 \
    offsetof(pons_device_operations, operation), (void (*)(void))function

static const struct { const char *name; size_t at; void (*function)(void); } failing_calls[] = {
    { "run", MUTE(prepare, prepare_failing_kernel) },
    { "memory.copy", MUTE(memory.copy, fail_copy) },
    { "streams.event_record", MUTE(streams.event_record, fail_event) },
    { "streams.stream_wait_event", MUTE(streams.stream_wait_event, fail_event) },
    { "streams.synchronize", MUTE(streams.synchronize, fail_operation) },
    { "capture.begin", MUTE(capture.begin, fail_operation) },
    { "capture.end", MUTE(capture.end, fail_capture_end) },
    { "capture.launch", MUTE(capture.launch, fail_launch) },
};

static void make_operation_fail(int i)
{
    memcpy((char *)&failing_operations + failing_calls[i].at, &failing_calls[i].function,
           sizeof failing_calls[i].function);
}

START_TEST(a_device_failure_without_message_gets_one)
{
    const program_settings settings = settings_of(1);
    pons_status status = PONS_OK;
    char line[128];
    net n;

    failing_operations = cuda_operations;
    card.operations = &failing_operations;
    if (failing_calls[_i].at == offsetof(pons_device_operations, prepare))
        make_operation_fail(_i);
    n = net_open(&settings);
    make_operation_fail(_i);
    for (int i = 0; i < STEPS && status == PONS_OK; i++)
        status = run_step(n.program, i, 1);
    snprintf(line, sizeof line, "the device: '%s' returned %d and has not said why",
             failing_calls[_i].name, PONS_DEVICE);
    ck_assert_int_eq(status, PONS_PLUGIN);
    ck_assert_int_eq(error.status, PONS_PLUGIN);
    ck_assert_str_eq(error.text, line);
    failing_operations = cuda_operations;
    net_close(&n);
    close_card();
    ck_assert_int_eq(fakes_left_over(), 0);
    open_card();
}
END_TEST

/*
 * Number of copies that a window's inputs need. The next copy is the read of the window's logits.
 */
static int copies_left;

static pons_status copy_inputs(void *device, pons_stream queue, void *to, const void *from,
                               size_t size, pons_error *e)
{
    return copies_left-- > 0 ? cuda_operations.memory.copy(device, queue, to, from, size, e)
                             : PONS_DEVICE;
}

START_TEST(a_window_whose_logits_cannot_be_read_is_refused)
{
    const program_settings settings = settings_of(1);
    const experiment e = { .task.channels = 2 };
    window_predictor window;
    const float *logits = NULL;
    program *p;
    net n;

    failing_operations = cuda_operations;
    card.operations = &failing_operations;
    n = net_open(&settings);
    p = evaluation_program(n.storage, 2);
    MUST(programs_predictor(&e, p, &window, &error));
    MUST(window.run(window.context, &logits, &error));
    ck_assert_ptr_nonnull(logits);
    copies_left = 2;
    failing_operations.memory.copy = copy_inputs;
    ck_assert_int_eq(window.run(window.context, &logits, &error), PONS_DEVICE);
    ck_assert_str_eq(error.text, "cannot read the logits of a window from the device");
    ck_assert_int_eq(copies_left, -1);
    failing_operations = cuda_operations;
    program_free(p);
    net_close(&n);
}
END_TEST

/* ---- a device that is not complete ----------------------------------------------------------- */

#define LACK(operation) { #operation, offsetof(pons_device_operations, operation) }

static const struct { const char *name; size_t at; } lacking[] = {
    LACK(prepare), LACK(memory.copy), LACK(memory.release_host),
    LACK(streams.stream_wait_stream), LACK(capture.end), LACK(capture.destroy),
    LACK(profiling.timer_stop), LACK(profiling.range_begin),
};

START_TEST(a_missing_required_operation_is_found_before_its_use)
{
    const pons_device_settings settings = { .index = 0, .count = 1 };
    const plugin p = { .operations = &failing_operations };
    void (*const nothing)(void) = NULL;
    char line[128];
    device d;

    failing_operations = cuda_operations;
    MUST(device_open_plugin(&p, &settings, &d, &error));
    device_close(&d);
    memcpy((char *)&failing_operations + lacking[_i].at, &nothing, sizeof nothing);
    ck_assert_int_eq(device_open_plugin(&p, &settings, &d, &error), PONS_PLUGIN);
    snprintf(line, sizeof line, "the device: operation '%s' is missing", lacking[_i].name);
    ck_assert_str_eq(error.text, line);
    close_card();
    ck_assert_int_eq(fakes_left_over(), 0);
    open_card();
}
END_TEST

START_TEST(optional_device_operations_may_be_missing)
{
    const pons_device_settings settings = { .index = 0, .count = 1 };
    const plugin p = { .operations = &failing_operations };
    device d;

    failing_operations = cuda_operations;
    failing_operations.streams.comm_stream = NULL, failing_operations.streams.stream_wait_stream
        = NULL;
    failing_operations.capture = (pons_device_capture){ .begin = NULL };
    failing_operations.profiling.timer_start = NULL, failing_operations.profiling.timer_stop = NULL;
    failing_operations.profiling.range_begin = NULL, failing_operations.profiling.range_end = NULL;
    failing_operations.profiling.peak = NULL, failing_operations.profiling.sensors = NULL;
    MUST(device_open_plugin(&p, &settings, &d, &error));
    device_close(&d);
}
END_TEST

START_TEST(every_device_resource_is_freed)
{
    const program_settings settings = settings_of(2);
    net n = net_open(&settings);

    for (int i = 0; i < 3; i++)
        MUST(run_step(n.program, i, 2));
    net_close(&n);
    close_card();
    ck_assert_int_eq(fakes_left_over(), 0);
    open_card();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("recording");

    if (!fakes_open())
        return 1;
    *(void **)&count = fakes_function("fake_count");
    tcase_add_checked_fixture(c, open_card, close_card);
    fakes_add_test(c, a_step_has_few_launches_and_waits_at_its_end);
    fakes_add_test(c, each_micro_batch_is_one_launch);
    fakes_add_test(c, many_buckets_are_summed_in_few_groups);
    fakes_add_test(c, sums_on_the_gpu_overlap_the_last_gradients);
    tcase_add_loop_test(c, captured_steps_have_the_bits_of_uncaptured_ones, 1, 6);
    tcase_add_test(c, inputs_sent_early_belong_to_the_next_step);
    tcase_add_test(c, a_search_for_nan_leaves_the_next_step_unchanged);
    tcase_add_test(c, moved_memory_is_captured_again);
    tcase_add_test(c, an_evaluation_is_one_launch);
    fakes_add_loop_test(c, a_failure_of_the_device_is_reported_once, 0,
                        (int)(sizeof faults / sizeof *faults));
    tcase_add_loop_test(c, a_device_failure_without_message_gets_one, 0,
                        (int)(sizeof failing_calls / sizeof *failing_calls));
    tcase_add_test(c, a_window_whose_logits_cannot_be_read_is_refused);
    tcase_add_loop_test(c, a_missing_required_operation_is_found_before_its_use, 0,
                        (int)(sizeof lacking / sizeof *lacking));
    tcase_add_test(c, optional_device_operations_may_be_missing);
    fakes_add_test(c, every_device_resource_is_freed);
    return suite_run();
}
