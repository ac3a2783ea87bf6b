/*
 * check_golden_trajectory - six steps of training against PyTorch in double: losses and the end.
 */
#include "golden_program.h"
#include "suite.h"
#include "tolerance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/open.h"

static pons_error error;

#define MUST(call) ck_assert_msg((error = (pons_error)PONS_ERROR_INIT, (call)) == PONS_OK, "%s",  \
                                 error.text)

/* What golden/make.py passed besides the defaults. */
static const struct {
    const char *name, *loss, *optimizer;
} options[] = {
    { "adam_dice_ce", "{}", "{}" },
    { "novograd_dice", "{\"include_background\":false}", "{}" },
    { "sgd_dice_focal", "{}", "{\"momentum\":0.9,\"nesterov\":true}" },
};

static const golden_mode bf16_modes[] = {
    { "reference, bf16", NULL, false, true, PRECISION_BF16 },
    { "cpu, bf16", "cpu", false, true, PRECISION_BF16 },
};

static json_document parse(const char *text)
{
    json_document d;

    MUST(json_parse(text, strlen(text), "options", PONS_DATA, &d, &error));
    return d;
}

static void fill(const golden *g, program *p, const char *name, const char *input)
{
    pons_tensor tensor;
    void *memory = program_input(p, input, &tensor);

    golden_read(golden_find(g, "%s/%s", name, input), tensor, true, memory);
}

static void check_end(const golden *g, const char *name, const golden_mode *m, const device *d,
                      const storage *s)
{
    static const storage_group groups[] = { STORAGE_PARAMETER, STORAGE_STATE };

    for (int k = 0; k < 2; k++)
        for (int i = 0; i < storage_count(s, groups[k]); i++) {
            storage_tensor t = storage_item(s, groups[k], i);
            golden_difference away = golden_compare(golden_find(g, "%s/end/%s", name, t.name),
                                                    golden_tensor(d, t.shape), false, t.memory);

            ck_assert_msg(away.largest <= fmax(TRAJECTORY_OF_LARGEST * away.of,
                                               TRAJECTORY_ABSOLUTE),
                          "'%s' at the end of %s on %s: away by %g of %g", t.name, name, m->name,
                          away.largest, away.of);
        }
}

static void check_case(const golden *g, const json_value *c, int i, const golden_mode *m,
                       const device *d)
{
    const char *name = json_member(c, "name")->text;
    const json_value *losses = json_member(c, "losses");
    double relative = m->precision == PRECISION_BF16 ? BF16_TRAJECTORY_RELATIVE
                                                     : TRAJECTORY_RELATIVE;
    json_document loss_options = parse(options[i].loss), rates = parse(options[i].optimizer);
    golden_plugin model, loss, optimizer;
    program_settings settings = golden_settings(m);
    char prefix[128];
    golden_net net;
    storage *s;
    program *p;

    ck_assert_str_eq(name, options[i].name);
    golden_load(&model, PONS_KIND_MODEL, "unet", sizeof(pons_model_operations),
                json_member(c, "arguments"), false);
    golden_load(&loss, PONS_KIND_LOSS, json_member(c, "loss")->text, sizeof(pons_loss_operations),
                loss_options.root, false);
    golden_load(&optimizer, PONS_KIND_OPTIMIZER, json_member(c, "optimizer")->text,
                sizeof(pons_optimizer_operations), rates.root, false);
    MUST(storage_new(d, &s, &error));
    net = golden_build(&model, &loss, golden_image_shape(golden_find(g, "%s/image", name)), 2,
                       false, true);
    settings.optimizer = optimizer.plugin->operations;
    settings.optimizer_config = optimizer.options;
    MUST(program_new(s, d, net.graph, net.loss, 0, NULL, &settings, &p, &error));
    snprintf(prefix, sizeof prefix, "%s/start", name);
    golden_restore(g, prefix, s);
    fill(g, p, name, "image");
    fill(g, p, name, "target");
    for (int k = 0; k < losses->count; k++) {
        double expected = json_item(losses, k)->number;
        step_result r;

        MUST(program_step_begin(p, (uint64_t)k, &error));
        MUST(program_micro(p, 0, &error));
        MUST(program_step_finish(p, json_member(c, "lr")->number, &r, &error));
        ck_assert_msg(fabs(r.loss - expected) <= relative * expected,
                      "loss %d of %s on %s: %.9g, expected %.9g", k, name, m->name, r.loss,
                      expected);
    }
    if (m->precision == PRECISION_FP32)
        check_end(g, name, m, d, s);
    program_free(p);
    storage_free(s);
    golden_unload(&model);
    golden_unload(&loss);
    golden_unload(&optimizer);
    json_free(&loss_options);
    json_free(&rates);
}

static void check_all(const golden_mode *m)
{
    golden g;
    device d;
    int i = 0;

    golden_open(&g, "trajectory");
    golden_device(m, &d);
    for (const json_value *c = g.cases.root->child; c != NULL; c = c->next, i++)
        check_case(&g, c, i, m, &d);
    ck_assert_int_eq(i, 3);
    golden_close(&g);
    if (m->plugin != NULL)
        device_close(&d);
}

START_TEST(six_steps_are_those_of_pytorch)
{
    check_all(&golden_modes[_i]);
}
END_TEST

START_TEST(six_steps_in_bf16_stay_near)
{
    check_all(&bf16_modes[_i]);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("golden trajectory");

    tcase_add_loop_test(c, six_steps_are_those_of_pytorch, 0, golden_mode_count);
    tcase_add_loop_test(c, six_steps_in_bf16_stay_near, 0, 2);
    return suite_run();
}
