/*
 * list.h - the items of a list of words or paths, and the value that holds them.
 */
#ifndef CORE_CONFIG_LIST_H
#define CORE_CONFIG_LIST_H

#include "base/arena.h"

/* Split a value into its items, in 'memory'. NULL: a quote does not end, or is empty. */
char **list_split(arena *memory, const char *value, int *count);
/* The begin of a line's comment: the first blank before ';' outside quoted items; 'end' if none. */
const char *list_comment(const char *value, const char *end);
/* A path as a list of one item, quoted only where it needs quotes. */
const char *list_single(arena *memory, const char *path);
/* The value that list_split splits into these items. */
const char *list_join(arena *memory, int count, const char *const *item);

#endif
