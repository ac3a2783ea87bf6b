/*
 * check_brats.c - trees of the BraTS challenges: families by name, channels, meaning of the ids.
 */
#include "data/check/dataset_check.h"

#include "data/case/case_read.h"
#include "support/dataset_maker.h"
#include "support/suite.h"
#include "support/tree_maker.h"

static dataset_settings tree_settings(void)
{
    return (dataset_settings){ .source = root, .layout = "brats", .validation = "none" };
}

/* The list as the text of an INI file. */
static const char *list_text(arena *memory, int count, const data_class *list)
{
    const char *text = "";

    for (int i = 0; i < count; i++) {
        text = arena_format(memory, "%s%s%s", text, i > 0 ? " " : "", list[i].name);
        for (int n = 0; n < list[i].id_count; n++)
            text = arena_format(memory, "%s%c%d", text, n > 0 ? ',' : ':', list[i].id[n]);
    }
    return text;
}

START_TEST(every_year_gives_its_family_channels_and_ids)
{
    static const char *const channel[] = { "t1n", "t1c", "t2w", "t2f" };
    const brats_tree *t = &brats_trees[_i];
    dataset_settings s = tree_settings();
    pons_error err = PONS_ERROR_INIT;
    dataset_report *report = NULL;

    brats_tree_make(t, root);
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->recognised, arena_format(d->memory, "%s, ids %s", t->name, t->labels));
    ck_assert_str_eq(list_text(d->memory, d->class_count, d->classes), t->labels);
    ck_assert_str_eq(list_text(d->memory, d->region_count, d->regions),
                     t->regions != NULL ? t->regions : "");
    ck_assert_int_eq(d->case_count, 2);
    int file = 0;
    for (int role = 0; role < 4; role++) {
        if (t->suffix[role] == NULL)
            continue;
        ck_assert_str_eq(d->channel_names[file], channel[role]);
        ck_assert_str_eq(d->cases[1].image[file++], brats_tree_path(t, root, 1, role));
    }
    ck_assert_int_eq(d->channels, file);
    ck_assert_int_eq(d->cases[1].image_count, file);
    ck_assert_str_eq(d->cases[1].label, brats_tree_path(t, root, 1, 4));
    ck_assert_str_eq(strstr(t->case_path[1], d->cases[1].id), d->cases[1].id);
    ck_assert_msg(dataset_check(d, NULL, &report, &err) == PONS_OK, "%s", err.text);
    dataset_report_free(report);
    dataset_close(d);
}
END_TEST

START_TEST(a_tree_is_recognised_without_its_layout_being_named)
{
    const brats_tree *t = &brats_trees[_i];
    dataset_settings s = tree_settings();

    brats_tree_make(t, root);
    s.layout = "auto";
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->layout, "brats");
    const char *line = dataset_layout_text(d);
    ck_assert_msg(strncmp(line, "layout: brats, by '", 19) == 0
                  && strstr(line, root) == line + 19
                  && strstr(line, t->name) != NULL && strstr(line, ".nii") != NULL, "%s", line);
    dataset_close(d);
}
END_TEST

/* The target of the voxels with id 4, as one 0/1 value for each region. */
static void check_target_of_4(const char *name, const uint8_t *expected, int regions)
{
    dataset_settings s = tree_settings();
    pons_error err = PONS_ERROR_INIT;
    pons_case c;

    brats_tree_make(brats_tree_of(name), root);
    dataset *d = maker_open(&s);
    ck_assert_msg(case_read(d, 0, &c, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(c.label.channels, regions);
    int i = d->class_count - 1;
    for (int r = 0; r < regions; r++)
        ck_assert_int_eq(((uint8_t *)c.label.voxels)[i * 64 * regions + r], expected[r]);
    case_clear(&c);
    dataset_close(d);
}

START_TEST(id_4_is_enhancing_tumour_until_2021)
{
    check_target_of_4("BraTS 2021, glioma", (const uint8_t[]){ 1, 1, 1 }, 3);
}
END_TEST

START_TEST(id_4_is_the_cavity_after_treatment)
{
    check_target_of_4("BraTS 2024, glioma after treatment", (const uint8_t[]){ 0, 0, 0, 1 }, 4);
}
END_TEST

START_TEST(id_4_is_oedema_in_children_of_2024)
{
    check_target_of_4("BraTS 2024, paediatric", (const uint8_t[]){ 1, 0, 0 }, 3);
}
END_TEST

START_TEST(id_4_of_a_family_without_it_is_an_error)
{
    static const int ids[] = { 0, 1, 4 };
    const brats_tree *t = brats_tree_of("BraTS 2023, glioma");
    dataset_settings s = tree_settings();
    pons_error err = PONS_ERROR_INIT;
    dataset_report *report = NULL;

    brats_tree_make(t, root);
    tree_mask(brats_tree_path(t, root, 1, 4), 3, ids);
    dataset *d = maker_open(&s);
    ck_assert_int_eq(dataset_check(d, NULL, &report, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "case 'BraTS-GLI-00002-001'"));
    ck_assert_ptr_nonnull(strstr(err.text, "has id 4 in 128 voxels, which 'labels' does not list"));
    dataset_report_free(report);
    dataset_close(d);
}
END_TEST

START_TEST(the_misnamed_mask_of_case_355_is_taken)
{
    const brats_tree *t = brats_tree_of("BraTS 2020, glioma");
    const char *odd = maker_path("%s/W39_1998.09.19_Segm.nii", t->case_path[1]);
    dataset_settings s = tree_settings();

    brats_tree_make(t, root);
    ck_assert_int_eq(rename(brats_tree_path(t, root, 1, 4), odd), 0);
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->cases[1].id, "BraTS20_Training_355");
    ck_assert_str_eq(d->cases[1].label, odd);
    ck_assert_int_eq(d->warning_count, 1);
    ck_assert_str_eq(d->warning[0].case_id, "BraTS20_Training_355");
    ck_assert_ptr_nonnull(strstr(d->warning[0].text, "is taken as the mask"));
    dataset_close(d);
    tree_image(maker_path("%s/another.nii", t->case_path[1]), 0);
    maker_refused(&s, PONS_DATA, "case 'BraTS20_Training_355': found '");
    maker_refused(&s, PONS_DATA, "BraTS20_Training_355_seg.nii.gz' beside it");
}
END_TEST

START_TEST(a_missing_file_of_a_case_is_named)
{
    const brats_tree *t = &brats_trees[_i / 5];
    dataset_settings s = tree_settings();

    if (t->suffix[_i % 5] == NULL)
        return;
    brats_tree_make(t, root);
    unlink(brats_tree_path(t, root, 1, _i % 5));
    const char *id = strrchr(t->case_path[1], '/');
    id = id != NULL ? id + 1 : t->case_path[1];
    maker_refused(&s, PONS_DATA, maker_path("%s", t->case_path[1]));
    char expected[256];
    snprintf(expected, sizeof expected, "/%s%s.nii.gz' beside it", id, t->suffix[_i % 5]);
    maker_refused(&s, PONS_DATA, expected);
    s.labels_optional = true;
    if (_i % 5 == 4) {
        dataset *d = maker_open(&s);
        ck_assert_ptr_null(d->cases[1].label);
        dataset_close(d);
        return;
    }
    s.channels_optional = true;
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->cases[1].image_count, d->cases[0].image_count);
    for (int c = 0, absent = 0; c < d->channels; c++) {
        absent += d->cases[1].image[c] == NULL;
        ck_assert(c < d->channels - 1 || absent == 1);
    }
    ck_assert(!d->cases[1].incomplete);
    dataset_close(d);
}
END_TEST

START_TEST(two_meanings_of_an_id_do_not_mix)
{
    static const char *const labels[] = { "background:0", "NCR:1", "ED:2", "ET:3,4" };
    dataset_settings s = tree_settings();

    brats_tree_make(brats_tree_of("BraTS 2021, glioma"), root);
    brats_tree_make(brats_tree_of("BraTS 2023, meningioma"), root);
    maker_refused(&s, PONS_DATA, "(background:0 NCR:1 ED:2 ET:3) and 'BraTS2021_00000' of BraTS "
                  "2021, glioma (background:0 NCR:1 ED:2 ET:4), expected one meaning");
    s.labels = (pons_texts){ 4, labels };
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->case_count, 4);
    ck_assert_int_eq(d->region_count, 0);
    dataset_close(d);
}
END_TEST

START_TEST(families_of_equal_ids_mix_and_the_wider_one_decides)
{
    dataset_settings s = tree_settings();

    brats_tree_make(brats_tree_of("BraTS 2018, glioma"), root);
    brats_tree_make(brats_tree_of("BraTS 2020, glioma"), root);
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->case_count, 4);
    ck_assert_int_eq(d->classes[3].id[0], 4);
    ck_assert_int_eq(d->warning_count, 0);
    dataset_close(d);
    remove_root();
    make_root();
    s = tree_settings();
    brats_tree_make(brats_tree_of("BraTS 2023, glioma"), root);
    brats_tree_make(brats_tree_of("BraTS 2024, glioma after treatment"), root);
    d = maker_open(&s);
    ck_assert_int_eq(d->case_count, 4);
    ck_assert_str_eq(d->classes[4].name, "RC");
    ck_assert_int_eq(d->warning_count, 1);
    ck_assert_ptr_null(d->warning[0].case_id);
    ck_assert_msg(strstr(d->warning[0].text, " is of BraTS 2023, glioma and '") != NULL
                  && strstr(d->warning[0].text, "of BraTS 2024, glioma after treatment: all cases "
                            "are read with the ids of the latter") != NULL, "%s",
                  d->warning[0].text);
    dataset_close(d);
}
END_TEST

START_TEST(a_paediatric_case_needs_a_year_or_labels)
{
    static const char *const labels[] = { "background:0", "tumour:1,2,3,4" };
    const brats_tree *t = brats_tree_of("BraTS 2024, paediatric");
    dataset_settings s = tree_settings();

    brats_tree_make(t, root);
    ck_assert_int_eq(rename(maker_path("BraTS-PEDs2024_Training"), maker_path("BraTS-PEDs")), 0);
    maker_refused(&s, PONS_DATA, "without a year, expected a folder's name with BraTS and 2023");
    s.labels = (pons_texts){ 2, labels };
    dataset_close(maker_open(&s));
    ck_assert_int_eq(rename(maker_path("BraTS-PEDs"), maker_path("BraTS-2023-PED")), 0);
    s = tree_settings();
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->classes[1].name, "NCR");
    dataset_close(d);
}
END_TEST

START_TEST(the_archives_paediatric_cases_have_the_ids_of_2024)
{
    const brats_tree *t = brats_tree_of("BraTS 2024, paediatric");
    dataset_settings s = tree_settings();
    dataset *d;

    brats_tree_make(t, root);
    ck_assert_int_eq(rename(maker_path("BraTS-PEDs2024_Training"), maker_path("BraTS-PEDs-v1")), 0);
    d = maker_open(&s);
    ck_assert_str_eq(d->classes[3].name, "CC");
    dataset_close(d);
}
END_TEST

START_TEST(damaged_trees_are_refused_and_named)
{
    const brats_tree *t = brats_tree_of("BraTS 2021, glioma");
    dataset_settings s = tree_settings();

    maker_refused(&s, PONS_DATA, "holds no case of BraTS");
    brats_tree_make(t, root);
    maker_text("BraTS2021_00000/._BraTS2021_00000_t1.nii.gz", "resource fork");
    dataset_close(maker_open(&s));
    tree_image(maker_path("BraTS2021_00000/BraTS2021_00000_t1.nii"), 0);
    maker_refused(&s, PONS_DATA, "case 'BraTS2021_00000': found '");
    unlink(maker_path("BraTS2021_00000/BraTS2021_00000_t1.nii"));
    tree_image(maker_path("patient/x_flair.nii"), 0);
    maker_refused(&s, PONS_DATA, "/patient/x_flair.nii', expected a case's name of BraTS");
    unlink(maker_path("patient/x_flair.nii"));
    tree_image(maker_path("stray_seg.nii.gz"), 0);
    maker_refused(&s, PONS_DATA, "/stray_seg.nii.gz', expected a case's name of BraTS");
    unlink(maker_path("stray_seg.nii.gz"));
    tree_image(maker_path("BraTS2021_00002_seg.nii.gz"), 0);
    maker_refused(&s, PONS_DATA, "case 'BraTS2021_00002': found '");
    maker_refused(&s, PONS_DATA, maker_path("BraTS2021_00002_seg.nii.gz"));
    s.source = maker_path("absent");
    maker_refused(&s, PONS_DATA, "cannot find the dataset");
}
END_TEST

START_TEST(labels_of_the_ini_replace_ids_and_regions)
{
    static const char *const labels[] = { "background:0", "tumour:1,2,4" };
    static const char *const regions[] = { "core:1,4" };
    dataset_settings s = tree_settings();

    brats_tree_make(brats_tree_of("BraTS 2019, glioma"), root);
    s.labels = (pons_texts){ 2, labels };
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->class_count, 2);
    ck_assert_int_eq(d->region_count, 0);
    ck_assert_str_eq(d->recognised, "BraTS 2019, glioma");
    dataset_close(d);
    s = tree_settings();
    s.regions = (pons_texts){ 1, regions };
    d = maker_open(&s);
    ck_assert_int_eq(d->class_count, 4);
    ck_assert_int_eq(d->region_count, 1);
    dataset_close(d);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("brats");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_loop_test(c, every_year_gives_its_family_channels_and_ids, 0, BRATS_TREES);
    tcase_add_loop_test(c, a_tree_is_recognised_without_its_layout_being_named, 0, BRATS_TREES);
    tcase_add_test(c, id_4_is_enhancing_tumour_until_2021);
    tcase_add_test(c, id_4_is_the_cavity_after_treatment);
    tcase_add_test(c, id_4_is_oedema_in_children_of_2024);
    tcase_add_test(c, id_4_of_a_family_without_it_is_an_error);
    tcase_add_test(c, the_misnamed_mask_of_case_355_is_taken);
    tcase_add_loop_test(c, a_missing_file_of_a_case_is_named, 0, 5 * BRATS_TREES);
    tcase_add_test(c, two_meanings_of_an_id_do_not_mix);
    tcase_add_test(c, families_of_equal_ids_mix_and_the_wider_one_decides);
    tcase_add_test(c, a_paediatric_case_needs_a_year_or_labels);
    tcase_add_test(c, the_archives_paediatric_cases_have_the_ids_of_2024);
    tcase_add_test(c, damaged_trees_are_refused_and_named);
    tcase_add_test(c, labels_of_the_ini_replace_ids_and_regions);
    return suite_run();
}
