/*
 * label_runs.h - runs of voxels with equal labels, so that counting and comparing labels costs as
 * much as their runs.
 */
#ifndef CORE_METRIC_LABEL_RUNS_H
#define CORE_METRIC_LABEL_RUNS_H

#include "data/volume/volume.h"

/* The value of an element of a U8 or I32 volume; element v * channels + c is of voxel v. */
static inline int32_t label_at(const volume *v, int64_t element)
{
    return v->type == PONS_U8 ? ((const uint8_t *)v->voxels)[element]
                              : ((const int32_t *)v->voxels)[element];
}

/*
 * The end of the run of equal values that begins at voxel 'first': the first voxel with another
 * value of 'channel', at most 'end'.
 */
int64_t label_run_end(const volume *v, int channel, int64_t first, int64_t end);

/* A scan of two volumes of equal extents and channels; their types may differ. */
typedef struct label_scan {
    const volume *prediction, *label;
    int channel;
    int64_t at, end;          /* voxels that are left                                             */
    int64_t prediction_end, label_end; /* of the runs at 'at'; not above it: not known            */
} label_scan;

/* Voxels first .. end - 1, in which both volumes have one value. */
typedef struct label_run {
    int32_t prediction, label;
    int64_t first, end;
} label_run;

/* Take the next run; false: there is none. */
bool label_scan_next(label_scan *s, label_run *out);

#endif
