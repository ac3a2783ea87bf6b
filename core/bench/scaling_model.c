/*
 * scaling_model.c - a step played through with the sums of another number of devices.
 */
#include "bench/scaling_model.h"

#include <math.h>
#include <stdlib.h>

static double rounds(scaling_way way, int devices)
{
    return way == SCALING_RING ? devices - 1 : ceil(log2(devices));
}

double scaling_sum_seconds(const scaling_network *n, scaling_way way, int devices, int64_t size)
{
    double p = devices, transfer = (double)size / n->bandwidth;

    if (n->collected)
        return rounds(way, devices) * n->latency + (p - 1) * transfer;
    return 2 * rounds(way, devices) * n->latency + 2 * (p - 1) / p * transfer;
}

bool scaling_fit(int count, const int64_t *size, const double *seconds, int devices,
                 scaling_network *n)
{
    double x = 0, y = 0, xx = 0, xy = 0, latency, inverse;
    const scaling_network message = { 1, INFINITY, n->collected }, byte = { 0, 1, n->collected };

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
    inverse = xy / xx / scaling_sum_seconds(&byte, SCALING_RING, devices, 1);
    latency = (y - x * xy / xx) / scaling_sum_seconds(&message, SCALING_RING, devices, 0);
    if (!(latency > 0))
        return false;
    n->latency = latency;
    n->bandwidth = 1 / inverse;
    return true;
}

/* A start or a wait. */
typedef struct moment {
    int sum;
    bool wait;
} moment;

pons_status scaling_predict(const trace_step *s, const scaling_network *n, scaling_way way,
                            int devices, double *seconds, pons_error *err)
{
    moment *order = calloc(2 * (size_t)s->count + 1, sizeof *order);
    double *done = calloc((size_t)s->count + 1, sizeof *done);
    double late = 0, free_at = 0;

    if (order == NULL || done == NULL) {
        free(order);
        free(done);
        return pons_fail(err, PONS_DEVICE, "out of memory for a step with %d sums", s->count);
    }
    for (int i = 0; i < s->count; i++) {
        order[s->sum[i].start_order] = (moment){ i, false };
        order[s->sum[i].wait_order] = (moment){ i, true };
    }
    for (int k = 0; k < 2 * s->count; k++) {
        int i = order[k].sum;
        if (order[k].wait) {
            late = fmax(late, done[i] - s->sum[i].wait);
            continue;
        }
        free_at = fmax(free_at, s->sum[i].start + late)
                + scaling_sum_seconds(n, way, devices, s->sum[i].size);
        done[i] = free_at;
    }
    *seconds = s->compute + late;
    free(order);
    free(done);
    return PONS_OK;
}
