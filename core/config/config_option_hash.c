/*
 * config_option_hash.c - hash the values of an option table. Equal values hash equally, however
 * they were written. Each value has a size before it, so that no two sequences of values are the
 * same bytes.
 */
#include "config/config.h"

#include <string.h>

static void add_text(sha256 *h, const char *text)
{
    uint64_t size = text != NULL ? strlen(text) + 1 : 0;

    sha256_add(h, &size, sizeof size);
    if (size > 0)
        sha256_add(h, text, size);
}

static void add_items(sha256 *h, int count, const void *items, size_t size)
{
    uint64_t bytes = (uint64_t)count * size;

    sha256_add(h, &bytes, sizeof bytes);
    if (count > 0)
        sha256_add(h, items, bytes);
}

static void add_texts(sha256 *h, const pons_texts *list)
{
    uint64_t count = (uint64_t)list->count;

    sha256_add(h, &count, sizeof count);
    for (int i = 0; i < list->count; i++)
        add_text(h, list->item[i]);
}

static void add_value(sha256 *h, pons_option_type type, const void *at)
{
    static const size_t sizes[] = {
        [PONS_OPTION_REAL] = sizeof(double), [PONS_OPTION_INTEGER] = sizeof(int64_t),
        [PONS_OPTION_FLAG] = sizeof(bool), [PONS_OPTION_CHOICE] = sizeof(int),
        [PONS_OPTION_SIZE] = sizeof(int64_t), [PONS_OPTION_AXES] = 3 * sizeof(int),
        [PONS_OPTION_REAL_AXES] = 3 * sizeof(double), [PONS_OPTION_PATHS] = 0
    };
    const pons_reals *reals = at;
    const pons_integers *integers = at;
    const pons_triples *triples = at;

    if (sizes[type] > 0)
        sha256_add(h, at, sizes[type]);
    else if (type == PONS_OPTION_REALS)
        add_items(h, reals->count, reals->item, sizeof *reals->item);
    else if (type == PONS_OPTION_INTEGERS)
        add_items(h, integers->count, integers->item, sizeof *integers->item);
    else if (type == PONS_OPTION_TRIPLES)
        add_items(h, triples->count, triples->item, sizeof *triples->item);
    else if (type == PONS_OPTION_TEXT || type == PONS_OPTION_PATH)
        add_text(h, *(const char *const *)at);
    else
        add_texts(h, at);
}

void option_hash(sha256 *h, const pons_option *options, const void *values)
{
    for (const pons_option *o = options; o != NULL && o->name != NULL; o++) {
        add_text(h, o->name);
        add_value(h, o->type, (const char *)values + o->offset);
    }
}
