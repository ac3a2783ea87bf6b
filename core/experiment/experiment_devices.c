/*
 * experiment_devices.c - choose and open the devices of the replicas, and count the micro-batches
 * of a step (R1).
 */
#include "experiment/experiment_internal.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/system/boot_id.h"
#include "base/system/cpu_quota.h"
#include "base/system/user_folder.h"
#include "base/thread/thread.h"
#include "device/device_choose.h"
#include "device/device_open.h"
#include "experiment/processes.h"
#include "graph/reference/reference.h"

/* The reference device, which needs no plugin. */
static bool is_reference(const experiment *e)
{
    return strcmp(e->listed.item[0].name, "reference") == 0;
}

/* True if replicas run on shares of the processors; false: on GPUs with numbers. */
static bool is_shares(const experiment *e)
{
    return strcmp(e->listed.item[0].name, "cpu") == 0 || is_reference(e);
}

/* Check the device list. A list that is wrong on any build is refused before a missing plugin. */
static pons_status check_gpus(experiment *e, const char *text, const char *where, pons_error *err)
{
    const char *name = e->listed.item[0].name;
    char told[512] = "";
    bool built;

    if (device_find(name, &built, err) != PONS_OK)
        return err->status;
    if (strcmp(name, "cuda") != 0 && !built)
        return pons_fail(err, PONS_CONFIG, "%s: [distribute] devices = '%s': there is no device "
                         "'%s', expected cpu, cuda or reference", where, text, name);
    if (strcmp(name, "cuda") != 0)
        return PONS_OK;
    if (cuda_visible_devices_parse(getenv("CUDA_VISIBLE_DEVICES"), -1, &e->visible, err) != PONS_OK)
        return err->status;
    if (!e->visible.given && device_count(name) > 0)
        e->visible.count = device_count(name);
    cuda_visible_devices_print(&e->visible, &e->listed, told, sizeof told);
    if (!built)
        return pons_fail(err, PONS_CONFIG, "%s: [distribute] devices = '%s': 'cuda' is not in this "
                         "build%s%s%s", where, text, told[0] != '\0' ? " (" : "", told,
                         told[0] != '\0' ? ")" : "");
    if (told[0] != '\0')
        log_line(e->log, "%s", told);
    return PONS_OK;
}

/* True if a launcher has started this process, alone or with others. */
static bool is_launched(const experiment *e)
{
    return e->processes != NULL && e->processes->place.origin[0] != '\0';
}

static pons_status refuse_index(experiment *e, const char *text, const device_item *item, int count,
                                pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "%s: [distribute] devices = '%s': there is no %s:%d "
                     "among %d equal shares of the processor, expected 0 to %d",
                     experiment_location(e, "distribute", "devices"), text, item->name, item->index,
                     count, count - 1);
}

/* Take the list entry of this process's local rank. */
static pons_status take_list_entry(experiment *e, const char *text, pons_error *err)
{
    const rank_info *p = &e->processes->place;
    device_list *list = &e->listed;

    if (list->count > 1 && list->count != p->local_size)
        return pons_fail(err, PONS_CONFIG, "%s: [distribute] devices = '%s' lists %d, but this "
                         "node has %d processes (%s), expected one for each",
                         experiment_location(e, "distribute", "devices"), text, list->count,
                         p->local_size, p->origin);
    if (is_shares(e) && list->count > 1)
        list->item[0] = list->item[p->local_rank];
    else if (!is_shares(e) && cuda_visible_devices_entry(&e->visible, list, p->local_rank,
                                                         p->local_size, &list->item[0], err)
                              != PONS_OK)
        return err->status;
    if (is_shares(e) && list->item[0].index >= p->local_size)
        return refuse_index(e, text, &list->item[0], p->local_size, err);
    e->replicas = p->size;
    e->first = p->rank;
    return PONS_OK;
}

static pons_status count_replicas(experiment *e, const char *text, pons_error *err)
{
    const distribute_options *d = &e->sections.distribute;

    for (int i = 0; i < e->listed.count; i++)
        if (is_shares(e) && e->listed.item[i].index >= e->listed.count)
            return refuse_index(e, text, &e->listed.item[i], e->listed.count, err);
    /* A prediction ignores the mode in a run's file and takes the listed devices. */
    if (e->purpose == EXPERIMENT_TRAIN && d->mode == MODE_SINGLE && e->listed.count > 1)
        return pons_fail(err, PONS_CONFIG, "%s: [distribute] mode = single has one device, but "
                         "devices = '%s' lists %d\nhint: --set distribute.mode=auto",
                         experiment_location(e, "distribute", "mode"), text, e->listed.count);
    e->replicas = e->listed.count;
    return PONS_OK;
}

/* Two replicas on one GPU share a stream, so no library can join them. */
static bool has_distinct_gpus(const experiment *e)
{
    const device_item *item = e->listed.item;

    for (int i = 0; i < e->listed.count; i++)
        for (int k = 0; k < i; k++)
            if (item[i].index == item[k].index)
                return false;
    return !is_shares(e);
}

/*
 * Find the comm plugin for the GPUs of one process. A fixed order of sums needs local_comm.h (R3).
 */
static pons_status find_comm(experiment *e, pons_error *err)
{
    if (e->purpose != EXPERIMENT_TRAIN || e->mode != MODE_DP || e->replicas < 2
        || e->sections.experiment.deterministic || !has_distinct_gpus(e))
        return PONS_OK;
    return processes_find_comm(e->config, &e->sections, e->log, &e->comm, err);
}

/* Record the devices that "auto" resolved to. */
static const char *record_choice(experiment *e)
{
    char *text = arena_alloc(e->memory, DEVICE_LIST_TEXT);

    device_list_print(&e->listed, text, DEVICE_LIST_TEXT);
    return e->chosen = text;
}

pons_status experiment_find_devices(experiment *e, const experiment_overrides *known,
                                    pons_error *err)
{
    const distribute_options *d = &e->sections.distribute;
    const char *text = known->devices != NULL ? known->devices : d->devices;
    const char *where = experiment_location(e, "distribute", "devices");
    bool several_processes = e->group != NULL || (d->mode == MODE_DDP && is_launched(e));
    bool one = e->purpose == EXPERIMENT_TRAIN && d->mode == MODE_SINGLE;

    if (device_choose(text, several_processes ? DEVICE_USE_RANK : one ? DEVICE_USE_ONE
                      : DEVICE_USE_ALL, where, &e->listed, err) != PONS_OK)
        return err->status;
    if (device_is_auto(text))
        text = record_choice(e);
    e->visible.count = -1;
    if (!is_shares(e) && check_gpus(e, text, where, err) != PONS_OK)
        return err->status;
    if ((several_processes ? take_list_entry : count_replicas)(e, text, err) != PONS_OK)
        return err->status;
    e->mode = several_processes ? MODE_DDP
              : e->purpose == EXPERIMENT_TRAIN && d->mode != MODE_AUTO ? (distribute_mode)d->mode
              : e->replicas > 1 ? MODE_DP : MODE_SINGLE;
    return find_comm(e, err);
}

const char *experiment_mode(const experiment *e)
{
    static const char *const names[] = {
        [MODE_AUTO] = "auto", [MODE_SINGLE] = "single", [MODE_DP] = "dp", [MODE_DDP] = "ddp"
    };

    return names[e->mode];
}

const char *experiment_mode_reason(const experiment *e)
{
    static const char *const reasons[] = {
        [MODE_SINGLE] = "one device", [MODE_DP] = "several devices",
        [MODE_DDP] = "ranks in the environment"
    };

    return reasons[e->mode];
}

const char *experiment_devices_reason(const experiment *e)
{
    return is_shares(e) ? "no GPU is there"
         : e->mode == MODE_DDP ? "a GPU for each rank"
         : e->sections.distribute.mode == MODE_SINGLE && e->purpose == EXPERIMENT_TRAIN
           ? "the first GPU" : "every GPU that is there";
}

/* ---- shares of the processors ---------------------------------------------------------------- */

/* The processors on which a process may run. Sets are comparable under the same kernel only. */
typedef struct allowed_processors {
    char kernel[BOOT_ID_SIZE];
    cpu_set_t set;
} allowed_processors;

static void find_allowed_processors(allowed_processors *out)
{
    memset(out, 0, sizeof *out);
    boot_id(out->kernel);
    if (sched_getaffinity(0, sizeof out->set, &out->set) != 0)
        CPU_ZERO(&out->set);
}

/*
 * Share processors among the processes that may run on the same set, in order of rank. A process
 * bound to its own set keeps all of it.
 */
static pons_status find_share(const experiment *e, int *index, int *count, pons_error *err)
{
    allowed_processors *all = calloc((size_t)e->replicas, sizeof *all), mine;

    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", e->replicas);
    find_allowed_processors(&mine);
    *index = *count = 0;
    if (group_all_gather(e->group, &mine, sizeof mine, all, err) == PONS_OK) {
        for (int r = 0; r < e->replicas; r++) {
            if (memcmp(&all[r], &mine, sizeof mine) != 0)
                continue;
            *index += r < e->first;
            ++*count;
        }
    }
    free(all);
    return err->status;
}

/* Find the share of each replica of this process. */
static pons_status find_shares(experiment *e, pons_error *err)
{
    const device_item *item = e->listed.item;

    e->share = arena_alloc(e->memory, DEVICES_MAX * sizeof *e->share);
    for (int i = 0; i < e->listed.count; i++)
        e->share[i] = (device_share){ e->replicas > 1 || !is_shares(e) ? item[i].index : 0,
                                      e->replicas };
    if (e->mode != MODE_DDP || !is_shares(e))
        return PONS_OK;
    e->share[0] = (device_share){ 0, e->listed.count };
    if (e->group != NULL && find_share(e, &e->share[0].index, &e->share[0].count, err) != PONS_OK)
        return err->status;
    if (item->numbered && e->processes != NULL)
        e->share[0] = (device_share){ item->index, e->processes->place.local_size };
    return PONS_OK;
}

/* ---- open ------------------------------------------------------------------------------------ */

/* The number of replicas in this process. */
static int count_here(const experiment *e)
{
    return e->mode == MODE_DDP ? 1 : e->replicas;
}

/* The folder of compiled kernels; NULL: none. */
static const char *kernel_folder(const experiment *e)
{
    const char *given = e->sections.device.cache_dir;

    return given != NULL && given[0] != '\0' ? given : user_cache_folder(e->memory, "kernels");
}

/* Add a hint to an error of a file that lists the devices of another machine. */
static pons_status add_hint(const experiment *e, pons_error *err)
{
    size_t used = strlen(err->text);

    if (!is_shares(e) && strstr(err->text, "\nhint: ") == NULL)
        snprintf(err->text + used, sizeof err->text - used,
                 "\nhint: --set distribute.devices=auto takes what is there");
    return err->status;
}

/* threads 0: as many as the device has processors. */
static pons_status open_replica_device(experiment *e, int threads, int i, pons_error *err)
{
    pons_device_settings settings = {
        .index = e->share[i].index, .count = e->share[i].count, .threads = threads,
        .deterministic = e->sections.experiment.deterministic,
        .cache_dir = kernel_folder(e),
        .workspace_limit = (size_t)e->sections.device.workspace_limit,
        .no_winograd = e->sections.device.winograd == 1
    };

    if (!is_reference(e))
        return device_open(e->listed.item[i].name, &settings,
                           experiment_location(e, "distribute", "devices"), &e->devices[i], err)
               == PONS_OK ? PONS_OK : add_hint(e, err);
    device_reference(&e->devices[i], false);
    return PONS_OK;
}

/*
 * Threads that the CPU quota of the control group leaves to each replica. Processes of a node
 * share one quota; their number is the launcher's, or that of the processes on these processors if
 * it is smaller.
 */
static int threads_most(const experiment *e)
{
    int sharers = count_here(e);

    if (e->mode == MODE_DDP && e->processes != NULL)
        sharers = min_int(e->processes->place.local_size, e->share[0].count);
    return is_shares(e) ? cpu_quota_threads(thread_quota(), sharers) : INT_MAX;
}

static void resolve_threads(experiment *e, const experiment_overrides *known)
{
    bool all = e->device.facts.threads < threads_most(e);

    if (e->sections.distribute.threads >= 0 && known->threads == 0)
        return;
    config_resolve(e->config, "distribute", "threads",
                   arena_format(e->memory, "%d", e->device.facts.threads),
                   known->threads > 0 ? "the checkpoint's"
                   : !all ? "what the quota of the control group allows"
                   : e->replicas > 1 ? "all cores of a replica" : "all cores of this process");
}

/*
 * True if the number of threads is an upper limit. Training takes the number as given, and so does
 * a prediction that must give equal bits. Else a run's file names the threads of another machine.
 */
static bool is_upper_limit(const experiment *e, const experiment_overrides *known)
{
    return e->purpose == EXPERIMENT_PREDICT && known->threads == 0
        && !e->sections.experiment.deterministic;
}

/*
 * Open the devices. All replicas compute with the same number of threads (R4), that of the
 * smallest share if processors do not divide evenly.
 */
static pons_status open_replica_devices(experiment *e, const experiment_overrides *known,
                                        pons_error *err)
{
    int64_t asked = known->threads > 0 ? known->threads : e->sections.distribute.threads;
    int least = asked > 0 ? (int)asked : 0, first = is_upper_limit(e, known) ? 0 : least;
    int count = count_here(e);

    for (int i = 0; i < count; i++, e->device_count++) {
        if (open_replica_device(e, first, i, err) != PONS_OK)
            return err->status;
        if (least == 0 || e->devices[i].facts.threads < least)
            least = e->devices[i].facts.threads;
    }
    if (first == 0 && threads_most(e) < least)
        least = threads_most(e);
    if (processes_minimum(e->group, least, &least, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count; i++) {
        if (e->devices[i].facts.threads == least)
            continue;
        device_close(&e->devices[i]);
        if (open_replica_device(e, least, i, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

pons_status experiment_open_devices(experiment *e, const experiment_overrides *known,
                                    pons_error *err)
{
    int count = count_here(e);

    e->devices = arena_alloc(e->memory, (size_t)count * sizeof *e->devices);
    if (find_shares(e, err) != PONS_OK || open_replica_devices(e, known, err) != PONS_OK)
        return err->status;
    e->device = e->devices[0];
    if (is_reference(e))
        return PONS_OK;
    resolve_threads(e, known);
    return count == 1 ? device_attach(&e->device, err) : PONS_OK;
}

/* ---- host threads ---------------------------------------------------------------------------- */

/* A replica on the host is bound to its processors; a replica on a GPU is not. */
int experiment_processors(const experiment *e)
{
    int count = thread_processors();
    bool shared = e->processes != NULL && !e->device.facts.host_memory;

    if (shared && e->processes->place.local_size > 1)
        count /= e->processes->place.local_size;
    return count > 0 ? count : 1;
}

int experiment_threads(const experiment *e)
{
    int most = experiment_processors(e), count = 0;

    for (int i = 0; i < e->device_count; i++)
        count += e->devices[i].facts.threads;
    return e->device.facts.host_memory && count > 0 && count < most ? count : most;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool is_power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

/* Resolve accumulate from micro_batches, or the reverse. */
static pons_status resolve_micro_batches(experiment *e, pons_error *err)
{
    const train_options *t = &e->sections.train;
    bool given = config_given(e->config, "train", "accumulate");

    e->accumulate = (int)t->accumulate;
    e->micro_batches = e->replicas * e->accumulate;
    if (t->micro_batches == 0)
        return PONS_OK;
    if (t->micro_batches % e->replicas != 0)
        return pons_fail(err, PONS_CONFIG, "%s: [train] micro_batches %lld cannot be shared out "
                         "among %d replicas", experiment_location(e, "train", "micro_batches"),
                         (long long)t->micro_batches, e->replicas);
    if (given && e->micro_batches != t->micro_batches)
        return pons_fail(err, PONS_CONFIG, "%s: [train] micro_batches %lld differs from accumulate "
                         "%lld with %d replica%s\nhint: --set train.accumulate=%lld",
                         experiment_location(e, "train", "micro_batches"),
                         (long long)t->micro_batches, (long long)t->accumulate, e->replicas,
                         e->replicas > 1 ? "s" : "", (long long)t->micro_batches / e->replicas);
    e->micro_batches = (int)t->micro_batches;
    e->accumulate = e->micro_batches / e->replicas;
    if (!given)
        config_derive(e->config, "train", "accumulate",
                      arena_format(e->memory, "%d", e->accumulate), "micro_batches / replicas");
    return PONS_OK;
}

/*
 * Joins over replicas cover the micro-batches that run at the same time (R3), so accumulate is 1.
 */
static pons_status check_joins(experiment *e, pons_error *err)
{
    const struct { bool on; const char *section, *key; } joined[] = {
        { e->sections.distribute.sync_batchnorm, "distribute", "sync_batchnorm" },
        { e->sections.loss.sync, "loss", "sync" },
    };
    bool whole = e->sections.train.micro_batches > 0;

    for (size_t i = 0; i < sizeof joined / sizeof *joined && e->accumulate > 1; i++)
        if (joined[i].on)
            return pons_fail(err, PONS_CONFIG, "%s: [%s] %s = yes joins the micro-batches that run "
                             "at the same time, but each replica runs %d of a step one after "
                             "another\nhint: --set train.%s=%d, with more devices or a larger "
                             "batch",
                             experiment_location(e, joined[i].section, joined[i].key),
                             joined[i].section, joined[i].key, e->accumulate,
                             whole ? "micro_batches" : "accumulate", whole ? e->replicas : 1);
    return PONS_OK;
}

pons_status experiment_resolve_steps(experiment *e, pons_error *err)
{
    const train_options *t = &e->sections.train;

    if (t->epochs > 0 && t->steps > 0)
        return pons_fail(err, PONS_CONFIG, "%s: both epochs and steps are given, expected one",
                         experiment_location(e, "train", "steps"));
    if (t->epochs == 0 && t->steps == 0)
        return sections_require("train", "epochs", err);
    if (resolve_micro_batches(e, err) != PONS_OK)
        return err->status;
    if (e->sections.experiment.deterministic && e->replicas > 1 && !is_power_of_two(e->accumulate))
        return pons_fail(err, PONS_CONFIG, "%s: deterministic = yes with %d replicas needs a power "
                         "of two of micro-batches for each, found %d",
                         experiment_location(e, "train", "accumulate"), e->replicas, e->accumulate);
    return check_joins(e, err);
}
