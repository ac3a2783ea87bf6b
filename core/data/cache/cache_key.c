/*
 * cache_key.c - whatever decides what a preprocessed case holds, one behind the other, hashed.
 */
#include "data/cache/cache_key.h"

#include <string.h>

#include "base/hash/sha256.h"
#include "config/config.h"

static void add_text(sha256 *h, const char *text)
{
    sha256_add(h, text, strlen(text) + 1);
}

static void add_number(sha256 *h, int64_t number)
{
    sha256_add(h, &number, sizeof number);
}

static void add_classes(sha256 *h, int count, const data_class *classes)
{
    add_number(h, count);
    for (int c = 0; c < count; c++) {
        add_number(h, classes[c].id_count);
        sha256_add(h, classes[c].id, (size_t)classes[c].id_count * sizeof *classes[c].id);
    }
}

static void add_chain(sha256 *h, const volume_chain *chain)
{
    add_number(h, chain != NULL ? chain->count : 0);
    for (int n = 0; chain != NULL && n < chain->count; n++) {
        const volume_step *step = &chain->step[n];
        add_text(h, step->name);
        add_text(h, step->plugin);
        add_text(h, step->sha256);
        add_number(h, (int64_t)step->channels);
        option_hash(h, step->options, step->config);
    }
}

void cache_key(const dataset *d, const volume_chain *chain, const packed_wish *wish, int rank,
               const fingerprint *source, char key[CASE_KEY_SIZE])
{
    const data_case *info = &d->cases[rank];
    sha256 h;

    sha256_init(&h);
    add_text(&h, "pons cached case 2");
    add_text(&h, info->id); /* warnings that are kept name it */
    add_number(&h, d->channels);
    add_classes(&h, d->class_count, d->classes);
    add_classes(&h, d->region_count, d->regions);
    add_chain(&h, chain);
    add_number(&h, wish->sets);
    add_number(&h, wish->set_count);
    sha256_add(&h, &wish->background_above, sizeof wish->background_above);
    add_number(&h, info->image_count);
    add_number(&h, info->label != NULL);
    sha256_add(&h, source, sizeof *source);
    sha256_finish(&h, key);
}
