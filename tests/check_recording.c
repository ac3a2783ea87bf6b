/*
 * check_recording.c - a step that the device has recorded: few launches, no wait inside, the bits
 * of one that runs kernel by kernel, and recorded again when addresses move.
 *
 * The device is cuda, on the driver of tests/fake, which looks at what each launch touches and
 * counts them; or on a real card, where bits are compared.
 */
#include "cuda/cuda.h"
#include "descent.h"
#include "device/device_open.h"
#include "fake/fake.h"
#include "fakes.h"
#include "graph/ir/build.h"
#include "graph/program/explain.h"
#include "graph/ir/leaf.h"
#include "graph/program/program.h"
#include "graph/ir/shape.h"
#include "graphs.h"
#include "plugin/plugin_load.h"
#include "suite.h"
#include "replica/programs.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENTS = 6, STEPS = 5 };

static long (*count)(fake_deed deed); /* NULL: a real card, which does not                        */

static device card;
static pons_error err;

#define MUST(call) ck_assert_msg((call) == PONS_OK, "%s", err.text)

static void open_card(void)
{
    const pons_device_settings settings = { .index = 0, .count = 1 };

    err = (pons_error)PONS_ERROR_INIT;
    card = (device){ .operations = &cuda_operations };
    MUST(cuda_operations.open(&settings, &card.handle, &err));
    cuda_operations.facts(card.handle, &card.facts);
    MUST(cuda_operations.attach(card.handle, &err));
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

/* Two layers, one with states, and random numbers. */
static pons_node *build(pons_graph *g, int64_t images)
{
    pons_node *x = node_input(g, "image", PONS_F32, shape5(images, 4, 3, 5, 2));

    g->scope = SCOPE_MODEL;
    x = layer(g, x, "first", 3, 1, true);
    x = pons_dropout(g, x, 0.25, "dropped");
    x = layer(g, x, "second", 2, 1, false);
    g->scope = SCOPE_CORE;
    return x;
}

static program *training_program(storage *s, const program_settings *settings)
{
    pons_graph *g = graph_new(true, -1);
    pons_node *loss = pons_mean_all(g, pons_square(g, build(g, 2)));
    program *p;

    MUST(program_new(s, &card, g, loss, 0, NULL, settings, &p, &err));
    return p;
}

static program *evaluation_program(storage *s, int64_t images)
{
    const program_settings settings = { .precision = PRECISION_FP32 };
    pons_graph *g = graph_new(false, -1);
    pons_node *y = build(g, images);
    program *p;

    MUST(program_new(s, &card, g, NULL, 1, &y, &settings, &p, &err));
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

    MUST(storage_new(&card, &n.storage, &err));
    n.program = training_program(n.storage, settings);
    MUST(storage_initialise(n.storage, 1, &err));
    return n;
}

static void net_close(net *n)
{
    program_free(n->program);
    storage_free(n->storage);
}

static void fill(program *p, unsigned seed)
{
    pons_tensor t;
    float *image = program_input(p, "image", &t);

    for (int64_t i = 0; i < shape_count(t.shape); i++) {
        seed = seed * 1664525u + 1013904223u;
        image[i] = (float)(seed >> 9) / (1 << 22) - 1;
    }
}

static pons_status step(program *p, int number, int accumulate)
{
    step_result result;

    if (program_step_begin(p, (uint64_t)number, &err) != PONS_OK)
        return err.status;
    for (int m = 0; m < accumulate; m++) {
        fill(p, (unsigned)(100 * number + m));
        if (program_micro(p, (uint64_t)m, &err) != PONS_OK)
            return err.status;
    }
    return program_step_finish(p, 0.1, &result, &err);
}

/* Kernel by kernel. */
static void ignore(void *context, int kernel, double seconds, double host) { }

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
    ck_assert_int_ge(facts.segment_count, 3);
    ck_assert_int_le(facts.segment_count, most);
    for (int i = 0; i < 2; i++)
        MUST(step(n.program, i, settings->accumulate));
    launches = count(FAKE_LAUNCHES);
    graphs = count(FAKE_GRAPH_LAUNCHES);
    waits = count(FAKE_WAITS);
    plain = count(FAKE_PLAIN_COPIES);
    MUST(program_step_begin(n.program, 2, &err));
    for (int m = 0; m < settings->accumulate; m++) {
        fill(n.program, 1);
        MUST(program_micro(n.program, (uint64_t)m, &err));
    }
    MUST(program_step_end(n.program, 0.1, &err));
    /* A second micro-batch is filled in where the first one has left from: that is all. */
    ck_assert_int_eq(count(FAKE_WAITS) - waits,
                     settings->collective != NULL ? facts.bucket_count : settings->accumulate - 1);
    MUST(program_step_result(n.program, &result, &err));
    ck_assert_int_eq(count(FAKE_LAUNCHES) - launches, 0);
    ck_assert_int_eq(count(FAKE_GRAPH_LAUNCHES) - graphs, facts.segment_count);
    ck_assert_int_eq(count(FAKE_PLAIN_COPIES) - plain, 0);
    net_close(&n);
}

START_TEST(a_step_is_few_launches_and_waits_at_its_end)
{
    const program_settings settings = settings_of(1);

    count_step(&settings, SEGMENTS);
}
END_TEST

START_TEST(micro_batches_are_a_launch_each)
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

START_TEST(many_buckets_leave_in_few_groups)
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

START_TEST(sums_on_the_card_begin_before_the_last_gradients)
{
    sums s = { 0 };
    const program_collective alone = { 1, 0, &s, start_sum, wait_sum, NULL,
                                       cuda_operations.streams.comm_stream(card.handle, &err) };
    program_settings settings = settings_of(1);
    program_facts facts;
    long graphs;
    net n;

    settings.collective = &alone;
    settings.bucket = 256;
    n = net_open(&settings);
    program_describe(n.program, &facts);
    for (int i = 0; i < 2; i++)
        MUST(step(n.program, i, 1));
    s.started = 0;
    graphs = count(FAKE_GRAPH_LAUNCHES);
    MUST(step(n.program, 2, 1));
    /* Behind the first of them come more gradients, their reduction and the update. */
    ck_assert_int_ge(facts.segment_count - (s.graphs_at_first - graphs), 3);
    net_close(&n);
}
END_TEST

/* ---- bits ------------------------------------------------------------------------------------ */

/* 'steps' of a program that records have the bits of one that runs kernel by kernel. */
static void compare(int accumulate, int steps, void (*run)(net *n, int number, int accumulate))
{
    const program_settings settings = settings_of(accumulate);
    net recorded = net_open(&settings), watched = net_open(&settings);

    program_watch(watched.program, ignore, NULL);
    for (int i = 0; i < steps; i++) {
        run(&recorded, i, accumulate);
        MUST(step(watched.program, i, accumulate));
        same_bits(&recorded, &watched);
    }
    net_close(&recorded);
    net_close(&watched);
}

static void run_plain(net *n, int number, int accumulate)
{
    MUST(step(n->program, number, accumulate));
}

START_TEST(recorded_steps_have_the_bits_of_others)
{
    compare(_i, STEPS, run_plain);
}
END_TEST

/* In every third step something else is sent first, and replaced. */
static void run_early(net *n, int number, int accumulate)
{
    step_result result;

    MUST(program_step_begin(n->program, (uint64_t)number, &err));
    if (number % 3 == 0)
        fill(n->program, (unsigned)(100 * number));
    MUST(program_micro(n->program, 0, &err));
    MUST(program_step_end(n->program, 0.1, &err));
    fill(n->program, (unsigned)(100 * (number + 1)) + (number % 3 == 2 ? 7 : 0));
    MUST(program_send(n->program, (uint64_t)number + 1, 0, &err));
    MUST(program_step_result(n->program, &result, &err));
}

START_TEST(inputs_that_are_sent_early_are_those_of_the_next_step)
{
    compare(1, 2 * STEPS, run_early);
}
END_TEST

/* The next step's inputs are on their way when this one is looked at again. */
static void run_looked_at(net *n, int number, int accumulate)
{
    program_nonfinite found;
    step_result result;

    MUST(program_step_begin(n->program, (uint64_t)number, &err));
    fill(n->program, (unsigned)(100 * number));
    MUST(program_micro(n->program, 0, &err));
    MUST(program_step_end(n->program, 0.1, &err));
    fill(n->program, (unsigned)(100 * (number + 1)));
    MUST(program_send(n->program, (uint64_t)number + 1, 0, &err));
    MUST(program_step_result(n->program, &result, &err));
    fill(n->program, (unsigned)(100 * number));
    MUST(program_find_nonfinite(n->program, 0, &found, &err));
    ck_assert_ptr_null(found.name);
    ((float *)program_input(n->program, "image", &(pons_tensor){ 0 }))[number] = NAN;
    MUST(program_find_nonfinite(n->program, 0, &found, &err));
    ck_assert_str_eq(found.name, "image");
}

START_TEST(a_step_that_is_looked_at_again_leaves_the_next_one_as_it_is)
{
    compare(1, 2 * STEPS, run_looked_at);
}
END_TEST

/* Halfway a program that needs more memory comes and goes. */
static void run_moved(net *n, int number, int accumulate)
{
    if (number == STEPS) {
        program *larger = evaluation_program(n->storage, 64);
        fill(larger, 1);
        MUST(program_evaluate(larger, &err));
        program_free(larger);
    }
    MUST(step(n->program, number, accumulate));
}

START_TEST(what_has_moved_is_recorded_again)
{
    compare(1, 2 * STEPS, run_moved);
}
END_TEST

START_TEST(an_evaluation_is_one_launch)
{
    const program_settings settings = settings_of(1);
    net n = net_open(&settings);
    program *p = evaluation_program(n.storage, 2), *watched = evaluation_program(n.storage, 2);
    pons_tensor t;

    program_watch(watched, ignore, NULL);
    for (int i = 0; i < STEPS; i++) {
        long graphs = count != NULL ? count(FAKE_GRAPH_LAUNCHES) : 0;
        long launches = count != NULL ? count(FAKE_LAUNCHES) : 0;
        float *y;
        size_t size;

        storage_use_ema(n.storage, i == 3); /* no averages: no address changes */
        fill(p, (unsigned)i);
        MUST(program_evaluate(p, &err));
        if (i > 0 && count != NULL) {
            ck_assert_int_eq(count(FAKE_GRAPH_LAUNCHES) - graphs, 1);
            ck_assert_int_eq(count(FAKE_LAUNCHES) - launches, 0);
        }
        program_output(p, 0, &t);
        size = (size_t)shape_count(t.shape) * sizeof(float);
        y = malloc(size);
        memcpy(y, program_output(p, 0, &t), size);
        fill(watched, (unsigned)i);
        MUST(program_evaluate(watched, &err));
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

START_TEST(what_fails_is_told_once)
{
    const program_settings settings = settings_of(1);
    pons_status status = PONS_OK;
    net n;

    ck_assert_int_eq(setenv("FAKE_CUDA_FAIL", faults[_i].fault, 1), 0);
    n = net_open(&settings);
    for (int i = 0; i < STEPS && status == PONS_OK; i++)
        status = step(n.program, i, 1);
    ck_assert_int_eq(status, PONS_DEVICE);
    ck_assert_str_eq(err.text, faults[_i].line);
    err = (pons_error)PONS_ERROR_INIT;
    MUST(step(n.program, STEPS, 1));
    net_close(&n);
}
END_TEST

/* A device that fails without words, in the operation of that name only. */
static pons_device_operations muted;

static pons_status mute_copy(void *device, pons_stream queue, void *to, const void *from,
                             size_t size, pons_error *e)
{
    return PONS_DEVICE;
}

static pons_status mute_number(void *device, pons_stream queue, int number, pons_error *e)
{
    return PONS_DEVICE;
}

static pons_status mute_device(void *device, pons_error *e)
{
    return PONS_DEVICE;
}

static pons_status mute_replay(void *device, void *recording, pons_error *e)
{
    return PONS_DEVICE;
}

static pons_status mute_end_record(void *device, void **recording, pons_error *e)
{
    cuda_operations.capture.end(device, recording, e);
    return PONS_DEVICE;
}

static pons_status mute_kernel(const pons_kernel *kernel, const pons_call *call, pons_error *e)
{
    return PONS_DEVICE;
}

static pons_status mute_prepare(void *device, const pons_request *request, pons_kernel *kernel,
                                bool *supported, pons_error *e)
{
    pons_status status = cuda_operations.prepare(device, request, kernel, supported, e);

    if (*supported)
        kernel->run = mute_kernel;
    return status;
}

#define MUTE(operation, function)                                                                 \
    offsetof(pons_device_operations, operation), (void (*)(void))function

static const struct { const char *name; size_t at; void (*function)(void); } mute[] = {
    { "run", MUTE(prepare, mute_prepare) },
    { "memory.copy", MUTE(memory.copy, mute_copy) },
    { "streams.event_record", MUTE(streams.event_record, mute_number) },
    { "streams.stream_wait_event", MUTE(streams.stream_wait_event, mute_number) },
    { "streams.synchronize", MUTE(streams.synchronize, mute_device) },
    { "capture.begin", MUTE(capture.begin, mute_device) },
    { "capture.end", MUTE(capture.end, mute_end_record) },
    { "capture.launch", MUTE(capture.launch, mute_replay) },
};

static void take_voice(int i)
{
    memcpy((char *)&muted + mute[i].at, &mute[i].function, sizeof mute[i].function);
}

START_TEST(a_failure_without_words_is_one)
{
    const program_settings settings = settings_of(1);
    pons_status status = PONS_OK;
    char line[128];
    net n;

    muted = cuda_operations;
    card.operations = &muted;
    if (mute[_i].at == offsetof(pons_device_operations, prepare))
        take_voice(_i);
    n = net_open(&settings);
    take_voice(_i);
    for (int i = 0; i < STEPS && status == PONS_OK; i++)
        status = step(n.program, i, 1);
    snprintf(line, sizeof line, "the device: '%s' returned %d and has not said why",
             mute[_i].name, PONS_DEVICE);
    ck_assert_int_eq(status, PONS_PLUGIN);
    ck_assert_int_eq(err.status, PONS_PLUGIN);
    ck_assert_str_eq(err.text, line);
    muted = cuda_operations;
    net_close(&n);
    close_card();
    ck_assert_int_eq(fakes_left_over(), 0);
    open_card();
}
END_TEST

/* As many copies as a window's inputs need; the next one would read what has come of them. */
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

    muted = cuda_operations;
    card.operations = &muted;
    n = net_open(&settings);
    p = evaluation_program(n.storage, 2);
    MUST(network_predictor(&e, p, &window, &err));
    MUST(window.run(window.context, &logits, &err));
    ck_assert_ptr_nonnull(logits);
    copies_left = 2;
    muted.memory.copy = copy_inputs;
    ck_assert_int_eq(window.run(window.context, &logits, &err), PONS_DEVICE);
    ck_assert_str_eq(err.text, "cannot read the logits of a window from the device");
    ck_assert_int_eq(copies_left, -1);
    muted = cuda_operations;
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

START_TEST(an_operation_that_others_need_is_missed_before_it_is_called)
{
    const pons_device_settings settings = { .index = 0, .count = 1 };
    const plugin p = { .operations = &muted };
    void (*const nothing)(void) = NULL;
    char line[128];
    device d;

    muted = cuda_operations;
    MUST(device_open_plugin(&p, &settings, &d, &err));
    device_close(&d);
    memcpy((char *)&muted + lacking[_i].at, &nothing, sizeof nothing);
    ck_assert_int_eq(device_open_plugin(&p, &settings, &d, &err), PONS_PLUGIN);
    snprintf(line, sizeof line, "the device: operation '%s' is missing", lacking[_i].name);
    ck_assert_str_eq(err.text, line);
    close_card();
    ck_assert_int_eq(fakes_left_over(), 0);
    open_card();
}
END_TEST

START_TEST(what_a_device_need_not_have_is_not_missed)
{
    const pons_device_settings settings = { .index = 0, .count = 1 };
    const plugin p = { .operations = &muted };
    device d;

    muted = cuda_operations;
    muted.streams.comm_stream = NULL, muted.streams.stream_wait_stream = NULL;
    muted.capture = (pons_device_capture){ .begin = NULL };
    muted.profiling.timer_start = NULL, muted.profiling.timer_stop = NULL;
    muted.profiling.range_begin = NULL, muted.profiling.range_end = NULL;
    muted.profiling.peak = NULL, muted.profiling.sensors = NULL;
    MUST(device_open_plugin(&p, &settings, &d, &err));
    device_close(&d);
}
END_TEST

START_TEST(nothing_is_left_over)
{
    const program_settings settings = settings_of(2);
    net n = net_open(&settings);

    for (int i = 0; i < 3; i++)
        MUST(step(n.program, i, 2));
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
    fakes_add_test(c, a_step_is_few_launches_and_waits_at_its_end);
    fakes_add_test(c, micro_batches_are_a_launch_each);
    fakes_add_test(c, many_buckets_leave_in_few_groups);
    fakes_add_test(c, sums_on_the_card_begin_before_the_last_gradients);
    tcase_add_loop_test(c, recorded_steps_have_the_bits_of_others, 1, 6);
    tcase_add_test(c, inputs_that_are_sent_early_are_those_of_the_next_step);
    tcase_add_test(c, a_step_that_is_looked_at_again_leaves_the_next_one_as_it_is);
    tcase_add_test(c, what_has_moved_is_recorded_again);
    tcase_add_test(c, an_evaluation_is_one_launch);
    fakes_add_loop_test(c, what_fails_is_told_once, 0, (int)(sizeof faults / sizeof *faults));
    tcase_add_loop_test(c, a_failure_without_words_is_one, 0, (int)(sizeof mute / sizeof *mute));
    tcase_add_test(c, a_window_whose_logits_cannot_be_read_is_refused);
    tcase_add_loop_test(c, an_operation_that_others_need_is_missed_before_it_is_called, 0,
                        (int)(sizeof lacking / sizeof *lacking));
    tcase_add_test(c, what_a_device_need_not_have_is_not_missed);
    fakes_add_test(c, nothing_is_left_over);
    return suite_run();
}
