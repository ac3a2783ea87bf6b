/*
 * check_layout_lists.c - the layouts that list files, MONAI's datalist and CSV, their folds, and
 * how 'auto' recognises them. Each layout has a gallery of broken files and valid twins.
 */
#include "data/dataset/dataset.h"

#include "integration/gallery/gallery_list.h"
#include "support/dataset_maker.h"
#include "support/suite.h"

static double ramp(int64_t i, int64_t j, int64_t k)
{
    return (double)(i + 2 * j + 3 * k);
}

static double half(int64_t i, int64_t j, int64_t k)
{
    return i < 2;
}

/* Make img/NAME.nii.gz and lab/NAME.nii.gz for each name, in a folder below root. */
static void make_files(const char *folder, const char *names)
{
    for (; *names != '\0'; names++) {
        char path[128];
        snprintf(path, sizeof path, "%simg/%c.nii.gz", folder, *names);
        maker_volume(path, 4, 4, 4, ramp, 0, 4);
        snprintf(path, sizeof path, "%slab/%c.nii.gz", folder, *names);
        maker_volume(path, 4, 4, 4, half, 0, 2);
    }
}

static const char *const two_labels[] = { "background:0", "spleen:1" };

static dataset_settings source_of(const char *name)
{
    return (dataset_settings){ .source = *name == '\0' ? root : maker_path("%s", name),
                               .labels = { 2, two_labels } };
}

/* The ids of all cases, with a '*' before each that is held out. */
static void assert_cases(const dataset *d, const char *expected)
{
    char found[512] = "";

    for (int i = 0; i < d->case_count; i++) {
        bool held = false;
        for (int k = 0; k < d->validation_count; k++)
            held = held || d->validation[k] == i;
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s%s",
                 i > 0 ? " " : "", held ? "*" : "", d->cases[i].id);
    }
    ck_assert_str_eq(found, expected);
}

static void assert_source(const dataset_settings *s, const char *layout, const char *cases)
{
    dataset *d = maker_open(s);

    ck_assert_str_eq(d->layout, layout);
    assert_cases(d, cases);
    dataset_close(d);
}

/* ---- datalist -------------------------------------------------------------------------------- */

START_TEST(a_datalist_names_images_labels_and_a_validation_list)
{
    make_files("", "abc");
    maker_text("d.json", "{\"training\": [" LIST_ITEM("a", "") ", " LIST_ITEM("b", "") "], "
               "\"validation\": [" LIST_ITEM("c", "") "], \"testing\": [{\"image\": \"x\"}]}");
    dataset_settings s = source_of("d.json");
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->layout, "datalist");
    assert_cases(d, "a b *c");
    ck_assert_str_eq(d->cases[1].image[0], maker_path("img/b.nii.gz"));
    ck_assert_str_eq(d->cases[1].label, maker_path("lab/b.nii.gz"));
    ck_assert_int_eq(d->channels, 1);
    ck_assert_int_eq(d->unused_count, 1);
    dataset_close(d);
    s.validation = "names:a";
    assert_source(&s, "datalist", "*a b c");
    s.validation = NULL;
    s.fold = &(int64_t){ 0 };
    maker_refused(&s, PONS_CONFIG, "'fold' is 0, but '");
}
END_TEST

START_TEST(folds_of_a_datalist_are_chosen_by_number)
{
    make_files("", "abcd");
    maker_text("d.json", "{\"labels\": {\"0\": \"back\", \"1\": \"organ\"}, \"training\": ["
               LIST_ITEM("a", ", \"fold\": 2") ", " LIST_ITEM("b", ", \"fold\": 1") ", "
               LIST_ITEM("c", ", \"fold\": 1") ", " LIST_ITEM("d", "") "]}");
    dataset_settings s = source_of("d.json");
    s.labels.count = 0;
    dataset *d = maker_open(&s);
    assert_cases(d, "a *b *c d");
    ck_assert_str_eq(d->classes[1].name, "organ");
    dataset_close(d);
    s.fold = &(int64_t){ 2 };
    assert_source(&s, "datalist", "*a b c d");
    s.fold = &(int64_t){ 0 };
    maker_refused(&s, PONS_CONFIG, "has no case of it, expected a fold of 1 to 2");
    s.fold = NULL;
    s.validation = "own";
    assert_source(&s, "datalist", "a *b *c d");
    s.validation = "none";
    assert_source(&s, "datalist", "a b c d");
    maker_text("d.json", "{\"training\": [" LIST_ITEM("a", "") "]}");
    s = source_of("d.json");
    s.validation = "own";
    maker_refused(&s, PONS_CONFIG, "'validation' is 'own', but '");
}
END_TEST

START_TEST(a_list_of_images_gives_channels_and_folders_give_ids)
{
    make_files("p/s1/", "tf");
    make_files("p/s2/", "tf");
    maker_text("d.json", "{\"training\": ["
               "{\"image\": [\"p/s1/img/t.nii.gz\", \"./p/s1/img/f.nii.gz\"], "
               "\"label\": \"p/s1/lab/t.nii.gz\"}, "
               "{\"image\": [\"p/s2/img/t.nii.gz\", \"p/s2/img/f.nii.gz\"], "
               "\"label\": \"p/s2/lab/t.nii.gz\"}]}");
    dataset_settings s = source_of("d.json");
    s.validation = "none";
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->channels, 2);
    assert_cases(d, "s1_img s2_img");
    ck_assert_str_eq(d->cases[0].image[1], maker_path("p/s1/img/f.nii.gz"));
    dataset_close(d);
}
END_TEST

START_TEST(equal_file_names_among_others_give_ids_with_their_folders)
{
    make_files("s1/", "tf");
    make_files("s2/", "t");
    maker_text("d.json", "{\"training\": ["
               "{\"image\": \"s1/img/t.nii.gz\", \"label\": \"s1/lab/t.nii.gz\"}, "
               "{\"image\": \"s1/img/f.nii.gz\", \"label\": \"s1/lab/f.nii.gz\"}, "
               "{\"image\": \"s2/img/t.nii.gz\", \"label\": \"s2/lab/t.nii.gz\"}]}");
    dataset_settings s = source_of("d.json");
    s.validation = "none";
    assert_source(&s, "datalist", "s1_img_f s1_img_t s2_img_t");
}
END_TEST

START_TEST(a_broken_datalist_is_refused_and_named)
{
    dataset_settings s = source_of("datalist.json");

    make_files("", "ab");
    s.layout = "datalist";
    maker_text("datalist.json", datalist_gallery[_i].text);
    maker_refused(&s, datalist_gallery[_i].status, datalist_gallery[_i].phrase);
    maker_text("datalist.json", LIST_GOOD);
    assert_source(&s, "datalist", "*a b");
}
END_TEST

/* ---- csv ------------------------------------------------------------------------------------- */

static const struct { const char *file, *text, *cases; } valid_tables[] = {
    { "t.csv", CSV_GOOD, "*a b" },
    { "t.csv", CSV_ROW("a") CSV_ROW("b"), "*a b" },
    { "t.csv", "features,labels\n" CSV_ROW("a") CSV_ROW("b"), "*a b" },
    { "t.csv", "\xef\xbb\xbfImage,LABEL\r\n\"img/a.nii.gz\", lab/a.nii.gz\r\n\r\n"
      "./img/b.nii.gz,\"lab/b.nii.gz\"", "*a b" },
    { "t.tsv", "label\timage\nlab/b.nii.gz\timg/b.nii.gz\nlab/a.nii.gz\timg/a.nii.gz\n", "*a b" },
    { "t.csv", "image;label\nimg/b.nii.gz;lab/b.nii.gz\nimg/a.nii.gz;lab/a.nii.gz\n", "*a b" },
    { "t.csv", "label\timage\nlab/b.nii.gz\timg/b.nii.gz\nlab/a.nii.gz\timg/a.nii.gz\n", "*a b" },
    { "t.csv", "fold,image,label,age\n1," "img/a.nii.gz,lab/a.nii.gz,30\n0,"
      "img/b.nii.gz,lab/b.nii.gz,\n", "a *b" },
    { "t.csv", "split,image,label\ntrain," CSV_ROW("a") "VAL," CSV_ROW("b") "test,x,y\n", "a *b" },
    { "t.csv", "case,image,label\ns 2," CSV_ROW("a") "s 1," CSV_ROW("b"), "*s 1 s 2" },
};

START_TEST(tables_of_every_form_give_the_same_cases)
{
    dataset_settings s = source_of(valid_tables[_i].file);

    make_files("", "ab");
    maker_text(valid_tables[_i].file, valid_tables[_i].text);
    if (strstr(valid_tables[_i].text, "fold,") == NULL
        && strstr(valid_tables[_i].text, "split,") == NULL)
        s.validation = valid_tables[_i].cases[1] == 's' ? "names:s 1" : "names:a";
    assert_source(&s, "csv", valid_tables[_i].cases);
    s.source = root;
    assert_source(&s, "csv", valid_tables[_i].cases);
}
END_TEST

START_TEST(columns_of_images_are_channels)
{
    make_files("", "abcd");
    maker_text("t.csv", "image_1,label,image_0\nimg/b.nii.gz,lab/a.nii.gz,img/a.nii.gz\n"
               "img/d.nii.gz,lab/c.nii.gz,img/c.nii.gz\n");
    dataset_settings s = source_of("t.csv");
    s.validation = "none";
    dataset *d = maker_open(&s);
    assert_cases(d, "a c");
    ck_assert_int_eq(d->channels, 2);
    ck_assert_ptr_null(d->channel_names);
    ck_assert_str_eq(d->cases[0].image[1], maker_path("img/b.nii.gz"));
    dataset_close(d);
    maker_text("t.csv", "image_t2,image_t1,label\nimg/b.nii.gz,img/a.nii.gz,lab/a.nii.gz\n");
    d = maker_open(&s);
    assert_cases(d, "b");
    ck_assert_str_eq(d->channel_names[0], "t2");
    ck_assert_str_eq(d->channel_names[1], "t1");
    dataset_close(d);
    maker_text("t.csv", "who,t2,flair,label\nx,img/b.nii.gz,img/a.nii.gz,lab/a.nii.gz\n");
    d = maker_open(&s);
    ck_assert_int_eq(d->channels, 2);
    ck_assert_str_eq(d->channel_names[1], "flair");
    dataset_close(d);
    maker_text("t.csv", "img/b.nii.gz,img/a.nii.gz,lab/a.nii.gz\n");
    d = maker_open(&s);
    ck_assert_int_eq(d->channels, 2);
    ck_assert_str_eq(d->cases[0].label, maker_path("lab/a.nii.gz"));
    dataset_close(d);
}
END_TEST

START_TEST(a_quoted_name_holds_delimiters_and_quotes)
{
    char name[2048];

    make_files("", "a");
    maker_volume("img/x, \"y\".nii.gz", 4, 4, 4, ramp, 0, 4);
    snprintf(name, sizeof name, "image,label\n\"%s\",lab/a.nii.gz\n",
             maker_path("img/x, \"\"y\"\".nii.gz"));
    maker_text("t.csv", name);
    dataset_settings s = source_of("t.csv");
    s.validation = "none";
    dataset *d = maker_open(&s);
    assert_cases(d, "x, \"y\"");
    dataset_close(d);
}
END_TEST

START_TEST(every_wrong_row_of_a_table_is_listed)
{
    make_files("", "ab");
    maker_text("t.csv", CSV_GOOD "img/a.nii.gz,lab/b.nii.gz\nimg/z.nii.gz,lab/a.nii.gz\nx\n");
    dataset_settings s = source_of("t.csv");
    maker_refused(&s, PONS_DATA, "3 problems, the first: ");
    s.keep_problems = true;
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->problem_count, 3);
    dataset_close(d);
}
END_TEST

START_TEST(a_broken_table_is_refused_and_named)
{
    dataset_settings s = source_of("train.csv");

    make_files("", "ab");
    s.layout = "csv";
    maker_text("train.csv", csv_gallery[_i].text);
    maker_refused(&s, csv_gallery[_i].status, csv_gallery[_i].phrase);
    maker_text("train.csv", CSV_GOOD);
    s.validation = "names:a";
    assert_source(&s, "csv", "*a b");
}
END_TEST

/* ---- recognition ----------------------------------------------------------------------------- */

START_TEST(a_layout_is_recognised_by_one_file_of_a_folder)
{
    char text[1024];

    make_files("", "ab");
    maker_text("folds.json", LIST_GOOD);
    maker_text("notes.json", "{\"who\": \"me\"}");
    maker_text("ages.csv", "name,age\nx,3\n");
    dataset_settings s = source_of("");
    dataset *d = maker_open(&s);
    snprintf(text, sizeof text, "layout: datalist, by '%s'", maker_path("folds.json"));
    ck_assert_str_eq(dataset_layout_text(d), text);
    dataset_close(d);
    s.layout = "datalist";
    d = maker_open(&s);
    snprintf(text, sizeof text, "layout: datalist, as given, of '%s'", maker_path("folds.json"));
    ck_assert_str_eq(dataset_layout_text(d), text);
    dataset_close(d);
}
END_TEST

START_TEST(two_candidates_are_refused_with_the_way_to_choose)
{
    make_files("", "ab");
    maker_text("dataset.json", "{\"modality\": {\"0\": \"CT\"}, \"training\": ["
               LIST_ITEM("a", "") "]}");
    maker_text("folds.json", LIST_GOOD);
    dataset_settings s = source_of("");
    maker_refused(&s, PONS_CONFIG, "has 2 datasets: decathlon by '");
    maker_refused(&s, PONS_CONFIG, "folds.json', expected one\nhint: --set data.source=");
    maker_text("train.csv", CSV_GOOD);
    maker_refused(&s, PONS_CONFIG, "has 3 datasets: decathlon by '");
    s.layout = "decathlon";
    assert_source(&s, "decathlon", "a");
    s.layout = "datalist";
    assert_source(&s, "datalist", "*a b");
    s = source_of("folds.json");
    assert_source(&s, "datalist", "*a b");
    s = source_of("dataset.json");
    assert_source(&s, "decathlon", "a");
}
END_TEST

START_TEST(a_folder_without_a_sign_is_refused_with_what_was_looked_for)
{
    make_files("", "a");
    dataset_settings s = source_of("");
    maker_refused(&s, PONS_DATA, "has no dataset.json, no .json with 'training', no .csv");
    s = source_of("img/a.nii.gz");
    maker_refused(&s, PONS_DATA, "is no dataset, expected a folder");
}
END_TEST

START_TEST(the_decathlons_signs_stay_with_other_names_of_the_file)
{
    make_files("", "ab");
    maker_text("d.json", "{\"modality\": {\"0\": \"CT\"}, \"training\": [" LIST_ITEM("a", "") "]}");
    dataset_settings s = source_of("d.json");
    assert_source(&s, "decathlon", "a");
    maker_text("d.json", "{\"modality\": {\"0\": \"CT\"}, \"training\": ["
               LIST_ITEM("a", ", \"fold\": 0") ", " LIST_ITEM("b", ", \"fold\": 1") "]}");
    assert_source(&s, "datalist", "*a b");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("layout lists");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, a_datalist_names_images_labels_and_a_validation_list);
    tcase_add_test(c, folds_of_a_datalist_are_chosen_by_number);
    tcase_add_test(c, a_list_of_images_gives_channels_and_folders_give_ids);
    tcase_add_test(c, equal_file_names_among_others_give_ids_with_their_folders);
    tcase_add_loop_test(c, a_broken_datalist_is_refused_and_named, 0,
                        sizeof datalist_gallery / sizeof datalist_gallery[0]);
    tcase_add_loop_test(c, tables_of_every_form_give_the_same_cases, 0,
                        sizeof valid_tables / sizeof valid_tables[0]);
    tcase_add_test(c, columns_of_images_are_channels);
    tcase_add_test(c, a_quoted_name_holds_delimiters_and_quotes);
    tcase_add_test(c, every_wrong_row_of_a_table_is_listed);
    tcase_add_loop_test(c, a_broken_table_is_refused_and_named, 0,
                        sizeof csv_gallery / sizeof csv_gallery[0]);
    tcase_add_test(c, a_layout_is_recognised_by_one_file_of_a_folder);
    tcase_add_test(c, two_candidates_are_refused_with_the_way_to_choose);
    tcase_add_test(c, a_folder_without_a_sign_is_refused_with_what_was_looked_for);
    tcase_add_test(c, the_decathlons_signs_stay_with_other_names_of_the_file);
    return suite_run();
}
