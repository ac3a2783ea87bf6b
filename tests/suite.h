/*
 * suite.h - one test program: a suite with one case, run and summed up.
 *
 *     int main(void)
 *     {
 *         TCase *c = suite_new("hash");
 *         tcase_add_test(c, digest_of_abc_is_the_published_one);
 *         return suite_run();
 *     }
 */
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include "asserts.h"

#include <stdio.h>
#include <stdlib.h>

/* Seconds after which a test counts as hanging, on an idle machine: Check multiplies them by what
 * tests/patience.sh has found. With SOAK in the environment tests have another size (soak.h). */
enum { SUITE_PATIENCE = 600, SUITE_PATIENCE_SOAKED = 7200 };

static Suite *suite_of_this_program;

static inline TCase *suite_new(const char *name)
{
    TCase *c = tcase_create(name);

    suite_of_this_program = suite_create(name);
    tcase_set_timeout(c, getenv("SOAK") != NULL ? SUITE_PATIENCE_SOAKED : SUITE_PATIENCE);
    suite_add_tcase(suite_of_this_program, c);
    return c;
}

static inline int suite_run(void)
{
    SRunner *runner = srunner_create(suite_of_this_program);
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
