/*
 * saved_state.h - the progress of a training and its choices, as a checkpoint holds them.
 *
 * trainer.safetensors holds the numbers as tensors, and as metadata every option ('[train] batch'),
 * resolved choice and case of the run.
 */
#ifndef CORE_CHECKPOINT_SAVED_STATE_H
#define CORE_CHECKPOINT_SAVED_STATE_H

#include "graph/passes/precision.h"
#include "checkpoint/safetensors.h"

#define SAVED_STATE_FILE "trainer.safetensors"
#define SAVED_STATE_DEBUG "debug" /* metadata that only runs with --debug have */

enum { SAVED_CHOICES = 3, SAVED_TENSORS = 14 };

typedef struct trainer_state {
    int64_t step;           /* steps attempted so far                                             */
    int64_t applied;        /* of these, not skipped                                              */
    int64_t validated;      /* step of the last validation, 0: none                               */
    int64_t best_step;      /* 0: none                                                            */
    int64_t best_undefined; /* values that the best validation lacks                              */
    int64_t stale;          /* validations since the best one                                     */
    int64_t finished;       /* 1: by early_stop                                                   */
    int64_t total;          /* steps that the run was to have                                     */
    int64_t scale, sound;   /* fp16: logarithm of the loss's scale; steps applied with it         */
    double best;
} trainer_state;

/* A checkpoint's, as it was saved. */
typedef struct saved_state {
    trainer_state state;
    safetensors *file;      /* trainer.safetensors                                                */
    int micro_batches, threads, channels;
    precision precision;
    bool debug;             /* of a run with --debug                                              */
} saved_state;

pons_status saved_state_read(const char *checkpoint, saved_state *out, pons_error *err);
void saved_state_clear(saved_state *s);

/*
 * The tensors of trainer.safetensors; their data are those of 'state' and 'choices'. The choices
 * are micro-batches of a step, threads and channels.
 */
void saved_state_tensors(const trainer_state *state, const int64_t choices[SAVED_CHOICES],
                         safetensor out[SAVED_TENSORS]);

#endif
