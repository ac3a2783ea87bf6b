/*
 * cache_key.c - hash everything that determines the content of a preprocessed case.
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

/* Words of zeros at the end are left out: a key does not depend on how many channels fit. */
static void add_channels(sha256 *h, const pipeline_step *step)
{
    int count = STEP_CHANNEL_WORDS;

    while (count > 1 && step->channels[count - 1] == 0)
        count--;
    add_number(h, step->restricted); /* all of the first 64 channels look like no restriction    */
    for (int word = 0; word < count; word++)
        add_number(h, step->restricted ? (int64_t)step->channels[word] : -1);
}

/* The steps that change such cases. */
static void add_pipeline(sha256 *h, const pipeline *chain, pipeline_cases cases)
{
    int count = 0;

    for (int n = 0; chain != NULL && n < chain->count; n++)
        count += (chain->step[n].cases & cases) != 0;
    add_number(h, count);
    for (int n = 0; chain != NULL && n < chain->count; n++) {
        const pipeline_step *step = &chain->step[n];
        if ((step->cases & cases) == 0)
            continue;
        add_text(h, step->name);
        add_text(h, step->plugin);
        add_text(h, step->sha256);
        add_channels(h, step);
        option_hash(h, step->options, step->config);
    }
}

void cache_key(const dataset *d, const pipeline *chain, const sampling_spec *spec, int rank,
               const hash128 *source, char key[CASE_KEY_SIZE])
{
    const data_case *info = &d->cases[rank];
    sha256 h;

    sha256_init(&h);
    add_text(&h, "pons cached case 3");
    add_text(&h, info->id); /* warnings that are kept name it */
    add_number(&h, d->channels);
    add_classes(&h, d->class_count, d->classes);
    add_classes(&h, d->region_count, d->regions);
    if (d->ignored != NULL)
        add_classes(&h, 1, d->ignored);
    add_pipeline(&h, chain, dataset_step_cases(d, rank));
    add_number(&h, spec->sets);
    add_number(&h, spec->set_count);
    sha256_add(&h, &spec->background_above, sizeof spec->background_above);
    add_number(&h, info->image_count);
    add_number(&h, info->label != NULL);
    sha256_add(&h, source, sizeof *source);
    sha256_finish(&h, key);
}
