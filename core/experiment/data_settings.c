/*
 * data_settings.c - what the INI file says about data, in the terms of dataset, cache and loader.
 */
#include "experiment/data_settings.h"

#include <math.h>
#include <string.h>

#include "base/thread/thread.h"

/* Each works on a case of its own, which takes about ten times the bytes of its voxels. */
enum { FILL_THREADS_MAX = 16 };

static double background_above(const sections *s)
{
    return s->patch.background_above.count > 0 ? s->patch.background_above.item[0] : -INFINITY;
}

void dataset_settings_fill(config *c, const sections *s, dataset_settings *out)
{
    const data_options *d = &s->data;

    *out = (dataset_settings){
        .file = config_file(c), .source = d->source, .layout = data_layouts[d->layout],
        .image = d->image, .label = d->label, .labels = d->labels, .regions = d->regions,
        .validation = config_given(c, "data", "validation") ? d->validation : NULL,
        .seed = (uint64_t)s->experiment.seed
    };
}

pons_status dataset_blame(config *c, const sections *s, pons_error *err)
{
    return config_blame(c, "data", s->data.image.count > 0 ? "image" : "source", err);
}

/* As many as there are processors: nothing else runs while cases are read. */
static int fill_threads(void)
{
    int count = thread_processors();

    return count > FILL_THREADS_MAX ? FILL_THREADS_MAX : count;
}

void cache_settings_fill(const sections *s, cache_settings *out)
{
    *out = (cache_settings){
        .mode = (cache_mode)s->data.cache, .limit = s->data.cache_limit,
        .threads = s->data.loader_threads == OPTION_AUTO ? fill_threads()
                                                         : (int)s->data.loader_threads,
        .folder = s->data.cache_dir, .output = s->experiment.output,
        .sampling = (sampling_mode)s->patch.sampling, .background_above = background_above(s),
        .centres = { s->patch.positive > 0, s->patch.negative > 0 }
    };
}

void loader_settings_fill(const sections *s, loader_settings *out)
{
    const patch_options *p = &s->patch;

    *out = (loader_settings){
        .seed = (uint64_t)s->experiment.seed, .per_case = (int)p->per_case,
        .batch = (int)s->train.batch, .micro_batches = (int)s->train.accumulate,
        .count = (int)s->train.accumulate, .sampling = (sampling_mode)p->sampling,
        .positive = p->positive, .negative = p->negative,
        .class_weight_count = p->class_weights.count, .class_weights = p->class_weights.item,
        .pad = (loader_pad)p->pad,
        .threads = s->data.loader_threads == OPTION_AUTO ? -1 : (int)s->data.loader_threads
    };
    memcpy(out->extent, p->extent, sizeof out->extent);
}
