/*
 * trainer_state.h - what a checkpoint knows beside tensors: how far training came, and with what.
 *
 * trainer.safetensors holds the numbers as tensors, and as metadata every option ('[train] batch'),
 * resolved choice and case of the run.
 */
#ifndef CORE_TRAIN_TRAINER_STATE_H
#define CORE_TRAIN_TRAINER_STATE_H

#include "train/checkpoint.h"
#include "train/experiment.h"

typedef struct trainer_state {
    int64_t step;           /* steps attempted so far                                             */
    int64_t applied;        /* of these, not skipped                                              */
    int64_t validated;      /* step of the last validation, 0: none                               */
    int64_t best_step;      /* 0: none                                                            */
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
 * R31: an option that may not change while a run goes on, or the cases of training and validation
 * differ: PONS_CONFIG with key and both values, or the case. The caller knows what can be done and
 * adds the hint.
 */
pons_status saved_state_compare(const saved_state *s, const experiment *e, pons_error *err);
/*
 * The same of a prediction's options, but for sections with a --set: PONS_DATA where the run's file
 * 'path' has a value with which 'checkpoint' was not made.
 */
pons_status saved_state_check(const char *checkpoint, const char *path, const experiment *e,
                              int set_count, const char *const *set, pons_error *err);
/*
 * When the cases have been read: a warning for one whose files hold something else than then. A
 * value that is given but stays as the run began is told as well, and the configuration gets the
 * run's own.
 */
void saved_state_keep(const saved_state *s, const experiment *e);

/* trainer.safetensors of a checkpoint to be written. */
typedef struct state_content {
    safetensors_content content;
    trainer_state state;
    int64_t choices[3];
    safetensor item[16];
    char *text;             /* of the metadata                                                    */
    const char *(*pair)[2];
} state_content;

pons_status state_content_make(state_content *out, const trainer_state *state, const experiment *e,
                               pons_error *err);
void state_content_clear(state_content *c);

#endif
