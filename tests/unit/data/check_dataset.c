/*
 * check_dataset.c - patterns, dataset.json, labels and the check of every case, with a gallery of
 * broken ones: each has its exit code, its phrase and a valid twin.
 */
#include "data/check/dataset_check.h"
#include "data/loader/loader.h"

#include "data/case/case_read.h"
#include "integration/gallery/gallery_json.h"
#include "support/dataset_maker.h"
#include "support/suite.h"

/* ---- volumes --------------------------------------------------------------------------------- */

static double slope_of(int64_t i, int64_t j, int64_t k)
{
    return (double)(100 * i + 10 * j + k);
}

static double other_slope(int64_t i, int64_t j, int64_t k)
{
    return (double)(100 * i + 10 * j - k);
}

static double third_slope(int64_t i, int64_t j, int64_t k)
{
    return (double)(50 * i - 10 * j - k);
}

static double corner_label(int64_t i, int64_t j, int64_t k)
{
    return i < 2 && j < 2 && k < 2;
}

/* Ids 0 to 3 repeat along i. */
static double four_ids(int64_t i, int64_t j, int64_t k)
{
    return (double)(i % 4);
}

static double one_stray(int64_t i, int64_t j, int64_t k)
{
    return i == 3 && j == 2 && k == 1 ? 7 : corner_label(i, j, k);
}

static double half_label(int64_t i, int64_t j, int64_t k)
{
    return 0.5 * corner_label(i, j, k);
}

static double zero_label(int64_t i, int64_t j, int64_t k)
{
    return 0;
}

/* Make three cases a, b, c in img and lab. */
static void make_pairs(void)
{
    maker_volume("img/a_t1.nii.gz", 6, 5, 4, slope_of, 0, 4);
    maker_volume("img/b_t1.nii.gz", 6, 5, 4, other_slope, 0, 4);
    maker_volume("img/c_t1.nii.gz", 5, 6, 4, third_slope, 0, 4);
    maker_volume("lab/a.nii.gz", 6, 5, 4, corner_label, 0, 2);
    maker_volume("lab/b.nii.gz", 6, 5, 4, corner_label, 0, 2);
    maker_volume("lab/c.nii.gz", 5, 6, 4, corner_label, 0, 2);
}

static const char *const two_labels[] = { "background:0", "spleen:1" };

/* Settings with one image pattern and one label pattern. */
static dataset_settings globs_of(const char *image, const char *label)
{
    static const char *kept[4];

    kept[0] = maker_path("%s", image);
    return (dataset_settings){ .image = { 1, kept },
                               .label = label != NULL ? maker_path("%s", label) : NULL,
                               .labels = { 2, two_labels }, .validation = "none" };
}

/* ---- patterns -------------------------------------------------------------------------------- */

START_TEST(the_star_of_a_pattern_gives_the_case_id)
{
    make_pairs();
    maker_text("img/._a_t1.nii.gz", "resource fork");
    dataset_settings s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->case_count, 3);
    ck_assert_str_eq(d->cases[0].id, "a");
    ck_assert_str_eq(d->cases[2].id, "c");
    ck_assert_str_eq(d->cases[1].image[0], maker_path("img/b_t1.nii.gz"));
    ck_assert_str_eq(d->cases[1].label, maker_path("lab/b.nii.gz"));
    ck_assert_int_eq(d->training_count, 3);
    ck_assert_int_eq(d->channels, 1);
    dataset_close(d);
}
END_TEST

START_TEST(several_stars_form_one_case_id)
{
    maker_text("x/s1/s1_t1.nii", "");
    maker_text("x/s2/s2_t1.nii", "");
    maker_text("x/s1/seg.nii", "");
    maker_text("x/s2/seg.nii", "");
    dataset_settings s = globs_of("x/*/*_t1.nii", "x/*/seg.nii");
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->case_count, 2);
    ck_assert_str_eq(d->cases[0].id, "s1");
    ck_assert_str_eq(d->cases[1].label, maker_path("x/s2/seg.nii"));
    dataset_close(d);
}
END_TEST

START_TEST(brackets_in_names_are_plain_characters)
{
    maker_text("q/[1]a?.nii", "");
    dataset_settings s = globs_of("q/[1]*?.nii", NULL);
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->cases[0].id, "a");
    dataset_close(d);
}
END_TEST

START_TEST(patterns_without_a_star_name_one_case)
{
    make_pairs();
    dataset_settings s = globs_of("img/a_t1.nii.gz", "lab/c.nii.gz");
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->case_count, 1);
    ck_assert_str_eq(d->cases[0].id, "a_t1");
    dataset_close(d);
}
END_TEST

START_TEST(every_unpaired_file_is_listed)
{
    make_pairs();
    maker_text("img/z_t1.nii.gz", "");
    maker_text("lab/y.nii.gz", "");
    dataset_settings s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    maker_refused(&s, PONS_DATA, "2 problems, the first: case 'z': found '");
    maker_refused(&s, PONS_DATA, "/lab/z.nii.gz' beside it");
    s.keep_problems = true;
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->case_count, 5);
    ck_assert_int_eq(d->problem_count, 2);
    ck_assert_str_eq(d->problem[0].case_id, "z");
    ck_assert_str_eq(d->problem[1].case_id, "y");
    ck_assert_ptr_nonnull(strstr(d->problem[1].text, "/img/y_t1.nii.gz' beside it"));
    dataset_close(d);
    s.keep_problems = false;
    unlink(maker_path("img/z_t1.nii.gz"));
    unlink(maker_path("lab/y.nii.gz"));
    dataset_close(maker_open(&s));
}
END_TEST

START_TEST(broken_patterns_are_refused)
{
    make_pairs();
    maker_text("img/b/d_t1.nii.gz", "");
    maker_text("img/b_d_t1.nii.gz", "");
    dataset_settings s = globs_of("img/*_t2.nii.gz", NULL);
    maker_refused(&s, PONS_DATA, "no file matches");
    s = globs_of("img/**.nii.gz", NULL);
    maker_refused(&s, PONS_CONFIG, "holds '**'");
    s = globs_of("none/*.nii.gz", NULL);
    maker_refused(&s, PONS_DATA, "cannot read folder");
    s = globs_of("img/*_t1.nii.gz", "lab/a.nii.gz");
    maker_refused(&s, PONS_CONFIG, "has no '*' but another pattern has one");
    s = globs_of("*/*_*_t1.nii.gz", NULL);
    dataset_close(maker_open(&s));
    maker_text("i/x_y/z", "");
    maker_text("i/x/y_z", "");
    s = globs_of("i/*/*", NULL);
    maker_refused(&s, PONS_DATA, "case 'x_y_z': '");
    maker_refused(&s, PONS_DATA, "are both this case of '");
}
END_TEST

START_TEST(source_and_image_exclude_each_other)
{
    make_pairs();
    dataset_settings s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    s.source = root;
    maker_refused(&s, PONS_CONFIG, "'source' and 'image' are both given");
    s.image.count = 0;
    maker_refused(&s, PONS_CONFIG, "'source' and 'label' are both given");
    s.label = NULL;
    maker_refused(&s, PONS_DATA, "has no dataset.json");
    s.source = maker_path("absent");
    maker_refused(&s, PONS_DATA, "cannot find the dataset");
    s.source = NULL;
    maker_refused(&s, PONS_CONFIG, "neither 'source' nor 'image'");
    s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    s.layout = "decathlon";
    maker_refused(&s, PONS_CONFIG, "layout 'decathlon' needs 'source'");
    s.layout = "csv";
    maker_refused(&s, PONS_CONFIG, "layout 'csv' needs 'source'");
    s.layout = "globs";
    dataset_close(maker_open(&s));
}
END_TEST

/* ---- labels ---------------------------------------------------------------------------------- */

static const struct { const char *labels, *regions, *phrase; } broken_labels[] = {
    { "background", "", "expected NAME:ID or NAME:ID,ID" },
    { "background:0 :1", "", "expected NAME:ID" },
    { "background:0 spleen:", "", "expected NAME:ID" },
    { "background:0 spleen:x", "", "expected ids from 0 to 65535" },
    { "background:0 spleen:-1", "", "expected ids from 0 to 65535" },
    { "background:0 spleen:1,", "", "expected ids from 0 to 65535" },
    { "background:0 spleen:65536", "", "expected ids from 0 to 65535" },
    { "background:0 spleen:1.5", "", "expected ids from 0 to 65535" },
    { "background:0", "", "has 1 entry" },
    { "background:0 spleen:1 spleen:2", "", "names 'spleen' twice" },
    { "background:0 spleen:1 liver:1", "", "gives id 1 to 'spleen' and to 'liver'" },
    { "background:0 spleen:1,1", "", "gives id 1 to 'spleen' and to 'spleen'" },
    { "background:0 spleen:3-1", "", "expected ids from 0 to 65535" },
    { "background:0 spleen:1-", "", "expected ids from 0 to 65535" },
    { "background:0 spleen:1-3x", "", "expected ids from 0 to 65535" },
    { "background:0 spleen:*x", "", "expected ids from 0 to 65535" },
    { "background:0 spleen:1-3 liver:2", "", "gives id 2 to 'spleen' and to 'liver'" },
    { "background:rest spleen:*", "", "expected one entry with rest or *" },
    { "background:0-65535 spleen:rest", "", "gives the rest to 'spleen', but lists every id" },
    { "background:0 spleen:*", "WT:*", "since only 'labels' has a rest" },
    { "background:0 spleen:1", "WT:1,2", "'regions' gives 'WT' the id 2, which no class has" },
    { "background:0 spleen:1", "WT", "expected NAME:ID" },
    { "", "", "'labels' is not given" },
};

static pons_texts words_of(char *text, const char **word)
{
    pons_texts out = { 0, word };

    for (char *w = strtok(text, " "); w != NULL; w = strtok(NULL, " "))
        word[out.count++] = w;
    return out;
}

START_TEST(broken_labels_are_refused_and_named)
{
    char labels[128], regions[128];
    const char *label[16], *region[16];

    make_pairs();
    strcpy(labels, broken_labels[_i].labels);
    strcpy(regions, broken_labels[_i].regions);
    dataset_settings s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    s.labels = words_of(labels, label);
    s.regions = words_of(regions, region);
    maker_refused(&s, PONS_CONFIG, broken_labels[_i].phrase);
}
END_TEST

/* Check the target of case_read for ids 0 1 2 3 along i. */
static void check_target(const dataset *d, int channels, const uint8_t *expected)
{
    pons_error err = PONS_ERROR_INIT;
    pons_case c;

    ck_assert_msg(case_read(d, 0, &c, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(c.label.channels, channels);
    for (int i = 0; i < 4; i++)
        for (int r = 0; r < channels; r++)
            ck_assert_int_eq(((uint8_t *)c.label.voxels)[(i * 20) * channels + r],
                             expected[i * channels + r]);
    case_clear(&c);
}

START_TEST(several_ids_form_a_class_and_the_first_is_background)
{
    static const char *const labels[] = { "rest:2", "kidney:1,3", "cyst:0" };

    maker_volume("img/a.nii", 4, 5, 4, slope_of, 0, 4);
    maker_volume("lab/a.nii", 4, 5, 4, four_ids, 0, 2);
    dataset_settings s = globs_of("img/*.nii", "lab/*.nii");
    s.labels = (pons_texts){ 3, labels };
    dataset *d = maker_open(&s);
    pons_task task = { 0 };
    dataset_task(d, &task);
    ck_assert_int_eq(task.classes, 3);
    ck_assert_int_eq(task.target, PONS_TARGET_LABELS);
    ck_assert_str_eq(task.class_names[1], "kidney");
    check_target(d, 1, (const uint8_t[]){ 2, 1, 0, 1 });
    dataset_close(d);
}
END_TEST

/* The target of ids 0 1 2 3 with these labels. */
static void check_rest(int count, const char *const *labels, const uint8_t *expected)
{
    maker_volume("img/a.nii", 4, 5, 4, slope_of, 0, 4);
    maker_volume("lab/a.nii", 4, 5, 4, four_ids, 0, 2);
    dataset_settings s = globs_of("img/*.nii", "lab/*.nii");
    s.labels = (pons_texts){ count, labels };
    dataset *d = maker_open(&s);
    check_target(d, 1, expected);
    dataset_close(d);
}

START_TEST(ranges_and_the_rest_are_ids_of_a_class)
{
    check_rest(2, (const char *const[]){ "background:0", "brain:*" },
               (const uint8_t[]){ 0, 1, 1, 1 });
    check_rest(2, (const char *const[]){ "background:rest", "liver:1-2" },
               (const uint8_t[]){ 0, 1, 1, 0 });
    check_rest(3, (const char *const[]){ "background:0", "liver:2", "other:*" },
               (const uint8_t[]){ 0, 2, 1, 2 });
    check_rest(2, (const char *const[]){ "liver:1-3", "other:rest" },
               (const uint8_t[]){ 1, 0, 0, 0 });
}
END_TEST

START_TEST(the_rest_above_0_leaves_0_unlisted)
{
    static const char *const labels[] = { "a:1", "b:*" };
    pons_error err = PONS_ERROR_INIT;
    pons_case c;

    maker_volume("img/a.nii", 4, 5, 4, slope_of, 0, 4);
    maker_volume("lab/a.nii", 4, 5, 4, four_ids, 0, 2);
    dataset_settings s = globs_of("img/*.nii", "lab/*.nii");
    s.labels = (pons_texts){ 2, labels };
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->classes[1].id[0], 2);
    ck_assert_int_eq(case_read(d, 0, &c, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "case 'a': '"));
    ck_assert_ptr_nonnull(strstr(err.text, "has id 0 in 20 voxels, which 'labels' does not list"));
    dataset_close(d);
}
END_TEST

/* 'table' NULL: the labels; refused with 'status' and 'phrase', or the targets of ids 0 1 2 3. */
static const struct {
    const char *table, *labels, *map;
    pons_status status;
    const char *phrase;
    uint8_t expected[4];
} mapped[] = {
    { "original,new\n0,0\n1,1\n2,1\n3,2\n", "", "", PONS_OK, NULL, { 0, 1, 1, 2 } },
    { "new,name,original\n1,\"a, b\",3\n0,rest,0\n0,rest,1\n0,rest,2\n", "", "", PONS_OK, NULL,
      { 0, 0, 0, 1 } },
    { "original,new\n0,0\n1,1\n2,1\n", "", "3:2", PONS_OK, NULL, { 0, 1, 1, 1 } },
    { NULL, "background:0 a:1 b:2", "3:2", PONS_OK, NULL, { 0, 1, 2, 2 } },
    { NULL, "background:0 a:1 b:2 c:3", "3:2 2:3", PONS_OK, NULL, { 0, 1, 3, 2 } },
    { NULL, "background:0 a:*", "2:0", PONS_OK, NULL, { 0, 1, 0, 1 } },
    { NULL, "background:0 a:1 b:2 c:3", "3:2", PONS_CONFIG, "'map' leaves 'c:3' without an id",
      { 0 } },
    { NULL, "background:0 a:1-3", "3", PONS_CONFIG, "'map' holds '3', expected ID:ID", { 0 } },
    { NULL, "background:0 a:1-3", "3:x", PONS_CONFIG, "'map' holds '3:x', expected ID:ID", { 0 } },
    { NULL, "background:0 a:1-3", "3:2 3:1", PONS_CONFIG, "'map' gives id 3 to 2 and to 1", { 0 } },
    { "", "", "", PONS_DATA, "is empty, expected a line of column names", { 0 } },
    { "original,old\n0,0\n", "", "", PONS_DATA, "has no column 'new', expected 'original' and",
      { 0 } },
    { "first,new\n0,0\n", "", "", PONS_DATA, "has no column 'original'", { 0 } },
    { "original,new\n0,0\nx,1\n", "", "", PONS_DATA, "line 3: found 'x' in the column 'original'",
      { 0 } },
    { "original,new\n0,0\n1,256\n", "", "", PONS_DATA, "line 3: found '256' in the column 'new'",
      { 0 } },
    { "original,new\n0,0\n1,2\n", "", "", PONS_DATA, "has no row for class 1 but one for class 2",
      { 0 } },
    { "original,new\n0,0\n1,1\n1,0\n", "", "", PONS_DATA, "gives id 1 to 'background' and to",
      { 0 } },
    { "original,new,name\n0,0,a\n1,1,\n", "", "", PONS_DATA, "line 3: the class 1 has no name",
      { 0 } },
    { "original,new,name\n0,0,a\n1,0,b\n", "", "", PONS_DATA, "line 3: found the name 'b' of class "
      "0, expected 'a'", { 0 } },
    { "original,new\n0,0\n", "", "", PONS_DATA, "has 1 entry", { 0 } },
};

START_TEST(tables_and_maps_give_ids_their_classes)
{
    char labels[128], map[64];
    const char *label[16], *item[16];

    maker_volume("img/a.nii", 4, 5, 4, slope_of, 0, 4);
    maker_volume("lab/a.nii", 4, 5, 4, four_ids, 0, 2);
    dataset_settings s = globs_of("img/*.nii", "lab/*.nii");
    strcpy(labels, mapped[_i].labels);
    strcpy(map, mapped[_i].map);
    s.labels = words_of(labels, label);
    s.map = words_of(map, item);
    if (mapped[_i].table != NULL) {
        maker_text("table.csv", mapped[_i].table);
        s.label_table = maker_path("table.csv");
    }
    if (mapped[_i].status != PONS_OK) {
        maker_refused(&s, mapped[_i].status, mapped[_i].phrase);
        return;
    }
    dataset *d = maker_open(&s);
    check_target(d, 1, mapped[_i].expected);
    dataset_close(d);
}
END_TEST

START_TEST(tables_of_many_classes_are_read)
{
    static const int counts[] = { 6, 50, 115 };
    char text[65536] = "original,new\n";

    make_pairs();
    for (int id = 0; id < 2 * counts[_i]; id++)
        snprintf(text + strlen(text), 32, "%d,%d\n", 10 * id + id % 7, id % counts[_i]);
    maker_text("table.csv", text);
    dataset_settings s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    s.labels.count = 0;
    s.label_table = maker_path("table.csv");
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->class_count, counts[_i]);
    ck_assert_str_eq(d->classes[0].name, "background");
    ck_assert_str_eq(d->classes[5].name, "class_5");
    ck_assert_int_eq(d->classes[5].id_count, 2);
    ck_assert_int_eq(d->classes[5].id[0], 55);
    dataset_close(d);
}
END_TEST

START_TEST(regions_overlap_and_have_a_channel_each)
{
    static const char *const regions[] = { "WT:1,2,3", "TC:2,3", "ET:3" };

    maker_volume("img/a.nii", 4, 5, 4, slope_of, 0, 4);
    maker_volume("lab/a.nii", 4, 5, 4, four_ids, 0, 2);
    dataset_settings s = globs_of("img/*.nii", "lab/*.nii");
    s.labels.count = 0;
    s.regions = (pons_texts){ 3, regions };
    dataset *d = maker_open(&s);
    pons_task task = { 0 };
    dataset_task(d, &task);
    ck_assert_int_eq(task.classes, 3);
    ck_assert_int_eq(task.target, PONS_TARGET_REGIONS);
    check_target(d, 3, (const uint8_t[]){ 0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1 });
    dataset_close(d);
}
END_TEST

/* ---- dataset.json ---------------------------------------------------------------------------- */

static dataset_settings source_of(const char *path)
{
    return (dataset_settings){ .source = path };
}

START_TEST(a_decathlon_folder_is_read)
{
    maker_text("dataset.json", GOOD);
    dataset_settings s = source_of(root);
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->layout, "decathlon");
    ck_assert_int_eq(d->case_count, 2);
    ck_assert_str_eq(d->cases[0].id, "s_10");
    ck_assert_str_eq(d->cases[1].image[0], maker_path("imagesTr/s_2.nii.gz"));
    ck_assert_str_eq(d->classes[1].name, "spleen");
    ck_assert_str_eq(d->channel_names[0], "CT");
    ck_assert_int_eq(d->validation_count, 1);
    dataset_close(d);
    s = source_of(maker_path("dataset.json"));
    dataset_close(maker_open(&s));
}
END_TEST

START_TEST(labels_of_the_ini_override_dataset_json)
{
    static const char *const labels[] = { "none:0", "organ:1" };

    maker_text("dataset.json", GOOD);
    dataset_settings s = source_of(root);
    s.labels = (pons_texts){ 2, labels };
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->classes[1].name, "organ");
    dataset_close(d);
}
END_TEST

START_TEST(a_validation_list_is_held_out_unless_the_ini_says_otherwise)
{
    maker_text("dataset.json", HEAD "\"training\": [" ITEM("a") "," ITEM("b") "], "
                               "\"validation\": [" ITEM("c") ", {\"image\": \"d.nii\"}] }");
    dataset_settings s = source_of(root);
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->case_count, 3);
    ck_assert_int_eq(d->validation_count, 1);
    ck_assert_str_eq(d->cases[d->validation[0]].id, "c");
    dataset_close(d);
    s.validation = "names:a";
    d = maker_open(&s);
    ck_assert_str_eq(d->cases[d->validation[0]].id, "a");
    ck_assert_int_eq(d->training_count, 2);
    dataset_close(d);
}
END_TEST

START_TEST(a_list_of_channel_files_is_one_case_without_their_suffix)
{
    maker_text("dataset.json",
               "{ \"modality\": {\"0\": \"FLAIR\", \"1\": \"T1\"}, "
               "\"labels\": {\"0\": \"b\", \"10\": \"x\", \"2\": \"y\"}, "
               "\"training\": [{\"image\": [\"a_0000.nii\", \"a_0001.nii\"], "
               "\"label\": \"l/a.nii\"}] }");
    dataset_settings s = source_of(root);
    dataset *d = maker_open(&s);
    ck_assert_str_eq(d->cases[0].id, "a");
    ck_assert_int_eq(d->cases[0].image_count, 2);
    ck_assert_int_eq(d->channels, 2);
    ck_assert_str_eq(d->classes[1].name, "y");
    ck_assert_int_eq(d->classes[2].id[0], 10);
    dataset_close(d);
}
END_TEST

START_TEST(a_broken_dataset_json_is_refused_and_named)
{
    dataset_settings s = source_of(root);

    maker_text("dataset.json", json_gallery[_i].text);
    maker_refused(&s, json_gallery[_i].status, json_gallery[_i].phrase);
    maker_text("dataset.json", GOOD);
    dataset_close(maker_open(&s));
}
END_TEST

/* ---- the check of every case ----------------------------------------------------------------- */

/* The check lists 'phrase' for case 'id', as an error or a warning. */
static void found_by_check(const char *id, const char *phrase, bool warning)
{
    dataset_settings s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    dataset *d = maker_open(&s);
    pons_error err = PONS_ERROR_INIT;
    dataset_report *report = NULL;
    bool found = false;

    ck_assert_int_eq(dataset_check(d, NULL, &report, &err), warning ? PONS_OK : PONS_DATA);
    for (int i = 0; i < report->problem_count; i++)
        found = found || (strcmp(report->problem[i].case_id, id) == 0 &&
                          strstr(report->problem[i].text, phrase) != NULL &&
                          report->problem[i].warning == warning);
    ck_assert_msg(found, "case '%s' lacks '%s'; %s", id, phrase, err.text);
    dataset_report_free(report);
    dataset_close(d);
}

START_TEST(a_valid_dataset_passes_with_its_label_histogram)
{
    pons_error err = PONS_ERROR_INIT;
    dataset_report *report = NULL;

    make_pairs();
    dataset_settings s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    dataset *d = maker_open(&s);
    ck_assert_msg(dataset_check(d, NULL, &report, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(report->problem_count, 0);
    ck_assert_int_eq(report->id_count, 2);
    ck_assert_int_eq(report->id[1], 1);
    ck_assert_int_eq(report->id_voxels[1], 24);
    ck_assert_int_eq(report->id_voxels[0], 3 * 120 - 24);
    ck_assert_int_eq(report->id_cases[1], 3);
    ck_assert_int_eq(report->facts[2].extent[1], 6);
    ck_assert_double_eq(report->facts[0].spacing[2], 2);
    ck_assert_int_eq(report->facts[0].foreground, 8);
    dataset_report_free(report);
    dataset_close(d);
}
END_TEST

START_TEST(a_shift_by_one_voxel_is_found)
{
    make_pairs();
    maker_volume("lab/b.nii.gz", 6, 5, 4, corner_label, 1, 2);
    found_by_check("b", "", false);
    maker_volume("lab/b.nii.gz", 6, 5, 4, corner_label, 0.001, 2);
    maker_volume("lab/c.nii.gz", 5, 6, 4, zero_label, 0, 2);
    found_by_check("c", "has no foreground", true);
}
END_TEST

START_TEST(an_unlisted_id_is_reported_with_its_voxel_count)
{
    make_pairs();
    maker_volume("lab/b.nii.gz", 6, 5, 4, one_stray, 0, 2);
    found_by_check("b", "has id 7 in 1 voxel, which 'labels' does not list", false);

    dataset_settings s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    dataset *d = maker_open(&s);
    pons_error err = PONS_ERROR_INIT;
    pons_case c;
    ck_assert_int_eq(case_read(d, 1, &c, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "case 'b'"));
    ck_assert_ptr_nonnull(strstr(err.text, "has id 7 in 1 voxel"));
    dataset_close(d);
}
END_TEST

/* Ids above 255 and ids of one byte, several of them in a class. */
static double many_ids(int64_t i, int64_t j, int64_t k)
{
    return (double)((i * 5 + j + 3 * k) % 4 == 0 ? 300 : (i + j * k) % 5);
}

static double few_ids(int64_t i, int64_t j, int64_t k)
{
    return (double)(i >= 3 ? 0 : (i + j * k) % 5);
}

static void assert_mapped(const char *label, maker_value *id_of)
{
    dataset_settings s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    pons_texts labels = { 3, (const char *const[]){ "ground:0,4", "one:2,300", "two:1,3" } };
    pons_error err = PONS_ERROR_INIT;
    pons_case c;

    maker_volume(label, 6, 5, 4, id_of, 0, 512);
    s.labels = labels;
    dataset *d = maker_open(&s);
    ck_assert_msg(case_read(d, 1, &c, &err) == PONS_OK, "%s", err.text);
    for (int n = 0; n < 6 * 5 * 4; n++) {
        int id = (int)id_of(n / 20, n / 4 % 5, n % 4);
        ck_assert_int_eq(((uint8_t *)c.label.voxels)[n],
                         id == 0 || id == 4 ? 0 : id == 2 || id == 300 ? 1 : 2);
    }
    case_clear(&c);
    dataset_close(d);
}

START_TEST(ids_become_classes_whatever_their_type)
{
    make_pairs();
    assert_mapped("lab/b.nii.gz", many_ids);
    assert_mapped("lab/b.nii.gz", few_ids);
}
END_TEST

START_TEST(other_faults_of_a_case_are_found)
{
    make_pairs();
    maker_volume("lab/a.nii.gz", 6, 5, 4, half_label, 0, 16);
    found_by_check("a", "0.5", false);
    make_pairs();
    maker_volume("lab/c.nii.gz", 6, 5, 4, corner_label, 0, 2);
    found_by_check("c", "", false);
    make_pairs();
    maker_text("img/a_t1.nii.gz", "no volume");
    found_by_check("a", "", false);
    make_pairs();
    maker_volume("img/b_t1.nii.gz", 6, 5, 4, slope_of, 0, 4);
    found_by_check("b", "has the same voxels as case 'a'", true);
}
END_TEST

/* Three incomplete cases, a damaged file and two files of one case are found in one pass. */
START_TEST(problems_of_the_list_and_of_the_files_are_listed_together)
{
    static const struct { const char *id, *text; } expected[] = {
        { "z", "/lab/z.nii.gz' beside it" }, { "y", "/img/y_t1.nii.gz' beside it" },
        { "y", "/img/y_t2.nii.gz' beside it" }, { "a", "/img/a_t2.nii.gz" },
        { "a", "/lab/a.nii.gz" }
    };
    pons_error err = PONS_ERROR_INIT;
    dataset_report *report = NULL;

    make_pairs();
    maker_volume("img/b_t2.nii.gz", 6, 5, 4, third_slope, 0, 4);
    maker_volume("img/c_t2.nii.gz", 5, 6, 4, third_slope, 0, 4);
    maker_volume("img/z_t1.nii.gz", 6, 5, 4, slope_of, 0, 4);
    maker_volume("img/z_t2.nii.gz", 6, 5, 4, slope_of, 0, 4);
    maker_volume("lab/y.nii.gz", 6, 5, 4, corner_label, 0, 2);
    maker_text("img/a_t2.nii.gz", "no volume");
    maker_text("lab/a.nii.gz", "no volume");
    dataset_settings s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    s.image = (pons_texts){ 2, (const char *const[]){ s.image.item[0],
                                                      maker_path("img/*_t2.nii.gz") } };
    s.keep_problems = true;
    dataset *d = maker_open(&s);
    ck_assert_int_eq(dataset_check(d, NULL, &report, &err), PONS_DATA);
    ck_assert_int_eq(report->error_count, 5);
    for (int i = 0; i < report->problem_count && i < 5; i++) {
        ck_assert_str_eq(report->problem[i].case_id, expected[i].id);
        ck_assert_msg(strstr(report->problem[i].text, expected[i].text) != NULL, "%s",
                      report->problem[i].text);
    }
    dataset_report_free(report);
    dataset_close(d);
}
END_TEST

START_TEST(every_broken_entry_of_a_list_is_named)
{
    dataset_settings s = { .source = maker_path("") };

    maker_text("dataset.json", HEAD "\"training\": [" ITEM("a") ", 3, {\"image\": \"b.nii\"}, "
                               ITEM("a") ", {\"image\": \"/c.nii\", \"label\": \"c\"}] }");
    maker_refused(&s, PONS_DATA, "4 problems, the first: ");
    s.keep_problems = true;
    dataset *d = maker_open(&s);
    ck_assert_int_eq(d->case_count, 2);
    ck_assert_int_eq(d->problem_count, 4);
    ck_assert_ptr_nonnull(strstr(d->problem[0].text, "'training[1]' is a number"));
    ck_assert_str_eq(d->problem[1].case_id, "b");
    ck_assert_ptr_nonnull(strstr(d->problem[1].text, "'training[2].label' is missing"));
    ck_assert_ptr_nonnull(strstr(d->problem[2].text, "'/c.nii', expected a path inside"));
    ck_assert_ptr_nonnull(strstr(d->problem[3].text, "occurs twice"));
    dataset_close(d);
}
END_TEST

/*
 * The list comes from labels or from regions. A class with several ids is present with any of
 * them.
 */
START_TEST(a_class_that_no_case_has_is_named)
{
    dataset_settings s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    pons_texts labels = { 3, (const char *const[]){ "ground:0", "one:1,5", "two:2,3" } };
    pons_texts regions = { 2, (const char *const[]){ "all:1,2", "core:3" } };

    make_pairs();
    s.labels = labels;
    for (int i = 0; i < 2; i++) {
        pons_error err = PONS_ERROR_INIT;
        dataset_report *report = NULL;
        dataset *d = maker_open(&s);
        ck_assert_msg(dataset_check(d, NULL, &report, &err) == PONS_OK, "%s", err.text);
        ck_assert_int_eq(report->problem_count, 1);
        ck_assert(report->problem[0].warning);
        ck_assert_str_eq(report->problem[0].text,
                         i == 0 ? "no case contains 'two:2,3', which 'labels' lists"
                                : "no case contains 'core:3', which 'regions' lists");
        dataset_report_free(report);
        dataset_close(d);
        s.regions = regions;
    }
}
END_TEST

START_TEST(all_problems_are_listed_at_once)
{
    pons_error err = PONS_ERROR_INIT;
    dataset_report *report = NULL;

    make_pairs();
    maker_text("img/a_t1.nii.gz", "no volume");
    maker_volume("lab/b.nii.gz", 6, 5, 4, one_stray, 0, 2);
    maker_volume("lab/c.nii.gz", 5, 6, 4, corner_label, 1, 2);
    dataset_settings s = globs_of("img/*_t1.nii.gz", "lab/*.nii.gz");
    dataset *d = maker_open(&s);
    ck_assert_int_eq(dataset_check(d, NULL, &report, &err), PONS_DATA);
    ck_assert_int_eq(report->error_count, 3);
    ck_assert_ptr_nonnull(strstr(err.text, "3 problems, the first: case 'a'"));
    dataset_report_free(report);
    dataset_close(d);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("dataset");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, the_star_of_a_pattern_gives_the_case_id);
    tcase_add_test(c, several_stars_form_one_case_id);
    tcase_add_test(c, brackets_in_names_are_plain_characters);
    tcase_add_test(c, patterns_without_a_star_name_one_case);
    tcase_add_test(c, every_unpaired_file_is_listed);
    tcase_add_test(c, broken_patterns_are_refused);
    tcase_add_test(c, source_and_image_exclude_each_other);
    tcase_add_loop_test(c, broken_labels_are_refused_and_named, 0,
                        sizeof broken_labels / sizeof broken_labels[0]);
    tcase_add_test(c, several_ids_form_a_class_and_the_first_is_background);
    tcase_add_test(c, ranges_and_the_rest_are_ids_of_a_class);
    tcase_add_test(c, the_rest_above_0_leaves_0_unlisted);
    tcase_add_loop_test(c, tables_and_maps_give_ids_their_classes, 0,
                        sizeof mapped / sizeof mapped[0]);
    tcase_add_loop_test(c, tables_of_many_classes_are_read, 0, 3);
    tcase_add_test(c, regions_overlap_and_have_a_channel_each);
    tcase_add_test(c, a_decathlon_folder_is_read);
    tcase_add_test(c, labels_of_the_ini_override_dataset_json);
    tcase_add_test(c, a_validation_list_is_held_out_unless_the_ini_says_otherwise);
    tcase_add_test(c, a_list_of_channel_files_is_one_case_without_their_suffix);
    tcase_add_loop_test(c, a_broken_dataset_json_is_refused_and_named, 0,
                        sizeof json_gallery / sizeof json_gallery[0]);
    tcase_add_test(c, a_valid_dataset_passes_with_its_label_histogram);
    tcase_add_test(c, a_shift_by_one_voxel_is_found);
    tcase_add_test(c, an_unlisted_id_is_reported_with_its_voxel_count);
    tcase_add_test(c, ids_become_classes_whatever_their_type);
    tcase_add_test(c, other_faults_of_a_case_are_found);
    tcase_add_test(c, problems_of_the_list_and_of_the_files_are_listed_together);
    tcase_add_test(c, every_broken_entry_of_a_list_is_named);
    tcase_add_test(c, a_class_that_no_case_has_is_named);
    tcase_add_test(c, all_problems_are_listed_at_once);
    return suite_run();
}
