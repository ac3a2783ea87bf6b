/*
 * check_layout_nnunet.c - raw folders of nnU-Net: their cases, channels, classes and regions.
 */
#include "data/check/dataset_check.h"

#include "integration/gallery/gallery_nnunet.h"
#include "support/dataset_maker.h"
#include "support/suite.h"

#define HEAD(CHANNELS, LABELS) "{ \"channel_names\": " CHANNELS ", \"labels\": " LABELS ", " \
                               "\"file_ending\": \".nii.gz\", \"numTraining\": 2"
#define ONE "{\"0\": \"CT\"}"
#define TWO "{\"0\": \"T1\", \"1\": \"T2\"}"
#define FOUR "{\"3\": \"F\", \"0\": \"T1\", \"2\": \"T1c\", \"1\": \"T2\"}"
#define IDS "{\"liver\": 2, \"background\": 0, \"tumour\": 5}"
#define REGIONS "{\"background\": 0, \"whole\": [1, 2, 3], \"core\": [2, 3], \"enhancing\": 3}"

/* Cases s_10 and s_2 of 'channels' files. Only their names are read. */
static void make_folder(int channels, const char *json)
{
    static const char *const cases[] = { "s_10", "s_2" };

    for (int c = 0; c < 2; c++) {
        char name[64];
        for (int i = 0; i < channels; i++) {
            snprintf(name, sizeof name, "imagesTr/%s_%04d.nii.gz", cases[c], i);
            maker_text(name, "");
        }
        snprintf(name, sizeof name, "labelsTr/%s.nii.gz", cases[c]);
        maker_text(name, "");
    }
    maker_text("dataset.json", json);
}

static dataset *open_folder(const dataset_settings *more)
{
    dataset_settings s = more != NULL ? *more : (dataset_settings){ 0 };
    dataset *d;

    if (s.source == NULL)
        s.source = root;
    d = maker_open(&s);
    ck_assert_str_eq(d->layout, "nnunet");
    return d;
}

static const struct { int channels; const char *json; } folders[] = {
    { 1, HEAD(ONE, IDS) " }" }, { 2, HEAD(TWO, IDS) " }" }, { 4, HEAD(FOUR, IDS) " }" },
    { 2, "{ \"modality\": " TWO ", \"labels\": " IDS ", \"file_ending\": \".nii.gz\" }" },
};

START_TEST(cases_and_channels_are_those_of_the_folder)
{
    make_folder(folders[_i].channels, folders[_i].json);
    dataset *d = open_folder(NULL);
    ck_assert_int_eq(d->case_count, 2);
    ck_assert_int_eq(d->channels, folders[_i].channels);
    ck_assert_str_eq(d->cases[0].id, "s_10");
    ck_assert_str_eq(d->cases[1].id, "s_2");
    ck_assert_str_eq(d->cases[1].label, maker_path("labelsTr/s_2.nii.gz"));
    for (int i = 0; i < d->channels; i++)
        ck_assert_str_eq(d->cases[1].image[i], maker_path("imagesTr/s_2_%04d.nii.gz", i));
    ck_assert_str_eq(d->channel_names[0], d->channels == 1 ? "CT" : "T1");
    dataset_close(d);
}
END_TEST

START_TEST(classes_are_sorted_by_id)
{
    make_folder(1, HEAD(ONE, IDS) " }");
    dataset *d = open_folder(NULL);
    ck_assert_int_eq(d->class_count, 3);
    ck_assert_int_eq(d->region_count, 0);
    ck_assert_str_eq(d->classes[0].name, "background");
    ck_assert_str_eq(d->classes[1].name, "liver");
    ck_assert_int_eq(d->classes[1].id[0], 2);
    ck_assert_int_eq(d->classes[2].id[0], 5);
    dataset_close(d);
}
END_TEST

START_TEST(lists_of_ids_are_regions_in_the_order_of_the_file)
{
    make_folder(1, HEAD(ONE, REGIONS) ", \"regions_class_order\": [1, 2, 3] }");
    dataset *d = open_folder(NULL);
    ck_assert_int_eq(d->region_count, 3);
    ck_assert_str_eq(d->regions[0].name, "whole");
    ck_assert_int_eq(d->regions[0].id_count, 3);
    ck_assert_str_eq(d->regions[2].name, "enhancing");
    ck_assert_int_eq(d->class_count, 4);
    ck_assert_str_eq(d->classes[1].name, "1");
    ck_assert_str_eq(d->classes[3].name, "enhancing");
    dataset_close(d);
}
END_TEST

START_TEST(the_label_ignore_is_no_class_and_no_region)
{
    make_folder(1, HEAD(ONE, "{\"background\": 0, \"a\": 1, \"b\": 2, \"ignore\": 3}") " }");
    dataset *d = open_folder(NULL);
    ck_assert_int_eq(d->class_count, 3);
    ck_assert_str_eq(d->classes[2].name, "b");
    ck_assert_int_eq(d->ignored->id[0], 3);
    dataset_close(d);
    make_folder(1, HEAD(ONE, "{\"background\": 0, \"a\": [1, 2], \"ignore\": 3}")
                ", \"regions_class_order\": [1] }");
    d = open_folder(NULL);
    ck_assert_int_eq(d->region_count, 1);
    ck_assert_int_eq(d->class_count, 3);
    ck_assert_int_eq(d->ignored->id[0], 3);
    dataset_close(d);
}
END_TEST

START_TEST(an_ignore_that_is_not_the_largest_id_is_a_warning)
{
    make_folder(1, HEAD(ONE, "{\"background\": 0, \"a\": 1, \"ignore\": 2, \"b\": 3}") " }");
    dataset *d = open_folder(NULL);
    ck_assert_int_eq(d->ignored->id[0], 2);
    ck_assert_int_eq(d->warning_count, 1);
    ck_assert_msg(strstr(d->warning[0].text, "'labels.ignore' is 2, expected an id above 3")
                  != NULL, "%s", d->warning[0].text);
    dataset_close(d);
    make_folder(1, HEAD(ONE, "{\"background\": 0, \"a\": 1, \"ignore\": 4, \"b\": 3}") " }");
    d = open_folder(NULL);
    ck_assert_int_eq(d->warning_count, 0);
    dataset_close(d);
}
END_TEST

START_TEST(another_number_of_cases_is_a_warning_of_the_check)
{
    pons_error err = PONS_ERROR_INIT;
    dataset_report *report = NULL;

    make_folder(1, "{ \"channel_names\": " ONE ", \"labels\": " IDS ", \"numTraining\": 3, "
                   "\"file_ending\": \".nii.gz\" }");
    dataset *d = open_folder(NULL);
    ck_assert_int_eq(d->warning_count, 1);
    dataset_check(d, NULL, &report, &err);
    ck_assert_ptr_nonnull(report);
    bool told = false;
    for (int i = 0; i < report->problem_count; i++)
        told |= strstr(report->problem[i].text, "'numTraining' is 3, found 2 cases") != NULL;
    ck_assert(told);
    dataset_report_free(report);
    dataset_close(d);
}
END_TEST

START_TEST(a_class_order_that_paints_other_ids_is_a_warning)
{
    make_folder(1, HEAD(ONE, REGIONS) ", \"regions_class_order\": [3, 2, 1] }");
    dataset *d = open_folder(NULL);
    ck_assert_int_eq(d->warning_count, 2);
    ck_assert_ptr_nonnull(strstr(d->warning[0].text,
                                 "'regions_class_order[0]' paints 'whole' as 3"));
    ck_assert_ptr_nonnull(strstr(d->warning[1].text, "[2]' paints 'enhancing' as 1"));
    dataset_close(d);
    make_folder(1, HEAD(ONE, REGIONS) ", \"regions_class_order\": [1, 2, 3] }");
    d = open_folder(NULL);
    ck_assert_int_eq(d->warning_count, 0);
    dataset_close(d);
}
END_TEST

/* The file lies in the folder (0), or among the preprocessed datasets (1). */
START_TEST(folds_beside_the_cases_are_used_if_asked_for)
{
    static const char *const place[] = { "raw/D/splits_final.json",
                                         "nnUNet_preprocessed/D/splits_final.json" };
    static const char *const moved[] = { "imagesTr", "labelsTr", "dataset.json" };
    const int64_t fold = 1;
    dataset *d;

    make_folder(1, HEAD(ONE, IDS) " }");
    maker_text(place[_i], "[{\"train\": [\"s_2\"], \"val\": [\"s_10\"]},"
                          " {\"train\": [\"s_10\"], \"val\": [\"s_2\"]}]");
    maker_text("raw/D/empty", "");
    for (int n = 0; n < 3; n++)
        ck_assert_int_eq(rename(maker_path("%s", moved[n]), maker_path("raw/D/%s", moved[n])), 0);
    dataset_settings s = { .source = maker_path("raw/D"), .validation = "last:1" };
    d = open_folder(&s);
    ck_assert_ptr_nonnull(d->spare_splits);
    ck_assert_ptr_nonnull(strstr(d->spare_splits, strchr(place[_i], 'D')));
    ck_assert(!d->own_split);
    dataset_close(d);
    char rule[600];
    snprintf(rule, sizeof rule, "file:%s", maker_path("%s", place[_i]));
    s.validation = rule;
    d = open_folder(&s);
    ck_assert_ptr_null(d->spare_splits);
    dataset_close(d);
    s.validation = "own";
    for (int n = 0; n < 2; n++) {
        s.fold = n == 0 ? NULL : &fold;
        d = open_folder(&s);
        ck_assert(d->own_split);
        ck_assert_ptr_null(d->spare_splits);
        ck_assert_int_eq(d->validation_count, 1);
        ck_assert_str_eq(d->cases[d->validation[0]].id, n == 0 ? "s_10" : "s_2");
        dataset_close(d);
    }
}
END_TEST

/* Five cases are divided as nnU-Net would, where no file has its folds. */
START_TEST(folds_are_drawn_where_no_file_has_them)
{
    static const char *const id[] = { "a", "b", "c", "d", "e" };
    const int64_t fold = 1;
    dataset_settings s = { .source = root, .validation = "own", .fold = &fold };
    dataset *d = NULL;

    maker_text("dataset.json", HEAD(ONE, IDS) " }");
    for (int c = 0; c < 5; c++) {
        char name[64];
        snprintf(name, sizeof name, "imagesTr/%s_0000.nii.gz", id[c]);
        maker_text(name, "");
        snprintf(name, sizeof name, "labelsTr/%s.nii.gz", id[c]);
        maker_text(name, "");
    }
    d = open_folder(&s);
    ck_assert(d->own_split);
    ck_assert_int_eq(d->validation_count, 1);
    ck_assert_str_eq(d->cases[d->validation[0]].id, "e");
    dataset_close(d);
    ck_assert_int_eq(unlink(maker_path("imagesTr/e_0000.nii.gz")), 0);
    ck_assert_int_eq(unlink(maker_path("labelsTr/e.nii.gz")), 0);
    maker_refused(&s, PONS_CONFIG, "'validation' is 'own', but '");
}
END_TEST

START_TEST(a_list_of_one_id_is_a_class)
{
    make_folder(1, HEAD(ONE, "{\"background\": 0, \"liver\": [1]}") " }");
    dataset *d = open_folder(NULL);
    ck_assert_int_eq(d->region_count, 0);
    ck_assert_str_eq(d->classes[1].name, "liver");
    dataset_close(d);
}
END_TEST

START_TEST(labels_and_regions_of_the_ini_override_dataset_json)
{
    static const char *const labels[] = { "none:0", "organ:2,5" };
    static const char *const regions[] = { "both:2,5" };
    dataset_settings s = { .labels = { 2, labels } };

    make_folder(1, HEAD(ONE, REGIONS) ", \"regions_class_order\": [1, 2, 3] }");
    dataset *d = open_folder(&s);
    ck_assert_int_eq(d->region_count, 0);
    ck_assert_str_eq(d->classes[1].name, "organ");
    dataset_close(d);
    make_folder(1, HEAD(ONE, IDS) " }");
    s = (dataset_settings){ .regions = { 1, regions } };
    d = open_folder(&s);
    ck_assert_int_eq(d->region_count, 1);
    ck_assert_str_eq(d->regions[0].name, "both");
    ck_assert_str_eq(d->classes[1].name, "liver");
    dataset_close(d);
}
END_TEST

START_TEST(a_map_of_cases_replaces_the_folders)
{
    maker_text("a/x.nii.gz", "");
    maker_text("a/y.nii.gz", "");
    maker_text("dataset.json", HEAD(ONE, IDS) ", \"dataset\": { \"case\": { \"images\": "
               "[\"./a/x.nii.gz\"], \"label\": \"a/y.nii.gz\" } } }");
    dataset *d = open_folder(NULL);
    ck_assert_int_eq(d->case_count, 1);
    ck_assert_str_eq(d->cases[0].id, "case");
    ck_assert_str_eq(d->cases[0].image[0], maker_path("a/x.nii.gz"));
    ck_assert_str_eq(d->cases[0].label, maker_path("a/y.nii.gz"));
    dataset_close(d);
}
END_TEST

START_TEST(a_name_that_ends_like_a_channel_is_a_case_of_its_own)
{
    maker_text("imagesTr/a_0000.nii.gz", "");
    maker_text("imagesTr/a_0000_0000.nii.gz", "");
    maker_text("imagesTr/._a_0000.nii.gz", "");
    maker_text("imagesTr/notes.txt", "");
    maker_text("labelsTr/a.nii.gz", "");
    maker_text("labelsTr/a_0000.nii.gz", "");
    maker_text("dataset.json", HEAD(ONE, IDS) " }");
    dataset *d = open_folder(NULL);
    ck_assert_int_eq(d->case_count, 2);
    ck_assert_str_eq(d->cases[1].id, "a_0000");
    ck_assert_str_eq(d->cases[1].label, maker_path("labelsTr/a_0000.nii.gz"));
    dataset_close(d);
}
END_TEST

/* Label values are checked where volumes are read. */
START_TEST(a_broken_folder_is_refused_and_named)
{
    const broken_nnunet *b = &nnunet_gallery[_i];
    dataset_settings s = { .source = root };

    make_folder(2, b->text);
    if (b->removed != NULL)
        ck_assert_int_eq(unlink(maker_path("%s", b->removed)), 0);
    if (b->added != NULL)
        maker_text(b->added, "");
    if (strstr(b->phrase, "has id") == NULL)
        maker_refused(&s, PONS_DATA, b->phrase);
}
END_TEST

START_TEST(another_layout_has_a_hint)
{
    dataset_settings s = { .source = root, .layout = "decathlon" };

    make_folder(2, nnunet_good);
    maker_refused(&s, PONS_CONFIG, "--set data.layout=nnunet");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("layout_nnunet");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_loop_test(c, cases_and_channels_are_those_of_the_folder, 0,
                        sizeof folders / sizeof folders[0]);
    tcase_add_test(c, classes_are_sorted_by_id);
    tcase_add_test(c, lists_of_ids_are_regions_in_the_order_of_the_file);
    tcase_add_test(c, the_label_ignore_is_no_class_and_no_region);
    tcase_add_test(c, an_ignore_that_is_not_the_largest_id_is_a_warning);
    tcase_add_test(c, another_number_of_cases_is_a_warning_of_the_check);
    tcase_add_test(c, a_class_order_that_paints_other_ids_is_a_warning);
    tcase_add_loop_test(c, folds_beside_the_cases_are_used_if_asked_for, 0, 2);
    tcase_add_test(c, folds_are_drawn_where_no_file_has_them);
    tcase_add_test(c, a_list_of_one_id_is_a_class);
    tcase_add_test(c, labels_and_regions_of_the_ini_override_dataset_json);
    tcase_add_test(c, a_map_of_cases_replaces_the_folders);
    tcase_add_test(c, a_name_that_ends_like_a_channel_is_a_case_of_its_own);
    tcase_add_loop_test(c, a_broken_folder_is_refused_and_named, 0,
                        sizeof nnunet_gallery / sizeof nnunet_gallery[0]);
    tcase_add_test(c, another_layout_has_a_hint);
    return suite_run();
}
