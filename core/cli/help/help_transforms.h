/*
 * help_transforms.h - the list of transforms, and the devices that each runs on.
 */
#ifndef CORE_CLI_HELP_HELP_TRANSFORMS_H
#define CORE_CLI_HELP_HELP_TRANSFORMS_H

#include <pons/plugin.h>

/* Print the transforms of [preprocess], of [augment], or with 'section' NULL of both. */
pons_status help_transforms_print(const char *section, pons_error *err);

#endif
