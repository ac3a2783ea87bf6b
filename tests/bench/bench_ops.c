/*
 * bench_ops.c - the time of each kind of node on the cpu device, one kernel at a time without
 * fusion, with the cases of the op table. Prints; run by hand in the build folder:
 *
 *     make tests/bench/bench_ops && tests/bench/bench_ops [threads [rounds]]
 *
 * A kind without a kernel of its own (leaves, reshapes) shows the kernel that reads it.
 */
#include "bench/bench_arguments.h"
#include "cpu/cpu.h"
#include "graph/ir/shape.h"
#include "support/graph/op_table.h"

#include <stdio.h>
#include <stdlib.h>

static void print_row(const op_timing *t, const op_time *time)
{
    char text[160];

    printf("%-28s %-10s %10.1f %8.2f  %s\n", node_kinds[t->op->kind].name, time->implementation,
           1e6 * time->seconds, 1e-9 * (double)t->bytes / time->seconds,
           shape_text(t->node->shape, text, sizeof text));
}

static int bench(const device *cpu, int rounds)
{
    pons_error err = PONS_ERROR_INIT;

    printf("%-28s %-10s %10s %8s  output\n", "kind", "kernel", "us", "GB/s");
    for (int kind = 0; kind < NODE_FAILED && err.status == PONS_OK; kind++) {
        op_timing t;
        op_time time;

        if (op_timing_make(kind, &t, &err) == PONS_OK
            && op_timing_run(&t, cpu, rounds, &time, &err) == PONS_OK)
            print_row(&t, &time);
        op_timing_free(&t);
    }
    if (err.status != PONS_OK)
        fprintf(stderr, "bench_ops: %s\n", err.text);
    return (int)err.status;
}

int main(int argc, char **argv)
{
    int threads = bench_number(argc, argv, 1, "threads", 1, BENCH_THREADS_MOST, 1);
    pons_device_settings settings = { .count = 1, .threads = threads };
    int rounds = bench_number(argc, argv, 2, "rounds", 1, 1000000, 10);
    device cpu = { .operations = &cpu_operations };
    pons_error err = PONS_ERROR_INIT;
    int status;

    bench_no_more(argc, argv, 2);
    if (cpu_operations.open(&settings, &cpu.handle, &err) != PONS_OK
        || cpu_operations.attach(cpu.handle, &err) != PONS_OK) {
        fprintf(stderr, "bench_ops: %s\n", err.text);
        return (int)err.status;
    }
    cpu_operations.facts(cpu.handle, &cpu.facts);
    status = bench(&cpu, rounds);
    cpu_operations.close(cpu.handle);
    return status;
}
