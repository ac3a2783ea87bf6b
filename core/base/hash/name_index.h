/*
 * name_index.h - a map from names to numbers whose look-up time is logarithmic.
 *
 * It is a balanced tree and no hash table: names come from files, and nobody can choose names that
 * collide.
 */
#ifndef CORE_BASE_HASH_NAME_INDEX_H
#define CORE_BASE_HASH_NAME_INDEX_H

typedef struct name_index {
    void *root; /* zeroed: empty                                                                  */
} name_index;

/* The number of a name in a group; -1: it has none. */
int name_index_find(const name_index *x, const char *group, const char *name);
/*
 * Add a name with this number unless it has one. Returns the number that the name has; -1: out of
 * memory. The index borrows both strings for its life.
 */
int name_index_add(name_index *x, const char *group, const char *name, int number);
void name_index_clear(name_index *x);

#endif
