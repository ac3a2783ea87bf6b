/*
 * group_parts.h - what the files of a group share.
 */
#ifndef CORE_DIST_GROUP_PARTS_H
#define CORE_DIST_GROUP_PARTS_H

#include "dist/group.h"

/*
 * A failure that all processes find in the same moment: who is slower, and finds broken connections
 * instead, gets the same line.
 */
void group_fail_together(group *g, const pons_error *failure);

#endif
