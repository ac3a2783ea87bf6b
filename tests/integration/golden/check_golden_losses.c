/*
 * check_golden_losses.c - values and gradients of all loss plugins against those of MONAI in
 * double.
 */
#include "support/graph/golden_program.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <string.h>

#include "device/device_open.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"

static pons_error error;

#define MUST(call) ck_assert_msg((error = (pons_error)PONS_ERROR_INIT, (call)) == PONS_OK, "%s",  \
                                 error.text)

/* Logits are a parameter, so that the program computes their gradient. */
static program *build(const golden_plugin *plugin, const device *d, storage *s,
                      const program_settings *settings, pons_shape shape, bool regions)
{
    pons_graph *g = graph_new(true);
    pons_node *logits = pons_parameter_leaf(g, "logits", PONS_ROLE_WEIGHT, shape,
                                            (pons_init){ PONS_INIT_CONSTANT, 0 });
    pons_task task = { .size = sizeof task, .channels = 1, .classes = (int)shape.extent[4],
                       .target = regions ? PONS_TARGET_REGIONS : PONS_TARGET_LABELS,
                       .flat_axis = -1 };
    pons_target target = { .activation = regions ? PONS_ACTIVATION_SIGMOID
                                                 : PONS_ACTIVATION_SOFTMAX };
    const pons_loss_operations *loss = plugin->plugin->operations;
    pons_node *value;
    program *p;

    if (!regions)
        shape.extent[4] = 1;
    target.node = node_input(g, "target", PONS_U8, shape);
    g->scope = SCOPE_LOSS;
    MUST(loss->build(g, plugin->options, &task, logits, &target, &value, &error));
    MUST(program_new(s, d, g, value, 0, NULL, settings, &p, &error));
    return p;
}

static void check_loss_case(const golden *g, const json_t *c, const golden_mode *m, device *d)
{
    const char *name = golden_text(c, "name");
    const safetensor *logits = golden_find(g, "%s/logits", name);
    bool regions = strcmp(golden_text(c, "activation"), "sigmoid") == 0;
    pons_tensor tensor = golden_tensor(d, golden_image_shape(logits)), target;
    program_settings settings = golden_settings(m);
    double value = golden_number(c, "value");
    golden_difference away;
    golden_plugin plugin;
    step_result r;
    storage *s;
    program *p;
    void *memory;

    golden_load(&plugin, PONS_KIND_LOSS, golden_text(c, "loss"),
                sizeof(pons_loss_operations), json_object_get(c, "options"), false);
    MUST(storage_new(d, &s, &error));
    p = build(&plugin, d, s, &settings, tensor.shape, regions);
    golden_read(logits, tensor, true, storage_item(s, STORAGE_PARAMETER, 0).memory);
    memory = program_input(p, "target", &target);
    golden_read(golden_find(g, "%s/target", name), target, true, memory);
    MUST(program_step_begin(p, 0, &error));
    MUST(program_micro(p, 0, &error));
    MUST(program_step_finish(p, 0, &r, &error));
    ck_assert_msg(fabs(r.loss - value) <= LOSS_RELATIVE * fabs(value),
                  "%s on %s: %.9g, expected %.9g", name, m->name, r.loss, value);
    away = golden_compare(golden_find(g, "%s/gradient", name), tensor, true,
                          program_gradient(p, "logits"));
    ck_assert_msg(away.largest <= LOSS_GRADIENT_OF_LARGEST * away.of,
                  "gradient of %s on %s: away by %g of %g", name, m->name, away.largest, away.of);
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
        check_loss_case(&g, c, m, &d);
    ck_assert_int_eq((int)count, expected);
    golden_close(&g);
    if (m->plugin != NULL)
        device_close(&d);
}

START_TEST(losses_and_gradients_are_those_of_monai)
{
    check_cases(&golden_modes[_i], "losses", 40);
}
END_TEST

START_TEST(the_dice_term_of_one_class_takes_no_weight)
{
    check_cases(&golden_modes[_i], "one_class", 7);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("golden losses");

    tcase_add_loop_test(c, losses_and_gradients_are_those_of_monai, 0, golden_mode_count);
    tcase_add_loop_test(c, the_dice_term_of_one_class_takes_no_weight, 0, golden_mode_count);
    return suite_run();
}
