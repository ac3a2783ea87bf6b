/*
 * kernel_trial.h - one request on a kernel of the cpu device and on the core's reference kernel.
 *
 * Inputs hold random values. Every buffer, scratch memory included, ends at a guard page.
 */
#ifndef TESTS_KERNEL_TRIAL_H
#define TESTS_KERNEL_TRIAL_H

#include "cpu/cpu_testing.h"

#define TRIAL_INPUTS 4

typedef struct trial {
    pons_kernel_kind kind;
    int input_count;
    pons_tensor input[TRIAL_INPUTS], output;
    const void *attributes;
    bool whole;     /* f32 and bf16 inputs hold small integers, many equal */
    int64_t most;   /* i32 inputs: -1 .. most; 0: the range of exact floats                       */
    bool exact;     /* the result is an input value, equal to the last bit                        */
    bool packs;     /* input 1 may be packed                                                      */
    int products, chain; /* of a sum; of consecutive products in it;                              */
                         /* 0 products: the rounding is not checked                               */
    bool library;   /* onednn: one row, may decline, bits depend on threads                       */
} trial;

/* The function that prepares the kernel. */
typedef pons_status (*trial_prepare)(cpu_device *device, const pons_request *request,
                                     pons_kernel *kernel, bool *supported, pons_error *err);

/* A random integer from 0 to n - 1; the state continues from call to call. */
int64_t trial_draw(int64_t n);
void trial_seed(uint64_t seed);

/*
 * Try all rows of the isa table with one and two threads. The result must agree with the reference,
 * with the same bits for both. False: the kernel is declined.
 */
bool trial_agrees(const trial *t, trial_prepare prepare);

#endif
