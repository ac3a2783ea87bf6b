/*
 * check_op.c - ops of plugins: lookup, options, refusal of broken rules, and fp32 and bf16
 * programs on the CPU device. The op table checks values and gradients.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "cli/plugin/plugin_check.h"
#include "device/device_open.h"
#include "graph/ir/build.h"
#include "graph/ir/gradient.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "graph/program/explain.h"
#include "graph/program/program.h"
#include "integration/gallery/gallery_plugin.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <pons/op.h>

#define SHAPE(...)                                                                                \
    pons_shape_make((int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)),                  \
                    (int64_t[]){ __VA_ARGS__ })

static const plugin *load_op(const char *name)
{
    pons_error err = PONS_ERROR_INIT;
    const plugin *p = NULL;
    char path[128];

    snprintf(path, sizeof path, "tests/plugins/.libs/%s.so", name);
    ck_assert_msg(plugin_load_file(path, sizeof(pons_op_operations), &p, &err) == PONS_OK, "%s",
                  err.text);
    return p;
}

static void load_all_ops(void)
{
    load_op("box_mean");
    load_op("op_breaks_rule");
    load_op("op_no_gradient");
}

/* ---- lookup ---------------------------------------------------------------------------------- */

typedef struct request {
    const char *name, *options;
    int count;
    const char *phrase; /* NULL: the op is found                                                  */
} request;

static const request requests[] = {
    { "op_breaks_rule", NULL, 2, NULL },
    { "op_breaks_rule", "", 2, NULL },
    { "op_breaks_rule", " fault = none ; ", 2, NULL },
    { "op_breaks_rule", "fault=none", 2, NULL },
    { "op_breaks_rule", "fualt = none", 2,
      "op 'op_breaks_rule' has no option 'fualt'; did you mean 'fault'?" },
    { "op_breaks_rule", "fault", 2, "op 'op_breaks_rule': 'fault' is not of the form key = value" },
    { "op_breaks_rule", "fault = nome", 2,
      "op 'op_breaks_rule': fault = 'nome': expected one of none, rank" },
    { "op_breaks_rule", "fault = none; fault = none", 2,
      "op 'op_breaks_rule': option 'fault' is given twice" },
    { "op_breaks_rule", NULL, 1, "op 'op_breaks_rule' has 2 inputs, found 1" },
    { "box_mean", "radius = 2 1 1", 1, NULL },
    { "box_mean", "radius = 65", 1, "radius = '65': expected one or three integers from 0 to 64" },
    { "box_mean", "radius =", 1, "op 'box_mean': radius = ''" },
    { "none_such", NULL, 1, "no op plugin is called 'none_such'" },
    { "op_breaks_rule", "fault = rank", 2, "'op': a tensor has at most 6 axes, found 9" },
    { "op_breaks_rule", "fault = empty", 2, "'op': impossible shape" },
    { "op_breaks_rule", "fault = refused", 2, "op 'op_breaks_rule': not today" },
    { "op_breaks_rule", "fault = silent", 2, "op 'op_breaks_rule': it is refused" },
};
enum { REQUESTS = sizeof requests / sizeof requests[0] };

START_TEST(an_op_is_found_or_the_reason_is_reported)
{
    const request *r = &requests[_i];
    pons_graph *g = graph_new(true);
    pons_node *x[2] = { node_input(g, "x", PONS_F32, SHAPE(2, 3, 4, 5, 3)),
                        node_input(g, "w", PONS_F32, SHAPE(3)) };
    pons_error err = PONS_ERROR_INIT;
    pons_node *y;

    load_all_ops();
    y = pons_op(g, r->name, r->options, r->count, x);
    if (r->phrase == NULL) {
        ck_assert_msg(pons_graph_status(g, &err) == PONS_OK, "%s", err.text);
        ck_assert(shape_equal(pons_shape_of(y), pons_shape_of(x[0])));
    } else {
        ck_assert_int_eq(pons_graph_status(g, &err), PONS_PLUGIN);
        ck_assert_msg(strstr(err.text, r->phrase) != NULL, "'%s' is not in '%s'", r->phrase,
                      err.text);
    }
    graph_free(g);
}
END_TEST

START_TEST(op_operands_are_nodes_of_the_graph_with_a_public_type)
{
    static const char *const phrases[] = {
        "operand 1 is NULL", "operand 1 belongs to another graph",
        "op 'box_mean': input 1 is of 16 bits", "an f32 image of 5 axes, found 5"
    };

    load_all_ops();
    for (int i = 0; i < 4; i++) {
        pons_graph *g = graph_new(true), *other = graph_new(true);
        pons_node *x[] = { NULL, node_input(other, "x", PONS_F32, SHAPE(1, 2, 2, 2, 1)),
                           node_input(g, "y", PONS_BF16, SHAPE(1, 2, 2, 2, 1)),
                           node_input(g, "z", PONS_U8, SHAPE(1, 2, 2, 2, 1)) };
        pons_error err = PONS_ERROR_INIT;

        pons_op(g, "box_mean", NULL, 1, &x[i]);
        ck_assert_int_eq(pons_graph_status(g, &err), PONS_PLUGIN);
        ck_assert_msg(strstr(err.text, phrases[i]) != NULL, "%s", err.text);
        graph_free(g);
        graph_free(other);
    }
}
END_TEST

/* ---- a file with a wrong note ---------------------------------------------------------------- */

static char folder[] = "/tmp/pons-op-XXXXXX";

static void read_image(const char *path)
{
    FILE *f = fopen(path, "rb");

    ck_assert_ptr_nonnull(f);
    image = malloc(1 << 20);
    image_size = fread(image, 1, 1 << 20, f);
    ck_assert(image_size > 0 && image_size < 1 << 20);
    fclose(f);
}

static void write_op(const char *name)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/op/%s.so", folder, name);
    f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(image, 1, image_size, f), image_size);
    ck_assert_int_eq(fclose(f), 0);
}

static void rename_note(void) { memcpy(note_of_image()->name, "even", 4); }

START_TEST(a_changed_op_file_is_refused_and_its_twin_is_accepted)
{
    static const struct { void (*change)(void); const char *phrase; } cases[] = {
        { NULL, NULL },
        { change_major, "ABI major is 3, expected 2" },
        { change_minor, "expected at most 0" },
        { change_kind, "kind is 'loss', expected 'op'" },
        { rename_note, "name is 'eve" },
        { change_owner, "not a pons plugin" },
        { change_segment, "segment 0" },
    };
    pons_graph *g = graph_new(true);
    pons_node *x[2] = { node_input(g, "x", PONS_F32, SHAPE(2, 3)),
                        node_input(g, "w", PONS_F32, SHAPE(3)) };
    pons_error err = PONS_ERROR_INIT;
    char command[160];

    read_image("tests/plugins/.libs/op_breaks_rule.so");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof command, "%s/op", folder);
    ck_assert_int_eq(mkdir(command, 0755), 0);
    setenv("PONS_PLUGIN_PATH", folder, 1);
    if (cases[_i].change != NULL)
        cases[_i].change();
    write_op("op_breaks_rule");
    pons_op(g, "op_breaks_rule", NULL, 2, x);
    pons_graph_status(g, &err);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    ck_assert_msg(cases[_i].phrase != NULL || err.status == PONS_OK, "%s", err.text);
    if (cases[_i].phrase != NULL) {
        ck_assert_int_eq(err.status, PONS_PLUGIN);
        ck_assert_msg(strstr(err.text, cases[_i].phrase) != NULL, "%s", err.text);
    }
    graph_free(g);
    free(image);
}
END_TEST

/* ---- gradients ------------------------------------------------------------------------------- */

static pons_status op_gradient(const char *name, const char *options, bool stopped,
                               pons_error *err)
{
    pons_graph *g = graph_new(true);
    pons_node *p = pons_parameter_leaf(g, "p", PONS_ROLE_WEIGHT, SHAPE(2, 3),
                                       (pons_init){ PONS_INIT_CONSTANT, 1 });
    pons_node *x[2] = { stopped ? pons_stop_gradient(g, p) : p,
                        pons_parameter_leaf(g, "w", PONS_ROLE_BIAS, SHAPE(3),
                                            (pons_init){ PONS_INIT_CONSTANT, 1 }) };
    pons_node *of[] = { p, x[1] }, *gradient[2], *y;
    pons_status status;

    if (stopped)
        x[1] = pons_stop_gradient(g, x[1]);
    y = pons_sum_all(g, pons_mul(g, pons_op(g, name, options, 2, x), p));
    status = graph_gradient(g, y, 2, of, gradient, err);
    ck_assert(status != PONS_OK || (gradient[1] == NULL) == stopped);
    graph_free(g);
    return status;
}

START_TEST(training_through_an_op_needs_a_gradient_of_the_right_shape)
{
    static const struct { const char *name, *options, *phrase; } cases[] = {
        { "op_breaks_rule", NULL, NULL },
        { "op_no_gradient", NULL,
          "op 'op_no_gradient' has no gradient, and parameters are trained through it" },
        { "op_breaks_rule", "fault = gradient_shape",
          "op 'op_breaks_rule': its gradient of input 2 has shape [4], expected [3]" },
        { "op_breaks_rule", "fault = gradient_fails", "op 'op_breaks_rule': no way back" },
    };

    load_all_ops();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pons_error err = PONS_ERROR_INIT;
        pons_status status = op_gradient(cases[i].name, cases[i].options, false, &err);

        ck_assert_int_eq(status, cases[i].phrase != NULL ? PONS_PLUGIN : PONS_OK);
        ck_assert_msg(cases[i].phrase == NULL || strstr(err.text, cases[i].phrase) != NULL, "%s",
                      err.text);
    }
}
END_TEST

START_TEST(an_op_without_a_gradient_is_allowed_outside_training)
{
    pons_error err = PONS_ERROR_INIT;

    load_all_ops();
    ck_assert_msg(op_gradient("op_no_gradient", NULL, true, &err) == PONS_OK, "%s", err.text);
}
END_TEST

/* ---- the conformance test -------------------------------------------------------------------- */

static const struct { const char *name, *fault, *phrase; } faults[] = {
    { "op_breaks_rule", "none", NULL },
    { "op_no_gradient", "none", NULL },
    { "op_breaks_rule", "rank", "at most 6 axes, found 9" },
    { "op_breaks_rule", "empty", "impossible shape" },
    { "op_breaks_rule", "refused", "its shape rule accepts nothing that the check knows" },
    { "op_breaks_rule", "gradient_shape", "its gradient of input 2 has shape" },
    { "op_breaks_rule", "gradient_wrong", "gradient of 'input1' at element 0 is" },
    { "op_breaks_rule", "gradient_fails", "no way back" },
    { "op_breaks_rule", "behind", "run_float writes behind its output" },
    { "op_breaks_rule", "before", "run_float writes before its output" },
    { "op_breaks_rule", "unwritten", "run_float leaves element 89 of 90" },
    { "op_breaks_rule", "changing", "a second time" },
    { "op_breaks_rule", "parts", "in parts" },
    { "op_breaks_rule", "far", "run_double" },
    { "op_no_double", "none", "op 'op_no_double' has no operation 'run_double'" },
    { "op_nine_inputs", "none", "op 'op_nine_inputs' has 9 inputs, expected 1 to 8" },
};
enum { FAULTS = sizeof faults / sizeof faults[0] };

START_TEST(plugin_check_finds_each_broken_rule)
{
    char set[64];
    const char *sets[] = { set };
    invocation call = { .set_count = 1, .set = sets };
    pons_error err = PONS_ERROR_INIT;

    snprintf(set, sizeof set, "op.fault=%s", faults[_i].fault);
    plugin_check_op(load_op(faults[_i].name), &call, &err);
    if (faults[_i].phrase == NULL)
        ck_assert_msg(err.status == PONS_OK, "%s", err.text);
    else
        ck_assert_msg(err.status == PONS_PLUGIN && strstr(err.text, faults[_i].phrase) != NULL,
                      "'%s' is not in '%s'", faults[_i].phrase, err.text);
}
END_TEST

START_TEST(plugin_check_passes_an_op_of_images)
{
    const invocation call = { .set_count = 0 };
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(plugin_check_op(load_op("box_mean"), &call, &err) == PONS_OK, "%s", err.text);
}
END_TEST

/* ---- programs -------------------------------------------------------------------------------- */

typedef struct bench {
    device device;
    storage *storage;
    program *program;
} bench;

enum { EXTENT = 24, CHANNELS = 3, COUNT = 2 * EXTENT * EXTENT * EXTENT };

/* convolution -> relu -> box_mean: twice with one radius, once with another -> sum over channels */
static void bench_open(bench *b, int threads, precision precision)
{
    pons_device_settings settings = { .index = 0, .count = 1, .threads = threads };
    program_settings program = { .precision = precision, .micro_batches = 1, .accumulate = 1 };
    pons_graph *g = graph_new(false);
    pons_convolution c = PONS_CONVOLUTION_INIT;
    pons_node *x = node_input(g, "x", PONS_F32, SHAPE(2, EXTENT, EXTENT, EXTENT, CHANNELS)), *y;
    pons_node *w = pons_parameter_leaf(g, "w", PONS_ROLE_WEIGHT, SHAPE(4, 1, 1, 1, CHANNELS),
                                       (pons_init){ PONS_INIT_UNIFORM, 1 });
    pons_error err = PONS_ERROR_INIT;
    float *memory;

    load_all_ops();
    ck_assert_msg(device_open("cpu", &settings, NULL, &b->device, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(device_attach(&b->device, &err), PONS_OK);
    x = pons_relu(g, pons_convolve(g, x, w, &c));
    y = pons_mul(g, pons_op(g, "box_mean", "radius = 1", 1, &x),
                 pons_op(g, "box_mean", "radius = 2", 1, &x));
    y = pons_sum(g, pons_add(g, y, pons_op(g, "box_mean", "radius = 1", 1, &x)), PONS_CHANNEL);
    ck_assert_int_eq(storage_new(&b->device, &b->storage, &err), PONS_OK);
    ck_assert_msg(program_new(b->storage, &b->device, g, NULL, 1, &y, &program, &b->program, &err)
                  == PONS_OK, "%s", err.text);
    ck_assert_int_eq(storage_initialise(b->storage, 1, &err), PONS_OK);
    memory = program_input(b->program, "x", NULL);
    for (int i = 0; i < COUNT * CHANNELS; i++)
        memory[i] = (float)sin(0.37 * i);
    ck_assert_int_eq(program_evaluate(b->program, &err), PONS_OK);
}

static void bench_close(bench *b)
{
    program_free(b->program);
    storage_free(b->storage);
    device_close(&b->device);
}

START_TEST(op_results_do_not_depend_on_the_thread_count)
{
    bench one, two;

    bench_open(&one, 1, PRECISION_FP32);
    bench_open(&two, 2, PRECISION_FP32);
    ck_assert_mem_eq(program_output(one.program, 0, NULL), program_output(two.program, 0, NULL),
                     COUNT * sizeof(float));
    bench_close(&one);
    bench_close(&two);
}
END_TEST

/* Count of the ops that read and write 'bytes' each: 4 channels of f32. */
static int count_ops(const program *p, uint64_t bytes)
{
    program_facts facts;
    int count = 0;

    program_describe(p, &facts);
    for (int i = 0; i < facts.kernel_count; i++) {
        kernel_facts k = program_kernel(p, i);

        if (strcmp(k.kind, "op") != 0)
            continue;
        count++;
        ck_assert_str_eq(k.implementation, "plugin");
        ck_assert_msg(strstr(k.name, ": box_mean") != NULL, "%s", k.name);
        ck_assert_uint_eq(k.bytes, bytes);
    }
    return count;
}

START_TEST(equal_ops_are_merged_and_read_f32_in_a_bf16_program)
{
    static const precision precisions[] = { PRECISION_FP32, PRECISION_BF16 };
    const float *wide, *narrow;
    double most = 0;
    bench b[2];

    for (int i = 0; i < 2; i++) {
        bench_open(&b[i], 1, precisions[i]);
        ck_assert_int_eq(count_ops(b[i].program, 2 * 4 * COUNT * sizeof(float)), 2);
    }
    wide = program_output(b[0].program, 0, NULL);
    narrow = program_output(b[1].program, 0, NULL);
    for (int i = 0; i < COUNT; i++)
        most = fmax(most, fabs((double)wide[i]));
    for (int i = 0; i < COUNT; i++)
        ck_assert_double_le(fabs((double)wide[i] - (double)narrow[i]), BF16_OF_LARGEST * most);
    for (int i = 0; i < 2; i++)
        bench_close(&b[i]);
}
END_TEST

START_TEST(a_program_names_each_op_plugin_once)
{
    bench b;

    bench_open(&b, 1, PRECISION_FP32);
    ck_assert_ptr_eq(program_op(b.program, 0), load_op("box_mean"));
    ck_assert_ptr_null(program_op(b.program, 1));
    bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("op");

    tcase_add_loop_test(c, an_op_is_found_or_the_reason_is_reported, 0, REQUESTS);
    tcase_add_test(c, op_operands_are_nodes_of_the_graph_with_a_public_type);
    tcase_add_loop_test(c, a_changed_op_file_is_refused_and_its_twin_is_accepted,
                        0, 7);
    tcase_add_test(c, training_through_an_op_needs_a_gradient_of_the_right_shape);
    tcase_add_test(c, an_op_without_a_gradient_is_allowed_outside_training);
    tcase_add_loop_test(c, plugin_check_finds_each_broken_rule, 0, FAULTS);
    tcase_add_test(c, plugin_check_passes_an_op_of_images);
    tcase_add_test(c, op_results_do_not_depend_on_the_thread_count);
    tcase_add_test(c, equal_ops_are_merged_and_read_f32_in_a_bf16_program);
    tcase_add_test(c, a_program_names_each_op_plugin_once);
    return suite_run();
}
