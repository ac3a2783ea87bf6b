/*
 * scaling_model.c - replay a traced step with the sums of another number of devices.
 */
#include "bench/scaling_model.h"

#include <math.h>
#include <stdlib.h>

static double round_count(scaling_model_algorithm algorithm, int devices)
{
    return algorithm == SCALING_MODEL_RING ? devices - 1 : ceil(log2(devices));
}

double scaling_model_sum_seconds(const scaling_model_network *n, scaling_model_algorithm algorithm,
                                 int devices, int64_t size)
{
    double p = devices, transfer = (double)size / n->bandwidth;

    if (n->collected)
        return round_count(algorithm, devices) * n->latency + (p - 1) * transfer;
    return 2 * round_count(algorithm, devices) * n->latency + 2 * (p - 1) / p * transfer;
}

bool scaling_model_fit(int count, const int64_t *size, const double *seconds, int devices,
                       scaling_model_network *n)
{
    double x = 0, y = 0, xx = 0, xy = 0, latency, inverse;
    const scaling_model_network message = { 1, INFINITY, n->collected }, byte = { 0, 1,
        n->collected };

    for (int i = 0; i < count; i++) {
        x += (double)size[i] / count;
        y += seconds[i] / count;
    }
    for (int i = 0; i < count; i++) {
        xx += ((double)size[i] - x) * ((double)size[i] - x);
        xy += ((double)size[i] - x) * (seconds[i] - y);
    }
    if (!(xx > 0) || !(xy > 0))
        return false;
    inverse = xy / xx / scaling_model_sum_seconds(&byte, SCALING_MODEL_RING, devices, 1);
    latency = (y - x * xy / xx) / scaling_model_sum_seconds(&message, SCALING_MODEL_RING, devices,
                                                            0);
    if (!(latency > 0))
        return false;
    n->latency = latency;
    n->bandwidth = 1 / inverse;
    return true;
}

/* The start or the wait of a sum. */
typedef struct sum_event {
    int sum;
    bool wait;
} sum_event;

pons_status scaling_model_predict(const comm_trace_step *s, const scaling_model_network *n,
                                  scaling_model_algorithm algorithm,
                                  int devices, double *seconds, pons_error *err)
{
    sum_event *order = calloc(2 * (size_t)s->count + 1, sizeof *order);
    double *done = calloc((size_t)s->count + 1, sizeof *done);
    double late = 0, free_at = 0;

    if (order == NULL || done == NULL) {
        free(order);
        free(done);
        return pons_fail(err, PONS_DEVICE, "out of memory for a step with %d sums", s->count);
    }
    for (int i = 0; i < s->count; i++) {
        order[s->sum[i].start_order] = (sum_event){ i, false };
        order[s->sum[i].wait_order] = (sum_event){ i, true };
    }
    for (int k = 0; k < 2 * s->count; k++) {
        int i = order[k].sum;
        if (order[k].wait) {
            late = fmax(late, done[i] - s->sum[i].wait);
            continue;
        }
        free_at = fmax(free_at, s->sum[i].start + late)
                + scaling_model_sum_seconds(n, algorithm, devices, s->sum[i].size);
        done[i] = free_at;
    }
    *seconds = s->compute + late;
    free(order);
    free(done);
    return PONS_OK;
}
