/*
 * fakes.h - the libraries of tests/fake in place of NVIDIA's. With PONS_TEST_CARD=real they stay
 * away: tests run on the card of this machine, without those that only the fakes can pass.
 */
#ifndef TESTS_FAKES_H
#define TESTS_FAKES_H

#include <stdbool.h>

/*
 * Open those that were built, so that the device finds them under the names it looks for. False:
 * the loader has said why.
 */
bool fakes_open(void);
/* Whether they stay away. */
bool fakes_are_away(void);
/* A function of one of them; NULL: there is none. */
void *fakes_function(const char *name);
/*
 * Pieces of memory, events and graphs that were made and not freed; a real card does not count: 0.
 */
int fakes_left_over(void);

/*
 * As Check's words: for tests of what goes wrong at will, of what the fakes choose or count, and of
 * more cards than one. On a real card a line 'SKIPPED: test: why' stands for each.
 */
bool fakes_given(const char *test);
#define fakes_add_test(c, test) (fakes_given(#test) ? tcase_add_test(c, test) : (void)0)
#define fakes_add_loop_test(c, test, first, end)                                                  \
    (fakes_given(#test) ? tcase_add_loop_test(c, test, first, end) : (void)0)

#endif
