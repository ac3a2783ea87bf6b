/*
 * checkpoint_contents.h - the finished list of what a checkpoint holds: files of tensors, facts.
 *
 * The builder copies every tensor, so that a thread can write the list while training goes on. It
 * costs one copy of parameters, states, slots and averages, in memory that is kept for the next
 * one. checkpoint_write turns the list into a folder; marks and pruning are the trainer's.
 */
#ifndef CORE_TRAIN_CHECKPOINT_CONTENTS_H
#define CORE_TRAIN_CHECKPOINT_CONTENTS_H

#include "checkpoint/saved_state.h"
#include "checkpoint/tensor_names.h"
#include "experiment/provenance.h"

enum { CONTENTS_WEIGHTS_MAX = 3 };

/* A file of weights and the groups of the storage that it holds. */
typedef struct contents_weights {
    const char *name;
    unsigned groups;
} contents_weights;

/* The file at 'index', NULL behind the last one: ema.safetensors only with [train] ema_decay. */
const contents_weights *checkpoint_contents_weights(const experiment *e, int index);
tensor_format checkpoint_contents_format(const experiment *e);

typedef struct checkpoint_contents {
    checkpoint_list list;    /* of the members below and of texts of the experiment               */
    checkpoint_file file[CONTENTS_WEIGHTS_MAX + 1];
    int weights_count;
    tensor_names_list weights[CONTENTS_WEIGHTS_MAX];
    trainer_state state;     /* trainer.safetensors: its numbers, tensors and metadata            */
    int64_t choices[SAVED_CHOICES];
    safetensor number[SAVED_TENSORS];
    char *text;
    const char *(*pair)[2];
    provenance maker;
    void *memory;            /* of the copied weights; kept for the next contents                 */
    size_t size;
} checkpoint_contents;

/* Get memory for copies of 's'. A failure shows when contents are made. */
void checkpoint_contents_reserve(checkpoint_contents *c, const experiment *e, const storage *s);
/* Touch the reserved pages, which the first time takes longer than to copy. Any thread. */
void checkpoint_contents_touch(checkpoint_contents *c);
/*
 * Copy 's' and 'state'; the numbers that the update section counts come from 's'. The contents that
 * 'c' had are gone. 'c' stays where it is until it is cleared.
 */
pons_status checkpoint_contents_make(checkpoint_contents *c, const experiment *e, const storage *s,
                                     const trainer_state *state, pons_error *err);
/* PONS_FAILURE with the tensor's name if an element is not finite. Any thread. */
pons_status checkpoint_contents_check(const checkpoint_contents *c, pons_error *err);
void checkpoint_contents_clear(checkpoint_contents *c);
/* Read the weights of [train] pretrained into 's', if there is one. */
pons_status checkpoint_contents_load_pretrained(const experiment *e, storage *s, pons_error *err);
/* Bytes of memory that contents of 's' take. */
double checkpoint_contents_size(const experiment *e, const storage *s);

#endif
