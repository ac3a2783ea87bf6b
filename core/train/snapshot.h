/*
 * snapshot.h - a copy of all that a checkpoint holds, written while training goes on.
 *
 * Taking it costs one copy of parameters, states, slots and averages, in memory that is kept for
 * the next one. The folder's other duties (marks, pruning) are the trainer's.
 */
#ifndef CORE_TRAIN_SNAPSHOT_H
#define CORE_TRAIN_SNAPSHOT_H

#include "experiment/provenance.h"
#include "train/trainer_state.h"
#include "checkpoint/tensor_names.h"

enum { SNAPSHOT_LISTS_MAX = 3 };

/* The files of weights, by index: the last one only with [train] ema_decay. */
int snapshot_list_count(const experiment *e);
const char *snapshot_list_file(int index);
unsigned snapshot_list_groups(int index);
weights_format snapshot_format(const experiment *e);

typedef struct snapshot {
    int list_count;
    weights_list list[SNAPSHOT_LISTS_MAX];
    state_content state;
    provenance maker;
    const char *resolved;    /* config_written; the configuration's                               */
    const char *run;         /* its identity; the experiment's                                    */
    const char *geometry;    /* the experiment's                                                  */
    void *memory;            /* of the lists                                                      */
    size_t size;
} snapshot;

/* Memory for copies of 's'; none is no failure yet. */
void snapshot_reserve(snapshot *out, const experiment *e, const storage *s);
/* Its pages: to touch them for the first time takes longer than to copy. Any thread. */
void snapshot_touch(snapshot *s);
/* Copy 's' and 'state'. What an earlier one held is gone, so it must have been written. */
pons_status snapshot_take(snapshot *out, const experiment *e, const storage *s,
                          const trainer_state *state, pons_error *err);
/*
 * Numbers that are not finite are not written: PONS_FAILURE with the tensor's name, and the folder
 * is as it was. Any thread; reads nothing but the snapshot and the names of the storage's tensors.
 */
pons_status snapshot_write(const snapshot *s, const char *folder, pons_error *err);
void snapshot_clear(snapshot *s);
/* Bytes of memory that snapshots of 's' take. */
double snapshot_size(const experiment *e, const storage *s);

#endif
