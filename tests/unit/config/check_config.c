/*
 * check_config.c - values are read as written, overridden by --set, and written back.
 */
#include "support/root.h"
#include "support/suite.h"

#include "base/file/file.h"
#include "base/hash/json_digest.h"
#include "base/hash/sha256.h"
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
    PONS_REAL(every_type, real, "0.5", 0, 1, "A real number."),
    PONS_INTEGER(every_type, integer, "3", -5, 5, "An integer number."),
    PONS_INTEGER_OR(every_type, threads, "auto", 0, 8, words, "Some threads."),
    PONS_FLAG(every_type, flag, "no", "A flag of two values."),
    PONS_CHOICE(every_type, choice, "green", colors, "A color to choose."),
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

START_TEST(list_items_with_blanks_are_read_and_written_in_quotes)
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

START_TEST(unterminated_and_empty_quotes_are_refused)
{
    static const char *const bad[] = { "texts = \"a b", "texts = \"a b\":1", "texts = \"\"",
                                       "paths = \"a b", "paths = \"a\"\"", "texts = \"" };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[64];
        pons_error err = PONS_ERROR_INIT;
        every_type x;
        snprintf(text, sizeof text, "[x]\n%s\n", bad[i]);
        config *c = open_text(text);
        ck_assert_int_eq(config_fill(c, "x", every_table, &x, &err), PONS_CONFIG);
        ck_assert_ptr_nonnull(strstr(err.text, "a.ini:2: [x] "));
        ck_assert_ptr_nonnull(strstr(err.text, "wholly in \"double quotes\""));
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
    ck_assert_str_eq(config_origin(c, "train", "batch"), "--set");
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

START_TEST(a_written_configuration_ends_with_its_digest)
{
    pons_error err = PONS_ERROR_INIT;
    config *c = open_text("[train]\nepochs = 3\n");
    char *text, hex[65];
    size_t size;

    filled_sections(c);
    ck_assert_str_eq(config_written_hash(c), "");
    ck_assert_int_eq(config_write(c, in_root("r.ini"), &err), PONS_OK);
    ck_assert_int_eq(sha256_file(in_root("r.ini"), hex, &err), PONS_OK);
    ck_assert_str_eq(config_written_hash(c), hex);
    ck_assert_int_eq(file_read(in_root("r.ini"), 1 << 20, &text, &size, PONS_DATA, &err), PONS_OK);
    ck_assert(json_digest_line_holds(text, size));
    for (size_t i = 0; i < size; i += 7) {
        ck_assert(!json_digest_line_holds(text, i));
        text[i] ^= 1;
        ck_assert(!json_digest_line_holds(text, size));
        text[i] ^= 1;
    }
    free(text);
    config_close(c);
}
END_TEST

START_TEST(long_values_are_kept_with_and_without_a_comment)
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

START_TEST(a_value_goes_on_after_a_backslash)
{
    pons_error err = PONS_ERROR_INIT;
    config *c = open_text("[data]\nlabels = a:0 \\\n    b:1\\  \r\n\tc:2 ; comment \\\nlabel = x\\y\n"
                          "; no value \\\n[train]\nepochs = 3\n");
    sections s;

    ck_assert_str_eq(config_find(c, "data", "labels")->value, "a:0 b:1 c:2");
    ck_assert_int_eq(sections_fill(c, &s, &err), PONS_OK);
    ck_assert_int_eq(s.data.labels.count, 3);
    ck_assert_str_eq(config_find(c, "data", "label")->value, "x\\y");
    ck_assert_int_eq(config_find(c, "data", "labels")->line, 2);
    ck_assert_int_eq(config_find(c, "data", "label")->line, 5);
    ck_assert_int_eq(config_find(c, "train", "epochs")->line, 8);
    config_close(c);
}
END_TEST

START_TEST(a_value_of_many_lines_is_written_and_read_again)
{
    static char text[20000] = "[data]\nlabels =";
    pons_error err = PONS_ERROR_INIT;
    config *c;

    for (int i = 0; i < 300; i++)
        sprintf(text + strlen(text), " %sname_of_a_class_%d:%d", i % 7 == 0 ? "\\\n  " : "", i, i);
    strcat(text, "\n");
    c = open_text(text);
    ck_assert_uint_gt(strlen(config_find(c, "data", "labels")->value), 6000);
    filled_sections(c);
    ck_assert_int_eq(config_write(c, in_root("r.ini"), &err), PONS_OK);
    config_close(c);
    ck_assert_msg(config_open(in_root("r.ini"), 0, NULL, &c, &err) == PONS_OK, "%s", err.text);
    sections s;
    ck_assert_int_eq(sections_fill(c, &s, &err), PONS_OK);
    ck_assert_int_eq(s.data.labels.count, 300);
    ck_assert_str_eq(s.data.labels.item[299], "name_of_a_class_299:299");
    config_close(c);
}
END_TEST

START_TEST(written_values_have_their_origin_and_reason_in_a_comment)
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

START_TEST(option_tables_of_the_core_are_valid)
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

START_TEST(invalid_option_tables_are_refused)
{
    static const char *const none[] = { NULL };
    static const struct { pons_option row[3]; const char *phrase; } bad[] = {
        { { PONS_REAL(one_number, x, "2", 0, 1, "A number too large."), PONS_OPTIONS_END },
          "default" },
        { { PONS_REAL(one_number, x, "0", 0, 1, "no sentence"), PONS_OPTIONS_END },
          "sentence of help" },
        { { PONS_REAL(one_number, x, "0", 2, 1, "A reversed range."), PONS_OPTIONS_END },
          "empty range" },
        { { PONS_TEXTS(one_number, x, "", "A list too large."), PONS_OPTIONS_END }, "outside of" },
        { { { .name = "X", .type = PONS_OPTION_REAL, .fallback = "0", .help = "A capital letter." },
            PONS_OPTIONS_END },
          "the character 'X'" },
        { { { .name = "x", .type = 99, .fallback = "0", .help = "A strange type." },
            PONS_OPTIONS_END },
          "unknown type 99" },
        { { { .name = "x", .type = PONS_OPTION_CHOICE, .fallback = "a", .choices = none,
              .help = "No choice at all." },
            PONS_OPTIONS_END }, "no choices" },
        { { PONS_REAL(one_number, x, "0", 0, 1, "A number of entries.", .count_min = 1),
            PONS_OPTIONS_END }, "is no list" },
        { { PONS_REAL(one_number, x, "0", 0, 1, "A number, once."),
            PONS_REAL(one_number, x, "0", 0, 1, "A number, twice."), PONS_OPTIONS_END },
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

/* ---- counts of list entries, and refusals of plugins ----------------------------------------- */

typedef struct entries {
    pons_reals two, some;
    pons_integers one;
    double must;
} entries;

static const pons_option entries_table[] = {
    PONS_REALS(entries, two, "1 2", 0, 9, "Two numbers.", .count_min = 2, .count_max = 2),
    PONS_REALS(entries, some, "", 0, 9, "Two numbers or more, if any.", .count_min = 2),
    PONS_INTEGERS(entries, one, "", 0, 9, "One number, if any.", .count_max = 1),
    PONS_REAL(entries, must, NULL, 0, 9, "A number that must be given."),
    PONS_OPTIONS_END
};

/* A NULL phrase means that the text is accepted. */
static const struct { const char *text, *phrase; } entry_cases[] = {
    { "[a]\nmust = 1\n", NULL },
    { "[a]\nmust = 1\ntwo = 3 4\nsome = 1 2 3 4\none = 5\n", NULL },
    { "[a]\ntwo = 3 4\n", "a.ini:1: [a] has no 'must', which must be given" },
    { "[a]\nmust = 1\ntwo = 3\n", "[a] two = '3': found 1, expected 2 numbers from 0 to 9" },
    { "[a]\nmust = 1\ntwo = 3 4 5\n", "found 3, expected 2 numbers" },
    { "[a]\nmust = 1\ntwo =\n", "[a] two = '': expected 2 numbers" },
    { "[a]\nmust = 1\nsome = 3\n", "found 1, expected at least 2 numbers" },
    { "[a]\nmust = 1\none = 3 4\n", "found 2, expected at most 1 integer from 0 to 9" },
};

START_TEST(a_list_has_as_many_entries_as_its_option_allows)
{
    pons_error err = PONS_ERROR_INIT;
    config *c = open_text(entry_cases[_i].text);
    entries e = { .must = 0 };

    ck_assert_int_eq(config_fill(c, "a", entries_table, &e, &err),
                     entry_cases[_i].phrase == NULL ? PONS_OK : PONS_CONFIG);
    if (entry_cases[_i].phrase != NULL)
        ck_assert_msg(strstr(err.text, entry_cases[_i].phrase) != NULL, "%s", err.text);
    config_close(c);
}
END_TEST

START_TEST(an_option_refused_by_a_plugin_is_located_in_the_file)
{
    pons_error err = PONS_ERROR_INIT;
    config *c = open_text("[a]\nmust = 1\ntwo = 3 4\n");
    entries e = { .must = 0 };

    ck_assert_int_eq(config_fill(c, "a", entries_table, &e, &err), PONS_OK);
    ck_assert_int_eq(pons_option_fail(&err, "two", "found %d, expected 'must'", 3), PONS_CONFIG);
    ck_assert_str_eq(err.text, "two: found 3, expected 'must'");
    ck_assert_int_eq(config_location_add(c, "a", "must", &err), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "a.ini:3: [a] two: found 3, expected 'must'"));
    err = (pons_error)PONS_ERROR_INIT;
    pons_option_fail(&err, "three", "found none");
    config_location_add(c, "a", "must", &err);
    ck_assert_ptr_nonnull(strstr(err.text, "a.ini:2: [a] must: three: found none"));
    config_close(c);
}
END_TEST

START_TEST(the_default_of_an_option_does_not_depend_on_its_value)
{
    pons_error err = PONS_ERROR_INIT;
    config *c = open_text("[a]\ncolor = x\n[b]\nchoice = red\n");
    every_type e = { 0 };

    ck_assert_msg(config_fill(c, "b", every_table, &e, &err) == PONS_OK, "%s", err.text);
    ck_assert_str_eq(config_default(c, "b", "choice"), "green");
    ck_assert_str_eq(config_default(c, "b", "text"), "");
    ck_assert_str_eq(config_default(c, "b", "color"), "");
    ck_assert_str_eq(config_default(c, "a", "choice"), "");
    config_close(c);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("config");
    tcase_add_loop_test(c, a_list_has_as_many_entries_as_its_option_allows, 0,
                        (int)(sizeof entry_cases / sizeof *entry_cases));
    tcase_add_test(c, an_option_refused_by_a_plugin_is_located_in_the_file);
    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, every_type_is_read);
    tcase_add_test(c, list_items_with_blanks_are_read_and_written_in_quotes);
    tcase_add_test(c, unterminated_and_empty_quotes_are_refused);
    tcase_add_test(c, defaults_fill_what_is_not_given);
    tcase_add_test(c, set_wins_over_the_file_and_the_last_set_wins);
    tcase_add_test(c, included_values_are_overridden_and_paths_begin_at_their_own_file);
    tcase_add_test(c, written_configuration_reads_back_equal);
    tcase_add_test(c, a_written_configuration_ends_with_its_digest);
    tcase_add_test(c, long_values_are_kept_with_and_without_a_comment);
    tcase_add_test(c, a_value_goes_on_after_a_backslash);
    tcase_add_test(c, a_value_of_many_lines_is_written_and_read_again);
    tcase_add_test(c, written_values_have_their_origin_and_reason_in_a_comment);
    tcase_add_test(c, skipped_sections_are_known_but_not_checked);
    tcase_add_test(c, the_default_of_an_option_does_not_depend_on_its_value);
    tcase_add_test(c, option_tables_of_the_core_are_valid);
    tcase_add_test(c, invalid_option_tables_are_refused);
    return suite_run();
}
