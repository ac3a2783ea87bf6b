/*
 * measure_data.c - the stages of the data path one after the other, each timed by itself.
 */
#include <config.h>

#include "train/measure_data.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "data/loader.h"

enum { CASES_MAX = 8 };

typedef struct data_bench {
    sections sections;
    dataset *data;
    volume_chain *preprocess, *augment;
    cache *cache;
    cache_settings fill;
    measured_data *out;
} data_bench;

static pons_status open_data(data_bench *b, config *c, pons_error *err)
{
    static const char *const kept[] = { "preprocess", "augment", NULL };
    dataset_settings settings;

    if (sections_fill(c, &b->sections, err) != PONS_OK)
        return err->status;
    sections_skip_plugins(c, &b->sections, kept);
    if (b->sections.patch.extent[0] == 0)
        return sections_require("patch", "extent", err);
    dataset_settings_fill(c, &b->sections, &settings);
    cache_settings_fill(&b->sections, &b->fill);
    if (dataset_open(&settings, &b->data, err) != PONS_OK)
        return dataset_blame(c, &b->sections, err);
    if (volume_chain_open(c, "preprocess", false, b->data->channels, &b->preprocess, err)
            != PONS_OK
        || volume_chain_open(c, "augment", true, b->data->channels, &b->augment, err) != PONS_OK)
        return err->status;
    return config_refuse_unknown(c, err);
}

/* Read a case, and transform it where 'chain' is not NULL, by 'threads' threads; its voxels as they
 * were in the file. */
static pons_status take_case(const data_bench *b, int rank, const volume_chain *chain, int threads,
                             double *seconds, int64_t *voxels, pons_error *err)
{
    parallel_spare spare = { threads - 1 }, *before = parallel_borrow(&spare);
    double begin = seconds_now();
    pons_case one;

    if (case_read(b->data, rank, &one, err) == PONS_OK) {
        *voxels = pons_volume_count(&one.image);
        if (chain != NULL)
            volume_chain_apply(chain, &one, NULL, err);
        *seconds += seconds_now() - begin;
        case_clear(&one);
    }
    parallel_borrow(before);
    return err->status;
}

static pons_status measure_cases(data_bench *b, pons_error *err)
{
    measured_data *m = b->out;
    double ignored = 0;
    int64_t voxels = 0;
    int all = b->fill.threads > 1 ? b->fill.threads : 1;

    m->fill_threads = all;
    m->cases = b->data->training_count < CASES_MAX ? b->data->training_count : CASES_MAX;
    for (int i = 0; i < m->cases; i++) {
        int rank = b->data->training[i];
        if (take_case(b, rank, NULL, all, &ignored, &voxels, err) != PONS_OK
            || take_case(b, rank, NULL, 1, &m->read, &voxels, err) != PONS_OK
            || take_case(b, rank, NULL, all, &m->read_threads, &voxels, err) != PONS_OK
            || take_case(b, rank, b->preprocess, 1, &m->preprocess, &voxels, err) != PONS_OK
            || take_case(b, rank, b->preprocess, all, &m->preprocess_threads, &voxels, err)
               != PONS_OK)
            return err->status;
        m->voxels += voxels;
    }
    return PONS_OK;
}

static pons_status measure_fill(data_bench *b, logger *l, pons_error *err)
{
    double begin = seconds_now();

    if (cache_open(b->data, b->preprocess, b->out->cases, b->data->training, &b->fill, l,
                   &b->cache, err) != PONS_OK)
        return err->status;
    b->out->fill = seconds_now() - begin;
    b->out->cache_size = cache_size(b->cache);
    return PONS_OK;
}

/* Seconds for micro-batches by 'threads' loader threads. */
static pons_status measure_patches(data_bench *b, int threads, int warm_up, int batches,
                                   double *seconds, pons_error *err)
{
    const volume_chain *augment = b->augment->count > 0 ? b->augment : NULL;
    const loader_batch *batch;
    loader_settings settings;
    loader *l;
    double begin = 0;

    loader_settings_fill(&b->sections, &settings);
    settings.threads = threads;
    if (loader_open(b->cache, b->out->cases, b->data->training, augment, &settings, &l, err)
        != PONS_OK)
        return err->status;
    for (int i = 0; i < warm_up + batches && err->status == PONS_OK; i++) {
        if (i == warm_up)
            begin = seconds_now();
        loader_next(l, &batch, err);
    }
    *seconds = seconds_now() - begin;
    loader_close(l);
    b->out->patches = (int64_t)batches * settings.batch * settings.per_case;
    return err->status;
}

static pons_status measure(data_bench *b, config *c, int warm_up, int batches, logger *l,
                           pons_error *err)
{
    measured_data *m = b->out;

    if (open_data(b, c, err) != PONS_OK || measure_cases(b, err) != PONS_OK
        || measure_fill(b, l, err) != PONS_OK)
        return err->status;
    m->threads = b->sections.data.loader_threads == OPTION_AUTO
                 ? loader_threads_chosen() : (int)b->sections.data.loader_threads;
    if (measure_patches(b, 0, warm_up, batches, &m->patch_alone, err) != PONS_OK)
        return err->status;
    return measure_patches(b, m->threads, warm_up, batches, &m->patch_threads, err);
}

pons_status measure_data(config *c, int warm_up, int batches, logger *l, measured_data *out,
                         pons_error *err)
{
    data_bench b = { .out = out };

    *out = (measured_data){ .cases = 0 };
    measure(&b, c, warm_up, batches, l, err);
    cache_close(b.cache);
    volume_chain_close(b.preprocess);
    volume_chain_close(b.augment);
    if (b.data != NULL)
        dataset_close(b.data);
    return err->status;
}
