/*
 * check_file.c - files are read whole or refused, and written whole or not at all.
 */
#include "support/root.h"
#include "support/suite.h"

#include "base/file/file.h"
#include "base/file/file_kind.h"
#include "base/file/json.h"
#include "base/file/mapped_file.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int count_entries(void)
{
    DIR *d = opendir(root);
    int count = -2;

    while (readdir(d) != NULL)
        count++;
    closedir(d);
    return count;
}

START_TEST(committed_file_reads_back_and_leaves_no_temporary)
{
    pons_error err = PONS_ERROR_INIT;
    safe_file f;
    char *data;
    size_t size;

    ck_assert_int_eq(safe_file_open(&f, in_root("a"), &err), PONS_OK);
    ck_assert_int_eq(safe_file_write(&f, "one\0two", 7, &err), PONS_OK);
    ck_assert_int_ne(access(in_root("a"), F_OK), 0);
    ck_assert_int_eq(safe_file_commit(&f, &err), PONS_OK);
    ck_assert_int_eq(file_read(in_root("a"), 7, &data, &size, PONS_DATA, &err), PONS_OK);
    ck_assert_uint_eq(size, 7);
    ck_assert_mem_eq(data, "one\0two", 8);
    ck_assert_int_eq(count_entries(), 1);
    free(data);
}
END_TEST

START_TEST(discarded_file_leaves_the_old_file)
{
    pons_error err = PONS_ERROR_INIT;
    safe_file f;
    char *data;
    size_t size;

    ck_assert_int_eq(safe_file_open(&f, in_root("a"), &err), PONS_OK);
    ck_assert_int_eq(safe_file_write(&f, "old", 3, &err), PONS_OK);
    ck_assert_int_eq(safe_file_commit(&f, &err), PONS_OK);
    ck_assert_int_eq(safe_file_open(&f, in_root("a"), &err), PONS_OK);
    ck_assert_int_eq(safe_file_write(&f, "new", 3, &err), PONS_OK);
    safe_file_discard(&f);
    ck_assert_int_eq(file_read(in_root("a"), 100, &data, &size, PONS_DATA, &err), PONS_OK);
    ck_assert_str_eq(data, "old");
    ck_assert_int_eq(count_entries(), 1);
    free(data);
}
END_TEST

START_TEST(temporaries_of_killed_processes_are_removed)
{
    pons_error err = PONS_ERROR_INIT;
    char dead[64], alive[64];
    safe_file f;
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    snprintf(dead, sizeof dead, "a.part-%ld-0", (long)child);
    snprintf(alive, sizeof alive, "a.part-%ld-0", (long)getppid());
    fclose(fopen(in_root(dead), "w"));
    fclose(fopen(in_root(alive), "w"));
    ck_assert_int_eq(safe_file_open(&f, in_root("a"), &err), PONS_OK);
    ck_assert_int_ne(access(in_root(dead), F_OK), 0);
    ck_assert_int_eq(access(in_root(alive), F_OK), 0);
    safe_file_discard(&f);
}
END_TEST
START_TEST(a_sweep_removes_old_temporaries_of_killed_processes_alone)
{
    const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
    char name[4][64];
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    snprintf(name[0], sizeof name[0], "a.part-%ld-0", (long)child);
    snprintf(name[1], sizeof name[1], "b.part-%ld-0", (long)child);
    snprintf(name[2], sizeof name[2], "c.part-%ld-0", (long)getppid());
    snprintf(name[3], sizeof name[3], "d.part-%ld-0.case", (long)child);
    for (int i = 0; i < 4; i++) {
        fclose(fopen(in_root(name[i]), "w"));
        if (i != 1)
            ck_assert_int_eq(utimensat(AT_FDCWD, in_root(name[i]), old, 0), 0);
    }
    safe_file_sweep(in_root(""));
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(access(in_root(name[i]), F_OK) == 0, i != 0);
}
END_TEST

START_TEST(a_full_disk_is_an_error_and_not_a_short_file)
{
    static char data[1 << 16];

    for (size_t size = 1000; size <= sizeof data; size *= 4) {
        pons_error err = PONS_ERROR_INIT;
        struct rlimit limit, none;
        safe_file f;
        ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &none), 0);
        limit = (struct rlimit){ 512, none.rlim_max };
        signal(SIGXFSZ, SIG_IGN);
        ck_assert_int_eq(safe_file_open(&f, in_root("a"), &err), PONS_OK);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        fwrite(data, 1, size, f.file);
        access(in_root("none"), F_OK); /* the stored error is not that of errno */
        safe_file_commit(&f, &err);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
        ck_assert_int_eq(err.status, PONS_FAILURE);
        ck_assert_msg(strstr(err.text, "File too large") != NULL, "%s", err.text);
        ck_assert_int_eq(count_entries(), 0);
    }
}
END_TEST

START_TEST(only_regular_files_are_opened_for_writing)
{
    static const struct { const char *name, *phrase; } bad[] = {
        { "pipe", "a special file" }, { "link", "a link" }, { "dangling", "a link" },
        { "folder", "a folder" }, { "missing/file", "No such file" }
    };
    pons_error err = PONS_ERROR_INIT;
    struct stat facts;
    FILE *file = NULL;

    ck_assert_int_eq(mkfifo(in_root("pipe"), 0600), 0);
    ck_assert_int_eq(symlink("a", in_root("link")), 0);
    ck_assert_int_eq(symlink("b", in_root("dangling")), 0);
    ck_assert_int_eq(mkdir(in_root("folder"), 0700), 0);
    ck_assert_int_eq(file_open_stream(in_root("a"), "a+", &file, &err), PONS_OK);
    ck_assert_int_eq(fclose(file), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pons_error problem = PONS_ERROR_INIT;
        file = NULL;
        ck_assert_int_eq(file_open_stream(in_root(bad[i].name), "a", &file, &problem),
                         PONS_FAILURE);
        ck_assert_msg(strstr(problem.text, bad[i].phrase) != NULL, "%s", problem.text);
        ck_assert_ptr_null(file);
    }
    ck_assert_int_ne(stat(in_root("b"), &facts), 0);
}
END_TEST

START_TEST(a_safe_file_replaces_only_a_file_or_a_link_to_one)
{
    static const struct { const char *name; bool good; } cases[] = {
        { "pipe", false }, { "folder", false }, { "to-null", false }, { "link", true },
        { "dangling", true }
    };
    struct stat facts;

    ck_assert_int_eq(mkfifo(in_root("pipe"), 0600), 0);
    ck_assert_int_eq(mkdir(in_root("folder"), 0700), 0);
    ck_assert_int_eq(symlink("/dev/null", in_root("to-null")), 0);
    ck_assert_int_eq(symlink("a", in_root("link")), 0);
    ck_assert_int_eq(symlink("b", in_root("dangling")), 0);
    fclose(fopen(in_root("a"), "w"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pons_error err = PONS_ERROR_INIT;
        safe_file f;
        ck_assert_int_eq(safe_file_open(&f, in_root(cases[i].name), &err) == PONS_OK,
                         cases[i].good);
        if (!cases[i].good)
            continue;
        ck_assert_int_eq(safe_file_write(&f, "1", 1, &err), PONS_OK);
        ck_assert_int_eq(safe_file_commit(&f, &err), PONS_OK);
        ck_assert_int_eq(lstat(in_root(cases[i].name), &facts), 0);
        ck_assert(S_ISREG(facts.st_mode));
    }
    ck_assert_int_eq(stat(in_root("a"), &facts), 0);
    ck_assert_int_eq(facts.st_size, 0);
    ck_assert_int_ne(stat(in_root("b"), &facts), 0);
}
END_TEST

START_TEST(folders_pipes_large_and_missing_files_are_refused)
{
    static const struct { const char *name, *phrase; } bad[] = {
        { ".", "a folder" }, { "pipe", "a special file" }, { "large", "at most 4" },
        { "missing", "No such file" }
    };
    pons_error err = PONS_ERROR_INIT;
    char *data = NULL;
    size_t size = 0;
    safe_file f;

    ck_assert_int_eq(mkfifo(in_root("pipe"), 0600), 0);
    ck_assert_int_eq(safe_file_open(&f, in_root("large"), &err), PONS_OK);
    ck_assert_int_eq(safe_file_write(&f, "12345", 5, &err), PONS_OK);
    ck_assert_int_eq(safe_file_commit(&f, &err), PONS_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pons_error problem = PONS_ERROR_INIT;
        ck_assert_int_eq(file_read(in_root(bad[i].name), 4, &data, &size, PONS_DATA, &problem),
                         PONS_DATA);
        ck_assert_msg(strstr(problem.text, bad[i].phrase) != NULL, "%s", problem.text);
        ck_assert_ptr_null(data);
    }
}
END_TEST

START_TEST(folders_are_made_with_their_parents)
{
    pons_error err = PONS_ERROR_INIT;
    struct stat facts;
    safe_file f;

    ck_assert_int_eq(folder_make(in_root("a/b/c"), &err), PONS_OK);
    ck_assert_int_eq(folder_make(in_root("a/b/c/"), &err), PONS_OK);
    ck_assert_int_eq(stat(in_root("a/b/c"), &facts), 0);
    ck_assert_int_eq(safe_file_open(&f, in_root("file"), &err), PONS_OK);
    ck_assert_int_eq(safe_file_commit(&f, &err), PONS_OK);
    ck_assert_int_eq(folder_make(in_root("file"), &err), PONS_FAILURE);
    ck_assert_ptr_nonnull(strstr(err.text, "in the way"));
}
END_TEST

START_TEST(a_folder_that_cannot_be_made_reports_the_system_error)
{
    pons_error err = PONS_ERROR_INIT;
    char path[600];
    int size = snprintf(path, sizeof path, "%s/", root);

    memset(path + size, 'x', 300);
    path[size + 300] = '\0';
    ck_assert_int_eq(folder_make(path, &err), PONS_FAILURE);
    ck_assert_ptr_nonnull(strstr(err.text, "File name too long"));
}
END_TEST

START_TEST(a_file_is_recognised_by_every_path_to_it)
{
    pons_error err = PONS_ERROR_INIT;
    char file[4096], other[4096], link_to[4096];

    snprintf(file, sizeof file, "%s", in_root("a/file"));
    snprintf(other, sizeof other, "%s", in_root("a/../a/file"));
    snprintf(link_to, sizeof link_to, "%s", in_root("link"));
    ck_assert_int_eq(folder_make(in_root("a"), &err), PONS_OK);
    ck_assert(!file_is(file, file));
    fclose(fopen(file, "w"));
    ck_assert_int_eq(symlink("a/file", link_to), 0);
    ck_assert(file_is(file, other));
    ck_assert(file_is(file, link_to));
    ck_assert(!file_is(file, in_root("a")));
    ck_assert(!file_is(file, in_root("none")));
}
END_TEST

START_TEST(a_truncated_mapped_file_reads_as_zeros_and_is_reported)
{
    enum { SIZE = 5 * 4096 };
    static const off_t cut[] = { 0, 4096, 4 * 4096 + 5, SIZE - 1 };
    char bytes[SIZE];

    memset(bytes, 7, sizeof bytes);
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        int file = open(in_root("mapped"), O_RDWR | O_CREAT | O_TRUNC, 0666);
        const volatile char *at;
        mapped_file *m, *other;

        ck_assert_int_eq(write(file, bytes, sizeof bytes), SIZE);
        m = mapped_file_open(file, 0, SIZE);
        other = mapped_file_open(file, 4096, 4096);
        at = mapped_file_bytes(m);
        ck_assert(mapped_file_is_whole(m));
        ck_assert_int_eq(ftruncate(file, cut[i]), 0);
        close(file);
        ck_assert_int_eq(at[SIZE - 1], 0);
        ck_assert_int_eq(at[0], i == 0 ? 0 : 7);
        ck_assert(!mapped_file_is_whole(m));
        ck_assert_int_eq(mapped_file_is_whole(other), i > 1);
        mapped_file_close(m);
        mapped_file_close(other);
    }
}
END_TEST

/* A SIGBUS outside of mapped files ends the process, as it does without the handler. */
START_TEST(a_sigbus_outside_mapped_files_ends_the_process)
{
    int file = open(in_root("mapped"), O_RDWR | O_CREAT, 0666);
    volatile char *at;

    ck_assert_int_eq(write(file, "x", 1), 1);
    ck_assert_ptr_nonnull(mapped_file_open(file, 0, 1));
    at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    ck_assert_int_eq(ftruncate(file, 0), 0);
    at[0];
}
END_TEST

#define BYTES(text) text, sizeof text - 1

START_TEST(format_is_known_by_its_first_bytes)
{
    static const struct { const char *bytes; size_t size; const char *name; } files[] = {
        { BYTES("PK\3\4..........................archive/data.pkl"), "a PyTorch file" },
        { BYTES("PK\3\4..........................weight.npy"), "an .npz file of NumPy" },
        { BYTES("PK\3\4"), "a zip archive" }, { BYTES("\x80\4\x95"), "a Python pickle" },
        { BYTES("\x89HDF\r\n\x1a\n"), "an HDF5 file" }, { BYTES("NRRD0005"), "an NRRD volume" },
        { BYTES("\0\0\0\1\0\0\1\0"), "an MGH volume (.mgh, .mgz)" },
        { BYTES("\xff\xd8\xff\xe1"), "a JPEG picture" }, { BYTES("\x5c\1\0\0"), "a NIfTI volume" },
        { BYTES("version https://git-lfs.github.com"), "a pointer of Git LFS" },
        { BYTES("CDF\1\0\0\0\0"), "a NetCDF file, as MINC 1 is" },
        { BYTES("CDF\2\0\0\0\0"), "a NetCDF file, as MINC 1 is" },
        { BYTES("\x08\x07\x12\x07pytorch\x1a\0052.1.0"), "an ONNX file" },
        { BYTES("\x08\x08\x12\x07tf2onnx\x1a"), "an ONNX file" },
        { BYTES("\x08\1\0\0\0\0\0\0{\"__metadata__\":{\"from\":\"pytorch\"}}"),
          "a safetensors file" },
        { BYTES("<!DOCTYPE html>\n<html>"), "an HTML page" }, { BYTES("<HTML>"), "an HTML page" },
        { BYTES("\r\n<!doctype html>\n<html lang=\"en\">"), "an HTML page" },
        { BYTES("<?xml version=\"1.0\"?>\n<Error>"), "an XML file" },
        { BYTES("Comment = of a scanner\nObjectType = Image"), "a MetaImage (.mha, .mhd)" },
        { BYTES("\x08\0\5\0CS\x0a\0ISO_IR 100"), "a DICOM file" },
        { BYTES("\x08\0\x08\0\x16\0\0\0ORIGINAL"), "a DICOM file" },
        { BYTES("\x08\0\0\0\4\0\0\0\x5a\1\0\0"), "a DICOM file" },
        { BYTES("\2\0\0\0UL\4\0\xc2\0\0\0"), "a DICOM file" },
        { BYTES("\x08\0\5\0\0\0\0\0{\"a\":{"), "a safetensors file" }
    };
    char dicom[132] = "";

    memcpy(dicom + 128, "DICM", 4);
    ck_assert_str_eq(file_kind_find(dicom, sizeof dicom)->name, "a DICOM file");
    ck_assert_ptr_null(file_kind_find(dicom, sizeof dicom - 1));
    ck_assert_ptr_null(file_kind_find("", 0));
    ck_assert_ptr_null(file_kind_find("some text", 9));
    ck_assert_ptr_null(file_kind_find("<svg>", 5));
    ck_assert_ptr_null(file_kind_find("\x08\x07\x12\x07", 4));
    ck_assert_ptr_null(file_kind_find("CDF\3", 4));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        ck_assert_str_eq(file_kind_find(files[i].bytes, files[i].size)->name, files[i].name);
}
END_TEST

START_TEST(a_foreign_format_is_refused_with_a_conversion_command)
{
    const file_kind *mgh = file_kind_find("\0\0\0\1\0", 5), *nrrd = file_kind_find("NRRD", 4);
    pons_error err = PONS_ERROR_INIT, packed = PONS_ERROR_INIT, folder = PONS_ERROR_INIT;
    char dicom[132] = "";

    ck_assert_int_eq(file_kind_refuse(mgh, "a.b/c.mgz", "gzip of ", FILE_VOLUME, &err), PONS_DATA);
    ck_assert_str_eq(err.text, "cannot read 'a.b/c.mgz': it is gzip of an MGH volume (.mgh, .mgz), "
                     "expected NIfTI (.nii, .nii.gz)\nhint: mri_convert 'a.b/c.mgz' "
                     "'a.b/c.nii.gz'");
    file_kind_refuse(nrrd, "a.nrrd.gz", "gzip of ", FILE_VOLUME, &packed);
    ck_assert_ptr_null(strchr(packed.text, '\n'));
    memcpy(dicom + 128, "DICM", 4);
    file_kind_refuse(file_kind_find(dicom, sizeof dicom), "a/b", "", FILE_VOLUME, &folder);
    ck_assert_ptr_nonnull(strstr(folder.text, ": dcm2niix -z y 'a/.'"));
}
END_TEST

START_TEST(the_conversion_command_never_overwrites_its_input)
{
    const file_kind *nrrd = file_kind_find("NRRD", 4), *minc = file_kind_find("CDF\1", 4);
    static const struct { const char *path, *other; } paths[] = {
        { "a.b/m.nii.gz", " 'a.b/m.nii.gz' 'a.b/m-converted.nii.gz'" },
        { "m.mha", " 'm.mha' 'm.nii.gz'" }, { "m.nii", " 'm.nii' 'm.nii.gz'" },
        { ".nii.gz", " '.nii.gz' '.nii.nii.gz'" },
    };

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        pons_error err = PONS_ERROR_INIT;
        file_kind_refuse(nrrd, paths[i].path, "", FILE_VOLUME, &err);
        ck_assert_msg(strstr(err.text, paths[i].other) != NULL, "%s", err.text);
    }
    pons_error err = PONS_ERROR_INIT;
    file_kind_refuse(minc, "m.nii", "", FILE_VOLUME, &err);
    ck_assert_ptr_nonnull(strstr(err.text, "mnc2nii 'm.nii' 'm-converted.nii'"));
}
END_TEST

/* ---- json ------------------------------------------------------------------------------------ */

static int allocations_left;

/* malloc without memory for one allocation. */
static void *refuse_one(size_t size)
{
    if (allocations_left-- != 0)
        return malloc(size);
    errno = ENOMEM;
    return NULL;
}

START_TEST(json_without_memory_is_no_damaged_file)
{
    static const char text[] = "{\"step\": 12, \"files\": [\"weights\", 0.5, true], \"of\": {}}";
    pons_status status = PONS_DEVICE;
    int refused = -1;

    for (int n = 0; status != PONS_OK && n < 1000; n++, refused++) {
        pons_error err = PONS_ERROR_INIT;
        json_t *document = NULL;

        allocations_left = n;
        json_set_alloc_funcs(refuse_one, free);
        status = json_parse(text, strlen(text), "manifest", PONS_DATA, &document, &err);
        json_decref(document);
        json_set_alloc_funcs(malloc, free);
        if (status != PONS_OK) {
            ck_assert_int_eq(status, PONS_DEVICE);
            ck_assert_str_eq(err.text, "'manifest': out of memory");
        }
    }
    ck_assert_int_eq(status, PONS_OK);
    ck_assert_int_gt(refused, 10);
}
END_TEST

START_TEST(json_text_holds_no_control_character)
{
    static const char text[] = "a\x7f\n\x1b\xc2\x80\xc2\x9b" "2J\xc2\x9f\xc2\xa0\xc3\x9b\"\\";
    static const char written[] = "[\"a\\u007f\\u000a\\u001b\\u0080\\u009b"
                                  "2J\\u009f\xc2\xa0\xc3\x9b\\\"\\\\\"]";
    pons_error err = PONS_ERROR_INIT;
    json_t *document;
    char *out = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&out, &size);

    fputc('[', to);
    json_put_text(to, text);
    fputc(']', to);
    fclose(to);
    ck_assert_str_eq(out, written);
    ck_assert_int_eq(json_parse(out, size, "text", PONS_DATA, &document, &err), PONS_OK);
    ck_assert_str_eq(json_string_value(json_array_get(document, 0)), text);
    json_decref(document);
    free(out);
}
END_TEST

/* AddressSanitizer reads this function; its own handler would turn the signal into an exit. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "handle_sigbus=0"; }

int main(void)
{
    TCase *c = suite_new("file");
    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, committed_file_reads_back_and_leaves_no_temporary);
    tcase_add_test(c, discarded_file_leaves_the_old_file);
    tcase_add_test(c, temporaries_of_killed_processes_are_removed);
    tcase_add_test(c, a_sweep_removes_old_temporaries_of_killed_processes_alone);
    tcase_add_test(c, a_full_disk_is_an_error_and_not_a_short_file);
    tcase_add_test(c, only_regular_files_are_opened_for_writing);
    tcase_add_test(c, a_safe_file_replaces_only_a_file_or_a_link_to_one);
    tcase_add_test(c, folders_pipes_large_and_missing_files_are_refused);
    tcase_add_test(c, folders_are_made_with_their_parents);
    tcase_add_test(c, a_folder_that_cannot_be_made_reports_the_system_error);
    tcase_add_test(c, a_file_is_recognised_by_every_path_to_it);
    tcase_add_test(c, a_truncated_mapped_file_reads_as_zeros_and_is_reported);
    tcase_add_test_raise_signal(c, a_sigbus_outside_mapped_files_ends_the_process, SIGBUS);
    tcase_add_test(c, format_is_known_by_its_first_bytes);
    tcase_add_test(c, a_foreign_format_is_refused_with_a_conversion_command);
    tcase_add_test(c, the_conversion_command_never_overwrites_its_input);
    tcase_add_test(c, json_without_memory_is_no_damaged_file);
    tcase_add_test(c, json_text_holds_no_control_character);
    return suite_run();
}
