/*
 * step_counter.h - count the instructions of a part of a program in single steps, by Linux's
 * ptrace. The count is exact on every processor, for kernels of instructions that no profiler
 * supports, and slow.
 */
#ifndef TESTS_STEP_COUNTER_H
#define TESTS_STEP_COUNTER_H

#include <stdint.h>

/*
 * Fork, and return in the child alone. The child's instructions between step_counter_begin and
 * step_counter_end are counted, on the calling thread. The parent prints "NAME INSTRUCTIONS
 * ELEMENTS" for each count. It exits with the child's status, or with 77 where ptrace is forbidden.
 */
void step_counter_follow(void);
void step_counter_begin(const char *name, int64_t elements);
void step_counter_end(void);

#endif
