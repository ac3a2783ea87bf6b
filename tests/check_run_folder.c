/*
 * check_run_folder.c - the folder that a process holds is the one at the run's path, also where
 * another process has renamed the folder for which this one has waited.
 */
#include "suite.h"

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

static pons_error error;

#define MUST(call) ck_assert_msg((error = (pons_error)PONS_ERROR_INIT, (call)) == PONS_OK, "%s",  \
                                 error.text)

/* runs/a in a new folder, which this process has locked as another one would. */
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

/* Both file descriptors of this process and a path are one folder. */
static bool is_at(int folder, const char *where)
{
    struct stat a, b;

    return fstat(folder, &a) == 0 && stat(where, &b) == 0 && a.st_ino == b.st_ino;
}

/* ---- another process, which begins anew ------------------------------------------------------ */

enum { REPLACED, REMOVED, KEPT };

static int outcome;

/* While the folder is waited for. */
static void *begin_anew(void *context)
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

static pthread_t begin_other(int what)
{
    pthread_t thread;

    make_run();
    outcome = what;
    ck_assert_int_eq(pthread_create(&thread, NULL, begin_anew, NULL), 0);
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

START_TEST(a_folder_that_is_replaced_meanwhile_is_asked_for_again)
{
    pthread_t thread = begin_other(REPLACED);
    run_folder r = name_folder();

    MUST(run_folder_hold(&r, &error));
    pthread_join(thread, NULL);
    ck_assert_msg(is_at(r.lock, path), "an earlier run's folder is held");
    close_folder(&r);
    remove_run();
}
END_TEST

/* Two that begin anew at once: the second would rename the folder in which the first one trains. */
START_TEST(one_that_is_another_runs_by_then_is_left_alone)
{
    pthread_t thread = begin_other(KEPT);
    logger log = { .file = NULL };
    run_folder r = name_folder();

    error = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(run_folder_retire(&r, &log, &error), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(error.text, "another process is training in"));
    pthread_join(thread, NULL);
    ck_assert(is_at(other, path));
    close(other);
    close_folder(&r);
    remove_run();
}
END_TEST

START_TEST(one_that_is_gone_is_made_where_it_is_needed)
{
    pthread_t thread = begin_other(REMOVED);
    run_folder r = name_folder();

    MUST(run_folder_hold(&r, &error));
    pthread_join(thread, NULL);
    ck_assert_int_eq(r.lock, -1);
    MUST(run_folder_take(&r, &error));
    ck_assert(is_at(r.lock, path));
    close_folder(&r);
    remove_run();
}
END_TEST

START_TEST(what_is_read_is_what_lies_there)
{
    pthread_t thread = begin_other(REPLACED);
    run_folder own = { .lock = -1 };
    int lock;

    MUST(run_folder_read(&own, path, &lock, &error));
    pthread_join(thread, NULL);
    ck_assert(is_at(lock, path));
    close(lock);
    remove_run();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("run folder");

    tcase_add_test(c, a_folder_that_is_replaced_meanwhile_is_asked_for_again);
    tcase_add_test(c, one_that_is_another_runs_by_then_is_left_alone);
    tcase_add_test(c, one_that_is_gone_is_made_where_it_is_needed);
    tcase_add_test(c, what_is_read_is_what_lies_there);
    return suite_run();
}
