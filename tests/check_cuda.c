/*
 * check_cuda.c - the kernels that the cuda device writes, compiled by the host's compiler and run
 * by an executor in place of the driver: the op table against the reference in double.
 *
 * What runs is the text that NVRTC compiles, through the calls that the driver gets.
 */
#include "../plugins/devices/cuda/cuda.h"
#include "fakes.h"
#include "graph/compile.h"
#include "op_table.h"
#include "suite.h"
#include "tolerance.h"

static const pons_moment moment = { 7, 3, 2 };

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
        ck_assert_msg(evaluation_run(x->found, &moment, &err) == PONS_OK, "%s: %s", x->name,
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

int main(void)
{
    TCase *c = suite_new("cuda");

    if (!fakes_open())
        return 1;
    tcase_add_test(c, every_case_agrees);
    tcase_add_test(c, every_case_agrees_in_16_bits);
    return suite_run();
}
