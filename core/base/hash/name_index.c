/*
 * name_index.c - the C library's balanced tree (tsearch) over pairs of strings.
 */
#include "base/hash/name_index.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

typedef struct named_number {
    const char *group, *name;
    int number;
} named_number;

static int compare_names(const void *a, const void *b)
{
    const named_number *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order != 0 ? order : strcmp(x->group, y->group);
}

int name_index_find(const name_index *x, const char *group, const char *name)
{
    const named_number wanted = { group, name, -1 };
    named_number *const *found = tfind(&wanted, &x->root, compare_names);

    return found != NULL ? (*found)->number : -1;
}

int name_index_add(name_index *x, const char *group, const char *name, int number)
{
    named_number *added = malloc(sizeof *added), **found;

    if (added == NULL)
        return -1;
    *added = (named_number){ group, name, number };
    found = tsearch(added, &x->root, compare_names);
    if (found == NULL || *found != added)
        free(added);
    return found != NULL ? (*found)->number : -1;
}

void name_index_clear(name_index *x)
{
    tdestroy(x->root, free);
    x->root = NULL;
}
