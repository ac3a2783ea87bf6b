/*
 * loss_scaling.h - the changes of the factor of the loss in fp16 (R9).
 */
#ifndef CORE_GRAPH_OPTIMIZER_LOSS_SCALING_H
#define CORE_GRAPH_OPTIMIZER_LOSS_SCALING_H

#include <stdint.h>

typedef struct loss_scaling {
    double growth;            /* factor after 'interval' applied steps in a row                   */
    double backoff;           /* factor after a step that was not applied                         */
    int64_t interval;
} loss_scaling;

/* Those of torch's GradScaler. */
#define LOSS_SCALING_DEFAULT { 2, 0.5, 2000 }

#endif
