/*
 * list.h - the items of a list of words or paths, and the text that has them.
 */
#ifndef CORE_CONFIG_LIST_H
#define CORE_CONFIG_LIST_H

#include "base/arena.h"

/* The items, in 'memory'; NULL where a quote does not end, or holds nothing. */
char **list_split(arena *memory, const char *value, int *count);
/*
 * Where the comment of a line's value begins: at a blank before ';' that stands in no quoted item.
 * 'end' when there is none.
 */
const char *list_comment(const char *value, const char *end);
/* A path as the only item, in quotes where it would be read as something else without them. */
const char *list_single(arena *memory, const char *path);
/* The value that list_split reads as these items. */
const char *list_join(arena *memory, int count, const char *const *item);

#endif
