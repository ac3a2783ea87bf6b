/*
 * build_feature.c - the table of optional libraries that configure has written.
 */
#include "base/build_feature.h"

#include <stddef.h>
#include <string.h>

#include "core/base/build_features.h"

const build_feature build_features[] = { BUILD_FEATURES { NULL, NULL, NULL, NULL, false } };

const build_feature *build_feature_missing(const char *kind, const char *name)
{
    for (const build_feature *p = build_features; p->name != NULL; p++) {
        if (!p->there && strcmp(p->kind, kind) == 0 && strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}
