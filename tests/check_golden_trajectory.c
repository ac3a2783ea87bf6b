/*
 * check_golden_trajectory - six steps of training against PyTorch in double: losses and the end.
 */
#include "golden_program.h"
#include "suite.h"
#include "tolerance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/device_open.h"

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

typedef struct run {
    const json_value *golden;
    golden_plugin model, loss, optimizer;
    json_document loss_options, rates;
    storage *storage;
    program *program;
} run;

static run run_open(const golden *g, const json_value *c, int i, const golden_mode *m,
                    const device *d)
{
    const char *name = json_member(c, "name")->text;
    run r = { .golden = c, .loss_options = parse(options[i].loss),
              .rates = parse(options[i].optimizer) };
    program_settings settings = golden_settings(m);
    char prefix[128];
    golden_net net;

    ck_assert_str_eq(name, options[i].name);
    golden_load(&r.model, PONS_KIND_MODEL, "unet", sizeof(pons_model_operations),
                json_member(c, "arguments"), false);
    golden_load(&r.loss, PONS_KIND_LOSS, json_member(c, "loss")->text, sizeof(pons_loss_operations),
                r.loss_options.root, false);
    golden_load(&r.optimizer, PONS_KIND_OPTIMIZER, json_member(c, "optimizer")->text,
                sizeof(pons_optimizer_operations), r.rates.root, false);
    MUST(storage_new(d, &r.storage, &error));
    net = golden_build(&r.model, &r.loss, golden_image_shape(golden_find(g, "%s/image", name)), 2,
                       false, true);
    settings.optimizer = r.optimizer.plugin->operations;
    settings.optimizer_config = r.optimizer.options;
    MUST(program_new(r.storage, d, net.graph, net.loss, 0, NULL, &settings, &r.program, &error));
    snprintf(prefix, sizeof prefix, "%s/start", name);
    golden_restore(g, prefix, r.storage);
    fill(g, r.program, name, "image");
    fill(g, r.program, name, "target");
    return r;
}

static void run_check(const run *r, const golden *g, const golden_mode *m, const device *d)
{
    const char *name = json_member(r->golden, "name")->text;
    const json_value *losses = json_member(r->golden, "losses");
    double relative = m->precision == PRECISION_FP32 ? TRAJECTORY_RELATIVE
                                                     : BF16_TRAJECTORY_RELATIVE;

    for (int k = 0; k < losses->count; k++) {
        double expected = json_item(losses, k)->number;
        step_result s;

        MUST(program_step_begin(r->program, (uint64_t)k, &error));
        MUST(program_micro(r->program, 0, &error));
        MUST(program_step_finish(r->program, json_member(r->golden, "lr")->number, &s, &error));
        ck_assert_msg(fabs(s.loss - expected) <= relative * expected,
                      "loss %d of %s on %s: %.9g, expected %.9g", k, name, m->name, s.loss,
                      expected);
    }
    if (m->precision == PRECISION_FP32)
        check_end(g, name, m, d, r->storage);
}

static void run_close(run *r)
{
    program_free(r->program);
    storage_free(r->storage);
    golden_unload(&r->model);
    golden_unload(&r->loss);
    golden_unload(&r->optimizer);
    json_free(&r->loss_options);
    json_free(&r->rates);
}

/*
 * All are made before the first one runs: a card compiles their kernels, mostly the same, at once.
 */
static void check_all(const golden_mode *m)
{
    enum { RUNS = sizeof options / sizeof *options };
    const int most = golden_is_slow(m) ? 1 : RUNS;
    run runs[RUNS];
    golden g;
    device d;
    int count = 0;

    golden_open(&g, "trajectory");
    golden_device(m, &d);
    ck_assert_int_eq(g.cases.root->count, RUNS);
    for (const json_value *c = g.cases.root->child; count < most; c = c->next, count++)
        runs[count] = run_open(&g, c, count, m, &d);
    for (int i = 0; i < count; i++)
        run_check(&runs[i], &g, m, &d);
    for (int i = 0; i < count; i++)
        run_close(&runs[i]);
    golden_close(&g);
    if (m->plugin != NULL)
        device_close(&d);
}

START_TEST(six_steps_are_those_of_pytorch)
{
    check_all(&golden_modes[_i]);
}
END_TEST

START_TEST(six_steps_of_narrow_numbers_stay_near)
{
    check_all(&golden_bf16_modes[_i]);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("golden trajectory");

    tcase_add_loop_test(c, six_steps_are_those_of_pytorch, 0, golden_mode_count);
    tcase_add_loop_test(c, six_steps_of_narrow_numbers_stay_near, 0, golden_bf16_mode_count);
    return suite_run();
}
