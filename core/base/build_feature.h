/*
 * build_feature.h - the optional libraries that configure looked for, and whether this build has
 * them.
 */
#ifndef CORE_BASE_BUILD_FEATURE_H
#define CORE_BASE_BUILD_FEATURE_H

#include <stdbool.h>

typedef struct build_feature {
    const char *name, *use;
    const char *package;  /* Debian packages, separated by blanks                                 */
    const char *kind;     /* kind of the plugin 'name' that needs it; "": none                    */
    bool there;
} build_feature;

extern const build_feature build_features[]; /* ends with a row without a name                    */

/* The feature that this build lacks and that the plugin needs; NULL where it lacks none. */
const build_feature *build_feature_missing(const char *kind, const char *name);

#endif
