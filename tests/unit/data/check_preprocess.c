/*
 * check_preprocess.c - the output of 'pons data phantom', 'crop' and 'preprocess': a phantom
 * depends on its seed alone and is a complete dataset, cropped boxes keep their position, and
 * cases lie on the transformed grid.
 */
#include "support/root.h"
#include "support/dataset_maker.h"
#include "support/suite.h"

#include "cli/data/preprocess.h"
#include "data/check/dataset_check.h"
#include "data/phantom/phantom.h"
#include "data/nifti/crop.h"
#include "data/nifti/nifti_read.h"
#include "data/nifti/nifti_write.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const phantom_settings small = { 3, { 24, 20, 28 }, 2, 4, 7 };

/* ---- phantom --------------------------------------------------------------------------------- */

START_TEST(a_phantom_is_determined_by_its_seed)
{
    phantom_settings other = small;
    pons_error err = PONS_ERROR_INIT;
    volume image[3], label[3];

    other.seed = 8;
    ck_assert(!phantom_make(&small, 1, &image[0], &label[0], &err));
    ck_assert(!phantom_make(&small, 1, &image[1], &label[1], &err));
    ck_assert(!phantom_make(&other, 1, &image[2], &label[2], &err));
    ck_assert(!memcmp(image[0].voxels, image[1].voxels, pons_volume_size(&image[0])));
    ck_assert(!memcmp(label[0].voxels, label[1].voxels, pons_volume_size(&label[0])));
    ck_assert(memcmp(label[0].voxels, label[2].voxels, pons_volume_size(&label[0])));
    for (int n = 0; n < 3; n++) {
        pons_volume_clear(&image[n]);
        pons_volume_clear(&label[n]);
    }
}
END_TEST

START_TEST(every_case_has_every_class_and_air_around_it)
{
    pons_error err = PONS_ERROR_INIT;

    for (int n = 0; n < 3; n++) {
        int64_t voxels[4] = { 0, 0, 0, 0 };
        volume image, label;

        ck_assert(!phantom_make(&small, n, &image, &label, &err));
        for (int64_t v = 0; v < pons_volume_count(&label); v++)
            voxels[((uint8_t *)label.voxels)[v]]++;
        for (int c = 0; c < 4; c++)
            ck_assert_int_gt(voxels[c], 20);
        ck_assert_float_eq(((float *)image.voxels)[0], 0);
        pons_volume_clear(&image);
        pons_volume_clear(&label);
    }
}
END_TEST

START_TEST(a_phantom_is_a_complete_dataset)
{
    pons_error err = PONS_ERROR_INIT;
    dataset_settings settings = { .source = in_root("data") };
    dataset *d;
    dataset_report *report;

    ck_assert_msg(!phantom_write(in_root("data"), &small, NULL, &err), "%s", err.text);
    d = maker_open(&settings);
    ck_assert_int_eq(d->case_count, 3);
    ck_assert_int_eq(d->class_count, 4);
    ck_assert_int_eq(d->channels, 2);
    ck_assert_msg(!dataset_check(d, NULL, &report, &err), "%s", err.text);
    dataset_report_free(report);
    dataset_close(d);
}
END_TEST

START_TEST(an_impossible_phantom_is_a_usage_error)
{
    phantom_settings wrong[4] = { small, small, small, small };

    wrong[0].cases = 0;
    wrong[1].extent[2] = 0;
    wrong[2].channels = 17;
    wrong[3].classes = 1;
    for (int n = 0; n < 4; n++) {
        pons_error err = PONS_ERROR_INIT;

        ck_assert_int_eq(phantom_write(in_root("x"), &wrong[n], NULL, &err), PONS_USAGE);
        ck_assert_ptr_nonnull(strstr(err.text, "expected"));
    }
}
END_TEST

/* ---- crop ------------------------------------------------------------------------------------ */

static void make_file(const char *path)
{
    static const int64_t extent[3] = { 6, 5, 4 };
    static const double affine[3][4] = { { 0, -1.5, 0, 10 }, { 2, 0, 0, -20 }, { 0, 0, 3, 30 } };
    pons_error err = PONS_ERROR_INIT;
    volume v;

    ck_assert(!pons_volume_init(&v, PONS_F32, 1, extent, &err));
    memcpy(v.affine, affine, sizeof affine);
    for (int n = 0; n < 120; n++)
        ((float *)v.voxels)[n] = (float)(n - 10);
    ck_assert(!nifti_write_as(path, &v, NULL, 4, &err));
    pons_volume_clear(&v);
}

START_TEST(a_cropped_box_keeps_values_type_and_position)
{
    const crop_settings s = { .start = { 2, 1, 3 }, .extent = { 3, 4, 1 } };
    pons_error err = PONS_ERROR_INIT;
    volume v;
    volume_facts facts;

    make_file(in_root("a.nii.gz"));
    ck_assert_msg(!crop_file(in_root("a.nii.gz"), in_root("new/b.nii"), &s, &err), "%s",
                  err.text);
    ck_assert_msg(!nifti_read_image(in_root("new/b.nii"), &v, &facts, &err), "%s", err.text);
    ck_assert_int_eq(facts.datatype, 4);
    ck_assert_int_eq(v.extent[0] * 100 + v.extent[1] * 10 + v.extent[2], 341);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            ck_assert_float_eq(((float *)v.voxels)[i * 4 + j],
                               (float)(((i + 2) * 5 + j + 1) * 4 + 3 - 10));
    ck_assert_double_eq_tol(v.affine[0][3], 10 - 1.5, 1e-6);
    ck_assert_double_eq_tol(v.affine[1][3], -20 + 4, 1e-6);
    ck_assert_double_eq_tol(v.affine[2][3], 30 + 9, 1e-6);
    pons_volume_clear(&v);
}
END_TEST

START_TEST(a_mask_is_1_above_a_value)
{
    const crop_settings s = { .extent = { 6, 5, 4 }, .mask = true, .above = 0 };
    pons_error err = PONS_ERROR_INIT;
    volume v;
    volume_facts facts;

    make_file(in_root("a.nii.gz"));
    ck_assert(!crop_file(in_root("a.nii.gz"), in_root("m.nii.gz"), &s, &err));
    ck_assert(!nifti_read_label(in_root("m.nii.gz"), &v, &facts, &err));
    ck_assert_int_eq(facts.datatype, 2);
    for (int n = 0; n < 120; n++)
        ck_assert_int_eq(((int32_t *)v.voxels)[n], n > 10);
    pons_volume_clear(&v);
}
END_TEST

START_TEST(a_box_outside_is_a_usage_error_with_both_sizes)
{
    const crop_settings s = { .start = { 4, 0, 0 }, .extent = { 3, 5, 4 } };
    pons_error err = PONS_ERROR_INIT;

    make_file(in_root("a.nii.gz"));
    ck_assert_int_eq(crop_file(in_root("a.nii.gz"), in_root("b.nii"), &s, &err), PONS_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "4,0,0"));
    ck_assert_ptr_nonnull(strstr(err.text, "6,5,4"));
    ck_assert_int_ne(access(in_root("b.nii"), F_OK), 0);
}
END_TEST

/* ---- preprocess ------------------------------------------------------------------------------ */

static pons_status preprocess(const char *ini, pons_error *err)
{
    const char *path = in_root("case.ini");
    FILE *f = fopen(path, "w");
    config *c;
    pons_status status;

    ck_assert_ptr_nonnull(f);
    fputs(ini, f);
    fclose(f);
    ck_assert_msg(!config_open(path, 0, NULL, &c, err), "%s", err->text);
    status = preprocess_write(c, in_root("out"), NULL, err);
    config_close(c);
    return status;
}

START_TEST(cases_are_written_on_the_transformed_grid)
{
    pons_error err = PONS_ERROR_INIT;
    volume image, label;
    volume_facts facts;

    ck_assert(!phantom_write(in_root("data"), &small, NULL, &err));
    ck_assert_msg(!preprocess("[experiment]\nname = x\n[data]\nsource = data\n[model]\n"
                              "plugin = unet\nchannels = 4 8\n"
                              "[preprocess]\nsteps = spacing normalize pad\n"
                              "[preprocess.spacing]\nmm = 2 1 1\n[preprocess.pad]\n"
                              "extent = 16 0 30\n"
                              "[augment]\nsteps = flip\n[augment.flip]\naxes = 0\n", &err),
                  "%s", err.text);
    ck_assert_msg(!nifti_read_image(in_root("out/phantom_001/image.nii.gz"), &image, &facts,
                                    &err), "%s", err.text);
    ck_assert_int_eq(facts.datatype, 16);
    ck_assert_int_eq(image.channels, 2);
    ck_assert_int_eq(image.extent[0], 16); /* 12.5 rounds to 12, plus two voxels on each side */
    ck_assert_int_eq(image.extent[1], 20);
    ck_assert_int_eq(image.extent[2], 30);
    ck_assert_double_eq_tol(facts.grid.spacing[0], 2, 1e-6);
    ck_assert(!nifti_read_label(in_root("out/phantom_001/label.nii.gz"), &label, &facts, &err));
    ck_assert_int_eq(facts.datatype, 2);
    ck_assert_int_eq(label.extent[0], 16);
    pons_volume_clear(&image);
    pons_volume_clear(&label);
}
END_TEST

START_TEST(a_misspelt_key_of_a_step_is_refused)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert(!phantom_write(in_root("data"), &small, NULL, &err));
    ck_assert_int_eq(preprocess("[data]\nsource = data\n[preprocess]\nsteps = spacing\n"
                                "[preprocess.spacing]\nmm = 1\ndiagonl = yes\n", &err),
                     PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "diagonl"));
    ck_assert_ptr_nonnull(strstr(err.text, "diagonal"));
}
END_TEST

int main(void)
{
    TCase *c = suite_new("preprocess");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, a_phantom_is_determined_by_its_seed);
    tcase_add_test(c, every_case_has_every_class_and_air_around_it);
    tcase_add_test(c, a_phantom_is_a_complete_dataset);
    tcase_add_test(c, an_impossible_phantom_is_a_usage_error);
    tcase_add_test(c, a_cropped_box_keeps_values_type_and_position);
    tcase_add_test(c, a_mask_is_1_above_a_value);
    tcase_add_test(c, a_box_outside_is_a_usage_error_with_both_sizes);
    tcase_add_test(c, cases_are_written_on_the_transformed_grid);
    tcase_add_test(c, a_misspelt_key_of_a_step_is_refused);
    return suite_run();
}
