/*
 * window_scheduler.h - predict volumes on several devices of this process, window by window.
 *
 * Each device takes the next batch of windows of the oldest unfinished volume and blends it in
 * order of batches. So one volume uses all devices, and the bits are those of a single device. A
 * device holds no volume: its memory is its program and, with mirroring, one batch of logits. Two
 * threads of lower priority prepare the next volume and use finished planes meanwhile.
 */
#ifndef CORE_INFER_WINDOW_SCHEDULER_H
#define CORE_INFER_WINDOW_SCHEDULER_H

#include "cluster/group/group.h"
#include "replica/replicas.h"
#include "window/window_blend.h"

/* A volume, filled by 'prepare'. */
typedef struct window_scheduler_volume {
    /*
     * The network whose evaluation programs predict it. Networks of all volumes share their
     * replica threads.
     */
    const replicas *network;
    int64_t extent[3];
    const float *image;       /* [extent][channels]; NULL: there is nothing to predict            */
    bool one_flip;            /* windows are flipped along the axes 'flip' in place of [window]   */
    unsigned flip;            /* mirror; bit a: axis a                                            */
    uint64_t sample;          /* key of the network's random numbers, with the batch              */
    void *caller_data;        /* of the caller                                                    */
} window_scheduler_volume;

/* The callbacks are called in order of volumes, and none by two threads at the same time. */
typedef struct window_scheduler_work {
    int count;
    bool host_sums;           /* no device accumulates windows; true where a volume has one_flip  */
    /*
     * Processes that divide the windows of each volume; NULL: a single process. All prepare all
     * volumes, and rank 0 alone takes and finishes them.
     */
    group *shared;
    pons_status (*prepare)(void *context, int number, window_scheduler_volume *out,
                           pons_error *err);
    /*
     * Planes first .. end - 1 along i are predicted, in order. window_blend_take gives their logits
     * and must be called once for each voxel before 'take' returns. Other planes are predicted
     * meanwhile, or wait for room.
     */
    pons_status (*take)(void *context, int number, window_scheduler_volume *v, blender *s,
                        int64_t first, int64_t end, pons_error *err);
    /* Called after all planes are taken. */
    pons_status (*finish)(void *context, int number, window_scheduler_volume *v, pons_error *err);
    /* Called after 'finish', or instead of it after an error. */
    void (*release)(void *context, window_scheduler_volume *v);
    bool (*stop)(void *context);  /* called before every batch, by any device; may be NULL        */
    void *context;
} window_scheduler_work;

/* The largest number of planes along i that 'take' gets at a time. */
int64_t window_scheduler_slab(const int64_t extent[3], int classes);

/*
 * Run all volumes. With 'shared' each process has one device, and the group has no other user
 * meanwhile. The first error ends the run; PONS_INTERRUPTED: 'stop' returned true. Memory is the
 * image of the next volume and the planes (window_blend_bytes) of begun volumes; more than one
 * volume begins only within a quarter of the machine's memory.
 */
pons_status window_scheduler_run(const replicas *r, const window_scheduler_work *work,
                                 pons_error *err);

#endif
