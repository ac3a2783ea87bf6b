/*
 * measure_data.c - time the stages of the data path one by one, in rounds, and report medians.
 */
#include "bench/measure_data.h"

#include <math.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/thread/parallel.h"
#include "bench/measure.h"
#include "data/case/case_read.h"
#include "data/loader/loader.h"
#include "experiment/data_settings.h"

/* Rounds end at ROUNDS_MOST, or after ROUNDS_SECONDS from round ROUNDS_LEAST on. */
enum { CASES_MAX = 8, ROUNDS_LEAST = 3, ROUNDS_MOST = 25, ROUNDS_SECONDS = 5 };

typedef enum stage {
    READ, READ_THREADS, PREPROCESS, PREPROCESS_THREADS, FILL, PATCH_ALONE, PATCH_PROCESSOR,
    PATCH_THREADS, STAGE_COUNT
} stage;

typedef struct data_bench {
    sections sections;
    dataset *data;
    pipeline *preprocess, *augment;
    cache *cache;
    cache_settings fill;
    measured_data *out;
    double seconds[STAGE_COUNT][ROUNDS_MOST];
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
    if (pipeline_open(c, "preprocess", false, b->data->channels, &b->preprocess, err)
            != PONS_OK
        || pipeline_open(c, "augment", true, b->data->channels, &b->augment, err) != PONS_OK)
        return err->status;
    return config_refuse_unknown(c, err);
}

/*
 * Read a case, and preprocess it unless 'chain' is NULL, with 'threads' threads; adds to *seconds.
 */
static pons_status time_case(const data_bench *b, int rank, const pipeline *chain, int threads,
                             double *seconds, pons_error *err)
{
    thread_budget spare = { threads - 1 }, *before = thread_budget_set(&spare);
    double begin = seconds_now();
    pons_case one;

    if (case_read(b->data, rank, &one, err) == PONS_OK) {
        if (chain != NULL)
            pipeline_apply(chain, PIPELINE_TRAINING, &one, NULL, err);
        *seconds += seconds_now() - begin;
        case_clear(&one);
    }
    thread_budget_set(before);
    return err->status;
}

/* Read all files once, which puts them into the page cache, and count their voxels. */
static pons_status read_ahead(data_bench *b, pons_error *err)
{
    measured_data *m = b->out;
    pons_case one;

    m->fill_threads = max_int(b->fill.threads, 1);
    m->cases = min_int(b->data->training_count, CASES_MAX);
    for (int i = 0; i < m->cases; i++) {
        if (case_read(b->data, b->data->training[i], &one, err) != PONS_OK)
            return err->status;
        m->voxels += pons_volume_count(&one.image);
        case_clear(&one);
    }
    return PONS_OK;
}

static pons_status measure_cases(data_bench *b, int round, pons_error *err)
{
    int all = b->out->fill_threads;

    for (int i = 0; i < b->out->cases; i++)
        for (stage s = READ; s <= PREPROCESS_THREADS; s++)
            if (time_case(b, b->data->training[i], s >= PREPROCESS ? b->preprocess : NULL,
                          s == READ_THREADS || s == PREPROCESS_THREADS ? all : 1,
                          &b->seconds[s][round], err) != PONS_OK)
                return err->status;
    return PONS_OK;
}

/* A cache in files is filled in the first round only, since later rounds would find its cases. */
static pons_status measure_fill(data_bench *b, int round, logger *l, pons_error *err)
{
    double begin;

    if (round > 0 && cache_mode_in_folder(b->fill.mode)) {
        b->seconds[FILL][round] = b->seconds[FILL][0];
        return PONS_OK;
    }
    cache_close(b->cache);
    b->cache = NULL;
    begin = seconds_now();
    if (cache_open(b->data, b->preprocess, b->out->cases, b->data->training, &b->fill,
                   round == 0 ? l : NULL, &b->cache, err) != PONS_OK)
        return err->status;
    b->seconds[FILL][round] = seconds_now() - begin;
    b->out->fill_rounds = round + 1;
    b->out->cache_size = cache_size(b->cache);
    return PONS_OK;
}

/* Seconds, and those of a processor on the consumer's thread. */
typedef struct patch_time {
    double elapsed, processor;
} patch_time;

/* Measure the time in which 'threads' loader threads make 'batches' micro-batches. */
static pons_status measure_patches(data_bench *b, int threads, int warm_up, int batches,
                                   patch_time *out, pons_error *err)
{
    const pipeline *augment = b->augment->count > 0 ? b->augment : NULL;
    const loader_batch *batch;
    loader_settings settings;
    loader *l;
    patch_time begin = { 0, 0 };

    loader_settings_fill(&b->sections, &settings);
    settings.threads = threads;
    if (loader_open(b->cache, b->out->cases, b->data->training, augment, &settings, &l, err)
        != PONS_OK)
        return err->status;
    for (int i = 0; i < warm_up + batches && err->status == PONS_OK; i++) {
        if (i == warm_up)
            begin = (patch_time){ seconds_now(), seconds_of_thread() };
        loader_next(l, &batch, err);
    }
    *out = (patch_time){ seconds_now() - begin.elapsed, seconds_of_thread() - begin.processor };
    loader_close(l);
    b->out->patches = (int64_t)batches * settings.batch * settings.per_case;
    return err->status;
}

static pons_status measure_loader(data_bench *b, int round, int warm_up, int batches,
                                  pons_error *err)
{
    patch_time alone, threads;

    if (measure_patches(b, 0, warm_up, batches, &alone, err) != PONS_OK
        || measure_patches(b, b->out->threads, warm_up, batches, &threads, err) != PONS_OK)
        return err->status;
    b->seconds[PATCH_ALONE][round] = alone.elapsed;
    b->seconds[PATCH_PROCESSOR][round] = alone.processor;
    b->seconds[PATCH_THREADS][round] = threads.elapsed;
    return PONS_OK;
}

/* Set the medians of the rounds and their largest difference from the minimum. */
static void set_medians(data_bench *b)
{
    measured_data *m = b->out;
    double *const median[STAGE_COUNT] = {
        [READ] = &m->read, [READ_THREADS] = &m->read_threads, [PREPROCESS] = &m->preprocess,
        [PREPROCESS_THREADS] = &m->preprocess_threads, [FILL] = &m->fill,
        [PATCH_ALONE] = &m->patch_alone, [PATCH_PROCESSOR] = &m->patch_processor,
        [PATCH_THREADS] = &m->patch_threads
    };

    for (stage s = READ; s < STAGE_COUNT; s++) {
        double least = b->seconds[s][0];
        for (int i = 1; i < m->rounds; i++)
            least = fmin(least, b->seconds[s][i]);
        *median[s] = measure_median(m->rounds, b->seconds[s]);
        if (least > 0)
            m->differ = fmax(m->differ, *median[s] / least - 1);
    }
}

/* Each round runs all stages, so that a disturbance of the machine affects all of them. */
static pons_status measure_rounds(data_bench *b, config *c, int warm_up, int batches, logger *l,
                                  pons_error *err)
{
    measured_data *m = b->out;
    double begin;

    if (open_data(b, c, err) != PONS_OK || read_ahead(b, err) != PONS_OK)
        return err->status;
    dataset_log(b->data, l);
    m->threads = b->sections.data.loader_threads == OPTION_AUTO
                 ? loader_threads_chosen() : (int)b->sections.data.loader_threads;
    begin = seconds_now();
    for (int i = 0; i < ROUNDS_LEAST || (i < ROUNDS_MOST
                                         && seconds_now() - begin < ROUNDS_SECONDS); i++) {
        if (measure_cases(b, i, err) != PONS_OK || measure_fill(b, i, l, err) != PONS_OK
            || measure_loader(b, i, warm_up, batches, err) != PONS_OK)
            return err->status;
        m->rounds = i + 1;
    }
    set_medians(b);
    return PONS_OK;
}

pons_status measure_data(config *c, int warm_up, int batches, logger *l, measured_data *out,
                         pons_error *err)
{
    data_bench b = { .out = out };

    *out = (measured_data){ .cases = 0 };
    measure_rounds(&b, c, warm_up, batches, l, err);
    cache_close(b.cache);
    pipeline_close(b.preprocess);
    pipeline_close(b.augment);
    if (b.data != NULL)
        dataset_close(b.data);
    return err->status;
}
