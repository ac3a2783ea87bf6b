/*
 * check_checkpoint.c - killed at any moment, damaged in any byte: an older valid one is found.
 */
#include <config.h>

#include "base/file.h"
#include "train/checkpoint.h"

#include "suite.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];

static void make_root(void)
{
    strcpy(root, "/tmp/check-checkpoint-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void remove_root(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", root);
    ck_assert_int_eq(system(command), 0);
}

/* A checkpoint whose every number is its step. */
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
    const checkpoint_content content = { .file_count = 2, .file = files };
    pons_status status = checkpoint_write(root, step, &content, err);
    free(data);
    return status;
}

/* The step whose numbers both files of the newest valid checkpoint hold. */
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

    make_root();
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
        usleep(1000 + (state >> 16) % 12000);
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        ck_assert_msg(WIFSIGNALED(status), "the writer failed by itself");
        int64_t found = newest_step();
        ck_assert_msg(found >= before, "step %lld after %lld", (long long)found, (long long)before);
        before = found;
    }
    ck_assert_msg(before > 0, "no writer ever finished one");
    ck_assert_int_eq(checkpoint_prune(root, 2, &err), PONS_OK);
    ck_assert_int_le(names_in_root(), 4); /* two folders, the marked one and 'last' */
    remove_root();
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

    make_root();
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
    remove_root();
}
END_TEST

START_TEST(damaged_checkpoint_falls_back_to_the_older_one_and_says_so)
{
    pons_error err = PONS_ERROR_INIT;
    char path[256], text[512] = "", *found = NULL;
    FILE *lines = tmpfile();
    logger l = { .terminal = lines, .level = LOG_NORMAL };

    make_root();
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
    ck_assert_ptr_nonnull(strstr(text, "older checkpoint"));
    ck_assert_int_eq(checkpoint_marked(root, "best", NULL, &found, &err), PONS_OK);
    ck_assert_ptr_nonnull(strstr(found, "step-00000010"));
    free(found);
    /* Writing that step again replaces the damaged folder. */
    ck_assert_int_eq(write_step(20, 10, &err), PONS_OK);
    ck_assert_int_eq(newest_step(), 20);
    unlink(path);
    snprintf(path, sizeof path, "%s/step-00000010/manifest.json", root);
    unlink(path);
    ck_assert_int_eq(checkpoint_newest(root, NULL, &found, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "all 2 checkpoints"));
    fclose(lines);
    remove_root();
}
END_TEST

START_TEST(pruning_keeps_the_newest_and_the_marked)
{
    pons_error err = PONS_ERROR_INIT;
    char path[256];

    make_root();
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
    remove_root();
}
END_TEST

START_TEST(no_folder_is_no_checkpoint)
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

    tcase_add_test(c, killed_writers_leave_a_valid_checkpoint);
    tcase_add_test(c, every_damaged_byte_is_found);
    tcase_add_test(c, damaged_checkpoint_falls_back_to_the_older_one_and_says_so);
    tcase_add_test(c, pruning_keeps_the_newest_and_the_marked);
    tcase_add_test(c, no_folder_is_no_checkpoint);
    return suite_run();
}
