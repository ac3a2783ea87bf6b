/*
 * asserts.h - Check with assertions that write nothing while they hold.
 *
 * Check's own assertions write a mark to a file each time, to tell where a test crashed. Loops over
 * kernels make millions of them. A sanitizer or a debugger finds the place of a crash.
 */
#ifndef TESTS_ASSERTS_H
#define TESTS_ASSERTS_H

#include <check.h>

#undef ck_assert_msg
#undef ck_assert
#define ck_assert_msg(expr, ...) do { if (!(expr)) ck_abort_msg(__VA_ARGS__); } while (0)
#define ck_assert(expr) ck_assert_msg(expr, "Assertion '%s' failed", #expr)

#endif
