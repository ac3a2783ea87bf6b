/*
 * check_network_plan.c - the plans of eight datasets by four rules are nnU-Net's own.
 */
#include "plan/network_plan.h"

#include <string.h>

#include "base/file/file.h"
#include "base/file/json.h"
#include "support/data/golden_file.h"
#include "support/must.h"
#include "support/suite.h"

/* Names of the rules and of their planners in the golden file. */
static const char *const rule_names[][2] = {
    { "nnunet", "default" }, { "resenc_m", "ResEncM" }, { "resenc_l", "ResEncL" },
    { "resenc_xl", "ResEncXL" }
};

static const json_t *at(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);

    ck_assert_msg(value != NULL, "no '%s'", key);
    return value;
}

static double number(const json_t *list, size_t i)
{
    return json_number_value(json_array_get(list, i));
}

/* The golden lists have axes k j i. The caller frees the cases. */
static case_statistics *read_cases(const json_t *one, int *count)
{
    const json_t *print = at(one, "fingerprint"), *spacings = at(print, "spacings");
    const json_t *shapes = at(print, "shapes_after_crop");
    case_statistics *cases = calloc(json_array_size(spacings), sizeof *cases);

    *count = (int)json_array_size(spacings);
    for (size_t i = 0; i < (size_t)*count; i++) {
        for (size_t a = 0; a < 3; a++) {
            cases[i].spacing[2 - a] = number(json_array_get(spacings, i), a);
            cases[i].cropped[2 - a] = (int64_t)number(json_array_get(shapes, i), a);
        }
    }
    return cases;
}

/* A row of levels[][3] and its list, whose axes are those from 'first' on. */
static void assert_levels(const int levels[][3], int count, const json_t *list, int first)
{
    ck_assert_int_eq(json_array_size(list), (size_t)count);
    for (int level = 0; level < count; level++)
        for (int a = 0; a < 3; a++)
            ck_assert_int_eq(levels[level][a], a < first ? 1
                             : (int)number(json_array_get(list, (size_t)level),
                                           (size_t)(a - first)));
}

static void assert_plan(const network_plan *p, const json_t *golden)
{
    const json_t *kept = at(at(golden, "architecture"), "arch_kwargs");
    int first = p->first;

    ck_assert_int_eq(p->batch, json_integer_value(at(golden, "batch_size")));
    ck_assert_int_eq(json_array_size(at(golden, "patch_size")), (size_t)(3 - first));
    for (int a = first; a < 3; a++) {
        size_t i = (size_t)(a - first);
        ck_assert_int_eq(p->patch[a], (int64_t)number(at(golden, "patch_size"), i));
        ck_assert_double_eq_tol(p->spacing[a], number(at(golden, "spacing"), i), 1e-12);
        ck_assert(p->extent[a] == number(at(golden, "median_image_size_in_voxels"), i));
    }
    ck_assert_int_eq(p->levels, json_integer_value(at(kept, "n_stages")));
    assert_levels(p->stride, p->levels, at(kept, "strides"), first);
    assert_levels(p->kernel, p->levels, at(kept, "kernel_sizes"), first);
    for (int level = 0; level < p->levels; level++)
        ck_assert_int_eq(p->features[level],
                         (int64_t)number(at(kept, "features_per_stage"), (size_t)level));
}

/* All configurations of a planner; returns how many were compared. */
static int assert_planner(const json_t *one, const plan_rule *rule, const json_t *plans)
{
    const json_t *golden = at(plans, "configurations"), *lowres;
    int count, heads = (int)json_object_size(at(at(one, "dataset_json"), "labels")), compared = 1;
    int64_t training = json_integer_value(at(at(one, "dataset_json"), "numTraining"));
    case_statistics *cases = read_cases(one, &count);
    network_plan flat, full, low;
    plan_geometry g;

    MUST(plan_geometry_make(cases, count, &g, &error));
    for (size_t a = 0; a < 3; a++)
        ck_assert_int_eq(2 - g.axis[a], (int)number(at(plans, "transpose_forward"), a));
    network_plan_make(rule, &g, true, heads, training, &flat);
    assert_plan(&flat, at(golden, "2d"));
    ck_assert_int_eq(plan_geometry_is_3d(&g), json_object_get(golden, "3d_fullres") != NULL);
    if (plan_geometry_is_3d(&g)) {
        network_plan_make(rule, &g, false, heads, training, &full);
        assert_plan(&full, at(golden, "3d_fullres"));
        lowres = json_object_get(golden, "3d_lowres");
        ck_assert_int_eq(network_plan_make_lowres(rule, &full, training, &low), lowres != NULL);
        if (lowres != NULL)
            assert_plan(&low, lowres);
        compared += 1 + (lowres != NULL);
    }
    free(cases);
    return compared;
}

START_TEST(plans_are_those_of_nnunet)
{
    json_t *golden = golden_json("nnunet/plans.json"), *one;
    int compared = 0;
    size_t n;

    ck_assert_int_eq(json_array_size(golden), 8);
    json_array_foreach(golden, n, one)
        for (size_t r = 0; r < sizeof rule_names / sizeof *rule_names; r++)
            compared += assert_planner(one, plan_rule_find(rule_names[r][0]),
                                       at(at(one, "plans"), rule_names[r][1]));
    ck_assert_int_eq(compared, 8 * 4 + 7 * 4 + 7);
    json_decref(golden);
}
END_TEST

START_TEST(schemes_and_masks_are_those_of_nnunet)
{
    static const char *const names[] = { "ZScoreNormalization", "CTNormalization",
                                         "NoNormalization", "RescaleTo01Normalization",
                                         "RGBTo01Normalization" };
    json_t *golden = golden_json("nnunet/plans.json"), *one;
    size_t n, c;
    json_t *scheme;

    json_array_foreach(golden, n, one) {
        const json_t *plan = at(at(at(at(one, "plans"), "default"), "configurations"), "2d");
        double share = json_number_value(at(at(one, "fingerprint"),
                                            "median_relative_size_after_cropping"));
        json_array_foreach(json_object_get(plan, "normalization_schemes"), c, scheme) {
            char key[24];
            snprintf(key, sizeof key, "%zu", c);
            plan_scheme found = plan_scheme_find(json_string_value(
                at(at(at(one, "dataset_json"), "channel_names"), key)));
            ck_assert_str_eq(names[found], json_string_value(scheme));
            ck_assert_int_eq(json_is_true(json_array_get(at(plan, "use_mask_for_norm"), c)),
                             found == PLAN_ZSCORE && plan_masks_zscore(share));
        }
    }
    json_decref(golden);
}
END_TEST

/* ---- properties ------------------------------------------------------------------------------ */

START_TEST(shrinking_ends_and_each_patch_suits_its_levels)
{
    static const plan_geometry shapes[] = {
        { { 2, 1, 0 }, { 1, 1, 1 }, { 512, 512, 512 } },
        { { 2, 1, 0 }, { 5, 0.7, 0.7 }, { 40, 512, 512 } },
        { { 0, 2, 1 }, { 1, 1, 1 }, { 7, 9, 5 } },
        { { 0, 2, 1 }, { 0.001, 0.001, 0.001 }, { 30000, 3, 2000 } },
    };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        network_plan p, next;
        int steps = 0;
        network_plan_begin(plan_rules, &shapes[i], false, 2, &p);
        for (next = p; network_plan_shrink(&next); p = next, steps++) {
            int64_t divisor[3] = { 1, 1, 1 };
            ck_assert(next.activations < p.activations);
            for (int level = 0; level < next.levels; level++)
                for (int a = 0; a < 3; a++)
                    divisor[a] *= next.stride[level][a];
            for (int a = 0; a < 3; a++)
                ck_assert(next.patch[a] > 0 && next.patch[a] % divisor[a] == 0);
            ck_assert_int_lt(steps, 1000);
        }
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("network plan");

    tcase_add_test(c, plans_are_those_of_nnunet);
    tcase_add_test(c, schemes_and_masks_are_those_of_nnunet);
    tcase_add_test(c, shrinking_ends_and_each_patch_suits_its_levels);
    return suite_run();
}
