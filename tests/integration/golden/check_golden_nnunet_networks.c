/*
 * check_golden_nnunet_networks.c - plain_unet and residual_unet against nnU-Net's PlainConvUNet and
 * ResidualEncoderUNet: all outputs, gradients of their weighted sum, names and counts of
 * parameters.
 */
#include "support/graph/golden_program.h"
#include "support/must.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/device_open.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"

static golden_plugin load_model(const json_t *c)
{
    json_t *options = json_object_get(json_object_get(c, "architecture"), "arch_kwargs");
    golden_plugin model;

    golden_load(&model, PONS_KIND_MODEL, golden_network_plugin(c), sizeof(pons_model_operations),
                options, golden_network_flat(c));
    return model;
}

/* The sum of all outputs, each multiplied by an input of its shape. */
static pons_node *weighted_sum(golden_net *net)
{
    pons_node *sum = pons_scalar(net->graph, 0);

    net->graph->scope = SCOPE_LOSS;
    for (int i = 0; i < net->outputs.count; i++) {
        pons_node *x = net->outputs.item[i];
        pons_node *weight = node_input(net->graph, pons_name(net->graph, "weight_%d", i), PONS_F32,
                                       pons_shape_of(x));
        sum = pons_add(net->graph, sum, pons_sum_all(net->graph, pons_mul(net->graph, x, weight)));
    }
    return sum;
}

static void fill(const golden *g, const char *name, program *p, const char *input)
{
    pons_tensor tensor;
    void *memory = program_input(p, input, &tensor);

    golden_read(golden_find(g, "%s/%s", name, input), tensor, true, memory);
}

static void check_outputs(const golden *g, const char *name, program *p, int count)
{
    for (int i = 0; i < count; i++) {
        pons_tensor tensor;
        const void *memory = program_output(p, i, &tensor);
        golden_difference away = golden_compare(golden_find(g, "%s/head_%d", name, i), tensor,
                                                true, memory);

        ck_assert_msg(away.largest <= NETWORK_OF_LARGEST * away.of,
                      "output %d of %s: away by %g of %g", i, name, away.largest, away.of);
    }
}

static golden_difference gradient_difference(const golden *g, const char *name, const device *d,
                                             storage_tensor t, program *p)
{
    return golden_compare(golden_find(g, "%s/gradient/%s", name, t.name),
                          golden_tensor(d, t.shape), false, program_gradient(p, t.name));
}

static void check_gradients(const golden *g, const char *name, const device *d, storage *s,
                            program *p)
{
    double network = 0;

    for (int i = 0; i < storage_count(s, STORAGE_PARAMETER); i++)
        network = fmax(network, gradient_difference(g, name, d,
                                                    storage_item(s, STORAGE_PARAMETER, i), p).of);
    for (int i = 0; i < storage_count(s, STORAGE_PARAMETER); i++) {
        storage_tensor t = storage_item(s, STORAGE_PARAMETER, i);
        golden_difference away = gradient_difference(g, name, d, t, p);

        ck_assert_msg(away.largest <= GRADIENT_OF_LARGEST * fmax(away.of, GRADIENT_FLOOR * network),
                      "gradient of '%s' of %s: away by %g of %g (network %g)", t.name, name,
                      away.largest, away.of, network);
    }
}

static void check_case(const golden *g, const json_t *c, const golden_mode *m, device *d)
{
    const char *name = golden_text(c, "name");
    pons_shape image = golden_image_shape(golden_find(g, "%s/image", name));
    pons_task task = golden_network_task(c, image);
    program_settings settings = golden_settings(m);
    golden_plugin model = load_model(c), sgd;
    golden_net net = golden_build_task(&model, NULL, image, &task, true);
    double value = golden_number(c, "value");
    pons_node *sum = weighted_sum(&net);
    char prefix[64];
    step_result r;
    storage *s;
    program *p;

    golden_load(&sgd, PONS_KIND_OPTIMIZER, "sgd", sizeof(pons_optimizer_operations), NULL, false);
    settings.optimizer = sgd.plugin->operations;
    settings.optimizer_config = sgd.options;
    MUST(storage_new(d, &s, &error));
    MUST(program_new(s, d, net.graph, sum, net.outputs.count, net.outputs.item, &settings, &p,
                     &error));
    snprintf(prefix, sizeof prefix, "%s/state", name);
    golden_restore(g, prefix, s);
    fill(g, name, p, "image");
    for (int i = 0; i < net.outputs.count; i++)
        fill(g, name, p, i == 0 ? "weight_0" : "weight_1");
    MUST(program_step_begin(p, 0, &error));
    MUST(program_micro(p, 0, &error));
    MUST(program_step_finish(p, 0, &r, &error));
    /* The sum of some thousand products cancels to a few hundred. */
    ck_assert_msg(fabs(r.loss - value) <= NETWORK_OF_LARGEST * fabs(value), "%s on %s: %.9g, not "
                  "%.9g", name, m->name, r.loss, value);
    check_outputs(g, name, p, net.outputs.count);
    check_gradients(g, name, d, s, p);
    program_free(p);
    storage_free(s);
    golden_unload(&model);
    golden_unload(&sgd);
}

START_TEST(networks_are_those_of_nnunet)
{
    const golden_mode *m = &golden_modes[_i];
    const json_t *c;
    golden g;
    device d;
    int count = 0;
    size_t i;

    golden_open(&g, "nnunet/networks");
    golden_device(m, &d);
    json_array_foreach(g.cases, i, c)
        if (golden_network_options(c) != NULL) {
            check_case(&g, c, m, &d);
            count++;
        }
    ck_assert_int_eq(count, 3);
    golden_close(&g);
    if (m->plugin != NULL)
        device_close(&d);
}
END_TEST

/* ---- counts ---------------------------------------------------------------------------------- */

/* The entry of 'unique_parameters' for a leaf, in PyTorch's order of axes; 2D has no depth. */
static void check_leaf(const json_t *unique, const leaf *l, bool flat)
{
    const json_t *entry = NULL, *shape;
    pons_shape s = l->shape;
    size_t i;

    json_array_foreach(unique, i, entry)
        if (strcmp(json_string_value(json_array_get(entry, 0)), l->name) == 0)
            break;
    ck_assert_msg(i < json_array_size(unique), "nnU-Net has no '%s'", l->name);
    shape = json_array_get(entry, 1);
    if (s.rank == 5)
        s = (pons_shape){ 5, { s.extent[0], s.extent[4], s.extent[1], s.extent[2], s.extent[3] } };
    if (s.rank == 5 && flat)
        s = (pons_shape){ 4, { s.extent[0], s.extent[1], s.extent[3], s.extent[4] } };
    ck_assert_int_eq((int)json_array_size(shape), s.rank);
    for (int axis = 0; axis < s.rank; axis++)
        ck_assert_msg(json_integer_value(json_array_get(shape, (size_t)axis)) == s.extent[axis],
                      "'%s', axis %d", l->name, axis);
}

/* Parameters of a case, at the smallest extent that its strides allow. */
static void check_count(const json_t *c)
{
    json_t *unique = json_object_get(c, "unique_parameters");
    golden_plugin model = load_model(c);
    const pons_model_operations *operations = model.plugin->operations;
    pons_shape image = { 5, { 1, 1, 1, 1, (int64_t)golden_number(c, "channels") } };
    pons_task task;
    golden_net net;
    int64_t parameters = 0;
    int divisor[3], tensors = 0;

    MUST(operations->divisor(model.options, divisor, &error));
    for (int i = 0; i < 3; i++)
        image.extent[1 + i] = 2 * divisor[i];
    if (golden_network_flat(c))
        image.extent[1] = 1;
    task = golden_task(image, (int)golden_number(c, "heads"), golden_network_flat(c));
    net = golden_build_task(&model, NULL, image, &task, true);
    for (const leaf *l = net.graph->parameter; l != NULL; l = l->next, tensors++) {
        if (unique != NULL)
            check_leaf(unique, l, task.flat);
        parameters += shape_count(l->shape);
    }
    ck_assert_ptr_null(net.graph->state);
    if (unique != NULL)
        ck_assert_int_eq(tensors, (int)json_array_size(unique));
    else
        ck_assert_int_eq(parameters, (int64_t)golden_number(c, "parameters"));
    graph_free(net.graph);
    golden_unload(&model);
}

START_TEST(names_shapes_and_counts_are_those_of_nnunet)
{
    const json_t *c;
    golden g;
    size_t i;

    golden_open(&g, "nnunet/networks");
    json_array_foreach(g.cases, i, c)
        check_count(c);
    ck_assert_int_eq((int)i, 10);
    golden_close(&g);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("golden networks of nnU-Net");

    tcase_add_loop_test(c, networks_are_those_of_nnunet, 0, golden_mode_count);
    tcase_add_test(c, names_shapes_and_counts_are_those_of_nnunet);
    return suite_run();
}
