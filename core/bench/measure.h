/*
 * measure.h - time optimizer steps or batches of windows, and each kernel. No run folder is
 * touched.
 */
#ifndef CORE_BENCH_MEASURE_H
#define CORE_BENCH_MEASURE_H

#include "graph/program/explain.h"
#include "replica/programs.h"
#include "bench/scaling_model.h"

#define MEASURE_STEPS_MAX 1000
#define MEASURE_DIFFER 0.25 /* a larger difference is no noise of an idle machine */

typedef struct measure_settings {
    int warm_up, steps;
    bool forward;          /* a step is a batch of windows                                        */
    bool reference;        /* allow reference kernels; else they are PONS_DEVICE                  */
    bool data;             /* measure with the cases of the file too (not with 'forward')         */
    bool kernels;          /* measure each kernel and the peak of the device too                  */
    bool trace;            /* trace the sums that several replicas would need                     */
} measure_settings;

typedef struct measured_kernel {
    kernel_facts facts;
    char *name;            /* unique                                                              */
    int64_t calls;         /* per step                                                            */
    double seconds;        /* of all calls in a step, median over steps                           */
    double host_seconds;   /* likewise; host time to queue the calls                              */
} measured_kernel;

/* Sums over replicas, over all steps and this process's replicas. */
typedef struct measured_sums {
    /*
     * Share of the buckets' time, from start to done, that lies before the end of the backward
     * pass; NaN: a single replica.
     */
    double hidden;
    /*
     * The network between processes, fitted to sums of 8 bytes and of 4 MiB; zeros: a single
     * process, or no fit.
     */
    scaling_model_network network;
    /* A step of median length, of the replica that computed longest; no sums: not traced. */
    comm_trace_step step;
} measured_sums;

typedef struct measured {
    int count;
    double step[MEASURE_STEPS_MAX];    /* seconds of each step, without data                      */
    double processor;                  /* median processor seconds of a step, of all threads      */
    /*
     * Medians of seconds: begin, micro, reduce, update; on a device with a stream sums of its
     * kernels' seconds.
     */
    double section[4];
    double with_data;                  /* median seconds of a step with the loader; NaN: none     */
    uint64_t peak;                     /* peak memory of this process after the steps, bytes      */
    measured_sums sums;
    int kernel_count;
    measured_kernel *kernel;           /* kernels that ran, longest first                         */
    /*
     * The device's peak; zeros: unknown. It is measured before and after the kernels, and the
     * larger of both is kept.
     */
    pons_device_peak limits;
    double between;                    /* seconds of a step outside its kernels, median           */
    double limits_differ;         /* largest relative difference of both, in units of the smaller */
} measured;

double measure_median(int count, const double *value);
/* measured_clear is called after success and failure. */
pons_status measure_steps(experiment *e, const measure_settings *settings, measured *out,
                          pons_error *err);
void measured_clear(measured *m);

/*
 * measure_sums.c: fill out->sums after the steps of traced replicas; called by all processes
 * together.
 */
struct replicas;
pons_status measure_sums(const experiment *e, const struct replicas *r, measured *out,
                         pons_error *err);

/*
 * measure_peak.c: measure the peak; a second call keeps the larger and sets out->limits_differ.
 */
pons_status measure_peak(const device *d, measured *out, pons_error *err);

/* measure_kernels.c: the seconds of each kernel of 'p' while it is watched. */
typedef struct kernel_watch kernel_watch;

pons_status kernel_watch_open(program *p, int steps, kernel_watch **out, pons_error *err);
/* kernels that run from here belong to this step */
void kernel_watch_step(kernel_watch *w, int step);
/* Stop watching; fill out->kernel, and out->between from the seconds of each step. */
pons_status kernel_watch_close(kernel_watch *w, const double *step, measured *out,
                               pons_error *err);

#endif
