/*
 * autotune.h - [device] autotune: the fastest of the implementations that a library proposes.
 */
#ifndef PLUGINS_DEVICES_CUDA_AUTOTUNE_H
#define PLUGINS_DEVICES_CUDA_AUTOTUNE_H

#include <pons/device.h>
#include <stdio.h>

enum { AUTOTUNE_CANDIDATES = 16, AUTOTUNE_OPERANDS = 3 };

typedef struct autotune_trial {
    struct cuda_device *device;
    const char *request;       /* name of the request                                             */
    const char *kind;          /* plural noun for candidates: "engines"                           */
    int count;
    pons_tensor operand[AUTOTUNE_OPERANDS];
    size_t workspace[AUTOTUNE_CANDIDATES];
    /* Receive the memory of all later runs. Returns 0, or a status if none can run. May be NULL. */
    int (*begin)(void *context, void *const *operand, void *workspace);
    /*
     * Queue a run of candidate 'i' on the kernel stream. Returns 0, or a status if it does not run.
     */
    int (*run)(void *context, int i, void *const *operand, void *workspace);
    void *context;
} autotune_trial;

/*
 * Run all candidates in several rounds, on memory allocated meanwhile. *best is the fastest,
 * *seconds its time. A single candidate is the best without a run, with NaN seconds. *best is -1,
 * with NaN seconds, if none runs.
 */
pons_status autotune_run(const autotune_trial *t, int *best, double *seconds, pons_error *err);

/*
 * A stored choice is the candidate's name and the workspace limit at that time. Under a smaller
 * limit it is still the fastest that fits; under a larger one another candidate may be faster.
 */
enum { AUTOTUNE_NAME_SIZE = PONS_AUTOTUNE_ENTRY_SIZE - 32 };

typedef enum autotune_found {
    AUTOTUNE_NOT_FOUND = 0, /* no entry, or one for a smaller limit                               */
    AUTOTUNE_FOUND_UNTIMED, /* no candidate could be timed: choose as without autotuning          */
    AUTOTUNE_FOUND      /* 'name', which may exceed the workspace limit                           */
} autotune_found;

/*
 * Look up and store a choice in the device's autotune cache. An empty name means that no candidate
 * could be timed.
 */
autotune_found autotune_find(const struct cuda_device *d, const char *key,
                             char name[AUTOTUNE_NAME_SIZE]);
pons_status autotune_keep(const struct cuda_device *d, const char *key, const char *name,
                          double seconds, pons_error *err);

/* Append " NAME 1 2 3" to a key. */
void autotune_put_numbers(FILE *to, const char *name, int count, const int64_t *number);

#endif
