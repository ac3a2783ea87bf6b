/*
 * check_config.c - values are read as they stand, overridden by --set, and written back.
 */
#include "root.h"
#include "suite.h"

#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "base/hash/json_digest.h"
#include "config/config_internal.h"
#include "config/list.h"
#include "config/sections.h"

#include <string.h>
#include <unistd.h>

static config *open_text(const char *text)
{
    pons_error err = PONS_ERROR_INIT;
    config *c = NULL;

    write_text("a.ini", text);
    ck_assert_msg(config_open(in_root("a.ini"), 0, NULL, &c, &err) == PONS_OK, "%s", err.text);
    return c;
}

static sections filled_sections(config *c)
{
    pons_error err = PONS_ERROR_INIT;
    sections s;

    ck_assert_msg(sections_fill(c, &s, &err) == PONS_OK, "%s", err.text);
    return s;
}

typedef struct every_type {
    double real, real_axes[3];
    int64_t integer, size, threads;
    bool flag;
    int choice, axes[3];
    const char *text, *path;
    pons_reals reals;
    pons_integers integers;
    pons_texts texts, paths;
    pons_triples triples;
} every_type;

static const char *const colors[] = { "red", "green", NULL };
static const char *const words[] = { "auto", NULL };
static const pons_option every_table[] = {
    PONS_REAL(every_type, real, 0.5, 0, 1, "A real number."),
    PONS_INTEGER(every_type, integer, 3, -5, 5, "An integer number."),
    PONS_INTEGER_OR(every_type, threads, "auto", 0, 8, words, "Some threads."),
    PONS_FLAG(every_type, flag, no, "A flag of two values."),
    PONS_CHOICE(every_type, choice, green, colors, "A color to choose."),
    PONS_TEXT(every_type, text, "", "A text of any kind."),
    PONS_SIZE(every_type, size, "4MiB", 0, 1e15, "A size in bytes."),
    PONS_REALS(every_type, reals, "", -10, 10, "Several real numbers."),
    PONS_INTEGERS(every_type, integers, "1 2", 0, 9, "Several integers."),
    PONS_TEXTS(every_type, texts, "", "Several words in a row."),
    PONS_AXES(every_type, axes, "3", 1, 9, "Three integers."),
    PONS_REAL_AXES(every_type, real_axes, "1.5 1.5 2.0", 0, 9, "Three numbers."),
    PONS_TRIPLES(every_type, triples, "2", 1, 4, "Items of three."),
    PONS_PATH(every_type, path, "", "A path to a file."),
    PONS_PATHS(every_type, paths, "", "Paths to files."),
    PONS_OPTIONS_END
};

START_TEST(every_type_is_read)
{
    config *c = open_text("[x]\nreal = 1e-1\ninteger = -5\nthreads = 7 ; a comment\nflag = yes\n"
                          "choice = red\ntext = a b;c\nsize = 2KiB\nreals = -1 2.5\n"
                          "integers = 9\ntexts = a  b\tc\naxes = 1 2 3\nreal_axes = 4\n"
                          "triples = 2,2,1 3\npath = sub/file\npaths = /abs rel\n");
    pons_error err = PONS_ERROR_INIT;
    every_type x;

    memset(&x, 0, sizeof x);
    ck_assert_msg(config_fill(c, "x", every_table, &x, &err) == PONS_OK, "%s", err.text);
    ck_assert_double_eq(x.real, 0.1);
    ck_assert_int_eq(x.integer, -5);
    ck_assert_int_eq(x.threads, 7);
    ck_assert(x.flag);
    ck_assert_int_eq(x.choice, 0);
    ck_assert_str_eq(x.text, "a b;c");
    ck_assert_int_eq(x.size, 2048);
    ck_assert(x.reals.count == 2 && x.reals.item[0] == -1 && x.reals.item[1] == 2.5);
    ck_assert(x.integers.count == 1 && x.integers.item[0] == 9);
    ck_assert(x.texts.count == 3);
    ck_assert_str_eq(x.texts.item[2], "c");
    ck_assert(x.axes[0] == 1 && x.axes[1] == 2 && x.axes[2] == 3);
    ck_assert(x.real_axes[0] == 4 && x.real_axes[2] == 4);
    ck_assert(x.triples.count == 2 && x.triples.item[0][2] == 1 && x.triples.item[1][1] == 3);
    ck_assert_str_eq(x.path, in_root("sub/file"));
    ck_assert_str_eq(x.paths.item[0], "/abs");
    ck_assert_str_eq(x.paths.item[1], in_root("rel"));
    config_close(c);
}
END_TEST

START_TEST(items_with_blanks_stand_in_quotes_and_are_written_so)
{
    static const char *const item[] = { "plain", "with blank", "a\"b", "\"q\" \"", "tab\tin",
                                        "x;y" };
    enum { COUNT = sizeof item / sizeof *item };
    config *c = open_text("[x]\ntexts = \"left kidney:1,3\" b\"c \"d\"\"\te\"\n"
                          "path = sub folder/file one\npaths = \"i j*.nii\" k\n");
    pons_error err = PONS_ERROR_INIT;
    every_type x, y;
    char **again;
    int count;

    memset(&x, 0, sizeof x);
    ck_assert_msg(config_fill(c, "x", every_table, &x, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(x.texts.count, 3);
    ck_assert_str_eq(x.texts.item[0], "left kidney:1,3");
    ck_assert_str_eq(x.texts.item[1], "b\"c");
    ck_assert_str_eq(x.texts.item[2], "d\"\te");
    ck_assert_str_eq(x.path, in_root("sub folder/file one"));
    ck_assert_int_eq(x.paths.count, 2);
    ck_assert_str_eq(x.paths.item[0], in_root("i j*.nii"));
    again = list_split(c->arena, list_join(c->arena, COUNT, item), &count);
    ck_assert_int_eq(count, COUNT);
    for (int i = 0; i < COUNT; i++)
        ck_assert_str_eq(again[i], item[i]);
    ck_assert_int_eq(config_write(c, in_root("r.ini"), &err), PONS_OK);
    config_close(c);
    ck_assert_int_eq(config_open(in_root("r.ini"), 0, NULL, &c, &err), PONS_OK);
    memset(&y, 0, sizeof y);
    ck_assert_msg(config_fill(c, "x", every_table, &y, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(y.paths.count, 2);
    ck_assert_str_eq(y.paths.item[0], in_root("i j*.nii"));
    ck_assert_str_eq(y.texts.item[2], "d\"\te");
    config_close(c);
}
END_TEST

START_TEST(quotes_that_do_not_end_or_hold_nothing_are_refused)
{
    static const char *const bad[] = { "texts = \"a b", "texts = a \"b\"c", "texts = \"\"",
                                       "paths = \"a b", "paths = \"a\"\"", "texts = \"" };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[64];
        pons_error err = PONS_ERROR_INIT;
        every_type x;
        snprintf(text, sizeof text, "[x]\n%s\n", bad[i]);
        config *c = open_text(text);
        ck_assert_int_eq(config_fill(c, "x", every_table, &x, &err), PONS_CONFIG);
        ck_assert_ptr_nonnull(strstr(err.text, "a.ini:2: [x] "));
        ck_assert_ptr_nonnull(strstr(err.text, "in \"double quotes\""));
        config_close(c);
    }
}
END_TEST

START_TEST(defaults_fill_what_is_not_given)
{
    config *c = open_text("[x]\n");
    pons_error err = PONS_ERROR_INIT;
    every_type x;

    memset(&x, 0xff, sizeof x);
    ck_assert_int_eq(config_fill(c, "x", every_table, &x, &err), PONS_OK);
    ck_assert(x.real == 0.5 && x.integer == 3 && x.threads == -1 && !x.flag && x.choice == 1);
    ck_assert(x.text == NULL && x.size == 4 << 20 && x.reals.count == 0 && x.integers.count == 2);
    ck_assert(x.axes[2] == 3 && x.real_axes[2] == 2 && x.triples.count == 1 && x.path == NULL);
    ck_assert(!config_given(c, "x", "real"));
    config_close(c);
}
END_TEST

START_TEST(set_wins_over_the_file_and_the_last_set_wins)
{
    static const char *const set[] = { "train.batch=2", "train.batch = 4",
                                       "augment.flip.axes=0 1" };
    pons_error err = PONS_ERROR_INIT;
    config *c = NULL;
    sections s;

    write_text("a.ini", "[train]\nbatch = 8\nsteps = 5\n");
    ck_assert_int_eq(config_open(in_root("a.ini"), 3, set, &c, &err), PONS_OK);
    s = filled_sections(c);
    ck_assert_int_eq(s.train.batch, 4);
    ck_assert_int_eq(s.train.steps, 5);
    ck_assert_str_eq(config_find(c, "augment.flip", "axes")->value, "0 1");
    ck_assert_str_eq(config_where(c, "train", "batch"), "--set");
    config_close(c);
}
END_TEST

START_TEST(included_values_are_overridden_and_paths_begin_at_their_own_file)
{
    config *c;
    sections s;

    ck_assert_int_eq(folder_make(in_root("base"), NULL), PONS_OK);
    write_text("base/deep.ini", "[train]\nbatch = 1\naccumulate = 7\n");
    write_text("base/base.ini", "include = deep.ini\n[train]\nbatch = 2\nkeep = 5\n"
                                "pretrained = w.safetensors\n");
    c = open_text("include = base/base.ini\n[train]\nbatch = 3\n[data]\nsource = Task\n");
    s = filled_sections(c);
    ck_assert_int_eq(s.train.batch, 3);
    ck_assert_int_eq(s.train.keep, 5);
    ck_assert_int_eq(s.train.accumulate, 7);
    ck_assert_str_eq(s.train.pretrained, in_root("base/w.safetensors"));
    ck_assert_str_eq(s.data.source, in_root("Task"));
    config_close(c);
}
END_TEST

START_TEST(written_configuration_reads_back_equal)
{
    pons_error err = PONS_ERROR_INIT;
    config *again = NULL;
    config *c = open_text("\xef\xbb\xbf[experiment]\r\nname = spleen\r\n[data]\n"
                          "image = i/*.nii.gz j/*\n[train]\nepochs = 3\n");
    sections s = filled_sections(c), t;

    config_resolve(c, "train", "precision", "bf16", "the processor has AMX-BF16");
    ck_assert_msg(config_write(c, in_root("resolved.ini"), &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(config_open(in_root("resolved.ini"), 0, NULL, &again, &err), PONS_OK);
    t = filled_sections(again);
    ck_assert_msg(config_refuse_unknown(again, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(t.train.precision, 3);
    ck_assert_str_eq(t.data.image.item[1], s.data.image.item[1]);
    ck_assert_str_eq(t.experiment.output, in_root("runs"));
    ck_assert_int_eq(config_count(c), config_count(again));
    for (int i = 0; i < config_count(c); i++) {
        const char *a[3], *b[3];
        config_item(c, i, &a[0], &a[1], &a[2]);
        config_item(again, i, &b[0], &b[1], &b[2]);
        for (int k = 0; k < 3; k++)
            ck_assert_str_eq(a[k], b[k]);
    }
    config_close(again);
    config_close(c);
}
END_TEST

START_TEST(a_written_configuration_ends_in_its_seal)
{
    pons_error err = PONS_ERROR_INIT;
    config *c = open_text("[train]\nepochs = 3\n");
    char *text, hex[65];
    size_t size;

    filled_sections(c);
    ck_assert_str_eq(config_written(c), "");
    ck_assert_int_eq(config_write(c, in_root("r.ini"), &err), PONS_OK);
    ck_assert_int_eq(sha256_file(in_root("r.ini"), hex, &err), PONS_OK);
    ck_assert_str_eq(config_written(c), hex);
    ck_assert_int_eq(file_read(in_root("r.ini"), 1 << 20, &text, &size, PONS_DATA, &err), PONS_OK);
    ck_assert(seal_line_holds(text, size));
    for (size_t i = 0; i < size; i += 7) {
        ck_assert(!seal_line_holds(text, i));
        text[i] ^= 1;
        ck_assert(!seal_line_holds(text, size));
        text[i] ^= 1;
    }
    free(text);
    config_close(c);
}
END_TEST

START_TEST(long_values_are_whole_with_and_without_a_comment)
{
    char text[2000], value[901] = "";
    pons_error err = PONS_ERROR_INIT;
    config *c;

    for (int i = 0; i < 225; i++)
        strcat(value, i % 2 ? "a b;" : "c=d ");
    snprintf(text, sizeof text, "[experiment] ; %0300d\nname = %.896se ; comment ; more\n", 7,
             value);
    c = open_text(text);
    value[896] = 'e';
    value[897] = '\0';
    ck_assert_str_eq(config_find(c, "experiment", "name")->value, value);
    filled_sections(c);
    ck_assert_int_eq(config_write(c, in_root("r.ini"), &err), PONS_OK);
    config_close(c);
    ck_assert_int_eq(config_open(in_root("r.ini"), 0, NULL, &c, &err), PONS_OK);
    ck_assert_str_eq(config_find(c, "experiment", "name")->value, value);
    config_close(c);
}
END_TEST

START_TEST(origins_and_reasons_stand_behind_the_values)
{
    pons_error err = PONS_ERROR_INIT;
    config *c = open_text("[train]\nepochs = 3\n");
    char *text;
    size_t size;

    filled_sections(c);
    config_resolve(c, "distribute", "threads", "2", "cores of the replica");
    ck_assert_int_eq(config_write(c, in_root("r.ini"), &err), PONS_OK);
    ck_assert_int_eq(file_read(in_root("r.ini"), 1 << 20, &text, &size, PONS_DATA, &err), PONS_OK);
    ck_assert_ptr_nonnull(strstr(text, "a.ini:2\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nbatch = 1 ; default\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nthreads = 2 ; default; cores of the replica\n"));
    free(text);
    config_close(c);
}
END_TEST

START_TEST(skipped_sections_are_known_but_not_checked)
{
    pons_error err = PONS_ERROR_INIT;
    config *c = open_text("[model]\nplugin = unet\nchannels = 1 2\n"
                          "[preprocess.nothing]\nkey = 1\n");

    filled_sections(c);
    config_skip(c, "model");
    ck_assert_int_eq(config_refuse_unknown(c, &err), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "a.ini:4: unknown section 'preprocess.nothing': "
                                           "[preprocess] does not name 'nothing'"));
    config_close(c);
}
END_TEST

START_TEST(tables_of_the_core_keep_their_own_rules)
{
    for (const section_table *t = section_tables; t->name != NULL; t++) {
        pons_error err = PONS_ERROR_INIT;
        ck_assert_msg(option_table_check(t->options, t->size, t->name, &err) == PONS_OK, "%s",
                      err.text);
    }
}
END_TEST

typedef struct one_number {
    double x;
} one_number;

START_TEST(tables_that_break_a_rule_are_refused)
{
    static const char *const none[] = { NULL };
    static const struct { pons_option row[3]; const char *phrase; } bad[] = {
        { { PONS_REAL(one_number, x, 2, 0, 1, "A number too large."), PONS_OPTIONS_END },
          "default" },
        { { PONS_REAL(one_number, x, 0, 0, 1, "no sentence"), PONS_OPTIONS_END },
          "sentence of help" },
        { { PONS_REAL(one_number, x, 0, 2, 1, "A reversed range."), PONS_OPTIONS_END },
          "empty range" },
        { { PONS_TEXTS(one_number, x, "", "A list too large."), PONS_OPTIONS_END }, "outside of" },
        { { { "X", PONS_OPTION_REAL, 0, "0", 0, 1, NULL, "A capital letter." }, PONS_OPTIONS_END },
          "the character 'X'" },
        { { { "x", 99, 0, "0", 0, 1, NULL, "A strange type." }, PONS_OPTIONS_END },
          "unknown type 99" },
        { { { "x", PONS_OPTION_CHOICE, 0, "a", 0, 0, none, "No choice at all." },
            PONS_OPTIONS_END }, "no choices" },
        { { PONS_REAL(one_number, x, 0, 0, 1, "A number, once."),
            PONS_REAL(one_number, x, 0, 0, 1, "A number, twice."), PONS_OPTIONS_END },
          "occurs twice" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pons_error err = PONS_ERROR_INIT;
        ck_assert_int_eq(option_table_check(bad[i].row, sizeof(one_number), "table", &err),
                         PONS_PLUGIN);
        ck_assert_msg(strstr(err.text, bad[i].phrase) != NULL, "%s", err.text);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("config");
    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, every_type_is_read);
    tcase_add_test(c, items_with_blanks_stand_in_quotes_and_are_written_so);
    tcase_add_test(c, quotes_that_do_not_end_or_hold_nothing_are_refused);
    tcase_add_test(c, defaults_fill_what_is_not_given);
    tcase_add_test(c, set_wins_over_the_file_and_the_last_set_wins);
    tcase_add_test(c, included_values_are_overridden_and_paths_begin_at_their_own_file);
    tcase_add_test(c, written_configuration_reads_back_equal);
    tcase_add_test(c, a_written_configuration_ends_in_its_seal);
    tcase_add_test(c, long_values_are_whole_with_and_without_a_comment);
    tcase_add_test(c, origins_and_reasons_stand_behind_the_values);
    tcase_add_test(c, skipped_sections_are_known_but_not_checked);
    tcase_add_test(c, tables_of_the_core_keep_their_own_rules);
    tcase_add_test(c, tables_that_break_a_rule_are_refused);
    return suite_run();
}
