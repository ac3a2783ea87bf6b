/*
 * build_feature.c - the parts of this build, as configure has written them down.
 */
#include "base/build_feature.h"

#include <stddef.h>
#include <string.h>

#include "core/base/build_features.h"

const build_part build_parts[] = { BUILD_PARTS { NULL, NULL, NULL, NULL, false } };

const build_part *part_lacking(const char *kind, const char *name)
{
    for (const build_part *p = build_parts; p->name != NULL; p++) {
        if (!p->there && strcmp(p->kind, kind) == 0 && strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}
