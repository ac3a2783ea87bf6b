/*
 * augment_profile.h - named lists of random steps: [augment] profile.
 */
#ifndef CORE_CONFIG_AUGMENT_PROFILE_H
#define CORE_CONFIG_AUGMENT_PROFILE_H

#include "config/config.h"

/* Names of the profiles; the first one has no steps. */
extern const char *const augment_profile_words[];

/*
 * Add the steps of the profile that the file names, and their options, as far as the file does not
 * give them. Sections [augment.NAME] of other names are added to the steps, in the order of the
 * file. Steps that the file lists are those that there are; the profile gives their options.
 */
pons_status augment_profile_expand(config *c, pons_error *err);

#endif
