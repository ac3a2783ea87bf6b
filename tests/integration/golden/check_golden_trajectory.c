/*
 * check_golden_trajectory.c - six training steps against PyTorch in double: losses, final weights
 * and optimizer state.
 */
#include "support/graph/golden_program.h"
#include "support/must.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/device_open.h"

/* Options of golden/make.py that are not defaults. */
static const struct {
    const char *name, *loss, *optimizer;
} options[] = {
    { "adam_dice_ce", "{}", "{}" },
    { "novograd_dice", "{\"include_background\":false}", "{}" },
    { "sgd_dice_focal", "{}", "{\"momentum\":0.9,\"nesterov\":true}" },
};

static json_t *parse_json(const char *text)
{
    json_t *d;

    MUST(json_parse(text, strlen(text), "options", PONS_DATA, &d, &error));
    return d;
}

static void fill_input(const golden *g, program *p, const char *name, const char *input)
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
    const json_t *golden;
    golden_plugin model, loss, optimizer;
    json_t *loss_options, *rates;
    storage *storage;
    program *program;
} run;

static run run_open(const golden *g, const json_t *c, int i, const golden_mode *m,
                    const device *d)
{
    const char *name = golden_text(c, "name");
    run r = { .golden = c, .loss_options = parse_json(options[i].loss),
              .rates = parse_json(options[i].optimizer) };
    program_settings settings = golden_settings(m);
    char prefix[128];
    golden_net net;

    ck_assert_str_eq(name, options[i].name);
    golden_load(&r.model, PONS_KIND_MODEL, "unet", sizeof(pons_model_operations),
                json_object_get(c, "arguments"), false);
    golden_load(&r.loss, PONS_KIND_LOSS, golden_text(c, "loss"), sizeof(pons_loss_operations),
                r.loss_options, false);
    golden_load(&r.optimizer, PONS_KIND_OPTIMIZER, golden_text(c, "optimizer"),
                sizeof(pons_optimizer_operations), r.rates, false);
    MUST(storage_new(d, &r.storage, &error));
    net = golden_build(&r.model, &r.loss, golden_image_shape(golden_find(g, "%s/image", name)), 2,
                       false, true);
    settings.optimizer = r.optimizer.plugin->operations;
    settings.optimizer_config = r.optimizer.options;
    MUST(program_new(r.storage, d, net.graph, net.loss, 0, NULL, &settings, &r.program, &error));
    snprintf(prefix, sizeof prefix, "%s/start", name);
    golden_restore(g, prefix, r.storage);
    fill_input(g, r.program, name, "image");
    fill_input(g, r.program, name, "target");
    return r;
}

static void run_check(const run *r, const golden *g, const golden_mode *m, const device *d)
{
    const char *name = golden_text(r->golden, "name");
    const json_t *losses = json_object_get(r->golden, "losses");
    double relative = m->precision == PRECISION_FP32 ? TRAJECTORY_RELATIVE
                                                     : BF16_TRAJECTORY_RELATIVE;

    for (int k = 0; k < (int)json_array_size(losses); k++) {
        double expected = json_number_value(json_array_get(losses, (size_t)k));
        step_result s;

        MUST(program_step_begin(r->program, (uint64_t)k, &error));
        MUST(program_micro(r->program, 0, &error));
        MUST(program_step_finish(r->program, golden_number(r->golden, "lr"), &s, &error));
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
    json_decref(r->loss_options);
    json_decref(r->rates);
}

/*
 * All programs are made before the first one runs. The cuda device then compiles their kernels,
 * which are mostly the same, at once.
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
    ck_assert_int_eq((int)json_array_size(g.cases), RUNS);
    for (; count < most; count++)
        runs[count] = run_open(&g, json_array_get(g.cases, (size_t)count), count, m, &d);
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

START_TEST(six_steps_in_bf16_stay_near_pytorch)
{
    check_all(&golden_bf16_modes[_i]);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("golden trajectory");

    tcase_add_loop_test(c, six_steps_are_those_of_pytorch, 0, golden_mode_count);
    tcase_add_loop_test(c, six_steps_in_bf16_stay_near_pytorch, 0, golden_bf16_mode_count);
    return suite_run();
}
