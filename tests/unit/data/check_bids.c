/*
 * check_bids.c - datasets of BIDS: images, labels of derivatives, tables of class names.
 */
#include "data/check/dataset_check.h"

#include "support/dataset_maker.h"
#include "support/suite.h"
#include "support/tree_maker.h"

#define MANUAL "derivatives/manual/"

static const int mask_ids[] = { 0, 1 };

static dataset_settings bids_settings(void)
{
    return (dataset_settings){ .source = root, .validation = "none" };
}

START_TEST(raw_images_and_labels_of_derivatives_are_paired)
{
    dataset_settings s = bids_settings();
    pons_error err = PONS_ERROR_INIT;
    dataset_report *report = NULL;

    bids_tree_make(root);
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->layout, "bids");
    ck_assert_int_eq(d->case_count, 3);
    ck_assert_str_eq(d->cases[0].id, "sub-01");
    ck_assert_str_eq(d->cases[2].id, "sub-02_ses-b");
    ck_assert_str_eq(d->cases[2].image[0],
                     maker_path("sub-02/ses-b/anat/sub-02_ses-b_T1w.nii.gz"));
    ck_assert_str_eq(d->cases[2].label, maker_path(MANUAL "sub-02/ses-b/anat/"
                                                   "sub-02_ses-b_desc-manual_dseg.nii.gz"));
    ck_assert_int_eq(d->channels, 1);
    ck_assert_int_eq(d->class_count, 3);
    ck_assert_str_eq(d->classes[0].name, "background");
    ck_assert_str_eq(d->classes[1].name, "grey matter");
    ck_assert_int_eq(d->classes[2].id[0], 5);
    ck_assert_int_eq(d->warning_count, 1);
    ck_assert_str_eq(d->warning[0].case_id, "sub-03");
    ck_assert_ptr_nonnull(strstr(d->warning[0].text, "has no label *_dseg and is left out"));
    ck_assert_msg(dataset_check(d, NULL, &report, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(report->problem_count, 1);
    ck_assert(report->problem[0].warning);
    dataset_report_free(report);
    dataset_close(d);
}
END_TEST

START_TEST(several_endings_are_channels_in_their_order)
{
    static const char *const suffix[] = { "FLAIR", "T1w" };
    dataset_settings s = bids_settings();

    bids_tree_make(root);
    unlink(maker_path("sub-03/anat/sub-03_T1w.nii.gz"));
    s.image_suffix = (pons_texts){ 2, suffix };
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->channels, 2);
    ck_assert_str_eq(d->channel_names[0], "FLAIR");
    ck_assert_str_eq(d->cases[0].image[0], maker_path("sub-01/anat/sub-01_FLAIR.nii.gz"));
    ck_assert_str_eq(d->cases[0].image[1], maker_path("sub-01/anat/sub-01_T1w.nii.gz"));
    dataset_close(d);
    unlink(maker_path("sub-01/anat/sub-01_FLAIR.nii.gz"));
    maker_refused(&s, PONS_DATA, "case 'sub-01': found '");
    maker_refused(&s, PONS_DATA, "expected 'sub-01_FLAIR.nii.gz' beside it");
    s.channels_optional = true;
    d = maker_open(&s);
    ck_assert_ptr_null(d->cases[0].image[0]);
    ck_assert_str_eq(d->cases[0].image[1], maker_path("sub-01/anat/sub-01_T1w.nii.gz"));
    dataset_close(d);
}
END_TEST

START_TEST(a_subject_without_label_is_a_case_where_labels_are_optional)
{
    dataset_settings s = bids_settings();

    bids_tree_make(root);
    s.labels_optional = true;
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->case_count, 4);
    ck_assert_ptr_null(d->cases[3].label);
    ck_assert_int_eq(d->warning_count, 0);
    dataset_close(d);
}
END_TEST

START_TEST(a_mask_beside_its_image_needs_no_table)
{
    dataset_settings s = bids_settings();

    tree_image(maker_path("sub-01/anat/sub-01_acq-x_T1w.nii.gz"), 0);
    tree_mask(maker_path("sub-01/anat/sub-01_acq-x_label-lesion_mask.nii.gz"), 2, mask_ids);
    s.layout = "bids";
    s.label_suffix = "mask";
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->cases[0].id, "sub-01_acq-x");
    ck_assert_int_eq(d->class_count, 2);
    ck_assert_str_eq(d->classes[1].name, "mask");
    dataset_close(d);
}
END_TEST

START_TEST(a_derivative_is_a_dataset_of_its_own)
{
    static const char *const suffix[] = { "desc-preproc_T1w" };
    dataset_settings s = bids_settings();

    bids_tree_make(root);
    s.source = maker_path("derivatives/manual");
    s.layout = "bids";
    s.image_suffix = (pons_texts){ 1, suffix };
    maker_refused(&s, PONS_DATA, "has no image sub-*_desc-preproc_T1w.nii.gz");
    tree_image(maker_path(MANUAL "sub-01/anat/sub-01_desc-preproc_T1w.nii.gz"), 0);
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->case_count, 1);
    ck_assert_str_eq(d->classes[1].name, "grey matter");
    dataset_close(d);
    s.source = root;
    d = maker_open(&s);
    ck_assert_str_eq(d->cases[0].image[0],
                     maker_path(MANUAL "sub-01/anat/sub-01_desc-preproc_T1w.nii.gz"));
    dataset_close(d);
}
END_TEST

START_TEST(a_label_of_another_space_is_not_the_label_of_the_scan)
{
    dataset_settings s = bids_settings();

    bids_tree_make(root);
    tree_mask(maker_path(MANUAL "sub-01/anat/sub-01_space-MNI152_dseg.nii.gz"), 2, mask_ids);
    dataset_close(maker_open(&s));
    tree_mask(maker_path(MANUAL "sub-01/anat/sub-01_space-orig_dseg.nii.gz"), 2, mask_ids);
    maker_refused(&s, PONS_DATA, "case 'sub-01': found the labels '");
    maker_refused(&s, PONS_DATA, "'label_suffix' such as desc-manual_dseg selects it");
    s.label_suffix = "desc-manual_dseg";
    dataset_close(maker_open(&s));
}
END_TEST

START_TEST(the_nearest_table_names_the_classes)
{
    dataset_settings s = bids_settings();

    bids_tree_make(root);
    maker_text(MANUAL "desc-manual_dseg.tsv", "name\tindex\nbrain\t2\nventricle\t5\nair\t0\n");
    maker_text(MANUAL "desc-auto_dseg.tsv", "name\tindex\nother\t2\n");
    maker_text("dseg.tsv", "name\tindex\nfarther\t2\n");
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->classes[0].name, "air");
    ck_assert_str_eq(d->classes[1].name, "brain");
    dataset_close(d);
    maker_text(MANUAL "sub-01/anat/sub-01_desc-manual_dseg.tsv", "name\tindex\nliver\t2\n");
    maker_refused(&s, PONS_DATA, "name different classes");
    unlink(maker_path(MANUAL "sub-01/anat/sub-01_desc-manual_dseg.tsv"));
    unlink(maker_path(MANUAL "desc-manual_dseg.tsv"));
    unlink(maker_path(MANUAL "dseg.tsv"));
    d = maker_open(&s);
    ck_assert_str_eq(d->classes[1].name, "farther");
    dataset_close(d);
    unlink(maker_path("dseg.tsv"));
    maker_refused(&s, PONS_CONFIG, "'labels' is not given in [data]");
}
END_TEST

static const struct { const char *table, *phrase; } broken_tables[] = {
    { "", "is empty, expected a line of column names" },
    { "index\tlabel\n1\tx\n", "has no column 'name', expected 'index' and 'name'" },
    { "id\tname\n1\tx\n", "has no column 'index', expected 'index' and 'name'" },
    { "index\tname\none\tx\n", "line 2: found the index 'one', expected 0 to" },
    { "index\tname\n1\tx\n-1\ty\n", "line 3: found the index '-1', expected 0 to" },
    { "index\tname\n70000\tx\n", "line 2: found the index '70000'" },
    { "index\tname\n2\t\n", "line 2: found no name for index 2" },
    { "index\tname\n2\tx\ty\n", "line 2: found 3 fields, expected 2" },
    { "index\tname\n2\n", "line 2: found 1 field, expected 2" },
    { "index\tname\n2\tx\n2\ty\n", "gives id 2 to 'x' and to 'y'" },
    { "index\tname\n2\tx\n3\tx\n", "names 'x' twice" },
    { "index\tname\n", "has 1 entry" },
    { "index\tname\tindex\n2\tx\t3\n", "the column 'index' occurs twice" },
    { "index\tname\n2\t\"x\n", "row 2: a quote does not end" },
    { "index\tname\n2\t\"x\"y\n", "row 2: text follows a closing quote" },
};

START_TEST(a_broken_table_is_refused_and_named)
{
    dataset_settings s = bids_settings();

    bids_tree_make(root);
    maker_text(MANUAL "dseg.tsv", broken_tables[_i].table);
    maker_refused(&s, PONS_DATA, "manual/dseg.tsv");
    maker_refused(&s, PONS_DATA, broken_tables[_i].phrase);
}
END_TEST

START_TEST(damaged_trees_are_refused_and_named)
{
    dataset_settings s = bids_settings();

    bids_tree_make(root);
    tree_image(maker_path("sub-01/anat/sub-01_T1w.nii"), 0);
    maker_refused(&s, PONS_DATA, "case 'sub-01': found '");
    unlink(maker_path("sub-01/anat/sub-01_T1w.nii"));
    tree_image(maker_path("sub-02/ses-a/anat/sub-01_ses-a_T1w.nii.gz"), 0);
    maker_refused(&s, PONS_DATA, "expected a name that begins with 'sub-02_ses-a_'");
    unlink(maker_path("sub-02/ses-a/anat/sub-01_ses-a_T1w.nii.gz"));
    s.label_suffix = "mask";
    maker_refused(&s, PONS_DATA, "has a label *_mask.nii.gz with its entities");
    s.layout = "globs";
    s.source = NULL;
    s.image = (pons_texts){ 1, (const char *const[]){ "*.nii" } };
    maker_refused(&s, PONS_CONFIG, "'label_suffix' is given for the layout 'globs'");
}
END_TEST

START_TEST(a_table_holds_quotes_and_line_ends_of_windows)
{
    dataset_settings s = bids_settings();

    bids_tree_make(root);
    maker_text(MANUAL "dseg.tsv", "\xef\xbb\xbfindex\tname\r\n\r\n 2 \t\"a \"\"b\"\"\"\r\n5\tc");
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->classes[1].name, "a \"b\"");
    ck_assert_str_eq(d->classes[2].name, "c");
    dataset_close(d);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("bids");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, raw_images_and_labels_of_derivatives_are_paired);
    tcase_add_test(c, several_endings_are_channels_in_their_order);
    tcase_add_test(c, a_subject_without_label_is_a_case_where_labels_are_optional);
    tcase_add_test(c, a_mask_beside_its_image_needs_no_table);
    tcase_add_test(c, a_derivative_is_a_dataset_of_its_own);
    tcase_add_test(c, a_label_of_another_space_is_not_the_label_of_the_scan);
    tcase_add_test(c, the_nearest_table_names_the_classes);
    tcase_add_loop_test(c, a_broken_table_is_refused_and_named, 0,
                        sizeof broken_tables / sizeof broken_tables[0]);
    tcase_add_test(c, damaged_trees_are_refused_and_named);
    tcase_add_test(c, a_table_holds_quotes_and_line_ends_of_windows);
    return suite_run();
}
