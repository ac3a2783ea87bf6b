/*
 * suite.c - see suite.h.
 */
#include "support/suite.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static Suite *suite_of_this_program;
static atomic_int *skipped_inside; /* shared with tests, each in a process of its own */

TCase *suite_new(const char *name)
{
    TCase *c = tcase_create(name);

    suite_of_this_program = suite_create(name);
    tcase_set_timeout(c, getenv("SOAK") != NULL ? SUITE_PATIENCE_SOAKED : SUITE_PATIENCE);
    suite_add_tcase(suite_of_this_program, c);
    return c;
}

int suite_run(void)
{
    SRunner *runner = srunner_create(suite_of_this_program);
    int failed;

    skipped_inside = mmap(NULL, sizeof *skipped_inside, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (skipped_inside == MAP_FAILED)
        return EXIT_FAILURE;
    fflush(stdout); /* before tests are forked */
    srunner_run_all(runner, CK_ENV);
    if (*skipped_inside > 0)
        printf("%d of these checks are skipped\n", *skipped_inside);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

bool suite_has(const char *test, bool holds, const char *what)
{
    if (holds)
        return true;
    printf("SKIPPED: %s: needs %s\n", test, what);
    fflush(stdout);
    if (skipped_inside != NULL)
        (*skipped_inside)++;
    return false;
}

int suite_skip(const char *program, const char *what)
{
    suite_has(program, false, what);
    return 77;
}

bool suite_has_plugin(const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "stage/%s.so", name);
    return access(path, F_OK) == 0;
}
