/*
 * processes.c - from the environment's ranks and [distribute] to a group of processes.
 */
#include <config.h>

#include "train/processes.h"

#include "device/list.h"

#include <pons/comm.h>

#include <stdlib.h>
#include <string.h>

static const char *look(void *context, const char *name)
{
    return getenv(name);
}

/* Values of [distribute] backend; 'auto' takes the first that can be used. */
static const char *const backends[] = { NULL, "gloo", "nccl", "mpi" };
static const int preferred[] = { 1, 3 }; /* the buffers of a cpu are host memory */

/* ---- the library of the collectives ---------------------------------------------------------- */

static pons_status load_comm(const char *name, const char *where, processes *p, pons_error *err)
{
    const pons_comm_operations *operations;

    if (plugin_load(PONS_KIND_COMM, name, sizeof *operations, where, &p->comm, err) != PONS_OK)
        return err->status;
    operations = p->comm->operations;
    return operations->check != NULL ? operations->check(err) : PONS_OK;
}

static pons_status choose_comm(config *c, const sections *s, processes *p, pons_error *err)
{
    const char *where = config_place(c, "distribute", "backend");
    char why[2][sizeof err->text];

    if (s->distribute.backend != 0)
        return load_comm(backends[s->distribute.backend], where, p, err);
    for (size_t i = 0; i < sizeof preferred / sizeof *preferred; i++) {
        pons_error problem = PONS_ERROR_INIT;

        if (load_comm(backends[preferred[i]], NULL, p, &problem) == PONS_OK)
            return PONS_OK;
        snprintf(why[i], sizeof why[i], "%.*s", (int)strcspn(problem.text, "\n"), problem.text);
        p->comm = NULL;
    }
    return pons_fail(err, PONS_CONFIG, "%s: nothing can join %d processes: %.300s; %.300s\n"
                     "hint: pons plugin list shows what there is; gloo or Open MPI must be there "
                     "when pons is built", where, p->place.size, why[0], why[1]);
}

/* ---- open ------------------------------------------------------------------------------------ */

static pons_status check_mode(config *c, const sections *s, const dist_place *place,
                              pons_error *err)
{
    static const char *const names[] = { [MODE_SINGLE] = "single", [MODE_DP] = "dp" };
    int mode = s->distribute.mode;

    if (mode == MODE_AUTO || mode == MODE_DDP)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s: mode = %s is one process, but there are %d (%s)\n"
                     "hint: mode = ddp, or auto", config_place(c, "distribute", "mode"),
                     names[mode], place->size, place->origin);
}

static void tell(const processes *p, logger *l)
{
    char place[512];

    dist_place_tell(&p->place, place, sizeof place);
    if (p->place.rank > 0 && l->level == LOG_NORMAL)
        l->level = LOG_QUIET;
    log_line(l, "%s, joined by %s", place, p->comm->descriptor->name);
}

static pons_status join(config *c, const sections *s, logger *l, processes *p, pons_error *err)
{
    group_settings settings = {
        .place = &p->place, .deterministic = s->experiment.deterministic,
        .timeout_s = s->distribute.timeout_s
    };

    if (check_mode(c, s, &p->place, err) != PONS_OK || choose_comm(c, s, p, err) != PONS_OK) {
        group_refuse(&p->place, err);
        return err->status;
    }
    settings.comm = p->comm;
    if (group_open(&settings, &p->group, err) != PONS_OK)
        return err->status;
    tell(p, l);
    return PONS_OK;
}

pons_status processes_open(config *c, const sections *s, logger *l, processes *out,
                           pons_error *err)
{
    processes p = { .group = NULL };

    if (dist_place_find(look, NULL, &p.place, err) == PONS_OK && p.place.size > 1)
        join(c, s, l, &p, err);
    if (p.place.remark[0] != '\0')
        log_line(l, "%s", p.place.remark);
    if (err->status == PONS_OK)
        *out = p;
    return err->status;
}

void processes_refuse(const pons_error *failure)
{
    pons_error problem = PONS_ERROR_INIT;
    dist_place place;

    if (dist_place_find(look, NULL, &place, &problem) == PONS_OK)
        group_refuse(&place, failure);
}

void processes_close(processes *p, const pons_error *failure)
{
    if (p->group != NULL)
        group_close(p->group, failure->status != PONS_OK ? failure : NULL);
    p->group = NULL;
    p->comm = NULL;
}

pons_status processes_wanted(config *c, const sections *s, int *out, pons_error *err)
{
    const char *text = s->distribute.devices;
    dist_place place;
    device_list list;

    *out = 0;
    if (s->distribute.mode != MODE_DDP || dist_place_find(look, NULL, &place, err) != PONS_OK
        || place.origin[0] != '\0')
        return err->status;
    if (text == NULL || text[0] == '\0' || strcmp(text, "auto") == 0)
        text = "cpu";
    if (device_list_parse(text, config_place(c, "distribute", "devices"), &list, err) == PONS_OK)
        *out = list.count;
    return err->status;
}

/* ---- agreement ------------------------------------------------------------------------------- */

pons_status processes_least(group *g, int mine, int *least, pons_error *err)
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
            *least = all[r] < *least ? all[r] : *least;
    free(all);
    return err->status;
}

/* ---- one cache of a machine ------------------------------------------------------------------ */

static pons_status gather(void *context, const void *mine, size_t size, void *all, pons_error *err)
{
    return group_all_gather(context, mine, size, all, err);
}

/* All of them end by this failure, with one line. */
static void leave(void *context, const pons_error *failure)
{
    group_leave(context, failure);
}

void processes_share_cache(group *g, cache_peers *out)
{
    *out = (cache_peers){ .count = 1 };
    if (g != NULL)
        *out = (cache_peers){ group_rank(g), group_size(g), gather, leave, g };
}
