/*
 * check_surface_distance.c - distances of surfaces: MONAI's values on golden label pairs, brute
 * force on random volumes, properties, empty masks.
 */
#include <config.h>

#include "base/file/json.h"
#include "base/number_order.h"
#include "base/random.h"
#include "base/thread/parallel.h"
#include "data/nifti/nifti_read.h"
#include "metric/surface_distance.h"

#include "support/data/golden_file.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- brute force ----------------------------------------------------------------------------- */

enum { SIDE_MAX = 10, VOXELS_MAX = SIDE_MAX * SIDE_MAX * SIDE_MAX };

static bool is_in(const voxel_box *b, int64_t i, int64_t j, int64_t k, uint8_t mask)
{
    return i >= 0 && i < b->extent[0] && j >= 0 && j < b->extent[1] && k >= 0 && k < b->extent[2]
           && (b->bits[(i * b->extent[1] + j) * b->extent[2] + k] & mask) != 0;
}

typedef struct point {
    int64_t at[3];
} point;

/* The boundary voxels of a mask. */
static int list_boundary(const voxel_box *b, uint8_t mask, point *out)
{
    int count = 0;

    for (int64_t i = 0; i < b->extent[0]; i++)
        for (int64_t j = 0; j < b->extent[1]; j++)
            for (int64_t k = 0; k < b->extent[2]; k++)
                if (is_in(b, i, j, k, mask)
                    && !(is_in(b, i - 1, j, k, mask) && is_in(b, i + 1, j, k, mask)
                         && is_in(b, i, j - 1, k, mask) && is_in(b, i, j + 1, k, mask)
                         && is_in(b, i, j, k - 1, mask) && is_in(b, i, j, k + 1, mask)))
                    out[count++] = (point){ { i, j, k } };
    return count;
}

static double nearest_of(const voxel_box *b, point from, const point *to, int count)
{
    double best = INFINITY;

    for (int n = 0; n < count; n++) {
        double sum = 0;
        for (int axis = 0; axis < 3; axis++) {
            double mm = (double)(from.at[axis] - to[n].at[axis]) * b->spacing[axis];
            sum += mm * mm;
        }
        best = sum < best ? sum : best;
    }
    return sqrt(best);
}

static double sorted_percentile(double *value, int count)
{
    double rank = 0.95 * (count - 1);
    int below = (int)rank;

    qsort(value, (size_t)count, sizeof *value, order_doubles);
    if (below + 1 == count)
        return value[below];
    return value[below] + (rank - below) * (value[below + 1] - value[below]);
}

static surface_values brute_force(const voxel_box *b, double tolerance)
{
    static point list[2][VOXELS_MAX];
    static double distance[VOXELS_MAX];
    surface_values v = { 0, 0, 0, 0 };
    int count[2] = { list_boundary(b, MASK_PREDICTION, list[0]),
                     list_boundary(b, MASK_LABEL, list[1]) };

    if (count[0] == 0 || count[1] == 0)
        return (surface_values){ NAN, NAN, NAN, count[0] + count[1] > 0 ? 0 : NAN };
    for (int side = 0; side < 2; side++) {
        for (int n = 0; n < count[side]; n++) {
            distance[n] = nearest_of(b, list[side][n], list[1 - side], count[1 - side]);
            v.hd = fmax(v.hd, distance[n]);
            v.asd += distance[n];
            v.nsd += distance[n] <= tolerance * (1 + 1e-6);
        }
        v.hd95 = fmax(v.hd95, sorted_percentile(distance, count[side]));
    }
    v.asd /= count[0] + count[1];
    v.nsd /= count[0] + count[1];
    return v;
}

static void compare_value(double found, double expected, double tolerance, const char *what)
{
    ck_assert_msg(isnan(found) == isnan(expected), "%s: found %g, expected %g", what, found,
                  expected);
    ck_assert_msg(isnan(expected) || fabs(found - expected) <= tolerance,
                  "%s: found %.17g, expected %.17g", what, found, expected);
}

static void compare_surfaces(surface_values found, surface_values expected, double tolerance)
{
    compare_value(found.hd, expected.hd, tolerance, "hd");
    compare_value(found.hd95, expected.hd95, tolerance, "hd95");
    compare_value(found.asd, expected.asd, tolerance, "asd");
    compare_value(found.nsd, expected.nsd, tolerance, "nsd");
}

/* Fill a random box: extents, spacings, and densities from empty to full. */
static voxel_box random_box(uint64_t number, uint8_t *bits)
{
    uint32_t word[4];
    voxel_box b = { .bits = bits };

    random_voxels(number, 1000, word);
    for (int axis = 0; axis < 3; axis++) {
        b.extent[axis] = 1 + (word[axis] & 0xffff) % SIDE_MAX;
        b.spacing[axis] = 0.3 + (word[axis] >> 16) / 16384.0;
    }
    for (int64_t n = 0; n < VOXELS_MAX; n++) {
        uint32_t draw[4];
        random_voxels(number, (uint64_t)n, draw);
        bits[n] = (uint8_t)((draw[0] % 8 < word[3] % 9) * MASK_PREDICTION
                            | (draw[1] % 16 < (word[3] >> 8) % 17) * MASK_LABEL);
    }
    return b;
}

START_TEST(random_volumes_have_the_values_of_brute_force)
{
    uint8_t bits[VOXELS_MAX];
    int defined = 0;

    for (uint64_t number = 0; number < 1000; number++) {
        voxel_box b = random_box(number, bits);
        double tolerance = 0.25 * (double)(number % 16);
        surface_values found;
        pons_error err = PONS_ERROR_INIT;

        ck_assert_int_eq(surface_distance_compute(&b, tolerance, &found, &err), PONS_OK);
        compare_surfaces(found, brute_force(&b, tolerance), DOUBLE_ABSOLUTE);
        defined += !isnan(found.hd);
    }
    ck_assert_int_gt(defined, 500);
}
END_TEST

/* ---- golden values --------------------------------------------------------------------------- */

static void read_ids(const char *set, const char *name, const char *what, volume *out)
{
    char file[128];
    pons_error err = PONS_ERROR_INIT;

    memset(out, 0, sizeof *out);
    snprintf(file, sizeof file, "%s/%s_%s.nii.gz", set, name, what);
    ck_assert_msg(nifti_read_label(golden_path(file), out, NULL, &err) == PONS_OK, "%s", err.text);
}

static double golden_value(const json_t *c, const char *metric, size_t class)
{
    const json_t *v = json_array_get(json_object_get(c, metric), class);

    ck_assert_msg(v != NULL, "no %s", metric);
    return json_is_null(v) ? NAN : json_number_value(v);
}

/* Compare both classes of a case; nsd has the tolerance in millimetres. */
static void compare_case(const char *set, const json_t *c, double tolerance, const char *nsd)
{
    const char *name = json_string_value(json_object_get(c, "name"));
    volume p, g;

    read_ids(set, name, "prediction", &p);
    read_ids(set, name, "label", &g);
    int64_t voxels = pons_volume_count(&g);
    uint8_t *bits = malloc((size_t)voxels);
    voxel_box box = { .bits = bits };
    for (int axis = 0; axis < 3; axis++) {
        box.extent[axis] = g.extent[axis];
        box.spacing[axis] = json_number_value(json_array_get(json_object_get(c, "spacing"),
                                                             (size_t)axis));
    }
    for (size_t class = 0; class < 2; class++) {
        int id = (int)class + 1;
        surface_values found;
        pons_error err = PONS_ERROR_INIT;

        for (int64_t n = 0; n < voxels; n++)
            bits[n] = (uint8_t)((((const int32_t *)p.voxels)[n] == id) * MASK_PREDICTION
                                | (((const int32_t *)g.voxels)[n] == id) * MASK_LABEL);
        ck_assert_int_eq(surface_distance_compute(&box, tolerance, &found, &err), PONS_OK);
        surface_values expected = { golden_value(c, "hausdorff", class),
                                    golden_value(c, "hausdorff95", class),
                                    golden_value(c, "average_surface_distance", class),
                                    golden_value(c, nsd, class) };
        compare_surfaces(found, expected, SURFACE_MM);
    }
    free(bits);
    pons_volume_clear(&p);
    pons_volume_clear(&g);
}

START_TEST(golden_surfaces_have_the_values_of_monai)
{
    json_t *d = golden_json("metrics.json");
    const json_t *c;
    size_t n;

    ck_assert_int_ge((int)json_array_size(d), 5);
    json_array_foreach(d, n, c)
        compare_case("metrics", c, 1, "surface_dice_1mm");
    json_decref(d);
}
END_TEST

START_TEST(golden_shapes_have_the_values_of_monai_at_three_tolerances)
{
    json_t *d = golden_json("metrics_more.json");
    const json_t *c;
    size_t n;

    ck_assert_int_ge((int)json_array_size(d), 12);
    json_array_foreach(d, n, c) {
        compare_case("metrics_more", c, 0.5, "surface_dice_0.5mm");
        compare_case("metrics_more", c, 1, "surface_dice_1.0mm");
        compare_case("metrics_more", c, 2, "surface_dice_2.0mm");
    }
    json_decref(d);
}
END_TEST

/* ---- properties ------------------------------------------------------------------------------ */

enum { CUBE = 48 };

static surface_values measure_cubes(const double spacing[3], int shift)
{
    uint8_t *bits = calloc(CUBE * CUBE, CUBE);
    voxel_box b = { .extent = { CUBE, CUBE, CUBE }, .bits = bits };
    surface_values v;
    pons_error err = PONS_ERROR_INIT;

    memcpy(b.spacing, spacing, sizeof b.spacing);
    for (int i = 10; i < 30; i++)
        for (int j = 10; j < 30; j++)
            for (int k = 10; k < 30; k++) {
                bits[(i * CUBE + j) * CUBE + k] |= MASK_LABEL;
                bits[(i * CUBE + j) * CUBE + k + shift] |= MASK_PREDICTION;
            }
    ck_assert_int_eq(surface_distance_compute(&b, 1, &v, &err), PONS_OK);
    free(bits);
    return v;
}

START_TEST(a_mask_has_no_distance_to_itself)
{
    surface_values v = measure_cubes((const double[3]){ 1, 2, 3 }, 0);

    compare_surfaces(v, (surface_values){ 0, 0, 0, 1 }, 0);
}
END_TEST

START_TEST(a_shifted_cube_is_as_far_as_its_shift_in_millimetres)
{
    surface_values v = measure_cubes((const double[3]){ 1, 2, 0.5 }, 5);

    ck_assert_double_eq(v.hd, 2.5);
    ck_assert_double_eq(v.hd95, 2.5);
}
END_TEST

START_TEST(a_distance_equal_to_the_tolerance_is_within_it)
{
    double spacing = (double)0.8f / 4; /* above 0.2, as float32 rounds it */
    surface_values v = measure_cubes((const double[3]){ 1, 1, 5 * spacing }, 1);

    ck_assert_double_gt(v.hd, 1);
    ck_assert_double_eq(v.nsd, 1);
}
END_TEST

START_TEST(threads_do_not_change_a_bit)
{
    static const int threads[] = { 0, 1, 3, 7 };
    surface_values first = { 0, 0, 0, 0 };
    uint8_t *bits = malloc(CUBE * CUBE * CUBE);
    voxel_box b = { .extent = { CUBE, CUBE, CUBE }, .spacing = { 0.7, 1.1, 2.3 }, .bits = bits };

    for (int n = 0; n < CUBE * CUBE * CUBE; n++) {
        uint32_t draw[4];
        random_voxels(7, (uint64_t)n, draw);
        bits[n] = (uint8_t)((draw[0] % 90 == 0) * MASK_PREDICTION
                            | (draw[1] % 200 == 0) * MASK_LABEL);
    }
    for (size_t n = 0; n < sizeof threads / sizeof *threads; n++) {
        thread_budget budget = { threads[n] }, *before = thread_budget_set(&budget);
        surface_values v;
        pons_error err = PONS_ERROR_INIT;

        ck_assert_int_eq(surface_distance_compute(&b, 1, &v, &err), PONS_OK);
        thread_budget_set(before);
        first = n == 0 ? v : first;
        ck_assert_int_eq(memcmp(&v, &first, sizeof v), 0);
    }
    free(bits);
}
END_TEST

/* Sites far from each other, in boxes that need trees of several levels. */
START_TEST(sparse_sites_in_long_boxes_have_the_distances_of_brute_force)
{
    enum { BOXES = 60, LONG = 150, SITES = 12 };
    static uint8_t bits[LONG * LONG * LONG];

    for (uint64_t number = 0; number < BOXES; number++) {
        voxel_box b = { .bits = bits };
        point site[2][SITES];
        uint32_t draw[4];

        random_voxels(number, 5000, draw);
        for (int axis = 0; axis < 3; axis++) {
            b.extent[axis] = 1 + (draw[axis] & 0xffff) % LONG;
            b.spacing[axis] = 0.3 + (draw[axis] >> 16) / 16384.0;
        }
        memset(bits, 0, sizeof bits);
        for (int n = 0; n < 2 * SITES; n++) {
            point *p = &site[n % 2][n / 2];
            random_voxels(number, (uint64_t)n, draw);
            for (int axis = 0; axis < 3; axis++)
                p->at[axis] = draw[axis] % b.extent[axis];
            bits[(p->at[0] * b.extent[1] + p->at[1]) * b.extent[2] + p->at[2]]
                |= n % 2 == 0 ? MASK_PREDICTION : MASK_LABEL;
        }
        double found[SITES];
        int count = 0;
        pons_error err = PONS_ERROR_INIT;
        ck_assert_int_eq(voxel_distance_compute(&b, MASK_PREDICTION, MASK_LABEL, found, &err),
                         PONS_OK);
        for (int64_t i = 0; i < b.extent[0]; i++)
            for (int64_t j = 0; j < b.extent[1]; j++)
                for (int64_t k = 0; k < b.extent[2]; k++) {
                    if (!is_in(&b, i, j, k, MASK_PREDICTION))
                        continue;
                    double expected = nearest_of(&b, (point){ { i, j, k } }, site[1], SITES);
                    compare_value(found[count++], expected, 1e-12 * expected, "distance");
                }
        ck_assert_int_eq(count, (int)voxel_box_count(&b, MASK_PREDICTION));
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("surface_distance");

    tcase_add_test(c, random_volumes_have_the_values_of_brute_force);
    tcase_add_test(c, golden_surfaces_have_the_values_of_monai);
    tcase_add_test(c, golden_shapes_have_the_values_of_monai_at_three_tolerances);
    tcase_add_test(c, a_mask_has_no_distance_to_itself);
    tcase_add_test(c, a_shifted_cube_is_as_far_as_its_shift_in_millimetres);
    tcase_add_test(c, a_distance_equal_to_the_tolerance_is_within_it);
    tcase_add_test(c, threads_do_not_change_a_bit);
    tcase_add_test(c, sparse_sites_in_long_boxes_have_the_distances_of_brute_force);
    return suite_run();
}
