/*
 * check_run_folder.c - a process holds the folder at the run's path, even where another process
 * renamed the folder that it waited for.
 */
#include "support/must.h"
#include "support/suite.h"

#include "base/log.h"
#include "report/run_folder.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The run runs/a in a new folder; descriptor 'other' holds its lock as another process would. */
static char root[64], path[80], retired[80];
static int other;

static void make_run(void)
{
    strcpy(root, "/tmp/pons-run-folder-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    snprintf(path, sizeof path, "%s/a", root);
    snprintf(retired, sizeof retired, "%s/a.1", root);
    ck_assert_int_eq(mkdir(path, 0777), 0);
    other = open(path, O_RDONLY | O_DIRECTORY);
    ck_assert_int_eq(flock(other, LOCK_EX | LOCK_NB), 0);
}

static void remove_run(void)
{
    rmdir(path);
    rmdir(retired);
    rmdir(root);
}

/* The descriptor and the path name the same folder. */
static bool folder_is_at(int folder, const char *where)
{
    struct stat a, b;

    return fstat(folder, &a) == 0 && stat(where, &b) == 0 && a.st_ino == b.st_ino;
}

/* ---- another process that starts the run afresh ---------------------------------------------- */

enum { REPLACED, REMOVED, KEPT };

static int outcome;

/* This thread replaces the folder while the main thread waits for its lock. */
static void *replace_run_folder(void *context)
{
    const struct timespec moment = { .tv_nsec = 200000000 };
    int next = -1;

    nanosleep(&moment, NULL);
    if (rename(path, retired) != 0 || (outcome != REMOVED && mkdir(path, 0777) != 0))
        abort();
    if (outcome == KEPT && ((next = open(path, O_RDONLY | O_DIRECTORY)) < 0
                            || flock(next, LOCK_EX | LOCK_NB) != 0))
        abort();
    close(other);
    other = next;
    return NULL;
}

static pthread_t start_other_process(int what)
{
    pthread_t thread;

    make_run();
    outcome = what;
    ck_assert_int_eq(pthread_create(&thread, NULL, replace_run_folder, NULL), 0);
    return thread;
}

static run_folder name_folder(void)
{
    run_folder r;

    MUST(run_folder_name(root, "a", &r, &error));
    return r;
}

static void close_folder(run_folder *r)
{
    logger log = { .file = NULL };

    run_folder_close(r, &log);
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(a_run_folder_replaced_during_the_wait_is_locked_again)
{
    pthread_t thread = start_other_process(REPLACED);
    run_folder r = name_folder();

    MUST(run_folder_lock(&r, &error));
    pthread_join(thread, NULL);
    ck_assert_msg(folder_is_at(r.lock, path), "an earlier run's folder is held");
    close_folder(&r);
    remove_run();
}
END_TEST

/* Two processes start afresh at once: the second one must not rename the folder of the first. */
START_TEST(a_run_folder_taken_by_another_run_is_left_alone)
{
    pthread_t thread = start_other_process(KEPT);
    logger log = { .file = NULL };
    run_folder r = name_folder();

    error = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(run_folder_retire(&r, &log, &error), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(error.text, "another process is training in"));
    pthread_join(thread, NULL);
    ck_assert(folder_is_at(other, path));
    close(other);
    close_folder(&r);
    remove_run();
}
END_TEST

START_TEST(a_removed_run_folder_is_made_again)
{
    pthread_t thread = start_other_process(REMOVED);
    run_folder r = name_folder();

    MUST(run_folder_lock(&r, &error));
    pthread_join(thread, NULL);
    ck_assert_int_eq(r.lock, -1);
    MUST(run_folder_make(&r, &error));
    ck_assert(folder_is_at(r.lock, path));
    close_folder(&r);
    remove_run();
}
END_TEST

START_TEST(a_shared_lock_holds_the_folder_at_the_path)
{
    pthread_t thread = start_other_process(REPLACED);
    run_folder own = { .lock = -1 };
    int lock;

    MUST(run_folder_lock_shared(&own, path, &lock, &error));
    pthread_join(thread, NULL);
    ck_assert(folder_is_at(lock, path));
    close(lock);
    remove_run();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("run folder");

    tcase_add_test(c, a_run_folder_replaced_during_the_wait_is_locked_again);
    tcase_add_test(c, a_run_folder_taken_by_another_run_is_left_alone);
    tcase_add_test(c, a_removed_run_folder_is_made_again);
    tcase_add_test(c, a_shared_lock_holds_the_folder_at_the_path);
    return suite_run();
}
