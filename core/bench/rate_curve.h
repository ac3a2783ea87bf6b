/*
 * rate_curve.h - the losses of a sweep of the learning rate, and the rates that they suggest
 * (Smith 2017, arXiv:1506.01186; fastai's lr_find and its valley, steep and minimum).
 */
#ifndef CORE_BENCH_RATE_CURVE_H
#define CORE_BENCH_RATE_CURVE_H

#include <stdbool.h>

enum { RATE_CURVE_MAX = 1000 };

/* The sweep: 'steps' rates from 'start' up to 'end', which is not reached, by equal factors. */
typedef struct rate_sweep {
    double start, end;
    int steps;
} rate_sweep;

typedef struct rate_curve {
    int count;                /* losses so far                                                    */
    double average;           /* exponential moving average, not corrected                        */
    double best;              /* smallest smoothed loss                                           */
    double rate[RATE_CURVE_MAX], loss[RATE_CURVE_MAX], smooth[RATE_CURVE_MAX];
} rate_curve;

/* A part of a curve. */
typedef struct rate_span {
    int count;                /* below 2: too short                                               */
    const double *rate, *smooth, *loss;
} rate_span;

/* NaN: the part is too short. */
typedef struct rate_suggestion {
    double valley;            /* halfway along the longest fall of the smoothed loss              */
    double steep;             /* where it falls fastest over the logarithm of the rate            */
    double minimum;           /* a tenth of the rate of its minimum                               */
} rate_suggestion;

double rate_sweep_at(const rate_sweep *s, int step);
/*
 * Add the loss of the next rate. The smoothed loss is v = 0.98 v + 0.02 loss, divided by
 * 1 - 0.98^count. Returns false if the sweep ends: it lies above the smallest by more than three
 * times that, or the loss is not finite, which is not added.
 */
bool rate_curve_add(rate_curve *c, double rate, double loss);
/* The part that counts: without the first tenth of 'steps' and the last five losses. */
rate_span rate_curve_span(const rate_curve *c, int steps);
rate_suggestion rate_curve_suggest(const rate_span *s);

#endif
