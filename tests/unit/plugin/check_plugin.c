/*
 * check_plugin.c - a gallery of broken plugins, each one change away from a valid one, and the
 * loader's message for each; none of them may run.
 */
#include "integration/gallery/gallery_plugin.h"
#include "support/root.h"
#include "support/soak.h"
#include "support/suite.h"

#include "base/file/file.h"
#include "plugin/elf_note.h"
#include "plugin/owner.h"
#include "plugin/plugin_file.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_search.h"

#include <elf.h>
#include <fcntl.h>
#include <pons/schedule.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char valid[] = "tests/plugins/.libs/effect.so";

static char trace[128];

static void write_image(const char *name, size_t size)
{
    int fd = open(in_root(name), O_WRONLY | O_CREAT | O_TRUNC, 0755);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, image, size), (ssize_t)size);
    close(fd);
}

static void setup(void)
{
    pons_error err = PONS_ERROR_INIT;

    make_root();
    snprintf(trace, sizeof trace, "%s/trace", root);
    setenv("PONS_TEST_EFFECT", trace, 1);
    setenv("PONS_PLUGIN_PATH", root, 1);
    ck_assert_int_eq(folder_make(in_root("schedule"), &err), PONS_OK);
    ck_assert_int_eq(folder_make(in_root("loss"), &err), PONS_OK);
    ck_assert_msg(file_read(valid, 1 << 26, &image, &image_size, PONS_DATA, &err) == PONS_OK, "%s",
                  err.text);
}

static void teardown(void)
{
    remove_root();
    free(image);
}

static pons_status load(pons_kind kind, const char *name, pons_error *err)
{
    const plugin *p = NULL;

    return plugin_load(kind, name, sizeof(pons_schedule_operations), NULL, &p, err);
}

static void refused(pons_kind kind, const char *name, const char *phrase, bool runs)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(load(kind, name, &err), PONS_PLUGIN);
    ck_assert_msg(strstr(err.text, phrase) != NULL, "'%s' is not in '%s'", phrase, err.text);
    ck_assert_ptr_nonnull(strstr(err.text, name));
    ck_assert_msg((access(trace, F_OK) == 0) == runs, "%s", runs ? "it did not run" : "it ran");
}

START_TEST(a_valid_plugin_loads_and_its_operations_are_copied)
{
    pons_error err = PONS_ERROR_INIT;
    const pons_schedule_operations *operations;
    const double config = 0.25;
    struct { pons_schedule_operations known; void *later; } const *wide;
    const plugin *p = NULL, *again = NULL;

    write_image("schedule/effect.so", image_size);
    ck_assert_msg(plugin_load(PONS_KIND_SCHEDULE, "effect", sizeof *wide, NULL, &p, &err) ==
                  PONS_OK, "%s", err.text);
    ck_assert_int_eq(access(trace, F_OK), 0);
    operations = p->operations;
    wide = p->operations;
    ck_assert_double_eq(operations->factor(&config, 0, 1), 0.25);
    ck_assert_ptr_null(wide->later);
    ck_assert_ptr_ne(p->operations, p->descriptor->operations);
    ck_assert_str_eq(p->descriptor->name, "effect");
    ck_assert_str_eq(p->path, in_root("schedule/effect.so"));
    ck_assert_uint_eq(strlen(p->sha256), 64);
    ck_assert_int_eq(plugin_load(PONS_KIND_SCHEDULE, "effect", sizeof *wide, NULL, &again, &err),
                     PONS_OK);
    ck_assert_ptr_eq(p, again);
}
END_TEST

START_TEST(a_file_cut_at_any_multiple_of_64_bytes_is_refused)
{
    pons_error whole = PONS_ERROR_INIT;
    pons_note note;

    for (size_t size = 0; size < image_size; size += 64) {
        pons_error err = PONS_ERROR_INIT;
        char *copy = malloc(size + 1); /* AddressSanitizer sees a read beyond the end             */
        memcpy(copy, image, size);
        ck_assert_msg(elf_note_read("cut.so", copy, size, &note, &err) == PONS_PLUGIN,
                      "%zu bytes of %zu were accepted", size, image_size);
        ck_assert_ptr_nonnull(strstr(err.text, "'cut.so'"));
        free(copy);
    }
    ck_assert_msg(elf_note_read("cut.so", image, image_size, &note, &whole) == PONS_OK,
                  "%s", whole.text);
    write_image("schedule/effect.so", image_size / 2);
    refused(PONS_KIND_SCHEDULE, "effect", "truncated", false);
}
END_TEST

START_TEST(damaged_headers_are_refused_or_harmless)
{
    pons_note note;

    /* The reader stays inside the file for any value of any byte of the headers. */
    for (size_t at = 0; at < 1024 && at < image_size; at++) {
        for (int value = 0; value < 256; value += 51) {
            pons_error err = PONS_ERROR_INIT;
            char *copy = malloc(image_size);
            memcpy(copy, image, image_size);
            copy[at] = (char)value;
            elf_note_read("damaged.so", copy, image_size, &note, &err);
            free(copy);
        }
    }
}
END_TEST

/* ---- flipped bits ---------------------------------------------------------------------------- */

typedef struct flips {
    size_t bit, tried, refused, failed; /* 'bit' is the first one of the next table               */
} flips;

/* Load the file and use all of it, with its constructors and its exit handlers. */
static int use_flipped(void)
{
    pons_error err = PONS_ERROR_INIT;
    const double config = 0.25;
    const plugin *p = NULL;
    const pons_schedule_operations *o;

    if (load(PONS_KIND_SCHEDULE, "effect", &err) != PONS_OK)
        return (int)err.status;
    plugin_load(PONS_KIND_SCHEDULE, "effect", sizeof *o, NULL, &p, &err);
    o = p->operations;
    if (o->factor != NULL)
        o->factor(&config, 0, 1);
    for (const pons_option *option = p->descriptor->options; option->name != NULL; option++)
        fprintf(stderr, "%s %s %s\n", option->name, option->fallback, option->help);
    return 0;
}

/* The exit status of a child process that uses the file; its output is dropped. */
static int run_flipped(void)
{
    int code;
    pid_t child;

    fflush(NULL);
    child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        const struct rlimit none = { 0, 0 };
        setrlimit(RLIMIT_CORE, &none);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        exit(use_flipped());
    }
    ck_assert_int_eq(waitpid(child, &code, 0), child);
    return WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
}

static void flip_bits(flips *f, size_t begin, size_t size, size_t stride)
{
    for (; f->bit < 8 * size; f->bit += stride) {
        char *byte = &image[begin + f->bit / 8];
        int code;
        *byte = (char)(*byte ^ 1 << f->bit % 8);
        write_image("schedule/effect.so", image_size);
        code = run_flipped();
        if (code != 0 && code != PONS_PLUGIN) {
            printf("bit %zu of byte 0x%zx: status %d\n", f->bit % 8, begin + f->bit / 8, code);
            f->failed++;
        }
        *byte = (char)(*byte ^ 1 << f->bit % 8);
        f->tried++;
        f->refused += code == PONS_PLUGIN;
    }
    f->bit -= 8 * size;
}

/*
 * Bits are flipped in the headers and in each loaded table, but not in code and data. The intact
 * file is the control.
 */
START_TEST(no_flipped_bit_of_a_header_or_table_crashes)
{
    const Elf64_Ehdr h = *(const Elf64_Ehdr *)(void *)image;
    const size_t stride = (size_t)soak_times(53, 1);
    flips f = { 0 };

    write_image("schedule/effect.so", image_size);
    ck_assert_int_eq(run_flipped(), 0);
    flip_bits(&f, 0, sizeof h, stride);
    flip_bits(&f, h.e_phoff, (size_t)h.e_phnum * h.e_phentsize, stride);
    flip_bits(&f, h.e_shoff, (size_t)h.e_shnum * h.e_shentsize, stride);
    for (int i = 0; i < h.e_shnum; i++) {
        const Elf64_Shdr s = ((const Elf64_Shdr *)(void *)(image + h.e_shoff))[i];
        if ((s.sh_flags & SHF_ALLOC) != 0 && s.sh_type != SHT_PROGBITS && s.sh_type != SHT_NOBITS)
            flip_bits(&f, s.sh_offset, s.sh_size, stride);
    }
    printf("%zu flipped bits, %zu of them refused\n", f.tried, f.refused);
    ck_assert_uint_eq(f.failed, 0);
    ck_assert_uint_ge(f.tried, 683);
    ck_assert_uint_ge(f.refused, f.tried / 3);
}
END_TEST

START_TEST(changed_plugin_is_refused_before_any_of_it_runs)
{
    plugin_gallery[_i].change();
    write_image("schedule/effect.so", image_size);
    refused(PONS_KIND_SCHEDULE, "effect", plugin_gallery[_i].phrase, false);
}
END_TEST

START_TEST(descriptor_that_contradicts_the_note_is_refused)
{
    change_name();
    write_image("schedule/affect.so", image_size);
    refused(PONS_KIND_SCHEDULE, "affect",
            "name in its descriptor is 'effect', expected 'affect'", true);
    memcpy(note_of_image()->name, "effect", 6);
    change_kind();
    write_image("loss/effect.so", image_size);
    refused(PONS_KIND_LOSS, "effect",
            "kind in its descriptor is 'schedule', expected 'loss'", true);
}
END_TEST

START_TEST(missing_entry_is_named)
{
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)(void *)image;
    const Elf64_Shdr *section = (const Elf64_Shdr *)(void *)(image + h->e_shoff);

    for (int i = 0; i < h->e_shnum; i++) {
        Elf64_Sym *symbol = (Elf64_Sym *)(void *)(image + section[i].sh_offset);
        for (uint64_t k = 0; section[i].sh_type == SHT_DYNSYM
             && k < section[i].sh_size / sizeof *symbol; k++)
            if (strcmp(image + section[section[i].sh_link].sh_offset + symbol[k].st_name,
                       "pons_plugin_entry") == 0)
                symbol[k].st_other = STV_HIDDEN;
    }
    write_image("schedule/effect.so", image_size);
    refused(PONS_KIND_SCHEDULE, "effect", "it does not export 'pons_plugin_entry'", true);
}
END_TEST

START_TEST(folders_and_escaping_links_are_refused)
{
    ck_assert_int_eq(mkdir(in_root("schedule/effect.so"), 0755), 0);
    refused(PONS_KIND_SCHEDULE, "effect", "it is a folder, expected a regular file", false);
    write_image("schedule/real.so", image_size);
    ck_assert_int_eq(mkdir(in_root("else"), 0755), 0);
    write_image("else/effect.so", image_size);
    ck_assert_int_eq(rmdir(in_root("schedule/effect.so")), 0);
    setenv("PONS_PLUGIN_PATH", in_root("inner"), 1);
    ck_assert_int_eq(folder_make(in_root("inner/schedule"), NULL), PONS_OK);
    ck_assert_int_eq(symlink(in_root("else/effect.so"), in_root("inner/schedule/effect.so")), 0);
    {
        pons_error err = PONS_ERROR_INIT;
        ck_assert_int_eq(load(PONS_KIND_SCHEDULE, "effect", &err), PONS_PLUGIN);
        ck_assert_msg(strstr(err.text, "outside of the plugin folder") != NULL, "%s", err.text);
        ck_assert_int_ne(access(trace, F_OK), 0);
    }
    ck_assert_int_eq(unlink(in_root("inner/schedule/effect.so")), 0);
    write_image("inner/schedule/original.so", image_size);
    ck_assert_int_eq(symlink("original.so", in_root("inner/schedule/effect.so")), 0);
    {
        pons_error err = PONS_ERROR_INIT;
        ck_assert_msg(load(PONS_KIND_SCHEDULE, "effect", &err) == PONS_OK, "%s", err.text);
    }
}
END_TEST

START_TEST(files_that_everybody_may_write_are_refused)
{
    write_image("schedule/effect.so", image_size);
    ck_assert_int_eq(chmod(in_root("schedule/effect.so"), 0777), 0);
    refused(PONS_KIND_SCHEDULE, "effect", "lets everybody write it", false);
    ck_assert_int_eq(chmod(in_root("schedule/effect.so"), 0755), 0);
    ck_assert_int_eq(chmod(in_root("schedule"), 0777), 0);
    refused(PONS_KIND_SCHEDULE, "effect", "lets everybody replace it", false);
    ck_assert_int_eq(chmod(in_root("schedule"), 0755), 0);
    {
        pons_error err = PONS_ERROR_INIT;
        ck_assert_msg(load(PONS_KIND_SCHEDULE, "effect", &err) == PONS_OK, "%s", err.text);
    }
}
END_TEST

START_TEST(the_owner_of_every_parent_folder_is_checked)
{
    write_image("schedule/effect.so", image_size);
    ck_assert_int_eq(chmod(root, 0777), 0);
    refused(PONS_KIND_SCHEDULE, "effect", "lets everybody replace it", false);
    ck_assert_int_eq(chmod(root, 01777), 0);
    {
        pons_error err = PONS_ERROR_INIT;
        ck_assert_msg(load(PONS_KIND_SCHEDULE, "effect", &err) == PONS_OK, "%s", err.text);
    }
}
END_TEST

/* The group may write files of root and files whose group is the user's own (umask 002). */
START_TEST(only_a_private_group_may_write_a_plugin)
{
    static const struct { uid_t user; gid_t group; mode_t mode; const char *phrase; } cases[] = {
        { 1000, 1000, 0664, NULL }, { 1000, 1001, 0644, NULL }, { 0, 50, 0664, NULL },
        { 1000, 1001, 0664, "lets group 1001 write it" }, { 1001, 1001, 0644, "user 1001" },
        { 0, 0, 0646, "lets everybody write it" }, { 0, 0, 01646, "lets everybody write it" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct stat facts = { .st_uid = cases[i].user, .st_gid = cases[i].group,
                                    .st_mode = S_IFREG | cases[i].mode };
        pons_error err = PONS_ERROR_INIT;
        ck_assert_int_eq(setegid(1000), 0);
        ck_assert_int_eq(seteuid(1000), 0);
        owner_check("/usr/effect.so", &facts, &err);
        ck_assert_int_eq(seteuid(0), 0);
        ck_assert_int_eq(setegid(0), 0);
        if (cases[i].phrase == NULL)
            ck_assert_msg(err.status == PONS_OK, "case %zu: %s", i, err.text);
        else
            ck_assert_msg(strstr(err.text, cases[i].phrase) != NULL, "case %zu: %s", i, err.text);
    }
}
END_TEST

START_TEST(a_file_replaced_after_the_check_is_refused)
{
    pons_error err = PONS_ERROR_INIT, none = PONS_ERROR_INIT;
    plugin p = { 0 };
    verified v;

    write_image("schedule/effect.so", image_size);
    ck_assert_int_eq(verified_read(in_root("schedule/effect.so"), root, &v, &err), PONS_OK);
    write_image("schedule/other.so", image_size);
    ck_assert_int_eq(rename(in_root("schedule/other.so"), in_root("schedule/effect.so")), 0);
    ck_assert_int_eq(verified_load(&v, 8, &p, &err), PONS_PLUGIN);
    ck_assert_msg(strstr(err.text, "it changed after it was checked") != NULL, "%s", err.text);
    ck_assert_int_ne(access(trace, F_OK), 0);
    plugin_file_clear(&v.file);
    ck_assert_int_eq(verified_read(in_root("schedule/effect.so"), root, &v, &none), PONS_OK);
    ck_assert_msg(verified_load(&v, 8, &p, &none) == PONS_OK, "%s", none.text);
    ck_assert_int_eq(access(trace, F_OK), 0);
    free((void *)p.operations);
    plugin_file_clear(&v.file);
}
END_TEST

START_TEST(plugin_names_are_neither_paths_nor_linker_names)
{
    static const char *const names[] = {
        "../schedule/effect", "effect.so", "/tmp/effect", "", "Effect",
        "a123456789b123456789c123456789d123456789e12345678"
    };

    write_image("effect.so", image_size);
    setenv("LD_LIBRARY_PATH", root, 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pons_error err = PONS_ERROR_INIT;
        ck_assert_int_eq(load(PONS_KIND_SCHEDULE, names[i], &err), PONS_PLUGIN);
        ck_assert_msg(strstr(err.text, "no schedule plugin is called") != NULL, "%s", err.text);
    }
    ck_assert_int_eq(chdir(root), 0);
    refused(PONS_KIND_SCHEDULE, "effect", "no schedule plugin is called 'effect'", false);
}
END_TEST

START_TEST(a_file_outside_the_folder_of_its_kind_is_named)
{
    pons_error err = PONS_ERROR_INIT;
    char expected[640];

    write_image("effect.so", image_size);
    ck_assert_int_eq(load(PONS_KIND_SCHEDULE, "effect", &err), PONS_PLUGIN);
    snprintf(expected, sizeof expected, "hint: move '%s/effect.so' into '%s/schedule'; searched %s",
             root, root, root);
    ck_assert_msg(strstr(err.text, expected) != NULL, "%s", err.text);
    ck_assert_ptr_nonnull(strstr(err.text, "; PONS_PLUGIN_PATH names more folders"));
}
END_TEST

START_TEST(a_misspelt_name_is_a_configuration_error_with_the_nearest_name)
{
    pons_error err = PONS_ERROR_INIT;
    const plugin *p = NULL;
    char expected[160];

    write_image("schedule/effect.so", image_size);
    ck_assert_int_eq(plugin_load(PONS_KIND_SCHEDULE, "efect", 8, "a.ini:3", &p, &err), PONS_CONFIG);
    snprintf(expected, sizeof expected, "a.ini:3: no schedule plugin is called 'efect'; did you "
             "mean 'effect'?\nhint: searched %s", root);
    ck_assert_msg(strncmp(err.text, expected, strlen(expected)) == 0, "%s", err.text);
}
END_TEST

START_TEST(search_path_must_be_absolute_folders)
{
    static const char *const bad[] = { "relative", "/tmp::/tmp", ":/tmp", "/tmp:" };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pons_error err = PONS_ERROR_INIT;
        setenv("PONS_PLUGIN_PATH", bad[i], 1);
        ck_assert_int_eq(load(PONS_KIND_SCHEDULE, "effect", &err), PONS_PLUGIN);
        ck_assert_msg(strstr(err.text, "expected an absolute folder") != NULL, "%s", err.text);
    }
}
END_TEST

START_TEST(plugin_list_reads_notes_without_loading_plugins)
{
    pons_error err = PONS_ERROR_INIT;
    plugin_file *files;
    int count, seen = 0;

    write_image("schedule/effect.so", image_size);
    change_major();
    write_image("schedule/broken.so", image_size);
    ck_assert_int_eq(plugin_list(&files, &count, &err), PONS_OK);
    for (int i = 0; i < count; i++) {
        if (strncmp(files[i].path, root, strlen(root)) != 0)
            continue;
        seen++;
        ck_assert_str_eq(files[i].name, seen == 1 ? "broken" : "effect");
        ck_assert((files[i].problem != NULL) == (seen == 1));
    }
    ck_assert_int_eq(seen, 2);
    ck_assert_int_ne(access(trace, F_OK), 0);
    plugin_list_free(files, count);
}
END_TEST

/* A folder that cannot be read is not reported as empty. */
START_TEST(plugin_list_names_an_unreadable_folder)
{
    pons_error err = PONS_ERROR_INIT;
    struct rlimit files, none;
    plugin_file *file = NULL;
    int count = 0;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = (struct rlimit){ 0, files.rlim_max };
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(plugin_list(&file, &count, &err), PONS_DEVICE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    ck_assert_msg(strstr(err.text, "cannot read folder '") != NULL
                  && strstr(err.text, root) != NULL
                  && strstr(err.text, ": Too many open files") != NULL, "%s", err.text);
    ck_assert_ptr_null(file);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("plugin");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_valid_plugin_loads_and_its_operations_are_copied);
    tcase_add_test(c, a_file_cut_at_any_multiple_of_64_bytes_is_refused);
    tcase_add_test(c, damaged_headers_are_refused_or_harmless);
    tcase_add_test(c, no_flipped_bit_of_a_header_or_table_crashes);
    tcase_add_loop_test(c, changed_plugin_is_refused_before_any_of_it_runs, 0,
                        (int)(sizeof plugin_gallery / sizeof *plugin_gallery));
    tcase_add_test(c, descriptor_that_contradicts_the_note_is_refused);
    tcase_add_test(c, missing_entry_is_named);
    tcase_add_test(c, folders_and_escaping_links_are_refused);
    tcase_add_test(c, files_that_everybody_may_write_are_refused);
    tcase_add_test(c, the_owner_of_every_parent_folder_is_checked);
    suite_add_test_if(c, geteuid() == 0, "root", only_a_private_group_may_write_a_plugin);
    tcase_add_test(c, a_file_replaced_after_the_check_is_refused);
    tcase_add_test(c, plugin_names_are_neither_paths_nor_linker_names);
    tcase_add_test(c, a_file_outside_the_folder_of_its_kind_is_named);
    tcase_add_test(c, a_misspelt_name_is_a_configuration_error_with_the_nearest_name);
    tcase_add_test(c, search_path_must_be_absolute_folders);
    tcase_add_test(c, plugin_list_reads_notes_without_loading_plugins);
    tcase_add_test(c, plugin_list_names_an_unreadable_folder);
    return suite_run();
}
