/*
 * trainer_state.h - trainer.safetensors of a checkpoint to be written (saved_state.h).
 */
#ifndef CORE_TRAIN_TRAINER_STATE_H
#define CORE_TRAIN_TRAINER_STATE_H

#include "experiment/experiment.h"
#include "checkpoint/saved_state.h"

typedef struct state_content {
    safetensors_content content;
    trainer_state state;
    int64_t choices[SAVED_CHOICES];
    safetensor item[SAVED_TENSORS];
    char *text;             /* of the metadata                                                    */
    const char *(*pair)[2];
} state_content;

pons_status state_content_make(state_content *out, const trainer_state *state, const experiment *e,
                               pons_error *err);
void state_content_clear(state_content *c);

#endif
