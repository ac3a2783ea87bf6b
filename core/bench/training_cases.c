/*
 * training_cases.c - a cache of the training cases and the loaders of all replicas.
 */
#include "bench/training_cases.h"

#include "experiment/data_settings.h"
#include "experiment/processes.h"
#include "replica/device_cases.h"

pons_status training_cases_open(experiment *e, unsigned programs, replicas *r, cache **out,
                                pons_error *err)
{
    cache_settings filling;
    cache_peers peers;
    bool moved;

    cache_settings_fill(&e->sections, &filling);
    filling.window = e->epoch;
    filling.lane_count = e->epoch.lanes;
    processes_cache_peers(e->group, &peers);
    if (e->sections.data.loader_threads == OPTION_AUTO
        && filling.threads > experiment_processors(e))
        filling.threads = experiment_processors(e);
    filling.peers = &peers;
    if (cache_open(e->data, e->preprocess, e->data->training_count, e->data->training, &filling,
                   e->log, out, err) != PONS_OK
        || device_cases_choose(r, e, *out, e->data->training_count, &moved, err) != PONS_OK)
        return err->status;
    if (moved) {
        replicas_close(r);
        if (replicas_open(e, programs, r, err) != PONS_OK)
            return err->status;
    }
    return replicas_open_loaders(r, *out, &e->epoch, 0, err);
}
