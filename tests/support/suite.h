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

#include "support/asserts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Seconds after which a test counts as hanging, on an idle machine. Check multiplies them by the
 * factor of tests/tools/patience.sh. With SOAK in the environment tests are larger (soak.h).
 */
enum { SUITE_PATIENCE = 600, SUITE_PATIENCE_SOAKED = 7200 };

TCase *suite_new(const char *name);

/* Run the suite; returns the exit status of main. */
int suite_run(void);

/*
 * Returns 'holds'. If it is false, the line 'SKIPPED: TEST: needs WHAT' says that the test or a
 * part of it is skipped. tests/run.sh counts the lines, and tests/tools/lacks.sh must confirm that
 * WHAT is lacking.
 */
bool suite_has(const char *test, bool holds, const char *what);

/* Check's macros for tests that need something. */
#define suite_add_test_if(c, holds, what, test)                                                   \
    (suite_has(#test, holds, what) ? tcase_add_test(c, test) : (void)0)
#define suite_add_loop_test_if(c, holds, what, test, first, end)                                  \
    (suite_has(#test, holds, what) ? tcase_add_loop_test(c, test, first, end) : (void)0)
/* Skip the whole program, in place of 'suite_run'; returns 77. */
int suite_skip(const char *program, const char *what);

/* The build has plugin 'kind/name', such as "comm/gloo". */
bool suite_has_plugin(const char *name);

#endif
