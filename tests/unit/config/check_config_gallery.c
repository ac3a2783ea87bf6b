/*
 * check_config_gallery.c - every known mistake in an INI file: its exit code, its phrase, and an
 * accepted twin without the mistake.
 */
#include "integration/gallery/gallery_ini.h"
#include "support/root.h"
#include "support/suite.h"

#include "config/sections.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char before[4096];

static void write_bytes(const char *name, const char *text, size_t size)
{
    FILE *f = fopen(in_root(name), "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, size, f), size);
    fclose(f);
}

/* Names, sizes, times and inodes of everything in the folder: reading must not change them. */
static void describe_folder(char *text, size_t size)
{
    char command[256];
    FILE *pipe;

    snprintf(command, sizeof command, "cd '%s' && stat -c '%%n %%s %%Y %%Z %%i' . * | sort",
             root);
    pipe = popen(command, "r");
    memset(text, 0, size);
    ck_assert_uint_gt(fread(text, 1, size - 1, pipe), 0);
    pclose(pipe);
}

static void setup(void)
{
    make_root();
    write_text("good.ini", "[train]\nbatch = 2\n");
    write_text("bad.ini", "[train]\nbatch = x\n");
    write_text("loop.ini", "include = a.ini\n");
}

static pons_status read_all_sections(const char *name, int set_count, const char *const *set,
                                     pons_error *err)
{
    config *c = NULL;
    pons_status status = config_open(name != NULL ? in_root(name) : NULL, set_count, set, &c, err);
    sections s;

    if (status == PONS_OK)
        status = sections_fill(c, &s, err);
    if (status == PONS_OK)
        status = config_refuse_unknown(c, err);
    config_close(c);
    return status;
}

START_TEST(broken_file_is_refused_and_its_twin_is_accepted)
{
    const broken_ini *b = &ini_gallery[_i];
    pons_error err = PONS_ERROR_INIT, none = PONS_ERROR_INIT;
    char after[4096];

    write_text("a.ini", b->text);
    describe_folder(before, sizeof before);
    ck_assert_msg(read_all_sections("a.ini", 0, NULL, &err) == PONS_CONFIG, "accepted: %s",
                  b->text);
    ck_assert_msg(strstr(err.text, b->phrase) != NULL, "'%s' is not in '%s'", b->phrase, err.text);
    describe_folder(after, sizeof after);
    ck_assert_str_eq(before, after);
    write_text("a.ini", b->twin);
    ck_assert_msg(read_all_sections("a.ini", 0, NULL, &none) == PONS_OK, "%s", none.text);
}
END_TEST

START_TEST(a_nul_byte_is_found_on_its_line)
{
    pons_error err = PONS_ERROR_INIT;

    write_bytes("a.ini", "[train]\nbatch = 2\0\n", 19);
    ck_assert_int_eq(read_all_sections("a.ini", 0, NULL, &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "a.ini:2: NUL byte") != NULL, "%s", err.text);
}
END_TEST

START_TEST(folders_pipes_missing_and_huge_files_are_refused)
{
    static char large[(1 << 20) + 1];
    pons_error err = PONS_ERROR_INIT, folder_err = PONS_ERROR_INIT, pipe_err = PONS_ERROR_INIT,
               missing = PONS_ERROR_INIT;

    memset(large, '\n', sizeof large);
    write_bytes("large.ini", large, sizeof large);
    ck_assert_int_eq(read_all_sections("large.ini", 0, NULL, &err), PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "at most 1048576") != NULL, "%s", err.text);
    write_bytes("large.ini", large, sizeof large - 1);
    err = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(read_all_sections("large.ini", 0, NULL, &err), PONS_OK);
    ck_assert_int_eq(read_all_sections(".", 0, NULL, &folder_err), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(folder_err.text, "a folder"));
    ck_assert_int_eq(mkfifo(in_root("pipe"), 0600), 0);
    ck_assert_int_eq(read_all_sections("pipe", 0, NULL, &pipe_err), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(pipe_err.text, "a special file"));
    ck_assert_int_eq(read_all_sections("none.ini", 0, NULL, &missing), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(missing.text, "No such file"));
}
END_TEST

static const struct { const char *set; pons_status status; const char *phrase; } sets[] = {
    { "batch=2", PONS_USAGE, "expected section.key=value" },
    { "train.batch", PONS_USAGE, "expected section.key=value" },
    { ".batch=2", PONS_USAGE, "expected section.key=value" },
    { "train.=2", PONS_USAGE, "expected section.key=value" },
    { "train.batch=2 ; two", PONS_USAGE, "holds a comment" },
    { "train.batch=2\n3", PONS_USAGE, "control character 0x0a" },
    { "train.bach=2", PONS_CONFIG, "--set: unknown key 'bach' in [train]; did you mean 'batch'?" },
    { "trian.batch=2", PONS_CONFIG, "--set: unknown section 'trian'; did you mean 'train'?" },
    { "train.batch=x", PONS_CONFIG, "--set: [train] batch = 'x': expected an integer" },
};

START_TEST(broken_set_is_refused)
{
    pons_error err = PONS_ERROR_INIT, none = PONS_ERROR_INIT;
    const char *good = "train.batch=2";

    ck_assert_int_eq(read_all_sections("good.ini", 1, &sets[_i].set, &err), sets[_i].status);
    ck_assert_msg(strstr(err.text, sets[_i].phrase) != NULL, "%s", err.text);
    ck_assert_int_eq(read_all_sections("good.ini", 1, &good, &none), PONS_OK);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("config_gallery");
    tcase_add_checked_fixture(c, setup, remove_root);
    tcase_add_loop_test(c, broken_file_is_refused_and_its_twin_is_accepted, 0, INI_GALLERY_COUNT);
    tcase_add_test(c, a_nul_byte_is_found_on_its_line);
    tcase_add_test(c, folders_pipes_missing_and_huge_files_are_refused);
    tcase_add_loop_test(c, broken_set_is_refused, 0, (int)(sizeof sets / sizeof *sets));
    return suite_run();
}
