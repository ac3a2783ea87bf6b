/*
 * check_cache.c - the disk cache: the identity of a case, damage, a full disk, processes that want
 * the same case, the size limit, and mapped cases that equal preprocessed ones.
 */
#include "support/data/opened_cache.h"
#include "support/nifti_maker.h"
#include "support/suite.h"

#include "base/build_feature.h"
#include "data/cache/cache_disk.h"
#include "data/loader/loader.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* The n-th file of the cache with this ending, by name; NULL: there are no more. */
static const char *cache_file_path(int n, const char *ending)
{
    struct dirent **list;
    int count = scandir(maker_path("kept/deep"), &list, NULL, alphasort);
    const char *found = NULL;

    for (int i = 0; i < count; i++) {
        size_t size = strlen(list[i]->d_name), end = strlen(ending);
        if (size > end && strcmp(list[i]->d_name + size - end, ending) == 0 && n-- == 0)
            found = maker_path("kept/deep/%s", list[i]->d_name);
        free(list[i]);
    }
    free(list);
    return found;
}

static int count_cache_files(const char *ending)
{
    int count = 0;

    while (cache_file_path(count, ending) != NULL)
        count++;
    return count;
}

/* ---- identity of a case ---------------------------------------------------------------------- */

START_TEST(a_second_opening_maps_the_cases_of_the_first)
{
    opened first, second;

    write_cases("d");
    open_cache(&first, "d", plain, 0);
    ck_assert_int_eq(first.found, 0);
    ck_assert_int_eq(count_cache_files(".case"), CASES);
    assert_true_cases(&first);
    open_cache(&second, "d", plain, 0);
    ck_assert_int_eq(second.found, CASES);
    assert_true_cases(&second);
    close_cache(&first);
    assert_true_cases(&second);
    close_cache(&second);
}
END_TEST

START_TEST(the_cache_key_holds_content_and_options_not_names_or_times)
{
    struct timespec times[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
    char same[512], *image = strdup(maker_path("d/case1_image.nii"));

    write_cases("d");
    write_cases("copy");
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    ck_assert_int_eq(count_found_cases("copy", plain), CASES);
    snprintf(same, sizeof same, "%s", "[preprocess]\nsteps = scale_range\n"
             "[preprocess.scale_range]\nfrom = 0.0 4e3\nclip = no\n");
    ck_assert_int_eq(count_found_cases("d", same), CASES);
    ck_assert_int_eq(count_found_cases("d", "[preprocess]\nsteps = scale_range\n"
                                       "[preprocess.scale_range]\nfrom = 0 4001\n"), 0);
    ck_assert_int_eq(count_found_cases("d", "[preprocess]\nsteps = scale_range orient\n"
                                       "[preprocess.scale_range]\nfrom = 0 4000\n"), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, image, times, 0), 0);
    ck_assert_int_eq(count_found_cases("d", plain), CASES);
    write_case("d", 1, other_value); /* one voxel differs, the size is the same */
    ck_assert_int_eq(utimensat(AT_FDCWD, image, times, 0), 0);
    ck_assert_int_eq(count_found_cases("d", plain), CASES - 1);
    free(image);
}
END_TEST

static hash128 content_hash_of(const opened *o, cache_mode mode, int rank)
{
    const cache_settings s = { .mode = mode, .threads = 2, .folder = maker_path("kept/deep"),
                               .sampling = SAMPLING_UNIFORM };
    pons_error err = PONS_ERROR_INIT;
    hash128 source;
    cache *held;

    ck_assert_int_eq(cache_open(o->data, o->chain, CASES, o->data->training, &s, NULL, &held, &err),
                     PONS_OK);
    source = cache_case_hash(held, rank);
    cache_close(held);
    return source;
}

START_TEST(the_content_hash_is_known_in_every_cache_mode)
{
    static const cache_mode modes[] = { CACHE_NONE, CACHE_MEMORY, CACHE_DISK, CACHE_DISK };
    hash128 unknown = { 0 }, before, other;
    opened o;

    write_cases("d");
    open_data(&o, "d", plain);
    before = content_hash_of(&o, CACHE_NONE, 1);
    other = content_hash_of(&o, CACHE_NONE, 2);
    ck_assert_mem_ne(&before, &unknown, sizeof before);
    ck_assert_mem_ne(&before, &other, sizeof before);
    for (int changed = 0; changed < 2; changed++) {
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
            hash128 now = content_hash_of(&o, modes[i], 1), same = content_hash_of(&o, modes[i], 2);
            ck_assert_int_eq(memcmp(&now, &before, sizeof now) != 0, changed);
            ck_assert_mem_eq(&same, &other, sizeof same);
        }
        write_case("d", 1, other_value);
    }
    close_cache(&o);
}
END_TEST

static pons_status open_classification(const opened *o, int read_first, cache **out,
                                       pons_error *err)
{
    const cache_settings s = { .mode = CACHE_NONE, .threads = 2, .sampling = SAMPLING_UNIFORM,
                               .read_first = read_first };

    return cache_open(o->data, o->chain, CASES, o->data->training, &s, NULL, out, err);
}

START_TEST(of_a_classification_some_cases_are_read_at_the_start)
{
    static const hash128 unknown;
    pons_error err = PONS_ERROR_INIT, damaged = PONS_ERROR_INIT, all = PONS_ERROR_INIT;
    pons_case one;
    hash128 hash[CASES];
    cache *held;
    opened o;

    write_cases("d");
    open_data(&o, "d", plain);
    o.data->target = TARGET_OF_CASE;
    maker_write(maker_path("d/case1_image.nii"), "damaged", 7);
    ck_assert_int_eq(open_classification(&o, 2, &held, &err), PONS_OK);
    for (int i = 0; i < CASES; i++) {
        hash[i] = cache_case_hash(held, i);
        ck_assert_int_eq(memcmp(&hash[i], &unknown, sizeof unknown) != 0, i % 2 == 0);
    }
    ck_assert_int_eq(cache_read(held, 1, &one, &damaged), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(damaged.text, "case1_image.nii"));
    cache_close(held);
    ck_assert_int_eq(open_classification(&o, 0, &held, &all), PONS_DATA);
    o.data->target = TARGET_OF_VOXELS;
    close_cache(&o);
}
END_TEST

START_TEST(the_warning_of_a_cached_case_is_repeated)
{
    assert_warnings_are_repeated();
}
END_TEST

/* Fill the cache for draws of centres of these kinds; 'said' receives the warnings. */
static void fill_centres(opened *o, cache_mode mode, double above, bool foreground,
                         bool background)
{
    const cache_settings s = { .mode = mode, .threads = 2, .folder = maker_path("kept/deep"),
                               .sampling = SAMPLING_BALANCED, .background_above = above,
                               .centres = { foreground, background } };
    pons_error err = PONS_ERROR_INIT;
    FILE *stream;
    logger l = { .level = LOG_NORMAL };

    memset(o->said, 0, sizeof o->said);
    l.terminal = stream = fmemopen(o->said, sizeof o->said - 1, "w");
    ck_assert_int_eq(cache_open(o->data, o->chain, CASES, (int[]){ 0, 1, 2 }, &s, &l, &o->held,
                                &err), PONS_OK);
    fclose(stream);
    cache_close(o->held);
    o->held = NULL;
}

static int times_said(const opened *o, const char *phrase)
{
    int count = 0;

    for (const char *at = o->said; (at = strstr(at, phrase)) != NULL; at++)
        count++;
    return count;
}

static double no_label(int64_t i, int64_t j, int64_t k)
{
    return (void)i, (void)j, (void)k, 0;
}

START_TEST(a_training_case_without_patch_centres_warns_once)
{
    static const cache_mode modes[] = { CACHE_NONE, CACHE_MEMORY, CACHE_DISK, CACHE_DISK };
    static const char bare[] = "case 'case1' has no foreground: its patches are centred on "
                               "background alone\n";
    static const char full[] = "case 'case0' has no background above 7: its patches are centred "
                               "on foreground alone\n";
    opened o;

    write_cases("d");
    maker_volume("d/case1_label.nii", SIDE, SIDE + 1, SIDE, no_label, 0, 2);
    open_data(&o, "d", plain);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        fill_centres(&o, modes[i], 0.1, true, true);
        ck_assert_msg(times_said(&o, "warning") == 1 && times_said(&o, bare) == 1, "%s", o.said);
        fill_centres(&o, modes[i], 0.1, false, true);
        ck_assert_int_eq(times_said(&o, "warning"), 0);
        fill_centres(&o, modes[i], 7, true, true); /* case 1 has neither set and is refused later */
        ck_assert_msg(times_said(&o, "warning") == 2 && times_said(&o, full) == 1, "%s", o.said);
        fill_centres(&o, modes[i], 7, true, false);
        ck_assert_int_eq(times_said(&o, "warning"), 0);
    }
    o.data->training_count = 1; /* the validation cases are never sampled */
    fill_centres(&o, CACHE_NONE, 0.1, true, true);
    ck_assert_int_eq(times_said(&o, "warning"), 0);
    close_cache(&o);
}
END_TEST

START_TEST(a_damaged_source_of_a_cached_case_is_refused)
{
    pons_error err = PONS_ERROR_INIT;
    opened o;

    write_cases("d");
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    ck_assert_int_eq(truncate(maker_path("d/case2_image.nii"), 1000), 0);
    ck_assert_int_eq(try_open(&o, "d", plain, 0, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "case2_image.nii"));
    close_cache(&o);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

static char *take_bytes(const char *path, size_t *size)
{
    pons_error err = PONS_ERROR_INIT;
    char *bytes;

    ck_assert_int_eq(file_read(path, 1 << 24, &bytes, size, PONS_DATA, &err), PONS_OK);
    return bytes;
}

static void put_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static void assert_damaged(const char *path, const char *key)
{
    pons_error err = PONS_ERROR_INIT;
    packed_case p;
    const char *note;

    ck_assert_int_eq(packed_case_file_map(path, key, &p, &note, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, path));
}

START_TEST(every_flipped_bit_and_every_cut_is_found)
{
    char key[CASE_KEY_SIZE] = { 0 }, path[512], *bytes;
    pons_error err = PONS_ERROR_INIT;
    packed_case p;
    const char *note;
    size_t size;

    write_cases("d");
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    strcpy(path, cache_file_path(0, ".case"));
    memcpy(key, strrchr(path, '/') + 1, CASE_KEY_SIZE - 1);
    bytes = take_bytes(path, &size);
    ck_assert_int_eq(packed_case_file_map(path, key, &p, &note, &err), PONS_OK);
    packed_case_clear(&p);
    for (size_t at = 0; at < size; at += at < 1024 ? 1 : 61) {
        bytes[at] ^= (char)(1 << at % 8);
        put_bytes(path, bytes, size);
        assert_damaged(path, key);
        bytes[at] ^= (char)(1 << at % 8);
    }
    for (size_t cut = 0; cut < size; cut += cut < 1024 ? 7 : 509) {
        put_bytes(path, bytes, cut);
        assert_damaged(path, key);
    }
    put_bytes(path, bytes, size);
    key[3] = key[3] == 'a' ? 'b' : 'a';
    assert_damaged(path, key);
    free(bytes);
}
END_TEST

START_TEST(a_damaged_cache_file_is_replaced_with_a_warning)
{
    opened o;
    char path[512];

    write_cases("d");
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    strcpy(path, cache_file_path(1, ".case"));
    ck_assert_int_eq(truncate(path, 5000), 0);
    open_cache(&o, "d", plain, 0);
    ck_assert_int_eq(o.found, CASES - 1);
    ck_assert_ptr_nonnull(strstr(o.said, "is preprocessed again"));
    ck_assert_ptr_nonnull(strstr(o.said, "its length is not what it was"));
    assert_true_cases(&o);
    close_cache(&o);
    open_cache(&o, "d", plain, 0);
    ck_assert_int_eq(o.found, CASES);
    ck_assert_ptr_null(strstr(o.said, "is preprocessed again"));
    close_cache(&o);
}
END_TEST

/* The fourth word of a case file is its version. */
START_TEST(a_cache_file_of_an_earlier_version_is_replaced)
{
    const uint32_t version = 1;
    char path[512], *bytes;
    opened o;
    size_t size;

    write_cases("d");
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    strcpy(path, cache_file_path(1, ".case"));
    bytes = take_bytes(path, &size);
    memcpy(bytes + 12, &version, sizeof version);
    put_bytes(path, bytes, size);
    free(bytes);
    open_cache(&o, "d", plain, 0);
    ck_assert_int_eq(o.found, CASES - 1);
    ck_assert_ptr_nonnull(strstr(o.said, "another version of pons has written it"));
    assert_true_cases(&o);
    close_cache(&o);
    ck_assert_int_eq(count_found_cases("d", plain), CASES);
}
END_TEST

/* ---- a full disk ----------------------------------------------------------------------------- */

START_TEST(a_full_disk_leaves_no_partial_file_and_the_run_goes_on)
{
    struct rlimit all, room;
    size_t size;
    opened o;

    write_cases("d");
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    free(take_bytes(cache_file_path(0, ".case"), &size));
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &all), 0);
    for (rlim_t limit = 1024; limit < size; limit += 4096) {
        pons_error err = PONS_ERROR_INIT;
        unlink(cache_file_path(0, ".case"));
        open_data(&o, "d", plain);
        room = (struct rlimit){ limit, all.rlim_max };
        setrlimit(RLIMIT_FSIZE, &room);
        fill_cache(&o, 0, &err);
        setrlimit(RLIMIT_FSIZE, &all);
        ck_assert_msg(err.status == PONS_OK, "%s", err.text);
        ck_assert_int_eq(maker_cases_held(o.held), CASES - 1);
        ck_assert_ptr_nonnull(strstr(o.said, "cannot be kept, and is read each time"));
        ck_assert_ptr_nonnull(strstr(o.said, "File too large"));
        ck_assert_int_eq(count_cache_files(".case"), CASES - 1);
        ck_assert_int_eq(count_cache_files("-0"), 0);
        assert_true_cases(&o);
        close_cache(&o);
        ck_assert_int_eq(count_found_cases("d", plain), CASES - 1);
    }
}
END_TEST

START_TEST(a_folder_that_cannot_be_made_is_named)
{
    pons_error err = PONS_ERROR_INIT;
    opened o;

    write_cases("d");
    maker_text("kept", "a file in the way");
    ck_assert_int_eq(try_open(&o, "d", plain, 0, &err), PONS_FAILURE);
    ck_assert_ptr_nonnull(strstr(err.text, maker_path("kept")));
    close_cache(&o);
}
END_TEST

/* ---- several processes, and the size limit --------------------------------------------------- */

START_TEST(each_case_is_made_once_for_all_processes)
{
    enum { PROCESSES = 4 };
    int made = 0;

    write_cases("d");
    for (int n = 0; n < PROCESSES; n++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            pons_error err = PONS_ERROR_INIT;
            opened o;
            int failed = try_open(&o, "d", plain, 0, &err) != PONS_OK;
            _exit(failed ? 100 : CASES - o.found);
        }
    }
    for (int n = 0; n < PROCESSES; n++) {
        int status;
        ck_assert_int_gt(wait(&status), 0);
        ck_assert(WIFEXITED(status));
        ck_assert_int_le(WEXITSTATUS(status), CASES);
        made += WEXITSTATUS(status);
    }
    ck_assert_int_eq(made, CASES);
    ck_assert_int_eq(count_found_cases("d", plain), CASES);
}
END_TEST

START_TEST(a_held_lock_blocks_its_own_key_only)
{
    char key[CASE_KEY_SIZE], other[CASE_KEY_SIZE];
    pons_error err = PONS_ERROR_INIT;
    cache_disk c;

    memset(key, 'a', sizeof key - 1);
    memset(other, 'b', sizeof other - 1);
    key[64] = other[64] = '\0';
    ck_assert_int_eq(cache_disk_open(&c, maker_path("kept/deep"), &err), PONS_OK);
    int held = cache_disk_lock(&c, key);
    ck_assert_int_ge(held, 0);
    pid_t child = fork();
    if (child == 0) {
        int free_one = cache_disk_lock(&c, other);
        signal(SIGALRM, SIG_DFL);
        alarm(1);
        _exit(free_one >= 0 && cache_disk_lock(&c, key) >= 0 ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    cache_disk_unlock(held);
    held = cache_disk_lock(&c, key);
    ck_assert_int_ge(held, 0);
    cache_disk_unlock(held);
    cache_disk_close(&c);
}
END_TEST

START_TEST(the_least_recently_used_cache_files_are_removed)
{
    static const char others[] = "[preprocess]\nsteps = scale_range\n"
                                 "[preprocess.scale_range]\nfrom = 0 100\n";
    struct timespec times[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
    int64_t size;
    opened o;

    write_cases("d");
    open_cache(&o, "d", plain, 0);
    size = cache_size(o.held);
    close_cache(&o);
    for (int n = 0; n < CASES; n++)
        ck_assert_int_eq(utimensat(AT_FDCWD, cache_file_path(n, ".case"), times, 0), 0);
    open_cache(&o, "d", others, size + 8192);
    ck_assert_int_eq(maker_cases_held(o.held), CASES);
    ck_assert_int_eq(count_cache_files(".case"), CASES);
    close_cache(&o);
    ck_assert_int_eq(count_found_cases("d", others), CASES);
    open_cache(&o, "d", plain, size / 2);
    ck_assert_int_lt(maker_cases_held(o.held), CASES);
    ck_assert_int_le(cache_size(o.held), size / 2);
    assert_true_cases(&o);
    close_cache(&o);
}
END_TEST

/* ---- two kinds ------------------------------------------------------------------------------- */

/* Memory has room for one case; the other two are files, or records of one. */
START_TEST(cases_beyond_the_limit_of_memory_go_to_files)
{
    static const cache_mode modes[] = { CACHE_DISK, CACHE_LMDB };
    char phrase[256];
    opened o;

    if (!suite_has("cases_beyond_the_limit_of_memory_go_to_files", modes[_i] != CACHE_LMDB
                   || build_feature_missing("", "lmdb") == NULL, "lmdb"))
        return;
    write_cases("d");
    opened_mode = CACHE_MEMORY;
    opened_next_mode = modes[_i];
    snprintf(phrase, sizeof phrase, "cache: 3 of 3 cases, 1 of them in memory and 2 in %s",
             maker_path("kept/deep"));
    for (int time = 0; time < 2; time++) {
        int mapped = 0;
        open_cache(&o, "d", plain, 6 * SIDE * SIDE * (SIDE + CASES));
        ck_assert_msg(strstr(o.said, phrase) != NULL, "%s", o.said);
        for (int n = 0; n < CASES; n++)
            mapped += cache_packed(o.held, n)->mapping != NULL;
        ck_assert_int_eq(mapped, CASES - 1);
        assert_true_cases(&o);
        close_cache(&o);
    }
    opened_mode = modes[_i];
    opened_next_mode = CACHE_NONE;
    ck_assert_int_eq(count_found_cases("d", plain) >= CASES - 1, 1);
}
END_TEST

/* ---- cases that are kept --------------------------------------------------------------------- */

START_TEST(the_next_cache_in_memory_has_the_cases_of_the_last)
{
    static const char warns[] = "[preprocess]\nsteps = crop_foreground\n"
                                "[preprocess.crop_foreground]\nabove = 1e6\n";
    opened o;

    write_cases("d");
    opened_mode = CACHE_MEMORY;
    opened_keep = cache_keep_new();
    ck_assert_int_eq(count_found_cases("d", plain), 0);
    ck_assert_int_eq(count_found_cases("d", plain), CASES);
    ck_assert_int_eq(count_found_cases("d", warns), 0);
    write_case("d", 1, other_value); /* one voxel differs */
    open_cache(&o, "d", plain, 0);
    ck_assert_int_eq(o.found, CASES - 1);
    assert_true_cases(&o);
    close_cache(&o);
    open_cache(&o, "d", plain, 6 * SIDE * SIDE * (SIDE + CASES)); /* capacity of one case */
    ck_assert_int_eq(maker_cases_held(o.held), 1);
    assert_true_cases(&o);
    close_cache(&o);
    open_cache(&o, "d", warns, 0);
    ck_assert_int_eq(o.found, CASES - 1);
    ck_assert_ptr_nonnull(strstr(o.said, "case 'case0': crop_foreground found no voxel"));
    assert_true_cases(&o);
    close_cache(&o);
    cache_keep_free(opened_keep);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("cache");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, a_second_opening_maps_the_cases_of_the_first);
    tcase_add_test(c, the_cache_key_holds_content_and_options_not_names_or_times);
    tcase_add_test(c, the_content_hash_is_known_in_every_cache_mode);
    tcase_add_test(c, of_a_classification_some_cases_are_read_at_the_start);
    tcase_add_test(c, the_warning_of_a_cached_case_is_repeated);
    tcase_add_test(c, a_training_case_without_patch_centres_warns_once);
    tcase_add_test(c, a_damaged_source_of_a_cached_case_is_refused);
    tcase_add_test(c, every_flipped_bit_and_every_cut_is_found);
    tcase_add_test(c, a_damaged_cache_file_is_replaced_with_a_warning);
    tcase_add_test(c, a_cache_file_of_an_earlier_version_is_replaced);
    tcase_add_test(c, a_full_disk_leaves_no_partial_file_and_the_run_goes_on);
    tcase_add_test(c, a_folder_that_cannot_be_made_is_named);
    tcase_add_test(c, each_case_is_made_once_for_all_processes);
    tcase_add_test(c, a_held_lock_blocks_its_own_key_only);
    tcase_add_test(c, the_least_recently_used_cache_files_are_removed);
    tcase_add_test(c, the_next_cache_in_memory_has_the_cases_of_the_last);
    tcase_add_loop_test(c, cases_beyond_the_limit_of_memory_go_to_files, 0, 2);
    return suite_run();
}
