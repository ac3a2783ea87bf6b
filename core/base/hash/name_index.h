/*
 * name_index.h - numbers by name: each is found in a time that grows with the logarithm of their
 * count, whoever has chosen the names.
 *
 * A balanced tree rather than a hash table: names come from files, and none can be made to collide.
 */
#ifndef CORE_BASE_HASH_NAME_INDEX_H
#define CORE_BASE_HASH_NAME_INDEX_H

typedef struct name_index {
    void *root; /* zeroed: empty                                                                  */
} name_index;

/* The number of a name of a group, -1: it has none. */
int name_index_find(const name_index *x, const char *group, const char *name);
/*
 * Give a name that has none this number; returns the one that it has by then, -1: no memory. The
 * texts are borrowed as long as the index lives.
 */
int name_index_add(name_index *x, const char *group, const char *name, int number);
void name_index_clear(name_index *x);

#endif
