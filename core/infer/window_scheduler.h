/*
 * window_scheduler.h - volumes through the network of several devices of this process, window by
 * window.
 *
 * Each device takes the next batch of windows of the oldest volume that has one left, and blends it
 * when its turn comes. So one volume is predicted by all devices as well as many are, the bits are
 * those of one device, and a device holds no volume: its program and, for mirroring, one batch of
 * logits. Meanwhile the next volume is made ready, and planes that are done are used up, each by a
 * thread of lower priority.
 */
#ifndef CORE_INFER_WINDOW_SCHEDULER_H
#define CORE_INFER_WINDOW_SCHEDULER_H

#include "cluster/group/group.h"
#include "replica/replicas.h"
#include "window/window_blend.h"

/* A volume, as 'prepare' makes it. */
typedef struct spread_volume {
    const replicas *network;  /* whose evaluation programs predict it; those of all volumes have  */
                              /* one crew                                                         */
    int64_t extent[3];
    const float *image;       /* [extent][channels]; NULL: nothing is to be predicted             */
    void *held;               /* the caller's                                                     */
} spread_volume;

/* Each of these is called in order of volumes, and none of them by two threads at the same time. */
typedef struct spread_work {
    int count;
    group *shared;            /* processes that share the windows of each volume out; NULL: this  */
                              /* one alone. All prepare all volumes, rank 0 alone finishes them   */
    pons_status (*prepare)(void *context, int number, spread_volume *out, pons_error *err);
    /*
     * Planes first .. end - 1 along i are predicted, all of them one after the other: their logits
     * come from stitch_take, which wants every voxel once before this returns. Meanwhile others are
     * predicted, and wait where there is no room for them.
     */
    pons_status (*take)(void *context, int number, spread_volume *v, stitch *s, int64_t first,
                        int64_t end, pons_error *err);
    /* All planes are taken. */
    pons_status (*finish)(void *context, int number, spread_volume *v, pons_error *err);
    /* After 'finish', or when none will come. */
    void (*release)(void *context, spread_volume *v);
    bool (*stop)(void *context);  /* asked before every batch, by any device; may be NULL         */
    void *context;
} spread_work;

/*
 * With 'shared' each process has one device, and nobody else uses the group meanwhile.
 * The first failure ends it: PONS_INTERRUPTED where 'stop' said so. Memory: the image of the next
 * volume, and the planes that are held (stitch_bytes) of one or more volumes, of more than one no
 * more than a quarter of the machine's memory.
 */
pons_status spread_run(const replicas *r, const spread_work *work, pons_error *err);

#endif
