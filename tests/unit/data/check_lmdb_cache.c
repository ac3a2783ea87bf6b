/*
 * check_lmdb_cache.c - the cache in one file: the identity of a case, damage at many places of the
 * file, kills while it is filled, its growth, a full disk, processes that use it together, and its
 * size limit.
 */
#include "support/data/opened_cache.h"
#include "support/suite.h"

#include "base/build_feature.h"
#include "base/file/file_system.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static const char others[] = "[preprocess]\nsteps = scale_range\n"
                             "[preprocess.scale_range]\nfrom = 0 100\n";

static void make_lmdb_root(void)
{
    make_root();
    opened_mode = CACHE_LMDB;
}

static const char *data_path(void)
{
    return maker_path("kept/deep/cases.mdb");
}

/* ---- the bytes of the file ------------------------------------------------------------------- */

static char *take_bytes(size_t *size)
{
    pons_error err = PONS_ERROR_INIT;
    char *bytes;

    ck_assert_int_eq(file_read(data_path(), 1 << 28, &bytes, size, PONS_DATA, &err), PONS_OK);
    return bytes;
}

static void put_bytes(const char *bytes, size_t size)
{
    FILE *f = fopen(data_path(), "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    fclose(f);
    unlink(maker_path("kept/deep/cases.mdb-lock"));
    unlink(maker_path("kept/deep/cases.mdb.damaged"));
}

/* Open the damaged file: all cases are true, and another opening finds them all. */
static void assert_repaired(const char *place, size_t at)
{
    pons_error err = PONS_ERROR_INIT;
    opened o;

    ck_assert_msg(try_open(&o, "d", plain, 0, &err) == PONS_OK, "%s %zu: %s", place, at, err.text);
    ck_assert_msg(maker_cases_held(o.held) == CASES, "%s %zu: %s", place, at, o.said);
    assert_true_cases(&o);
    close_cache(&o);
}

/* ---- identity of a case ---------------------------------------------------------------------- */

START_TEST(a_second_run_finds_the_cases_of_the_first)
{
    opened o;

    write_cases("d");
    for (int time = 0; time < 2; time++) {
        open_cache(&o, "d", plain, 0);
        ck_assert_int_eq(o.found, time * CASES);
        ck_assert_int_eq(maker_cases_held(o.held), CASES);
        ck_assert_ptr_null(strstr(o.said, "warning"));
        assert_true_cases(&o);
        close_cache(&o);
    }
}
END_TEST

START_TEST(a_changed_file_or_step_is_never_stale)
{
    opened o;

    write_cases("d");
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    ck_assert_int_eq(count_found_cases("d", others), 0);
    ck_assert_int_eq(count_found_cases("d", plain), CASES);
    write_case("d", 1, other_value);
    open_cache(&o, "d", plain, 0);
    ck_assert_int_eq(o.found, CASES - 1);
    assert_true_cases(&o);
    close_cache(&o);
}
END_TEST

START_TEST(the_warning_of_a_case_in_the_file_is_repeated)
{
    assert_warnings_are_repeated();
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

static void change_byte(char *bytes, size_t at, int how)
{
    static const unsigned char wholes[] = { 0x00, 0xff, 0x7f };

    if (how < 8)
        bytes[at] = (char)(bytes[at] ^ 1 << how);
    else
        bytes[at] = (char)wholes[how - 8];
}

/* The numbers of a page lie at its beginning, the records of a leaf at its end. */
START_TEST(a_changed_byte_anywhere_is_survived)
{
    enum { PAGE = 4096 };
    size_t size;
    char *bytes;

    write_cases("d");
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    ck_assert_int_eq(count_found_cases("d", others), 0);
    bytes = take_bytes(&size);
    for (size_t at = (size_t)_i; at < size; at += at % PAGE < 128 ? 19 : 797) {
        char was = bytes[at];
        change_byte(bytes, at, (int)((at + (size_t)_i) % 11));
        put_bytes(bytes, size);
        assert_repaired("byte", at);
        bytes[at] = was;
    }
    free(bytes);
}
END_TEST

START_TEST(a_file_that_was_cut_is_made_again)
{
    size_t size;
    char *bytes;

    write_cases("d");
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    bytes = take_bytes(&size);
    for (size_t cut = 1; cut < size; cut += cut < 512 ? 87 : 3999) {
        put_bytes(bytes, cut);
        assert_repaired("cut", cut);
    }
    free(bytes);
}
END_TEST

START_TEST(lost_and_exchanged_pages_are_survived)
{
    enum { PAGE = 4096 };
    char page[PAGE], *bytes;
    size_t size;

    write_cases("d");
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    bytes = take_bytes(&size);
    for (size_t at = 0; at + PAGE <= size; at += PAGE) {
        const size_t other = (at + 3 * PAGE) % (size / PAGE * PAGE);
        memcpy(page, bytes + at, PAGE);
        memset(bytes + at, 0, PAGE);
        put_bytes(bytes, size);
        assert_repaired("zeros", at);
        memcpy(bytes + at, bytes + other, PAGE);
        put_bytes(bytes, size);
        assert_repaired("copy", at);
        memcpy(bytes + at, page, PAGE);
    }
    free(bytes);
}
END_TEST

START_TEST(a_damaged_file_is_kept_aside_with_one_warning)
{
    static const char text[] = "a file of somebody else";
    char *bytes;
    size_t size;
    pons_error err = PONS_ERROR_INIT;
    opened o;

    write_cases("d");
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    put_bytes(text, sizeof text);
    open_cache(&o, "d", plain, 0);
    ck_assert_int_eq(o.found, 0);
    ck_assert_ptr_nonnull(strstr(o.said, "is damaged, and its cases are preprocessed again"));
    ck_assert_ptr_null(strstr(strstr(o.said, "warning") + 1, "warning"));
    assert_true_cases(&o);
    close_cache(&o);
    ck_assert_int_eq(file_read(maker_path("kept/deep/cases.mdb.damaged"), 64, &bytes, &size,
                               PONS_DATA, &err), PONS_OK);
    ck_assert_str_eq(bytes, text);
    free(bytes);
    ck_assert_int_eq(count_found_cases("d", plain), CASES);
}
END_TEST

START_TEST(a_file_cut_while_it_is_used_is_an_error)
{
    pons_error err = PONS_ERROR_INIT;
    pons_case one;
    opened o;

    write_cases("d");
    open_cache(&o, "d", plain, 0);
    ck_assert_int_eq(truncate(data_path(), 4096), 0);
    ck_assert_int_eq(cache_read(o.held, 1, &one, &err), PONS_DATA);
    close_cache(&o);
    assert_repaired("cut", 4096);
}
END_TEST

START_TEST(what_is_no_file_is_left_alone)
{
    opened o;

    write_cases("d");
    open_cache(&o, "d", plain, 0);
    close_cache(&o);
    unlink(data_path());
    ck_assert_int_eq(symlink("elsewhere", data_path()), 0);
    open_cache(&o, "d", plain, 0);
    ck_assert_int_eq(maker_cases_held(o.held), 0);
    ck_assert_ptr_nonnull(strstr(o.said, "it is no regular file"));
    assert_true_cases(&o);
    close_cache(&o);
    ck_assert_int_ne(access(maker_path("kept/deep/elsewhere"), F_OK), 0);
}
END_TEST

/* ---- kills, growth and a full disk ----------------------------------------------------------- */

static pid_t start_filling(const char *steps)
{
    pid_t child = fork();
    pons_error err = PONS_ERROR_INIT;
    opened o;

    ck_assert_int_ge(child, 0);
    if (child > 0)
        return child;
    if (try_open(&o, "d", steps, 0, &err) != PONS_OK)
        _exit(100);
    _exit(CASES - o.found);
}

START_TEST(a_killed_filling_leaves_a_file_that_is_whole)
{
    write_cases("d");
    for (int round = 0; round < 40; round++) {
        const struct timespec pause = { 0, (round * 7 % 40) * 700000 };
        pid_t child = start_filling(round % 2 == 0 ? plain : others);
        opened o;
        nanosleep(&pause, NULL);
        kill(child, SIGKILL);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        if (round % 5 != 0)
            continue;
        open_cache(&o, "d", plain, 0);
        ck_assert_msg(strstr(o.said, "warning") == NULL, "%s", o.said);
        ck_assert_int_eq(maker_cases_held(o.held), CASES);
        assert_true_cases(&o);
        close_cache(&o);
        unlink(round % 10 == 0 ? data_path() : "");
    }
}
END_TEST

/* A case has three megabytes, and the map begins with one. */
START_TEST(the_file_grows_under_several_processes)
{
    enum { PROCESSES = 4, LARGE = 96 };
    struct stat s;
    int made = 0, status;
    opened o;

    write_cases("d");
    for (int n = 0; n < CASES; n++)
        write_sized_case("d", n, LARGE, image_value);
    for (int n = 0; n < PROCESSES; n++)
        start_filling(n % 2 == 0 ? plain : others);
    for (int n = 0; n < PROCESSES; n++) {
        ck_assert_int_gt(wait(&status), 0);
        ck_assert(WIFEXITED(status));
        ck_assert_int_le(WEXITSTATUS(status), CASES);
        made += WEXITSTATUS(status);
    }
    ck_assert_int_eq(made, 2 * CASES);
    ck_assert_int_eq(stat(data_path(), &s), 0);
    ck_assert_int_gt(s.st_size, 2 * CASES * LARGE * LARGE * LARGE);
    open_cache(&o, "d", plain, 0);
    ck_assert_int_eq(o.found, CASES);
    assert_true_cases(&o);
    close_cache(&o);
    ck_assert_int_eq(count_found_cases("d", others), CASES);
}
END_TEST

START_TEST(a_full_disk_leaves_the_file_whole_and_the_run_goes_on)
{
    struct rlimit all, room;
    size_t size;
    opened o;

    write_cases("d");
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    free(take_bytes(&size));
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &all), 0);
    for (rlim_t limit = 4096; limit < size + 4096; limit += 4096) {
        pons_error err = PONS_ERROR_INIT;
        int held;
        unlink(data_path());
        open_data(&o, "d", plain);
        room = (struct rlimit){ limit, all.rlim_max };
        setrlimit(RLIMIT_FSIZE, &room);
        fill_cache(&o, 0, &err);
        setrlimit(RLIMIT_FSIZE, &all);
        ck_assert_msg(err.status == PONS_OK, "%s", err.text);
        held = maker_cases_held(o.held);
        ck_assert_int_eq(held < CASES, strstr(o.said, "warning") != NULL);
        assert_true_cases(&o);
        close_cache(&o);
        open_cache(&o, "d", plain, 0);
        ck_assert_msg(strstr(o.said, "warning") == NULL, "%s", o.said);
        ck_assert_int_eq(o.found, held);
        assert_true_cases(&o);
        close_cache(&o);
    }
}
END_TEST

/* ---- several processes, and the size limit --------------------------------------------------- */

START_TEST(each_case_is_made_once_for_all_processes_of_the_file)
{
    enum { PROCESSES = 4 };
    int made = 0, status;

    write_cases("d");
    for (int n = 0; n < PROCESSES; n++)
        start_filling(plain);
    for (int n = 0; n < PROCESSES; n++) {
        ck_assert_int_gt(wait(&status), 0);
        ck_assert(WIFEXITED(status));
        made += WEXITSTATUS(status);
    }
    ck_assert_int_eq(made, CASES);
    ck_assert_int_eq(count_found_cases("d", plain), CASES);
}
END_TEST

START_TEST(a_process_that_maps_the_file_keeps_its_cases_while_others_fill_it)
{
    opened o;
    int status;

    write_cases("d");
    write_cases("e");
    open_cache(&o, "d", plain, 0);
    for (int n = 0; n < CASES; n++) {
        pid_t child;
        write_sized_case("e", n, 80, image_value);
        child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            pons_error err = PONS_ERROR_INIT;
            opened more;
            /* a limit of one byte removes whatever may be removed */
            _exit(try_open(&more, n == 2 ? "d" : "e", others, 1, &err) == PONS_OK ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        assert_true_cases(&o);
    }
    close_cache(&o);
}
END_TEST

START_TEST(a_second_cache_of_a_process_leaves_the_file_alone)
{
    opened first, second;

    write_cases("d");
    open_cache(&first, "d", plain, 0);
    open_cache(&second, "d", plain, 0);
    ck_assert_int_eq(maker_cases_held(second.held), 0);
    ck_assert_ptr_nonnull(strstr(second.said, "this process has another cache in it"));
    assert_true_cases(&second);
    close_cache(&second);
    assert_true_cases(&first);
    close_cache(&first);
    ck_assert_int_eq(count_found_cases("d", plain), CASES);
}
END_TEST

START_TEST(the_least_recently_used_records_are_removed)
{
    int64_t size;
    opened o;

    write_cases("d");
    open_cache(&o, "d", plain, 0);
    size = cache_size(o.held);
    close_cache(&o);
    sleep(1); /* times of use have whole seconds */
    open_cache(&o, "d", others, size + 8192);
    ck_assert_int_eq(maker_cases_held(o.held), CASES);
    close_cache(&o);
    ck_assert_int_eq(count_found_cases("d", others), CASES);
    open_cache(&o, "d", plain, size / 2);
    ck_assert_int_eq(o.found, 0);
    ck_assert_int_lt(maker_cases_held(o.held), CASES);
    ck_assert_int_le(cache_size(o.held), size / 2);
    assert_true_cases(&o);
    close_cache(&o);
}
END_TEST

START_TEST(shared_file_systems_are_known_by_their_numbers)
{
    ck_assert_str_eq(file_system_shared(0x6969), "NFS");
    ck_assert_str_eq(file_system_shared((long)0xFF534D42), "CIFS");
    ck_assert_str_eq(file_system_shared((long)(int)0xFF534D42), "CIFS");
    ck_assert_ptr_null(file_system_shared(0xEF53));     /* ext4    */
    ck_assert_ptr_null(file_system_shared(0x01021994)); /* tmpfs   */
    ck_assert_ptr_null(file_system_shared(0x794C7630)); /* overlay */
    ck_assert_ptr_null(file_system_shared_at("/"));
}
END_TEST

int main(void)
{
    TCase *c;

    if (build_feature_missing("", "lmdb") != NULL)
        return suite_skip("check_lmdb_cache", "lmdb");
    c = suite_new("lmdb cache");
    tcase_add_checked_fixture(c, make_lmdb_root, remove_root);
    tcase_add_test(c, a_second_run_finds_the_cases_of_the_first);
    tcase_add_test(c, a_changed_file_or_step_is_never_stale);
    tcase_add_test(c, the_warning_of_a_case_in_the_file_is_repeated);
    tcase_add_loop_test(c, a_changed_byte_anywhere_is_survived, 0, 3);
    tcase_add_test(c, a_file_that_was_cut_is_made_again);
    tcase_add_test(c, lost_and_exchanged_pages_are_survived);
    tcase_add_test(c, a_damaged_file_is_kept_aside_with_one_warning);
    tcase_add_test(c, a_file_cut_while_it_is_used_is_an_error);
    tcase_add_test(c, what_is_no_file_is_left_alone);
    tcase_add_test(c, a_killed_filling_leaves_a_file_that_is_whole);
    tcase_add_test(c, the_file_grows_under_several_processes);
    tcase_add_test(c, a_full_disk_leaves_the_file_whole_and_the_run_goes_on);
    tcase_add_test(c, each_case_is_made_once_for_all_processes_of_the_file);
    tcase_add_test(c, a_process_that_maps_the_file_keeps_its_cases_while_others_fill_it);
    tcase_add_test(c, a_second_cache_of_a_process_leaves_the_file_alone);
    tcase_add_test(c, the_least_recently_used_records_are_removed);
    tcase_add_test(c, shared_file_systems_are_known_by_their_numbers);
    return suite_run();
}
