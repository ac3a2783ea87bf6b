/*
 * data_settings.c - make the settings of dataset, cache and loader from the INI file.
 */
#include "experiment/data_settings.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/thread/thread.h"
#include "experiment/experiment.h"

/* limited, since each thread needs about ten times the memory of a case's voxels */
enum { FILL_THREADS_MAX = 16 };
/* Images of a classification that are read before the first step if no cache holds them. */
enum { READ_FIRST = 4096 };

static double background_above(const sections *s)
{
    return s->patch.background_above.count > 0 ? s->patch.background_above.item[0] : -INFINITY;
}

/* The rule of 'validation', with an absolute path in 'file:F'; NULL: not given. */
static const char *validation_rule(config *c, const data_options *d)
{
    static const char word[] = "file:";
    const config_entry *given = config_find(c, "data", "validation");
    size_t size = sizeof word - 1;
    char rule[sizeof word + PATH_MAX];

    if (given == NULL || strncmp(d->validation, word, size) != 0)
        return given != NULL ? d->validation : NULL;
    snprintf(rule, sizeof rule, "%s%s", word, config_path(c, given, d->validation + size));
    return config_resolve(c, "data", "validation", rule, NULL);
}

const char *data_label_table(config *c, const sections *s)
{
    const pons_texts *labels = &s->data.labels;

    if (labels->count != 1 || strncmp(labels->item[0], "table:", 6) != 0
        || labels->item[0][6] == '\0')
        return NULL;
    return config_path(c, config_find(c, "data", "labels"), labels->item[0] + 6);
}

slide_settings data_slide_settings(const data_options *d)
{
    return (slide_settings){ d->slides, d->slide_validation, d->slide_level, d->slide_patch,
                             d->slide_grid, d->slide_region, d->slide_position == 1, 0 };
}

void dataset_settings_fill(config *c, const sections *s, dataset_settings *out)
{
    const data_options *d = &s->data;

    *out = (dataset_settings){
        .file = config_file(c), .source = d->source, .layout = data_layouts[d->layout],
        .image = d->image, .label = d->label, .labels = d->labels, .regions = d->regions,
        .label_table = data_label_table(c, s), .map = d->map,
        .channels = d->channels, .image_suffix = d->image_suffix, .label_suffix = d->label_suffix,
        .slide = data_slide_settings(d),
        .validation = validation_rule(c, d), .fold = d->fold != FOLD_FIRST ? &d->fold : NULL,
        .seed = (uint64_t)s->experiment.seed, .target = task_rules_of(s)->target,
        .labels_optional = task_rules_of(s)->target == TARGET_NONE
    };
}

pons_status dataset_blame(config *c, const sections *s, pons_error *err)
{
    return config_location_add(c, "data", s->data.image.count > 0 ? "image" : "source", err);
}

/* One thread for each processor, since nothing else runs while the cache is filled. */
static int fill_threads(void)
{
    int count = thread_processors();

    return min_int(count, FILL_THREADS_MAX);
}

case_window data_case_window(const data_options *d, int total, int micro_batches)
{
    if (d->cache != CACHE_SMART)
        return case_window_whole(total);
    return case_window_part(total, d->smart_share, d->smart_replace,
                            d->cache_share == 0 ? 1 : micro_batches);
}

static sampling_mode sampling_of(const patch_options *p)
{
    return p->foreground_share > 0 ? SAMPLING_FOREGROUND : (sampling_mode)p->sampling;
}

void cache_settings_fill(const sections *s, cache_settings *out)
{
    *out = (cache_settings){
        .mode = (cache_mode)s->data.cache_tier[0].mode, .limit = s->data.cache_tier[0].limit,
        .next_mode = (cache_mode)s->data.cache_tier[1].mode,
        .next_limit = s->data.cache_tier[1].limit,
        .threads = s->data.loader_threads == OPTION_AUTO ? fill_threads()
                                                         : (int)s->data.loader_threads,
        .read_first = READ_FIRST, .folder = s->data.cache_dir, .output = s->experiment.output,
        .sampling = sampling_of(&s->patch), .background_above = background_above(s),
        .centres = { s->patch.positive > 0, s->patch.negative > 0 }
    };
}

void loader_settings_fill(const sections *s, loader_settings *out)
{
    const patch_options *p = &s->patch;

    *out = (loader_settings){
        .seed = (uint64_t)s->experiment.seed, .per_case = (int)p->per_case,
        .batch = (int)s->train.batch, .micro_batches = (int)s->train.accumulate,
        .count = (int)s->train.accumulate, .sampling = sampling_of(p),
        .positive = p->positive, .negative = p->negative,
        .foreground_share = p->foreground_share, .far_beyond = p->far_end != 0,
        .target = task_rules_of(s)->target,
        .class_weight_count = p->class_weights.count, .class_weights = p->class_weights.item,
        .pad = (loader_pad)(p->pad | (p->count_padding ? 0 : LOADER_PAD_UNCOUNTED)),
        .threads = s->data.loader_threads == OPTION_AUTO ? -1 : (int)s->data.loader_threads
    };
    memcpy(out->extent, p->extent, sizeof out->extent);
}
