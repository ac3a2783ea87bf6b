/*
 * integer.h - minima, maxima and rounded quotients of integers.
 *
 * Every divisor 'by' is positive. Quotients rounded up need a >= 0 and an a + by - 1 that fits the
 * type. They also accept a > -by, because C truncates that quotient to 0.
 */
#ifndef CORE_BASE_INTEGER_H
#define CORE_BASE_INTEGER_H

#include <stddef.h>
#include <stdint.h>

static inline int min_int(int a, int b) { return a < b ? a : b; }
static inline int max_int(int a, int b) { return a > b ? a : b; }
static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline size_t min_size(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t max_size(size_t a, size_t b) { return a > b ? a : b; }

/* The quotient rounded up. */
static inline int ceil_div_int(int a, int by) { return (a + (by - 1)) / by; }
static inline int64_t ceil_div_i64(int64_t a, int64_t by) { return (a + (by - 1)) / by; }

/* The quotient rounded down, also of a negative a. The type must hold a - by + 1. */
static inline int floor_div_int(int a, int by) { return (a >= 0 ? a : a - by + 1) / by; }

/* The smallest multiple of 'by' that is not below a. */
static inline int round_up_int(int a, int by) { return (a + (by - 1)) / by * by; }
static inline int64_t round_up_i64(int64_t a, int64_t by) { return (a + (by - 1)) / by * by; }
static inline uint64_t round_up_u64(uint64_t a, uint64_t by) { return (a + (by - 1)) / by * by; }
static inline size_t round_up_size(size_t a, size_t by) { return (a + (by - 1)) / by * by; }

#endif
