/*
 * build_feature.h - what configure has looked for, and whether it is in this build.
 */
#ifndef CORE_BASE_BUILD_FEATURE_H
#define CORE_BASE_BUILD_FEATURE_H

#include <stdbool.h>

typedef struct build_part {
    const char *name, *use;
    const char *package;  /* Debian's, with blanks between several                                */
    const char *kind;     /* of the plugin of that name which needs it; "": none                  */
    bool there;
} build_part;

extern const build_part build_parts[]; /* up to one without a name                                */

/* The part that a plugin of this build would need, had it been there; else NULL. */
const build_part *part_lacking(const char *kind, const char *name);

#endif
