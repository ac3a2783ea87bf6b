/*
 * check_disk.c - every call to the disk fails once, and the disk is full at every block: what was
 * complete stays so, nothing half-way is left, and the message names path and cause.
 */
#include <config.h>

#include "tiny_run.h"
#include "disk_shim.h"
#include "soak.h"
#include "suite.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* ---- each call fails once -------------------------------------------------------------------- */

/* Writes the checkpoint of a step with all that belongs to it. */
typedef pons_status writer(int64_t step, pons_error *err);

static pons_status fill(int64_t step, checkpoint_file files[2], safetensor *item)
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

static pons_status write_as_pons(int64_t step, pons_error *err)
{
    checkpoint_file files[2];
    safetensor item;
    const checkpoint_content content = { .file_count = 2, .file = files };

    fill(step, files, &item);
    if (checkpoint_write(in_root("c"), step, &content, err) == PONS_OK
        && checkpoint_mark(in_root("c"), "last", step, err) == PONS_OK)
        checkpoint_prune(in_root("c"), 1, err);
    return err->status;
}

/* The control: over the files of the only checkpoint there is. */
static pons_status write_in_place(int64_t step, pons_error *err)
{
    checkpoint_file files[2];
    safetensor item;

    (void)step;
    fill(1, files, &item);
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

/* What is wrong after a call that failed; NULL: nothing. */
static const char *find_wrong(pons_status status, const pons_error *err, int error)
{
    pons_error problem = PONS_ERROR_INIT;
    char *newest = NULL;

    if (disk_shim.after_failed_sync > 0)
        return "a failed fsync was tried again";
    /* What a step written again was exchanged with stays until the exchange is known to last. */
    if (count_names("part") > 0 && strstr(err->text, "cannot sync folder") == NULL)
        return "something half-way is left";
    if (checkpoint_newest(in_root("c"), NULL, &newest, &problem) != PONS_OK || newest == NULL)
        return "no checkpoint is whole";
    int64_t step = step_in(strrchr(newest, '/'));
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
 * Calls of one kind that writing step 2 makes where steps up to 'there' are; bad outcomes are
 * counted, and told with 'tell'.
 */
static int fail_each(writer *to, int there, const char *call, int error, bool tell, int *bad)
{
    int n = 0;

    for (;;) {
        char command[256];
        pons_error err = PONS_ERROR_INIT;
        snprintf(command, sizeof command, "rm -rf %s", in_root("c"));
        ck_assert_int_eq(system(command), 0);
        for (int64_t step = 1; step <= there; step++)
            ck_assert_int_eq(write_as_pons(step, &err), PONS_OK);
        disk_fault fault = { .number = ++n, .error = error, .shorten = error == 0 };
        strcpy(fault.path, "/c");
        strcpy(fault.call, call);
        disk_shim = fault;
        pons_status status = to(2, &err);
        int fired = disk_shim.fired;
        disk_shim.path[0] = '\0';
        if (fired == 0)
            return n - 1;
        const char *wrong = find_wrong(status, &err, error);
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

START_TEST(call_that_fails_once_is_told_and_harms_nothing)
{
    int bad = 0;

    make_root();
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++)
            ck_assert_int_ge(fail_each(write_as_pons, 1, calls[c].call, errors[e], true, &bad),
                             calls[c].least);
    }
    fail_each(write_as_pons, 1, "write", 0, true, &bad);
    ck_assert_int_eq(bad, 0);
    remove_root();
}
END_TEST

/* A validation may change the state of a step that is saved already. */
START_TEST(step_that_is_written_again_is_never_missing)
{
    static const char *const kinds[] = { "open", "read", "mkdir", "write", "close", "rename" };
    int bad = 0;

    make_root();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        ck_assert_int_gt(fail_each(write_as_pons, 2, kinds[i], EIO, true, &bad), 0);
    ck_assert_int_eq(bad, 0);
    remove_root();
}
END_TEST

START_TEST(writer_in_place_is_found_out)
{
    int bad = 0;

    make_root();
    ck_assert_int_gt(fail_each(write_in_place, 1, "write", ENOSPC, false, &bad), 0);
    ck_assert_int_gt(bad, 0);
    remove_root();
}
END_TEST

/* ---- the program on a full disk -------------------------------------------------------------- */

#define WIDER "--set", "train.checkpoint_every=3", "--set", "train.steps=20", "--set", \
              "model.channels=4 12", "--set", "log.sinks=csv", "--set", "train.keep=2"

/* Ended with a line that names a file and why; whatever has a checkpoint's name is whole. */
static void expect_full(int code, const char *cause, const char *where, long size)
{
    char *said = text_of("said");

    ck_assert_msg(code == 1, "%s of %ld bytes: code %d, said %s", where, size, code, said);
    ck_assert_msg(strstr(said, cause) != NULL && strstr(said, "'") != NULL, "%s of %ld bytes: %s",
                  where, size, said);
    newest_whole("run");
}

static void expect_goes_on(const char *where, long size)
{
    int code = PONS("train", "e.ini", WIDER);

    ck_assert_msg(code == 0, "%s of %ld bytes: code %d: %s", where, size, code, text_of("said"));
    ck_assert_msg(same_runs("../whole", "run", TENSOR_FILES), "%s of %ld bytes", where, size);
}

/* The run that was never stopped lies beside the folder of the others. */
static void make_whole(void)
{
    make_tiny_run();
    EXPECT(0, NULL, "train", "e.ini", WIDER);
    ck_assert_int_eq(rename(in_root("runs/run"), in_root("whole")), 0);
}

static int train_within(rlim_t size)
{
    struct rlimit before, limit;

    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){ size, before.rlim_max };
    setrlimit(RLIMIT_FSIZE, &limit);
    pid_t child = START("train", "e.ini", WIDER);
    setrlimit(RLIMIT_FSIZE, &before);
    return finish(child);
}

START_TEST(files_that_may_not_grow_end_the_run_and_harm_nothing)
{
    int code = 1, limits = 0;
    char command[128];

    make_whole();
    for (long size = 4096; code != 0; size += soak_times(2, 1) * 4096, limits++) {
        snprintf(command, sizeof command, "rm -rf %s/runs/run", root);
        ck_assert_int_eq(system(command), 0);
        code = train_within((rlim_t)size);
        if (code != 0)
            expect_full(code, "File too large", "files", size);
        expect_goes_on("files", size);
    }
    ck_assert_int_gt(limits, 3);
    remove_root();
}
END_TEST

/* A disk of its own for the runs; false: this user may not. */
static bool mount_disk(long size, unsigned long how)
{
    char options[64];

    snprintf(options, sizeof options, "size=%ld", size);
    return mount("tmpfs", in_root("runs"), "tmpfs", how, options) == 0;
}

START_TEST(full_disk_ends_the_run_and_harms_nothing)
{
    int code = 1, sizes = 0;

    make_whole();
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0
        || !mount_disk(1 << 20, 0)) {
        printf("no disk can be mounted (%s): skipped\n", strerror(errno));
        remove_root();
        return;
    }
    umount(in_root("runs"));
    for (long size = 8192; code != 0; size += soak_times(7, 1) * 4096, sizes++) {
        ck_assert(mount_disk(size, 0));
        code = PONS("train", "e.ini", WIDER);
        if (code != 0)
            expect_full(code, "No space left on device", "disk", size);
        ck_assert(mount_disk(1 << 24, MS_REMOUNT));
        expect_goes_on("disk", size);
        ck_assert_int_eq(umount(in_root("runs")), 0);
    }
    ck_assert_int_gt(sizes, 3);
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("disk");

    tcase_add_test(c, call_that_fails_once_is_told_and_harms_nothing);
    tcase_add_test(c, step_that_is_written_again_is_never_missing);
    tcase_add_test(c, writer_in_place_is_found_out);
    tcase_add_test(c, files_that_may_not_grow_end_the_run_and_harm_nothing);
    tcase_add_test(c, full_disk_ends_the_run_and_harms_nothing);
    return suite_run();
}
