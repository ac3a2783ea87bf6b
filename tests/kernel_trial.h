/*
 * kernel_trial.h - one request on a kernel of the cpu device and on the core's reference kernel.
 *
 * Inputs hold random numbers; every buffer, the scratch memory too, lies against a guard page.
 */
#ifndef TESTS_KERNEL_TRIAL_H
#define TESTS_KERNEL_TRIAL_H

#include "cpu/cpu.h"

#define TRIAL_INPUTS 4

typedef struct trial {
    pons_kernel_kind kind;
    int input_count;
    pons_tensor input[TRIAL_INPUTS], output;
    const void *attributes;
    bool whole;     /* f32 and bf16 inputs hold small whole numbers: there are equal ones */
    int64_t most;   /* of i32 inputs: -1 .. most; 0: what a float can hold              */
    bool exact;     /* the result is one of the inputs' numbers: equal to the last bit    */
    bool packs;     /* input 1 may be packed                                              */
    int products, chain; /* of a sum, and of those that follow each other in it; 0: its rounding  */
                         /* is not looked at                                                      */
    bool library;   /* not ours: of one row, may be declined, bits may depend on threads     */
} trial;

/* Who makes the kernel. */
typedef pons_status (*trial_prepare)(cpu_device *device, const pons_request *request,
                                     pons_kernel *kernel, bool *supported, pons_error *err);

/* 0 .. n - 1 from a seed that goes on from call to call. */
int64_t trial_draw(int64_t n);
void trial_seed(uint64_t seed);

/*
 * Rows of kernels, one and two threads: supported, as the reference, the same bits for both.
 * False: the library declines it.
 */
bool trial_agrees(const trial *t, trial_prepare prepare);

#endif
