/*
 * pipeline.h - the steps of [preprocess] or [augment]: plugins with their filled options.
 */
#ifndef CORE_DATA_TRANSFORM_PIPELINE_H
#define CORE_DATA_TRANSFORM_PIPELINE_H

#include "base/log.h"
#include "config/config.h"
#include <pons/transform.h>

typedef struct volume_step {
    const char *name;        /* as in 'steps', the section is SECTION.NAME                        */
    const char *plugin;
    const char *sha256;      /* of the plugin's file, for cache keys                              */
    const char *version;
    const pons_transform_operations *operations;
    const pons_option *options;
    const void *config;
    uint64_t channels;
} volume_step;

typedef struct volume_chain {
    int count;
    volume_step *step;
} volume_chain;

/*
 * Read [section] steps (absent: none), load the plugins, fill their options. random: every step
 * must be random, else none may be. The chain lives no longer than 'c'. A channel beyond 'channels'
 * (0: not known) is PONS_CONFIG.
 */
pons_status volume_chain_open(config *c, const char *section, bool random, int channels,
                              volume_chain **out, pons_error *err);
void volume_chain_close(volume_chain *chain);
/* Whether a step is of that plugin. */
bool volume_chain_has(const volume_chain *chain, const char *plugin);
/* Apply deterministic steps in order. Warnings go to 'l' (may be NULL) with the case's name. */
pons_status volume_chain_apply(const volume_chain *chain, pons_case *c, logger *l,
                               pons_error *err);

/* [augment] on a device that cuts the patches: PONS_CONFIG for a step that only the host can do. */
pons_status volume_chain_check_device(const volume_chain *augment, pons_error *err);

#endif
