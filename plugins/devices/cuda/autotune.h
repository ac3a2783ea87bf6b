/*
 * autotune.h - [device] autotune: of several ways to compute the same, which a library proposes,
 * the fastest.
 */
#ifndef PLUGINS_DEVICES_CUDA_AUTOTUNE_H
#define PLUGINS_DEVICES_CUDA_AUTOTUNE_H

#include <pons/device.h>
#include <stdio.h>

enum { CUDA_CANDIDATES = 16, CUDA_OPERANDS = 3 };

typedef struct cuda_trial {
    struct cuda_device *device;
    const char *request;       /* its name                                                        */
    const char *kind;          /* what candidates are called: "engines"                           */
    int count;
    pons_tensor operand[CUDA_OPERANDS];
    size_t workspace[CUDA_CANDIDATES];
    /* The memory of all runs to come. 0, or a status: none can run. NULL: nobody needs to know. */
    int (*begin)(void *context, void *const *operand, void *workspace);
    /* Put a run of candidate 'i' on the queue of kernels. 0, or a status: it does not run. */
    int (*run)(void *context, int i, void *const *operand, void *workspace);
    void *context;
} cuda_trial;

/*
 * Run all of them a few times, each in turn, on memory that is theirs meanwhile: *best is the
 * fastest and *seconds what it takes; the only one is that without a run, and where none runs it is
 * -1, both with NaN.
 */
pons_status cuda_try(const cuda_trial *t, int *best, double *seconds, pons_error *err);

/*
 * What is kept of a choice: the name of what was chosen, and the workspace that it could have. In
 * no more than that it is the fastest still, where it fits; in more another one may be.
 */
enum { CUDA_NAME_SIZE = PONS_AUTOTUNE_ENTRY_SIZE - 32 };

typedef enum cuda_found {
    CUDA_NOT_FOUND = 0, /* also where there is more room now, and kernels are timed               */
    CUDA_FOUND_UNTIMED, /* it could not be: as without timing                                     */
    CUDA_FOUND          /* 'name', which may not fit any more                                     */
} cuda_found;

/* By the device's tuning, for its workspace. name: "": it could not be timed. */
cuda_found cuda_find_choice(const struct cuda_device *d, const char *key,
                            char name[CUDA_NAME_SIZE]);
pons_status cuda_keep_choice(const struct cuda_device *d, const char *key, const char *name,
                             double seconds, pons_error *err);

/* For keys: " NAME 1 2 3". */
void cuda_put_numbers(FILE *to, const char *name, int count, const int64_t *number);

#endif
