/*
 * check_device_table.c - the op table on the cpu device against the reference in double, for every
 * instruction set and for one and two threads. The device supports every request, with oneDNN and
 * without.
 */
#include "cpu/cpu_testing.h"
#include "graph/program/program_internal.h"
#include "graph/reference/reference.h"
#include "support/graph/op_table.h"
#include "support/graph/units.h"
#include "support/suite.h"
#include "support/tolerance.h"

/* Kinds that the device leaves to the core, with tensors in 32 and in 16 bits. */
static const struct { bool in_float, in_bf16; } exceptions[PONS_KERNEL_KIND_COUNT] = {
    [PONS_KERNEL_ALL_REDUCE] = { true, true }, /* a copy for one replica, else a collective       */
    [PONS_KERNEL_OP] = { false, true },        /* programs keep its tensors in f32                */
    [PONS_KERNEL_PATCH] = { false, true },     /* programs keep its tensors in f32                */
    [PONS_KERNEL_PATCH_NORMAL] = { false, true },
    [PONS_KERNEL_PATCH_ACCUMULATE] = { false, true },
};

static void every_kind_is_own(const op_comparison *both)
{
    for (int kind = 1; kind < PONS_KERNEL_KIND_COUNT; kind++) {
        const char *name = kernel_kind_name((pons_kernel_kind)kind);
        bool expected = both->storage == PONS_BF16 ? exceptions[kind].in_bf16
                                                   : exceptions[kind].in_float;
        ck_assert_msg(expected == (both->declined[kind] > 0),
                      "%d of %d requests for '%s' run on the reference kernel",
                      both->declined[kind], both->requests[kind], name);
        ck_assert_msg(both->requests[kind] > 0 || kind == PONS_KERNEL_COPY,
                      "the table has no '%s'", name);
    }
}

static void table_agrees(int threads, int row, pons_type storage, double tolerance)
{
    const pons_device_settings settings = { .count = 1, .threads = threads };
    pons_error err = PONS_ERROR_INIT;
    device wide, cpu = { .operations = &cpu_operations };
    op_comparison both = { &wide, &cpu, storage, tolerance, { 0 }, { 0 } };

    device_reference(&wide, true);
    ck_assert_int_eq(cpu_operations.open(&settings, &cpu.handle, &err), PONS_OK);
    cpu_operations.facts(cpu.handle, &cpu.facts);
    ck_assert_int_eq(cpu_operations.attach(cpu.handle, &err), PONS_OK);
    cpu_device_choose_row(cpu.handle, row);
    ck_assert_msg(op_table_compare(&both, 2, &err) == PONS_OK, "%d threads, row %d: %s", threads,
                  row, err.text);
    every_kind_is_own(&both);
    cpu_operations.close(cpu.handle);
}

START_TEST(every_case_agrees_on_every_isa)
{
    for (int row = 0; row < isa_rows_count(); row++)
        table_agrees(1, row, PONS_F32, FLOAT_OF_LARGEST);
}
END_TEST

START_TEST(every_case_agrees_on_two_threads)
{
    table_agrees(2, isa_rows_count() - 1, PONS_F32, FLOAT_OF_LARGEST);
}
END_TEST

START_TEST(every_case_agrees_in_bf16_on_every_isa)
{
    for (int row = 0; row < isa_rows_count(); row++)
        table_agrees(1, row, PONS_BF16, BF16_OF_LARGEST);
}
END_TEST

/* The timing cases of tests/bench/bench_ops run without an error; times are not compared. */
START_TEST(every_timing_case_runs)
{
    pons_device_settings settings = { .index = 0, .count = 1, .threads = 1 };
    device cpu = { .operations = &cpu_operations };
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(cpu_operations.open(&settings, &cpu.handle, &err), PONS_OK);
    cpu_operations.facts(cpu.handle, &cpu.facts);
    for (int kind = 0; kind < NODE_FAILED; kind++) {
        op_timing timing;
        op_time time = { .seconds = 0 };

        if (op_timing_make(kind, &timing, &err) == PONS_OK)
            op_timing_run(&timing, &cpu, 1, &time, &err);
        op_timing_free(&timing);
        ck_assert_msg(err.status == PONS_OK, "%s: %s", node_kinds[kind].name, err.text);
        ck_assert_msg(time.seconds > 0 && time.implementation != NULL, "%s", node_kinds[kind].name);
    }
    cpu_operations.close(cpu.handle);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("device_table");

    units_say_rows();
    tcase_add_test(c, every_case_agrees_on_every_isa);
    tcase_add_test(c, every_case_agrees_in_bf16_on_every_isa);
    tcase_add_test(c, every_case_agrees_on_two_threads);
    tcase_add_test(c, every_timing_case_runs);
    return suite_run();
}
