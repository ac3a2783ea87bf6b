/*
 * check_golden_optimizers.c - ten steps of every optimizer against those of PyTorch and MONAI in
 * double.
 */
#include "support/graph/golden_program.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <string.h>

#include "device/device_open.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/program/explain.h"

static pons_error error;

#define MUST(call) ck_assert_msg((error = (pons_error)PONS_ERROR_INIT, (call)) == PONS_OK, "%s",  \
                                 error.text)

static const struct {
    const char *name;
    pons_role role;
} tensors[] = { { "weight", PONS_ROLE_WEIGHT }, { "bias", PONS_ROLE_BIAS },
                { "slope", PONS_ROLE_SLOPE } };

enum { TENSORS = 3, STEPS = 10 };

/* The loss is the sum of parameter x input, so that the gradients are the inputs. */
static program *build_optimizer_program(const golden *g, const golden_plugin *plugin,
                                        const device *d, storage *s, program_settings settings)
{
    pons_graph *graph = graph_new(true);
    pons_node *loss = NULL;
    program *p;

    for (int t = 0; t < TENSORS; t++) {
        const safetensor *start = golden_find(g, "start/%s", tensors[t].name);
        pons_shape shape = pons_shape_make(start->rank, start->extent);
        pons_node *x, *in;

        if (shape.rank == 5)
            shape = (pons_shape){ 5, { start->extent[0], start->extent[2], start->extent[3],
                                       start->extent[4], start->extent[1] } };
        x = pons_parameter_leaf(graph, tensors[t].name, tensors[t].role, shape,
                                (pons_init){ PONS_INIT_CONSTANT, 0 });
        in = node_input(graph, tensors[t].name, PONS_F32, shape);
        x = pons_sum_all(graph, pons_mul(graph, x, in));
        loss = loss != NULL ? pons_add(graph, loss, x) : x;
    }
    settings.optimizer = plugin->plugin->operations;
    settings.optimizer_config = plugin->options;
    MUST(program_new(s, d, graph, loss, 0, NULL, &settings, &p, &error));
    golden_restore(g, "start", s);
    return p;
}

static void check_step(const golden *g, const char *name, const golden_mode *m, const device *d,
                       const storage *s, int step)
{
    for (int t = 0; t < TENSORS; t++) {
        storage_tensor x = storage_item(s, STORAGE_PARAMETER, t);
        golden_difference away =
            golden_compare(golden_find(g, "%s/%d/%s", name, step, x.name),
                           golden_tensor(d, x.shape), false, x.memory);

        ck_assert_msg(away.largest <= OPTIMIZER_OF_LARGEST * away.of,
                      "'%s' after step %d of %s on %s: away by %g of %g", x.name, step, name,
                      m->name, away.largest, away.of);
    }
}

static void check_kernels(const program *p, const char *name)
{
    program_facts facts;
    int count = 0;

    program_describe(p, &facts);
    for (int i = 0; i < facts.kernel_count; i++)
        count += program_kernel(p, i).section == SECTION_UPDATE;
    ck_assert_msg(count <= 4, "%s takes %d kernels", name, count);
}

static void check_case(const golden *g, const json_t *c, const golden_mode *m, const device *d)
{
    const char *name = golden_text(c, "name");
    golden_plugin plugin;
    step_result r;
    storage *s;
    program *p;

    golden_load(&plugin, PONS_KIND_OPTIMIZER, golden_text(c, "optimizer"),
                sizeof(pons_optimizer_operations), json_object_get(c, "options"), false);
    MUST(storage_new(d, &s, &error));
    p = build_optimizer_program(g, &plugin, d, s, golden_settings(m));
    check_kernels(p, name);
    for (int step = 1; step <= STEPS; step++) {
        for (int t = 0; t < TENSORS; t++) {
            pons_tensor tensor;
            void *memory = program_input(p, tensors[t].name, &tensor);

            golden_read(golden_find(g, "gradient/%d/%s", step, tensors[t].name), tensor, false,
                        memory);
        }
        MUST(program_step_begin(p, (uint64_t)step, &error));
        MUST(program_micro(p, 0, &error));
        MUST(program_step_finish(p, golden_number(c, "lr"), &r, &error));
        check_step(g, name, m, d, s, step);
    }
    program_free(p);
    storage_free(s);
    golden_unload(&plugin);
}

START_TEST(ten_steps_are_those_of_pytorch)
{
    const golden_mode *m = &golden_modes[_i];
    const json_t *c;
    golden g;
    device d;
    size_t count;

    golden_open(&g, "optimizers");
    golden_device(m, &d);
    json_array_foreach(g.cases, count, c)
        check_case(&g, c, m, &d);
    ck_assert_int_eq((int)count, 11);
    golden_close(&g);
    if (m->plugin != NULL)
        device_close(&d);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("golden optimizers");

    tcase_add_loop_test(c, ten_steps_are_those_of_pytorch, 0, golden_mode_count);
    return suite_run();
}
