/*
 * pipeline.h - the steps of [preprocess] or [augment]: transform plugins with their options.
 */
#ifndef CORE_DATA_TRANSFORM_PIPELINE_H
#define CORE_DATA_TRANSFORM_PIPELINE_H

#include "base/log.h"
#include "config/config.h"
#include <pons/transform.h>

/* Words of a set of the channels that 'channels' can name. */
enum { STEP_CHANNEL_WORDS = 1024 / 64 };

/* The cases that a step changes. Those of a prediction count as those of validation. */
typedef enum pipeline_cases {
    PIPELINE_TRAINING = 1, PIPELINE_VALIDATION = 2, PIPELINE_ALL = 3
} pipeline_cases;

typedef struct pipeline_step {
    const char *name;        /* as in 'steps'; its section is SECTION.NAME                        */
    const char *plugin;
    const char *sha256;      /* hash of the plugin's file, for cache keys                         */
    const char *version;
    const char *path;        /* of the plugin's file                                              */
    const pons_transform_operations *operations;
    const pons_option *options;
    const void *config;
    pipeline_cases cases;
    bool restricted;         /* to 'channels'                                                     */
    uint64_t channels[STEP_CHANNEL_WORDS];
} pipeline_step;

typedef struct pipeline {
    int count;
    pipeline_step *step;
} pipeline;

/*
 * Read [section] steps (absent: none), load the plugins and fill their options. 'random': every
 * step must be random; else none may be. The pipeline must not outlive 'c'. A channel of
 * 'channels' or above (0: unknown) is PONS_CONFIG.
 */
pons_status pipeline_open(config *c, const char *section, bool random, int channels,
                          pipeline **out, pons_error *err);
void pipeline_close(pipeline *chain);
/* The channels of a step, for its plugin; without a receiver of warnings. */
pons_transform_scope volume_step_scope(const pipeline_step *step);
/* The three numbers of an option of a step; NULL: the step has no such option. */
const double *pipeline_step_axes(const pipeline_step *step, const char *name);
/* Whether a step is of that plugin. */
bool pipeline_has(const pipeline *chain, const char *plugin);
/* Whether cases for training and for validation have the same steps that move voxels. */
bool pipeline_moves_alike(const pipeline *chain);
/* Whether a deterministic step is for cases of training, or of validation, alone. */
bool pipeline_tells_cases(const pipeline *chain);
/* The name of the step that chooses the patch's box; NULL: none. */
const char *pipeline_cropping_step(const pipeline *augment);
/*
 * Apply the deterministic steps of such cases in order. Warnings go to 'l' (may be NULL) with the
 * case's name.
 */
pons_status pipeline_apply(const pipeline *chain, pipeline_cases cases, pons_case *c, logger *l,
                           pons_error *err);

/* Whether a random transform has a form for devices. */
bool pipeline_device_can(const pons_transform_operations *o);
/* PONS_CONFIG for a step of [augment] that a device cannot do; needed with cache = device. */
pons_status pipeline_check_device(const pipeline *augment, pons_error *err);

#endif
