/*
 * memory_estimate.h - how much memory a training will need, before it begins.
 */
#ifndef CORE_BENCH_MEMORY_ESTIMATE_H
#define CORE_BENCH_MEMORY_ESTIMATE_H

#include "replica/programs.h"

typedef struct forecast {
    double arena;       /* tensors of a step, reused                                              */
    double parameters;  /* with states, slots and averages                                        */
    double scratch;     /* packed weights, inputs, sums of gradients; a checkpoint on its way     */
    double libraries;   /* the program itself and what it has loaded, measured                    */
    double cache;       /* preprocessed cases                                                     */
    double loader;      /* patches ahead; what a validation case wants                            */
    double sums;        /* of its windows, where a device with memory of its own adds them up     */
    double peak;        /* all of it                                                              */
} forecast;

/*
 * 'evaluation' may be NULL. Call it when the programs have been built and nothing has run: memory
 * that nothing has touched is not counted twice. Cases are judged by their headers.
 */
pons_status forecast_make(const experiment *e, const storage *s, const program *training,
                          const program *evaluation, forecast *out, pons_error *err);

#endif
