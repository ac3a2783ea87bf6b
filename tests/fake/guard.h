/*
 * guard.h - tell AddressSanitizer which memory a kernel may touch; a build without it ignores the
 * calls.
 */
#ifndef TESTS_FAKE_GUARD_H
#define TESTS_FAKE_GUARD_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

/* Views of an allocation for kernels. */
enum { GUARD_VIEWS = 4 };

typedef struct guard_range {
    const char *name;      /* of the parameter                                                    */
    const void *at;
    size_t size;           /* bytes; 0: no memory                                                 */
} guard_range;

typedef struct guard_kernel {
    const char *name;
    int count;
    const guard_range *range;
} guard_kernel;

bool guard_is_there(void);
void guard_forbid(const void *at, size_t size);
void guard_allow(const void *at, size_t size);
/* Begin the only running kernel 'k': nothing but its ranges is accessible until its end. */
void guard_begin(const guard_kernel *k);
void guard_end(const guard_kernel *k);

#endif
