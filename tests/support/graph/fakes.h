/*
 * fakes.h - the libraries of tests/fake in place of NVIDIA's. With PONS_TEST_CARD=real they stay
 * closed: tests run on this machine's GPU, except for those that only the fakes can pass.
 */
#ifndef TESTS_FAKES_H
#define TESTS_FAKES_H

#include <stdbool.h>

/*
 * Open the libraries that were built, so that the device finds them under the names it looks for.
 * False: the loader has printed the reason.
 */
bool fakes_open(void);
/* The fakes stay closed. */
bool fakes_are_away(void);
/* A function of one of the libraries; NULL: there is none. */
void *fakes_function(const char *name);
/*
 * Allocations, events and graphs that were made and not freed; 0 on a real GPU, which does not
 * count.
 */
int fakes_left_over(void);

/*
 * Check's macros for tests that need chosen faults, choices or counts of the fakes, or several
 * GPUs. On a real GPU a line 'SKIPPED: test: why' stands for each.
 */
#define fakes_add_test(c, test) suite_add_test_if(c, !fakes_are_away(), "made-up cards", test)
#define fakes_add_loop_test(c, test, first, end)                                                  \
    suite_add_loop_test_if(c, !fakes_are_away(), "made-up cards", test, first, end)

#endif
