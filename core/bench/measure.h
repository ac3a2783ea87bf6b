/*
 * measure.h - the time of optimizer steps or of batches of windows, and of each kernel; no run
 * folder is touched.
 */
#ifndef CORE_BENCH_MEASURE_H
#define CORE_BENCH_MEASURE_H

#include "graph/program/explain.h"
#include "replica/programs.h"
#include "bench/scaling_model.h"

#define MEASURE_STEPS_MAX 1000
#define MEASURE_DIFFER 0.25 /* more is no noise of a machine that has nothing else to do */

typedef struct measure_settings {
    int warm_up, steps;
    bool forward;          /* a step is one batch of windows instead                              */
    bool reference;        /* also where a kernel is the plain one, PONS_DEVICE otherwise         */
    bool data;             /* also with the cases of the file (not with 'forward')                */
    bool kernels;          /* also each kernel, and the limits of the device                      */
    bool trace;            /* also the sums of a step that several replicas would have            */
} measure_settings;

typedef struct measured_kernel {
    kernel_facts facts;
    char *name;            /* no other kernel's                                                   */
    int64_t calls;         /* in a step                                                           */
    double seconds;        /* of these together, median over steps                                */
    double host_seconds;   /* likewise: until this process had put them into the device's queue   */
} measured_kernel;

/* The sums over replicas, of all steps and of this process's replicas. */
typedef struct measured_sums {
    double hidden;                     /* share of the buckets' time from start to done that lies */
                                       /* before the end of the backward pass; NaN: no replicas   */
    scaling_network network;           /* between the processes, by sums of 8 bytes and of 4 MiB; */
                                       /* zeros: there are none, or no network takes such times   */
    trace_step step;                   /* one of median length, of the replica that computed      */
                                       /* longest; no sums: it was not traced                     */
} measured_sums;

typedef struct measured {
    int count;
    double step[MEASURE_STEPS_MAX];    /* seconds of each step, without data                      */
    double section[4];                 /* of these, medians: begin, micro, reduce, update; on a   */
                                       /* device with a queue the sums of its kernels' seconds    */
    double with_data;                  /* seconds of a step with the loader, median; NaN: none    */
    uint64_t peak;                     /* bytes of this process when the steps were done          */
    measured_sums sums;
    int kernel_count;
    measured_kernel *kernel;           /* those that ran, longest first                           */
    pons_device_peak limits;         /* zeros: the device does not tell; of two times, before   */
                                       /* the kernels were timed and after, the larger of each    */
    double between;                    /* seconds of a step in none of its kernels, median        */
    double limits_differ;              /* by how much of the smaller, at most                     */
} measured;

double measure_median(int count, const double *value);
/* measured_clear after success and failure. */
pons_status measure_steps(const experiment *e, const measure_settings *settings, measured *out,
                          pons_error *err);
void measured_clear(measured *m);

/* measure_sums.c: fill out->sums after the steps of traced replicas; all processes together. */
struct replicas;
pons_status measure_sums(const experiment *e, const struct replicas *r, measured *out,
                         pons_error *err);

/* measure_limits.c: into out->limits, and out->limits_differ where there are some already. */
pons_status measure_limits(const device *d, measured *out, pons_error *err);

/* measure_kernels.c: seconds of each kernel of 'p' while it is watched. */
typedef struct kernel_watch kernel_watch;

pons_status kernel_watch_open(program *p, int steps, kernel_watch **out, pons_error *err);
void kernel_watch_step(kernel_watch *w, int step); /* what runs now belongs to this step          */
/* Into out->kernel and, of the seconds of each step, out->between; it is not watched any more. */
pons_status kernel_watch_close(kernel_watch *w, const double *step, measured *out,
                               pons_error *err);

#endif
