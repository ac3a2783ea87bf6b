/*
 * processes.c - open the group of a run's processes from the environment's ranks and [distribute].
 */
#include "experiment/processes.h"

#include <stdlib.h>
#include <string.h>

#include <pons/comm.h>

#include "base/broken_pipe.h"
#include "base/integer.h"
#include "device/cuda_visible_devices.h"
#include "device/device_choose.h"
#include "device/device_open.h"
#include "plugin/plugin_status.h"

static const char *look_up_environment(void *context, const char *name)
{
    return getenv(name);
}

/* The values of [distribute] backend. */
static const struct backend {
    const char *name;
    bool on_gpus;            /* joins GPUs and puts its work on their streams */
    bool on_one_node;        /* joins processes of one node only              */
} backends[] = {
    { NULL, false, false }, { "gloo", false, false }, { "nccl", true, false },
    { "mpi", false, false }, { "shm", false, true }
};

/* The order in which 'auto' tries the backends that fit. */
static const int preferred[] = { 2, 4, 1, 3 };
enum { PREFERRED = sizeof preferred / sizeof *preferred };

/* ---- comm plugin ----------------------------------------------------------------------------- */

/* Check that the machine has what the plugin needs. */
static pons_status check_comm(const plugin *comm, pons_error *err)
{
    const pons_comm_operations *operations = comm->operations;

    if (operations->available == NULL)
        return PONS_OK;
    return plugin_status(operations->available(err), "the comm plugin", "available", err);
}

static pons_status load_comm(const char *name, const char *where, const plugin **out,
                             pons_error *err)
{
    if (plugin_load(PONS_KIND_COMM, name, sizeof(pons_comm_operations), where, out, err) != PONS_OK)
        return err->status;
    return check_comm(*out, err);
}

/*
 * Load a plugin that may be missing; '*problem' says why it cannot be used here. A lack of memory,
 * descriptors or processes has another cause and is returned as an error.
 */
static pons_status try_comm(const char *name, const plugin **out, pons_error *problem,
                            pons_error *err)
{
    if (plugin_load(PONS_KIND_COMM, name, sizeof(pons_comm_operations), NULL, out, problem)
        == PONS_DEVICE)
        return pons_fail(err, PONS_DEVICE, "%s", problem->text);
    if (problem->status == PONS_OK)
        check_comm(*out, problem);
    if (problem->status != PONS_OK)
        *out = NULL;
    return PONS_OK;
}

static pons_status choose_devices(config *c, const sections *s, device_use use, device_list *out,
                                  pons_error *err)
{
    return device_choose(s->distribute.devices, use, config_location(c, "distribute", "devices"),
                         out, err);
}

/* The devices in words: "auto" without a GPU means the processor. */
static const char *name_processors(const sections *s)
{
    return device_is_auto(s->distribute.devices) ? "cpu" : s->distribute.devices;
}

/* Load the plugin that [distribute] backend names. */
static pons_status load_named_comm(const struct backend *given, const sections *s, bool on_gpus,
                                   const char *where, const plugin **out, pons_error *err)
{
    if (plugin_load(PONS_KIND_COMM, given->name, sizeof(pons_comm_operations), where, out, err)
        != PONS_OK)
        return err->status;
    if (given->on_gpus && !on_gpus)
        return pons_fail(err, PONS_CONFIG, "%s: [distribute] backend = %s joins GPUs, but devices "
                         "= '%s'\nhint: --set distribute.backend=auto takes one that joins "
                         "processors", where, given->name, name_processors(s));
    return check_comm(*out, err);
}

static bool is_fitting(const struct backend *b, const rank_info *place, bool on_gpus)
{
    if (b->on_gpus)
        return on_gpus;
    return !b->on_one_node || (place->local_size == place->size && !place->local_guessed);
}

static pons_status choose_comm(config *c, const sections *s, bool on_gpus, processes *p,
                               const struct backend **chosen, pons_error *err)
{
    const char *where = config_location(c, "distribute", "backend");
    char why[2 * sizeof err->text] = "";
    size_t used = 0;

    *chosen = &backends[s->distribute.backend];
    if (s->distribute.backend != 0)
        return load_named_comm(*chosen, s, on_gpus, where, &p->comm, err);
    for (int i = 0; i < PREFERRED; i++) {
        pons_error problem = PONS_ERROR_INIT;

        *chosen = &backends[preferred[i]];
        if (!is_fitting(*chosen, &p->place, on_gpus))
            continue;
        if (try_comm((*chosen)->name, &p->comm, &problem, err) != PONS_OK || p->comm != NULL)
            return err->status;
        used += (size_t)snprintf(why + used, sizeof why - used, "%s%.*s", used > 0 ? "; " : "",
                                 (int)strcspn(problem.text, "\n") < 300
                                 ? (int)strcspn(problem.text, "\n") : 300, problem.text);
    }
    return pons_fail(err, PONS_CONFIG, "%s: nothing can join %d processes: %.1000s\n"
                     "hint: pons plugin list shows what there is; gloo or Open MPI must be there "
                     "when pons is built", where, p->place.size, why);
}

pons_status processes_find_comm(config *c, const sections *s, logger *l, const plugin **out,
                                pons_error *err)
{
    const struct backend *given = &backends[s->distribute.backend];
    pons_error problem = PONS_ERROR_INIT;

    *out = NULL;
    if (given->name != NULL)
        return !given->on_gpus ? PONS_OK
             : load_comm(given->name, config_location(c, "distribute", "backend"), out, err);
    if (try_comm(backends[preferred[0]].name, out, &problem, err) != PONS_OK || *out != NULL)
        return err->status;
    log_line(l, "the host sums up over the GPUs: %.*s",
             (int)strcspn(problem.text, "\n"), problem.text);
    return PONS_OK;
}

/* ---- GPU of a communicator ------------------------------------------------------------------- */

/* Open the GPU of this process, and give the stream for the communicator's work. */
static pons_status open_gpu(config *c, const device_list *list, processes *p, void **stream,
                            pons_error *err)
{
    const char *where = config_location(c, "distribute", "devices");
    pons_device_settings settings = { .count = 1 };
    cuda_visible_devices visible;
    device_item item;

    if (cuda_visible_devices_parse(getenv("CUDA_VISIBLE_DEVICES"), -1, &visible, err) != PONS_OK
        || cuda_visible_devices_entry(&visible, list, p->place.local_rank, p->place.local_size,
                                      &item, err) != PONS_OK)
        return err->status;
    settings.index = item.index;
    if (device_open(item.name, &settings, where, &p->device, err) != PONS_OK)
        return err->status;
    *stream = p->device.operations->streams.comm_stream(p->device.handle, err);
    return err->status;
}

static void close_gpu(processes *p)
{
    if (p->device.operations != NULL)
        device_close(&p->device);
}

/* ---- open ------------------------------------------------------------------------------------ */

static pons_status check_mode(config *c, const sections *s, const rank_info *place,
                              pons_error *err)
{
    static const char *const names[] = { [MODE_SINGLE] = "single", [MODE_DP] = "dp" };
    int mode = s->distribute.mode;

    if (mode == MODE_AUTO || mode == MODE_DDP)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: mode = %s is one process, but there are %d (%s)\n"
                     "hint: --set distribute.mode=auto", config_location(c, "distribute", "mode"),
                     names[mode], place->size, place->origin);
}

static bool is_gpu(const device_list *list)
{
    return strcmp(list->item[0].name, "cuda") == 0;
}

/* Set the local rank from the list of devices, which has one entry for each process of a node. */
static pons_status set_local_rank(rank_info *place, const device_list *list, pons_error *err)
{
    cuda_visible_devices visible = { .count = -1 };
    int listed = list->count;

    if (listed == 1 && is_gpu(list) && !list->item[0].numbered
        && cuda_visible_devices_parse(getenv("CUDA_VISIBLE_DEVICES"), -1, &visible, err) == PONS_OK)
        listed = visible.given ? visible.count : device_count(list->item[0].name);
    if (listed > 1)
        rank_info_set_local_size(place, listed);
    return err->status;
}

static void log_rank(const processes *p, logger *l)
{
    char place[512];

    rank_info_print(&p->place, place, sizeof place);
    if (p->place.rank > 0 && l->level == LOG_NORMAL)
        l->level = LOG_QUIET;
    log_line(l, "%s, joined by %s", place, p->comm->descriptor->name);
}

/*
 * Try the plugins in a child process, which is impossible once a group or a GPU is open. Other
 * errors are reported when a plugin is used, since a prediction uses few of them.
 */
static pons_status try_plugins(config *c, const sections *s, pons_error *err)
{
    const struct { pons_kind kind; const char *section, *name; } used[] = {
        { PONS_KIND_MODEL, "model", s->model.plugin }, { PONS_KIND_LOSS, "loss", s->loss.plugin },
        { PONS_KIND_OPTIMIZER, "optimizer", s->optimizer.plugin },
        { PONS_KIND_SCHEDULE, "schedule", s->schedule.plugin }, { PONS_KIND_DEVICE, NULL, "cpu" }
    };

    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        pons_error problem = PONS_ERROR_INIT;
        const plugin *ignored;
        if (used[i].name == NULL || used[i].name[0] == '\0')
            continue;
        plugin_load(used[i].kind, used[i].name, 0, used[i].section == NULL ? ""
                    : config_location(c, used[i].section, "plugin"), &ignored, &problem);
        if (problem.status == PONS_PLUGIN || problem.status == PONS_DEVICE)
            return pons_fail(err, problem.status, "%s", problem.text);
    }
    plugin_end_trials();
    return PONS_OK;
}

static pons_status join_processes(config *c, const sections *s, logger *l, processes *p,
                                  pons_error *err)
{
    group_settings settings = {
        .place = &p->place, .deterministic = s->experiment.deterministic,
        .timeout_s = s->distribute.timeout_s
    };
    const struct backend *chosen;
    device_list list;

    broken_pipe_ignore(); /* SIGPIPE would end this rank, and with it all others */
    if (check_mode(c, s, &p->place, err) != PONS_OK
        || choose_devices(c, s, DEVICE_USE_RANK, &list, err) != PONS_OK
        || set_local_rank(&p->place, &list, err) != PONS_OK
        || choose_comm(c, s, is_gpu(&list), p, &chosen, err) != PONS_OK
        || try_plugins(c, s, err) != PONS_OK
        || (chosen->on_gpus && is_gpu(&list)
            && open_gpu(c, &list, p, &settings.stream, err) != PONS_OK)) {
        group_refuse(&p->place, err);
        return err->status;
    }
    settings.comm = p->comm;
    if (group_open(&settings, &p->group, err) != PONS_OK)
        return err->status;
    log_rank(p, l);
    return PONS_OK;
}

pons_status processes_open(config *c, const sections *s, logger *l, processes *out,
                           pons_error *err)
{
    processes p = { .group = NULL };

    if (rank_info_find(look_up_environment, NULL, &p.place, err) == PONS_OK && p.place.size > 1)
        join_processes(c, s, l, &p, err);
    if (p.place.remark[0] != '\0')
        log_line(l, "%s", p.place.remark);
    if (err->status != PONS_OK)
        close_gpu(&p);
    else
        *out = p;
    return err->status;
}

void processes_refuse(const pons_error *failure)
{
    pons_error problem = PONS_ERROR_INIT;
    rank_info place;

    if (rank_info_find(look_up_environment, NULL, &place, &problem) == PONS_OK)
        group_refuse(&place, failure);
}

void processes_close(processes *p, const pons_error *failure)
{
    if (p->group != NULL)
        group_close(p->group, failure->status != PONS_OK ? failure : NULL);
    p->group = NULL;
    close_gpu(p);
    p->comm = NULL;
}

pons_status processes_wanted(config *c, const sections *s, int *out, pons_error *err)
{
    rank_info place;
    device_list list;

    *out = 0;
    if (s->distribute.mode != MODE_DDP || rank_info_find(look_up_environment, NULL, &place,
                                                         err) != PONS_OK
        || place.origin[0] != '\0')
        return err->status;
    if (choose_devices(c, s, DEVICE_USE_ALL, &list, err) == PONS_OK)
        *out = list.count;
    return err->status;
}

/* ---- agreement ------------------------------------------------------------------------------- */

pons_status processes_minimum(group *g, int mine, int *least, pons_error *err)
{
    int *all;

    *least = mine;
    if (g == NULL)
        return PONS_OK;
    all = malloc((size_t)group_size(g) * sizeof *all);
    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", group_size(g));
    if (group_all_gather(g, &mine, sizeof mine, all, err) == PONS_OK)
        for (int r = 0; r < group_size(g); r++)
            *least = min_int(all[r], *least);
    free(all);
    return err->status;
}

/* ---- shared cache of a machine --------------------------------------------------------------- */

static pons_status gather_in_group(void *context, const void *mine, size_t size, void *all,
                                   pons_error *err)
{
    return group_all_gather(context, mine, size, all, err);
}

/* End all processes of the group with this error. */
static void leave_group(void *context, const pons_error *failure)
{
    group_publish_interruption(context, failure);
}

void processes_cache_peers(group *g, cache_peers *out)
{
    *out = (cache_peers){ .count = 1 };
    if (g != NULL)
        *out = (cache_peers){ group_rank(g), group_size(g), gather_in_group, leave_group, g };
}
