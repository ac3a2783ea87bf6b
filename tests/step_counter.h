/*
 * step_counter.h - counts the instructions of a piece of a program by stepping through it, on Linux
 * with ptrace: exact on every processor, for kernels of instructions that no profiler knows, and
 * slow (10 to 20 microseconds each).
 */
#ifndef TESTS_STEP_COUNTER_H
#define TESTS_STEP_COUNTER_H

#include <stdint.h>

/*
 * Forks, and returns in the child alone: what that does between step_counter_begin
 * and step_counter_end is counted, on the thread that called. The parent prints for each
 * "NAME INSTRUCTIONS ELEMENTS" and exits as the child does, 77 where it may not follow a process.
 */
void step_counter_follow(void);
void step_counter_begin(const char *name, int64_t elements);
void step_counter_end(void);

#endif
