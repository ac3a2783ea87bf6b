/*
 * check_golden_optimizers.c - ten steps of every optimizer against those of PyTorch and MONAI in
 * double.
 */
#include "support/graph/golden_program.h"
#include "support/must.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <string.h>

#include "device/device_open.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/program/explain.h"

static const struct {
    const char *name;
    pons_role role;
} tensors[] = { { "weight", PONS_ROLE_WEIGHT }, { "bias", PONS_ROLE_BIAS },
                { "slope", PONS_ROLE_SLOPE } };

enum { TENSORS = 3, STEPS = 10 };

/* The averages begin at the weights. */
static void start_averages(storage *s, const device *d)
{
    for (int t = 0; t < storage_count(s, STORAGE_EMA); t++) {
        storage_tensor from = storage_item(s, STORAGE_PARAMETER, t);
        size_t size = d->wide ? sizeof(double) : sizeof(float);
        memcpy(storage_item(s, STORAGE_EMA, t).memory, from.memory,
               (size_t)shape_count(from.shape) * size);
    }
}

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
    start_averages(s, d);
    return p;
}

/* The parameters after a step, or their averages, whose names in the file begin with 'prefix'. */
static void check_step(const golden *g, const char *name, const golden_mode *m, const device *d,
                       const storage *s, storage_group group, const char *prefix, int step)
{
    for (int t = 0; t < TENSORS; t++) {
        storage_tensor x = storage_item(s, group, t);
        golden_difference away =
            golden_compare(golden_find(g, "%s/%d/%s%s", name, step, prefix, x.name),
                           golden_tensor(d, x.shape), false, x.memory);

        ck_assert_msg(away.largest <= OPTIMIZER_OF_LARGEST * away.of,
                      "'%s%s' after step %d of %s on %s: away by %g of %g", prefix, x.name, step,
                      name, m->name, away.largest, away.of);
    }
}

/* The rate of a step, of which a case has one, or one for all. */
static double rate_of(const json_t *c, int step)
{
    const json_t *lr = json_object_get(c, "lr");

    return json_number_value(json_is_array(lr) ? json_array_get(lr, (size_t)step - 1) : lr);
}

static void check_norm(const json_t *c, const char *name, int step, double found)
{
    const json_t *norms = json_object_get(c, "grad_norm");
    double norm = json_number_value(json_array_get(norms, (size_t)step - 1));

    if (norms != NULL)
        ck_assert_msg(fabs(found - norm) <= OPTIMIZER_OF_LARGEST * norm,
                      "norm in step %d of %s: %.9g, expected %.9g", step, name, found, norm);
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
    json_t *options = json_object_get(c, "options");
    program_settings settings = golden_settings(m);
    golden_plugin plugin;
    step_result r;
    storage *s;
    program *p;

    settings.clip_norm = json_number_value(json_object_get(options, "clip_norm"));
    settings.ema_decay = json_number_value(json_object_get(options, "ema_decay"));

    golden_load(&plugin, PONS_KIND_OPTIMIZER, golden_text(c, "optimizer"),
                sizeof(pons_optimizer_operations), options, false);
    MUST(storage_new(d, &s, &error));
    p = build_optimizer_program(g, &plugin, d, s, settings);
    if (settings.clip_norm == 0 && settings.ema_decay == 0)
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
        MUST(program_step_finish(p, rate_of(c, step), &r, &error));
        check_norm(c, name, step, r.grad_norm);
        check_step(g, name, m, d, s, STORAGE_PARAMETER, "", step);
        if (settings.ema_decay > 0)
            check_step(g, name, m, d, s, STORAGE_EMA, "ema/", step);
    }
    program_free(p);
    storage_free(s);
    golden_unload(&plugin);
}

static void check_cases(const golden_mode *m, const char *file, int expected)
{
    const json_t *c;
    golden g;
    device d;
    size_t count;

    golden_open(&g, file);
    golden_device(m, &d);
    json_array_foreach(g.cases, count, c)
        check_case(&g, c, m, &d);
    ck_assert_int_eq((int)count, expected);
    golden_close(&g);
    if (m->plugin != NULL)
        device_close(&d);
}

START_TEST(ten_steps_are_those_of_pytorch)
{
    check_cases(&golden_modes[_i], "optimizers", 11);
}
END_TEST

START_TEST(steps_with_rates_clipping_and_averages_are_those_of_pytorch)
{
    check_cases(&golden_modes[_i], "optimizers_more", 8);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("golden optimizers");

    tcase_add_loop_test(c, ten_steps_are_those_of_pytorch, 0, golden_mode_count);
    tcase_add_loop_test(c, steps_with_rates_clipping_and_averages_are_those_of_pytorch, 0,
                        golden_mode_count);
    return suite_run();
}
