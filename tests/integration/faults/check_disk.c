/*
 * check_disk.c - every system call for the disk fails once, and the disk is full at every block. A
 * complete checkpoint stays complete, no partial file remains, and the message names path and
 * cause.
 */
#include <config.h>

#include "support/process/disk_shim.h"
#include "support/run/tiny_run.h"
#include "support/soak.h"
#include "support/suite.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* ---- each call fails once -------------------------------------------------------------------- */

/* A function that writes the checkpoint of a step with everything that belongs to it. */
typedef pons_status writer(int64_t step, pons_error *err);

static pons_status fill_files(int64_t step, checkpoint_file files[2], safetensor *item)
{
    static float numbers[3000];

    for (int i = 0; i < 3000; i++)
        numbers[i] = (float)step;
    *item = (safetensor){ .name = "w", .type = SAFETENSORS_F32, .rank = 1, .extent = { 3000 },
                          .data = numbers };
    files[0] = (checkpoint_file){ "model.safetensors", { .count = 1, .item = item } };
    files[1] = (checkpoint_file){ "trainer.safetensors", { .count = 1, .item = item } };
    return PONS_OK;
}

static pons_status write_checkpoint(int64_t step, pons_error *err)
{
    checkpoint_file files[2];
    safetensor item;
    const checkpoint_list content = { .file_count = 2, .file = files };

    fill_files(step, files, &item);
    if (checkpoint_write(in_root("c"), step, &content, err) == PONS_OK
        && checkpoint_mark(in_root("c"), "last", step, err) == PONS_OK)
        checkpoint_prune(in_root("c"), 1, err);
    return err->status;
}

/* The control: files are written over those of the only checkpoint. */
static pons_status write_checkpoint_in_place(int64_t step, pons_error *err)
{
    checkpoint_file files[2];
    safetensor item;

    (void)step;
    fill_files(1, files, &item);
    for (int i = 0; i < 2 && err->status == PONS_OK; i++) {
        char name[64];
        snprintf(name, sizeof name, "c/step-00000001/%s", files[i].name);
        safetensors_write(in_root(name), &files[i].content, err);
    }
    return err->status;
}

static int count_names(const char *pattern)
{
    char command[256], text[32] = "";

    snprintf(command, sizeof command, "ls %s | grep -c '%s'", in_root("c"), pattern);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(fgets(text, sizeof text, pipe));
    pclose(pipe);
    return atoi(text);
}

/* The error after a failed call, or NULL. */
static const char *find_error(pons_status status, const pons_error *err, int error)
{
    pons_error problem = PONS_ERROR_INIT;
    char *newest = NULL;

    if (disk_shim.after_failed_sync > 0)
        return "a failed fsync was tried again";
    /*
     * The old folder of a rewritten step stays until the exchange of both is known to be on disk.
     */
    if (count_names("part") > 0 && strstr(err->text, "cannot sync folder") == NULL)
        return "something half-way is left";
    if (checkpoint_newest(in_root("c"), NULL, &newest, &problem) != PONS_OK || newest == NULL)
        return "no checkpoint is whole";
    int64_t step = step_of_name(strrchr(newest, '/'));
    free(newest);
    if (count_names("^step-") > 2)
        return "old ones are kept";
    if (status == PONS_OK && (step != 2 || !checkpoint_is_marked(in_root("c"), "last", 2)))
        return "a failure was not told";
    if (status != PONS_OK && (strstr(err->text, root) == NULL
                              || strstr(err->text, strerror(error)) == NULL))
        return "path or cause is missing";
    if (checkpoint_verify(in_root("c/step-00000001"), &problem) != PONS_OK
        && access(in_root("c/step-00000001"), F_OK) == 0)
        return "the checkpoint before is damaged";
    return NULL;
}

/*
 * Number of calls of one kind during the write of step 2, with steps up to 'there' on disk. 'bad'
 * counts wrong outcomes, which are printed with 'tell'.
 */
static int fail_each_call(writer *to, int there, const char *call, int error, bool tell, int *bad)
{
    int n = 0;

    for (;;) {
        pons_error err = PONS_ERROR_INIT;
        shell("rm -rf c");
        for (int64_t step = 1; step <= there; step++)
            ck_assert_int_eq(write_checkpoint(step, &err), PONS_OK);
        disk_fault fault = { .number = ++n, .error = error, .shorten = error == 0 };
        strcpy(fault.path, "/c");
        strcpy(fault.call, call);
        disk_shim = fault;
        pons_status status = to(2, &err);
        int fired = disk_shim.fired;
        disk_shim.path[0] = '\0';
        if (fired == 0)
            return n - 1;
        const char *wrong = find_error(status, &err, error);
        if (wrong == NULL && error == 0 && status != PONS_OK)
            wrong = "a short write was not gone on with";
        *bad += wrong != NULL;
        if (wrong != NULL && tell)
            fprintf(stderr, "%s %d (%s): %s; %s\n", call, n, strerror(error), wrong, err.text);
    }
}

static const struct { const char *call; int least; } calls[] = {
    { "open", 4 }, { "read", 3 }, { "mkdir", 1 }, { "write", 6 }, { "fsync", 6 }, { "close", 8 },
    { "rename", 2 }
};
static const int errors[] = { EIO, ENOSPC, EDQUOT, EINTR };

START_TEST(a_failed_disk_call_is_reported_and_damages_nothing)
{
    int bad = 0;

    make_root();
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++)
            ck_assert_int_ge(fail_each_call(write_checkpoint, 1, calls[c].call, errors[e], true,
                                            &bad),
                             calls[c].least);
    }
    fail_each_call(write_checkpoint, 1, "write", 0, true, &bad);
    ck_assert_int_eq(bad, 0);
    remove_root();
}
END_TEST

/* A validation may change the state of a step that is already saved. */
START_TEST(a_rewritten_step_is_never_missing)
{
    static const char *const kinds[] = { "open", "read", "mkdir", "write", "close", "rename" };
    int bad = 0;

    make_root();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        ck_assert_int_gt(fail_each_call(write_checkpoint, 2, kinds[i], EIO, true, &bad), 0);
    ck_assert_int_eq(bad, 0);
    remove_root();
}
END_TEST

START_TEST(the_control_that_writes_in_place_is_noticed)
{
    int bad = 0;

    make_root();
    ck_assert_int_gt(fail_each_call(write_checkpoint_in_place, 1, "write", ENOSPC, false, &bad), 0);
    ck_assert_int_gt(bad, 0);
    remove_root();
}
END_TEST

/* ---- the program on a full disk -------------------------------------------------------------- */

#define WIDER "--set", "train.checkpoint_every=3", "--set", "train.steps=20", "--set", \
              "model.channels=4 12", "--set", "log.sinks=csv", "--set", "train.keep=2"

/* The run ended with a line with a file name and the cause. Every named checkpoint is complete. */
static void expect_full_disk(int code, const char *cause, const char *where, long size)
{
    char *said = root_text("said");

    ck_assert_msg(code == 1, "%s of %ld bytes: code %d, said %s", where, size, code, said);
    ck_assert_msg(strstr(said, cause) != NULL && strstr(said, "'") != NULL, "%s of %ld bytes: %s",
                  where, size, said);
    run_newest_checkpoint("run");
}

static void expect_run_continues(const char *where, long size)
{
    int code = PONS("train", "e.ini", WIDER);

    ck_assert_msg(code == 0, "%s of %ld bytes: code %d: %s", where, size, code, root_text("said"));
    ck_assert_msg(same_runs("../whole", "run", TENSOR_FILES), "%s of %ld bytes", where, size);
}

/* The undisturbed run, moved out of the folder of the other runs. */
static void make_whole_run(void)
{
    make_tiny_run();
    EXPECT(0, NULL, "train", "e.ini", WIDER);
    ck_assert_int_eq(rename(in_root("runs/run"), in_root("whole")), 0);
}

static int train_within_limit(rlim_t size)
{
    struct rlimit before, limit;

    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){ size, before.rlim_max };
    setrlimit(RLIMIT_FSIZE, &limit);
    pid_t child = START("train", "e.ini", WIDER);
    setrlimit(RLIMIT_FSIZE, &before);
    return process_finish(child);
}

START_TEST(a_file_size_limit_ends_the_run_and_damages_nothing)
{
    int code = 1, limits = 0;

    make_whole_run();
    for (long size = 4096; code != 0; size += soak_times(2, 1) * 4096, limits++) {
        shell("rm -rf runs/run");
        code = train_within_limit((rlim_t)size);
        if (code != 0)
            expect_full_disk(code, "File too large", "files", size);
        expect_run_continues("files", size);
    }
    ck_assert_int_gt(limits, 3);
    remove_root();
}
END_TEST

/* A separate disk for the runs; false: the user may not mount one. */
static bool mount_disk(long size, unsigned long how)
{
    char options[64];

    snprintf(options, sizeof options, "size=%ld", size);
    return mount("tmpfs", in_root("runs"), "tmpfs", how, options) == 0;
}

START_TEST(a_full_disk_ends_the_run_and_damages_nothing)
{
    int code = 1, sizes = 0;

    make_whole_run();
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
        || !mount_disk(1 << 20, 0)) {
        suite_has("a_full_disk_ends_the_run_and_damages_nothing", false,
                  "a disk that can be mounted");
        remove_root();
        return;
    }
    umount(in_root("runs"));
    for (long size = 8192; code != 0; size += soak_times(7, 1) * 4096, sizes++) {
        ck_assert(mount_disk(size, 0));
        code = PONS("train", "e.ini", WIDER);
        if (code != 0)
            expect_full_disk(code, "No space left on device", "disk", size);
        ck_assert(mount_disk(1 << 24, MS_REMOUNT));
        expect_run_continues("disk", size);
        ck_assert_int_eq(umount(in_root("runs")), 0);
    }
    ck_assert_int_gt(sizes, 3);
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("disk");

    tcase_add_test(c, a_failed_disk_call_is_reported_and_damages_nothing);
    tcase_add_test(c, a_rewritten_step_is_never_missing);
    tcase_add_test(c, the_control_that_writes_in_place_is_noticed);
    tcase_add_test(c, a_file_size_limit_ends_the_run_and_damages_nothing);
    tcase_add_test(c, a_full_disk_ends_the_run_and_damages_nothing);
    return suite_run();
}
