/*
 * check_checkpoint.c - after a kill at any moment or damage to any byte, an older valid checkpoint
 * is found.
 */
#include <config.h>

#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "checkpoint/checkpoint.h"

#include "support/root.h"
#include "support/soak.h"
#include "support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Write a checkpoint whose elements all equal its step. */
static pons_status write_step(int64_t step, int numbers, pons_error *err)
{
    float *data = malloc((size_t)numbers * sizeof *data);
    for (int i = 0; i < numbers; i++)
        data[i] = (float)step;
    const safetensor item = { .name = "w", .type = SAFETENSORS_F32, .rank = 1,
                              .extent = { numbers }, .data = data };
    const checkpoint_file files[] = {
        { "model.safetensors", { .count = 1, .item = &item } },
        { "optimizer.safetensors", { .count = 1, .item = &item } }
    };
    const checkpoint_list content = { .file_count = 2, .file = files };
    pons_status status = checkpoint_write(root, step, &content, err);
    free(data);
    return status;
}

/* The step that both files of the newest valid checkpoint hold; -1: there is none. */
static int64_t newest_step(void)
{
    static const char *const names[] = { "model.safetensors", "optimizer.safetensors" };
    pons_error err = PONS_ERROR_INIT;
    char *path = NULL, file_path[256];
    int64_t step = -1;

    ck_assert_msg(checkpoint_newest(root, NULL, &path, &err) == PONS_OK, "%s", err.text);
    if (path == NULL)
        return -1;
    for (int f = 0; f < 2; f++) {
        safetensors *file = NULL;
        snprintf(file_path, sizeof file_path, "%s/%s", path, names[f]);
        ck_assert_msg(safetensors_open(file_path, &file, &err) == PONS_OK, "%s", err.text);
        const safetensor *t = safetensors_find(file, "w");
        const float *data = t->data;
        ck_assert(step < 0 || step == (int64_t)data[0]);
        step = (int64_t)data[0];
        for (int64_t i = 0; i < t->count; i++)
            ck_assert_int_eq((int)data[i], (int)step);
        safetensors_close(file);
    }
    free(path);
    return step;
}

static int names_in_root(void)
{
    char command[160], text[16] = "";

    snprintf(command, sizeof command, "ls %s | grep -c .", root);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(fgets(text, sizeof text, pipe));
    pclose(pipe);
    return atoi(text);
}

START_TEST(killed_writers_leave_a_valid_checkpoint)
{
    int64_t before = 0;
    pons_error err = PONS_ERROR_INIT;
    unsigned state = 12345;
    double slowness = 1; /* time of a writer relative to an idle machine */

    ck_assert_int_eq(write_step(0, 1000, &err), PONS_OK);
    for (int round = 0; round < 100; round++) {
        pid_t child = fork();
        if (child == 0) {
            for (int64_t step = before + 1;; step++) {
                pons_error problem = PONS_ERROR_INIT;
                if (write_step(step, 20000, &problem) != PONS_OK
                    || checkpoint_mark(root, "last", step, &problem) != PONS_OK
                    || checkpoint_prune(root, 2, &problem) != PONS_OK)
                    _exit(1);
            }
        }
        state = state * 1664525u + 1013904223u;
        usleep((useconds_t)(slowness * (1000 + (state >> 16) % 12000)));
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        ck_assert_msg(WIFSIGNALED(status), "the writer failed by itself");
        int64_t found = newest_step();
        ck_assert_msg(found >= before, "step %lld after %lld", (long long)found, (long long)before);
        slowness *= found > before ? 1 : 1.05;
        before = found;
    }
    ck_assert_msg(before > 0, "no writer ever finished one");
    ck_assert_int_eq(checkpoint_prune(root, 2, &err), PONS_OK);
    ck_assert_int_le(names_in_root(), 4); /* two checkpoints, the marked one and 'last' */
}
END_TEST

static void flip_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");

    ck_assert_ptr_nonnull(file);
    fseek(file, at, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 0x10, file);
    fclose(file);
}

START_TEST(every_damaged_byte_is_found)
{
    static const char *const names[] = { "manifest.json", "model.safetensors" };
    pons_error err = PONS_ERROR_INIT;
    char folder[128], path[256];
    struct stat facts;

    ck_assert_int_eq(write_step(7, 10, &err), PONS_OK);
    snprintf(folder, sizeof folder, "%s/step-00000007", root);
    for (int f = 0; f < 2; f++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[f]);
        ck_assert_int_eq(stat(path, &facts), 0);
        for (long i = 0; i < (long)facts.st_size; i++) {
            pons_error problem = PONS_ERROR_INIT;
            flip_byte(path, i);
            ck_assert_msg(checkpoint_verify(folder, &problem) == PONS_DATA, "byte %ld of %s", i,
                          names[f]);
            flip_byte(path, i);
        }
    }
    ck_assert_int_eq(checkpoint_verify(folder, &err), PONS_OK);
}
END_TEST

/* ---- random damage --------------------------------------------------------------------------- */

static unsigned random_state = 4711;

static size_t random_below(size_t limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 4) % limit;
}

static void put_bytes(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* Flip a bit, cut the end off or exchange two pieces; return the remaining size. */
static size_t damage_bytes(char *bytes, size_t size)
{
    size_t length = 1 + random_below(16), a, b;

    switch (random_below(3)) {
    case 0:
        bytes[random_below(size)] ^= (char)(1 << random_below(8));
        return size;
    case 1:
        return random_below(size);
    default:
        a = random_below(size - 2 * length);
        b = a + length + random_below(size - a - 2 * length + 1);
        for (size_t i = 0; i < length; i++) {
            char byte = bytes[a + i];
            bytes[a + i] = bytes[b + i];
            bytes[b + i] = byte;
        }
        return size;
    }
}

/* Put the damaged file's size and hash into the manifest, and seal the manifest again. */
static void update_manifest_hashes(char *manifest, const char *name, const char *path, size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    char hex[65], rest[2048], *entry = strstr(manifest, name), *seal;
    sha256 hash;

    ck_assert_int_eq(sha256_file(path, hex, &err), PONS_OK);
    entry = strstr(entry, "{\"size\":");
    strcpy(rest, strchr(entry, '}'));
    sprintf(entry, "{\"size\":%zu,\"sha256\":\"%s\"%s", size, hex, rest);
    seal = strrchr(manifest, ',');
    sha256_init(&hash);
    sha256_add(&hash, manifest, (size_t)(seal - manifest));
    sha256_finish(&hash, hex);
    sprintf(seal, ",\"sha256\":\"%s\"}\n", hex);
}

/* A damaged file with a valid hash opens as a whole file or is refused; it never ends a process. */
static void open_damaged(const char *path)
{
    pons_error err = PONS_ERROR_INIT;
    safetensors *file = NULL;

    if (safetensors_open(path, &file, &err) == PONS_OK) {
        for (int i = 0; i < safetensors_count(file); i++) {
            const safetensor *t = safetensors_item(file, i);
            double *values = malloc((size_t)(t->count + 1) * sizeof *values);
            safetensor_doubles(t, values);
            free(values);
        }
        safetensors_close(file);
        return;
    }
    ck_assert_int_eq(err.status, PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "model.safetensors"));
}

START_TEST(random_damage_is_found_and_valid_hashes_do_not_crash)
{
    static const char *const names[] = { "model.safetensors", "manifest.json" };
    pons_error err = PONS_ERROR_INIT;
    char folder[128], path[2][256], *good[2] = { NULL };
    size_t size[2];
    int honest = 0;

    ck_assert_int_eq(write_step(7, 40, &err), PONS_OK);
    snprintf(folder, sizeof folder, "%s/step-00000007", root);
    for (int f = 0; f < 2; f++) {
        snprintf(path[f], sizeof path[f], "%s/%s", folder, names[f]);
        ck_assert_int_eq(file_read(path[f], 1 << 20, &good[f], &size[f], PONS_DATA, &err), PONS_OK);
    }
    for (int round = 0; round < soak_times(2000, 100000); round++) {
        pons_error problem = PONS_ERROR_INIT;
        int f = round % 10 == 0 ? 0 : (int)random_below(2);
        char bytes[4096], manifest[4096];
        memcpy(bytes, good[f], size[f]);
        memcpy(manifest, good[1], size[1] + 1);
        size_t left = damage_bytes(bytes, size[f]);
        bool same = left == size[f] && memcmp(bytes, good[f], left) == 0;
        put_bytes(path[f], bytes, left);
        if (round % 10 == 0) {
            update_manifest_hashes(manifest, names[0], path[0], left);
            put_bytes(path[1], manifest, strlen(manifest));
            ck_assert_msg(checkpoint_verify(folder, &problem) == PONS_OK, "%s", problem.text);
            open_damaged(path[0]);
            honest++;
        } else {
            ck_assert_msg((checkpoint_verify(folder, &problem) == PONS_OK) == same,
                          "round %d of %s: %s", round, names[f], problem.text);
        }
        for (int k = 0; k < 2; k++)
            put_bytes(path[k], good[k], size[k]);
    }
    ck_assert_int_gt(honest, 100);
    free(good[0]);
    free(good[1]);
}
END_TEST

START_TEST(a_damaged_checkpoint_gives_way_to_an_older_one_with_a_warning)
{
    pons_error err = PONS_ERROR_INIT;
    char path[256], text[512] = "", *found = NULL;
    FILE *lines = tmpfile();
    logger l = { .terminal = lines, .level = LOG_NORMAL };

    ck_assert_int_eq(write_step(10, 10, &err), PONS_OK);
    ck_assert_int_eq(write_step(20, 10, &err), PONS_OK);
    ck_assert_int_eq(checkpoint_mark(root, "best", 20, &err), PONS_OK);
    snprintf(path, sizeof path, "%s/step-00000020/optimizer.safetensors", root);
    ck_assert_int_eq(truncate(path, 50), 0);
    ck_assert_int_eq(checkpoint_newest(root, &l, &found, &err), PONS_OK);
    ck_assert_ptr_nonnull(strstr(found, "step-00000010"));
    free(found);
    rewind(lines);
    ck_assert_ptr_nonnull(fgets(text, sizeof text, lines));
    ck_assert_ptr_nonnull(strstr(text, "optimizer.safetensors"));
    ck_assert_ptr_nonnull(strstr(text, "50 bytes"));
    ck_assert_ptr_nonnull(strstr(text, "trying another checkpoint"));
    ck_assert_int_eq(checkpoint_any(root, "best", NULL, &found, &err), PONS_OK);
    ck_assert_ptr_nonnull(strstr(found, "step-00000010"));
    free(found);
    /* The damaged folder is replaced when its step is written again. */
    ck_assert_int_eq(write_step(20, 10, &err), PONS_OK);
    ck_assert_int_eq(newest_step(), 20);
    unlink(path);
    snprintf(path, sizeof path, "%s/step-00000010/manifest.json", root);
    unlink(path);
    ck_assert_int_eq(checkpoint_newest(root, NULL, &found, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "all 2 checkpoints"));
    fclose(lines);
}
END_TEST

/* All warnings that are printed while 'best' is looked up. */
static const char *warnings_of(pons_status expected)
{
    static char text[2048];
    pons_error err = PONS_ERROR_INIT;
    char *found = NULL;
    FILE *lines = fmemopen(text, sizeof text, "w");
    logger l = { .terminal = lines, .level = LOG_NORMAL };

    ck_assert_int_eq(checkpoint_any(root, "best", &l, &found, &err), expected);
    fclose(lines);
    free(found);
    return text;
}

static int count_phrase(const char *text, const char *phrase)
{
    int count = 0;

    for (; (text = strstr(text, phrase)) != NULL; text++)
        count++;
    return count;
}

START_TEST(each_damaged_checkpoint_is_named_once)
{
    pons_error err = PONS_ERROR_INIT;
    char path[256];

    for (int step = 10; step <= 30; step += 10) {
        ck_assert_int_eq(write_step(step, 10, &err), PONS_OK);
        snprintf(path, sizeof path, "%s/step-%08d/manifest.json", root, step);
        ck_assert_int_eq(truncate(path, 5), 0);
    }
    ck_assert_int_eq(checkpoint_mark(root, "best", 20, &err), PONS_OK);
    const char *text = warnings_of(PONS_DATA);
    ck_assert_int_eq(count_phrase(text, "warning: "), 3);
    ck_assert_int_eq(count_phrase(text, "step-00000020"), 1);
    ck_assert_int_eq(count_phrase(text, "trying another"), 2);
    ck_assert(strstr(text, "step-00000020") < strstr(text, "step-00000030"));
    ck_assert_int_eq(write_step(10, 10, &err), PONS_OK);
    ck_assert_int_eq(count_phrase(warnings_of(PONS_OK), "warning: "), 2);
}
END_TEST

START_TEST(pruning_keeps_the_newest_and_the_marked_checkpoints)
{
    pons_error err = PONS_ERROR_INIT;
    char path[256];

    for (int64_t step = 1; step <= 6; step++)
        ck_assert_int_eq(write_step(step, 10, &err), PONS_OK);
    ck_assert_int_eq(checkpoint_mark(root, "best", 2, &err), PONS_OK);
    ck_assert_int_eq(checkpoint_mark(root, "last", 6, &err), PONS_OK);
    snprintf(path, sizeof path, "mkdir %s/step-00000009.123.part", root);
    ck_assert_int_eq(system(path), 0);
    ck_assert_int_eq(checkpoint_prune(root, 2, &err), PONS_OK);
    ck_assert_int_eq(names_in_root(), 5); /* 2, 5, 6, best, last */
    for (int64_t step = 1; step <= 6; step++) {
        snprintf(path, sizeof path, "%s/step-%08d", root, (int)step);
        ck_assert_int_eq(access(path, F_OK) == 0, step == 2 || step > 4);
    }
}
END_TEST

START_TEST(pruning_ignores_checkpoints_under_foreign_names)
{
    pons_error err = PONS_ERROR_INIT;
    int before;

    for (int64_t step = 1; step <= 9; step++)
        ck_assert_int_eq(write_step(step, 10, &err), PONS_OK);
    ck_assert_int_eq(rename(in_root("step-00000004"), in_root("mine")), 0);
    ck_assert_int_eq(rename(in_root("step-00000009"), in_root("step-00000011")), 0);
    ck_assert_int_eq(rename(in_root("step-00000003"), in_root("step-00000004")), 0);
    ck_assert_int_eq(unlink(in_root("step-00000008/manifest.json")), 0);
    ck_assert_int_eq(unlink(in_root("step-00000005/manifest.json")), 0);
    before = names_in_root();
    ck_assert_int_eq(checkpoint_prune(root, 2, &err), PONS_OK);
    ck_assert_int_eq(before - names_in_root(), 3); /* steps 1, 2 and the damaged 5 */
    ck_assert_int_eq(access(in_root("step-00000004"), F_OK), 0);
    ck_assert_int_eq(access(in_root("step-00000006"), F_OK), 0);
    ck_assert_int_eq(newest_step(), 7);
}
END_TEST

START_TEST(a_folder_with_an_inexact_name_is_no_checkpoint)
{
    static const char *const names[] = {
        "step-1", "step-0", "step- 5", "step-+7", "step--0000001", "step-000000041",
        "step-99999999999999999999", "step-00000009x", "step-mine.part", "step-00000001.x.part"
    };
    enum { COUNT = sizeof names / sizeof *names };
    pons_error err = PONS_ERROR_INIT;

    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(mkdir(in_root(names[i]), 0777), 0);
    ck_assert_int_eq(newest_step(), -1);
    for (int64_t step = 1; step <= 3; step++)
        ck_assert_int_eq(write_step(step, 10, &err), PONS_OK);
    ck_assert_int_eq(checkpoint_prune(root, 1, &err), PONS_OK);
    ck_assert_int_eq(newest_step(), 3);
    ck_assert_int_eq(names_in_root(), COUNT + 1);
}
END_TEST

START_TEST(a_checkpoint_under_another_steps_name_is_damaged)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(write_step(10, 10, &err), PONS_OK);
    ck_assert_int_eq(write_step(20, 10, &err), PONS_OK);
    ck_assert_int_eq(rename(in_root("step-00000020"), in_root("step-00000099")), 0);
    ck_assert_int_eq(newest_step(), 10);
    ck_assert_int_eq(checkpoint_verify(in_root("step-00000099//"), &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "holds step 20"));
    err = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(rename(in_root("step-00000099"), in_root("my best one")), 0);
    ck_assert_int_eq(checkpoint_verify(in_root("my best one"), &err), PONS_OK);
}
END_TEST

START_TEST(only_a_valid_marked_checkpoint_is_returned)
{
    pons_error err = PONS_ERROR_INIT;
    char *found = NULL;

    ck_assert_int_eq(checkpoint_marked(root, "best", &found, &err), PONS_OK);
    ck_assert_ptr_null(found);
    for (int64_t step = 10; step <= 30; step += 10)
        ck_assert_int_eq(write_step(step, 10, &err), PONS_OK);
    ck_assert_int_eq(checkpoint_marked(root, "best", &found, &err), PONS_OK);
    ck_assert_str_eq(found, in_root("step-00000030"));
    free(found);
    ck_assert_int_eq(checkpoint_mark(root, "best", 20, &err), PONS_OK);
    ck_assert_int_eq(checkpoint_marked(root, "best", &found, &err), PONS_OK);
    ck_assert_str_eq(found, in_root("step-00000020"));
    free(found);
    ck_assert_int_eq(truncate(in_root("step-00000020/model.safetensors"), 5), 0);
    ck_assert_int_eq(checkpoint_marked(root, "best", &found, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "5 bytes"));
    for (int i = 0; i < 2; i++) {
        err = (pons_error)PONS_ERROR_INIT;
        write_text("best", i == 0 ? "step-00000025\n" : "step-25\n");
        ck_assert_int_eq(checkpoint_marked(root, "best", &found, &err), PONS_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, i == 0 ? "names step 25, which is not there"
                                                      : "names no checkpoint"));
        ck_assert_ptr_null(found);
    }
}
END_TEST

START_TEST(failed_pruning_goes_on_and_keeps_foreign_files)
{
    pons_error err = PONS_ERROR_INIT;

    for (int64_t step = 1; step <= 5; step++)
        ck_assert_int_eq(write_step(step, 10, &err), PONS_OK);
    write_text("step-00000003/notes.txt", "mine");
    ck_assert_int_eq(checkpoint_prune(root, 1, &err), PONS_FAILURE);
    ck_assert_ptr_nonnull(strstr(err.text, "step-00000003' is not removed: it holds 'notes.txt'"));
    ck_assert_int_eq(names_in_root(), 2); /* the steps are 3 and 5 */
    ck_assert_int_eq(access(in_root("step-00000003/notes.txt"), F_OK), 0);
    err = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(write_step(6, 10, &err), PONS_OK);
    write_text("best", "nothing");
    ck_assert_int_eq(checkpoint_prune(root, 1, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "best' names no checkpoint"));
    ck_assert_int_eq(names_in_root(), 4); /* all folders remain */
}
END_TEST

START_TEST(a_missing_folder_has_no_checkpoint)
{
    pons_error err = PONS_ERROR_INIT;
    char *path = NULL;

    ck_assert_int_eq(checkpoint_newest("/tmp/there/is/none", NULL, &path, &err), PONS_OK);
    ck_assert_ptr_null(path);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("checkpoint");

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_test(c, killed_writers_leave_a_valid_checkpoint);
    tcase_add_test(c, every_damaged_byte_is_found);
    tcase_add_test(c, random_damage_is_found_and_valid_hashes_do_not_crash);
    tcase_add_test(c, a_damaged_checkpoint_gives_way_to_an_older_one_with_a_warning);
    tcase_add_test(c, each_damaged_checkpoint_is_named_once);
    tcase_add_test(c, pruning_keeps_the_newest_and_the_marked_checkpoints);
    tcase_add_test(c, pruning_ignores_checkpoints_under_foreign_names);
    tcase_add_test(c, a_folder_with_an_inexact_name_is_no_checkpoint);
    tcase_add_test(c, a_checkpoint_under_another_steps_name_is_damaged);
    tcase_add_test(c, only_a_valid_marked_checkpoint_is_returned);
    tcase_add_test(c, failed_pruning_goes_on_and_keeps_foreign_files);
    tcase_add_test(c, a_missing_folder_has_no_checkpoint);
    return suite_run();
}
