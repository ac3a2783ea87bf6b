/*
 * experiment_devices.c - where the replicas live, and how many micro-batches make a step (R1).
 */
#include <config.h>

#include "train/experiment_parts.h"

#include "device/open.h"
#include "device/visible.h"

#include <stdlib.h>
#include <string.h>

/* A device that this build could open: "reference" needs no plugin. */
static bool is_reference(const experiment *e)
{
    return strcmp(e->listed.item[0].name, "reference") == 0;
}

/* A list that makes no sense here is refused as such, before what the build lacks. */
static pons_status refuse_absent(const experiment *e, const char *text, const char *where,
                                 pons_error *err)
{
    visible_devices v;
    char told[512] = "";

    if (strcmp(e->listed.item[0].name, "cuda") == 0) {
        if (visible_devices_parse(getenv("CUDA_VISIBLE_DEVICES"), -1, &v, err) != PONS_OK
            || visible_devices_check(&v, &e->listed, where, err) != PONS_OK)
            return err->status;
        visible_devices_tell(&v, &e->listed, told, sizeof told);
    }
    return pons_fail(err, PONS_CONFIG, "%s: [distribute] devices = '%s': '%s' is not in this "
                     "build%s%s%s", where, text, e->listed.item[0].name, told[0] != '\0' ? " (" : "", told,
                     told[0] != '\0' ? ")" : "");
}

pons_status experiment_find_devices(experiment *e, const experiment_known *known,
                                    pons_error *err)
{
    const distribute_options *d = &e->sections.distribute;
    const char *text = known->devices != NULL ? known->devices : d->devices;
    const char *where = experiment_place(e, "distribute", "devices");

    if (text == NULL || text[0] == '\0' || strcmp(text, "auto") == 0)
        text = "cpu";
    if (device_list_parse(text, where, &e->listed, err) != PONS_OK)
        return err->status;
    if (strcmp(e->listed.item[0].name, "cpu") != 0 && !is_reference(e))
        return refuse_absent(e, text, where, err);
    for (int i = 0; i < e->listed.count; i++)
        if (e->listed.item[i].index >= e->listed.count)
            return pons_fail(err, PONS_CONFIG, "%s: devices = '%s': there is no %s:%d among %d "
                             "equal shares of the processor, expected 0 to %d", where, text,
                             e->listed.item[i].name, e->listed.item[i].index, e->listed.count,
                             e->listed.count - 1);
    /* The mode in the file of a run is how it was trained; a prediction takes what is listed. */
    if (e->purpose == EXPERIMENT_TRAIN && d->mode == MODE_SINGLE && e->listed.count > 1)
        return pons_fail(err, PONS_CONFIG, "%s: mode = single has one device, but devices = '%s' "
                         "lists %d\nhint: mode = dp, or auto",
                         experiment_place(e, "distribute", "mode"), text, e->listed.count);
    e->replicas = e->listed.count;
    e->mode = e->purpose == EXPERIMENT_TRAIN && d->mode != MODE_AUTO ? (distribute_mode)d->mode
              : e->replicas > 1 ? MODE_DP : MODE_SINGLE;
    return PONS_OK;
}

const char *experiment_mode(const experiment *e)
{
    static const char *const names[] = {
        [MODE_AUTO] = "auto", [MODE_SINGLE] = "single", [MODE_DP] = "dp", [MODE_DDP] = "ddp"
    };

    return names[e->mode];
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Replicas of this process. */
static int count_here(const experiment *e)
{
    return e->mode == MODE_DDP ? 1 : e->replicas;
}

/* threads: 0: as many as the device has processors. */
static pons_status open_one(experiment *e, int threads, int i, pons_error *err)
{
    pons_device_settings settings = {
        .index = e->replicas > 1 ? e->listed.item[i].index : 0, .count = e->replicas,
        .threads = threads, .deterministic = e->sections.experiment.deterministic
    };

    if (!is_reference(e))
        return device_open(e->listed.item[i].name, &settings,
                           experiment_place(e, "distribute", "devices"), &e->devices[i], err);
    device_reference(&e->devices[i], false);
    return PONS_OK;
}

static void resolve_threads(experiment *e, const experiment_known *known)
{
    if (e->sections.distribute.threads >= 0 && known->threads == 0)
        return;
    config_resolve(e->config, "distribute", "threads",
                   arena_format(e->memory, "%d", e->device.facts.threads),
                   known->threads > 0 ? "the checkpoint's"
                   : e->replicas > 1 ? "all cores of a replica" : "all cores of this process");
}

/*
 * What is asked for holds for training, and for bits that are to be equal. The number in the file
 * of a run is that of the machine it was trained on: a prediction takes no more than there are.
 */
static bool at_most(const experiment *e, const experiment_known *known)
{
    return e->purpose == EXPERIMENT_PREDICT && known->threads == 0
        && !e->sections.experiment.deterministic;
}

/*
 * Every replica computes with as many threads as the others (R4): the share of the smallest where
 * the processor does not divide evenly.
 */
static pons_status open_all(experiment *e, const experiment_known *known, pons_error *err)
{
    int64_t asked = known->threads > 0 ? known->threads : e->sections.distribute.threads;
    int least = asked > 0 ? (int)asked : 0, first = at_most(e, known) ? 0 : least;
    int count = count_here(e);

    for (int i = 0; i < count; i++, e->device_count++) {
        if (open_one(e, first, i, err) != PONS_OK)
            return err->status;
        if (least == 0 || e->devices[i].facts.threads < least)
            least = e->devices[i].facts.threads;
    }
    for (int i = 0; i < count; i++) {
        if (e->devices[i].facts.threads == least)
            continue;
        device_close(&e->devices[i]);
        if (open_one(e, least, i, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

pons_status experiment_open_devices(experiment *e, const experiment_known *known, pons_error *err)
{
    int count = count_here(e);

    e->devices = arena_alloc(e->memory, (size_t)count * sizeof *e->devices);
    if (open_all(e, known, err) != PONS_OK)
        return err->status;
    e->device = e->devices[0];
    if (is_reference(e))
        return PONS_OK;
    resolve_threads(e, known);
    return count == 1 ? device_attach(&e->device, err) : PONS_OK;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool is_power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

/* accumulate from micro_batches, or the other way round. */
static pons_status resolve_micro_batches(experiment *e, pons_error *err)
{
    const train_options *t = &e->sections.train;
    bool given = config_given(e->config, "train", "accumulate");

    e->accumulate = (int)t->accumulate;
    e->micro_batches = e->replicas * e->accumulate;
    if (t->micro_batches == 0)
        return PONS_OK;
    if (t->micro_batches % e->replicas != 0)
        return pons_fail(err, PONS_CONFIG, "%s: micro_batches %lld cannot be shared out among %d "
                         "replicas", experiment_place(e, "train", "micro_batches"),
                         (long long)t->micro_batches, e->replicas);
    if (given && e->micro_batches != t->micro_batches)
        return pons_fail(err, PONS_CONFIG, "%s: micro_batches %lld differs from accumulate %lld "
                         "with %d replica%s", experiment_place(e, "train", "micro_batches"),
                         (long long)t->micro_batches, (long long)t->accumulate, e->replicas,
                         e->replicas > 1 ? "s" : "");
    e->micro_batches = (int)t->micro_batches;
    e->accumulate = e->micro_batches / e->replicas;
    return PONS_OK;
}

/* What is joined over replicas joins the micro-batches that run at the same time (R3). */
static pons_status check_joined(experiment *e, pons_error *err)
{
    const struct { bool on; const char *section, *key; } joined[] = {
        { e->sections.distribute.sync_batchnorm, "distribute", "sync_batchnorm" },
        { e->sections.loss.sync, "loss", "sync" },
    };

    for (size_t i = 0; i < sizeof joined / sizeof *joined && e->accumulate > 1; i++)
        if (joined[i].on)
            return pons_fail(err, PONS_CONFIG, "%s: [%s] %s = yes joins the micro-batches that run "
                             "at the same time, but each replica runs %d of a step one after "
                             "another\nhint: accumulate = 1, with more devices or a larger batch",
                             experiment_place(e, joined[i].section, joined[i].key),
                             joined[i].section, joined[i].key, e->accumulate);
    return PONS_OK;
}

pons_status experiment_resolve_steps(experiment *e, pons_error *err)
{
    const train_options *t = &e->sections.train;

    if (t->epochs > 0 && t->steps > 0)
        return pons_fail(err, PONS_CONFIG, "%s: both epochs and steps are given, expected one",
                         experiment_place(e, "train", "steps"));
    if (t->epochs == 0 && t->steps == 0)
        return sections_require("train", "epochs", err);
    if (resolve_micro_batches(e, err) != PONS_OK)
        return err->status;
    if (e->sections.experiment.deterministic && e->replicas > 1 && !is_power_of_two(e->accumulate))
        return pons_fail(err, PONS_CONFIG, "%s: deterministic = yes with %d replicas needs a power "
                         "of two of micro-batches for each, found %d",
                         experiment_place(e, "train", "accumulate"), e->replicas, e->accumulate);
    return check_joined(e, err);
}
