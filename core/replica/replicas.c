/*
 * replicas.c - the replicas of a process.
 */
#include "replica/replicas.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/memory_limit.h"
#include "cluster/group/group.h"
#include "device/device_open.h"
#include "experiment/data_settings.h"
#include "experiment/processes.h"
#include "experiment/tuning.h"
#include "graph/program/explain.h"
#include "plugin/plugin_status.h"
#include "replica/device_cases.h"
#include "replica/input_copy.h"

#define JOIN_S 60.0 /* all GPUs are in this machine: one that does not join soon never does      */

static void wake_others(void *context, int number)
{
    replicas *r = context;

    local_comm_abort(r->comm, number);
    if (r->cards != NULL)
        gpu_comm_abort(r->cards);
}

/* ---- run ------------------------------------------------------------------------------------- */

typedef struct job {
    replicas *replicas;
    replica_work *work;
    void *context;
} job;

static pons_status do_job(void *context, int number, pons_error *err)
{
    const job *j = context;

    return j->work(j->context, &j->replicas->item[number], err);
}

pons_status replicas_run(replicas *r, replica_work *work, void *context, pons_error *err)
{
    job j = { r, work, context };

    return replica_threads_run(r->replica_threads, do_job, &j, err);
}

/* ---- open ------------------------------------------------------------------------------------ */

typedef struct opening {
    replicas *replicas;
    unsigned programs;
} opening;

/* The collective that joins a replica with the others of the run; NULL: it is the only one. */
static pons_status find_collective(replicas *r, const replica *one, const program_collective **out,
                                   pons_error *err)
{
    const experiment *e = r->experiment;
    const device *d = one->device;
    void *stream;

    *out = e->group != NULL ? group_collective(e->group)
         : r->count > 1 ? local_comm_collective(r->comm, one->index) : NULL;
    if (r->cards == NULL)
        return PONS_OK;
    stream = d->operations->streams.comm_stream(d->handle, err);
    if (plugin_status(stream != NULL ? PONS_OK : PONS_DEVICE, "the device", "streams.comm_stream",
                      err)
        == PONS_OK)
        *out = gpu_comm_collective(r->cards, one->index, stream);
    return err->status;
}

static pons_status open_one(void *context, replica *one, pons_error *err)
{
    const opening *o = context;
    replicas *r = o->replicas;
    const experiment *e = r->experiment;
    program_seat place = {
        one->device, NULL, experiment_device_extracts(e) && !(o->programs & REPLICAS_GIVEN)
    };

    if ((r->count > 1 && device_attach(one->device, err) != PONS_OK)
        || find_collective(r, one, &place.collective, err) != PONS_OK
        || storage_new(one->device, &one->storage, err) != PONS_OK)
        return err->status;
    if (o->programs & REPLICAS_TRACED) {
        if (comm_trace_new(place.collective, REPLICAS_TRACE_STEPS, &one->trace, err) != PONS_OK)
            return err->status;
        place.collective = comm_trace_collective(one->trace);
    }
    if (o->programs & REPLICAS_TRAINING)
        programs_build_training(e, &place, one->storage, &one->training, err);
    if (o->programs & REPLICAS_EVALUATION && err->status == PONS_OK)
        programs_build_evaluation(e, one->device, one->storage,
                                  (o->programs & REPLICAS_DROPOUT) != 0, &one->evaluation, err);
    if (o->programs & REPLICAS_LOSS && err->status == PONS_OK)
        programs_build_loss(e, one->device, one->storage, &one->loss, err);
    if (err->status != PONS_OK)
        return err->status;
    device_compile(one->device);
    storage_set(one->storage, STORAGE_SCALE, e->sections.train.loss_scale);
    return storage_initialise(one->storage, (uint64_t)e->sections.experiment.seed, err);
}

static pons_status join_one(void *context, replica *one, pons_error *err)
{
    return gpu_comm_join(context, one->index, err);
}

static pons_status leave_one(void *context, replica *one, pons_error *err)
{
    gpu_comm_leave(context, one->index);
    return PONS_OK;
}

/* The run's first replica times kernels; the others then take its choices. */
static pons_status open_first(void *context, replica *one, pons_error *err)
{
    return one->number == 0 ? open_one(context, one, err) : PONS_OK;
}

static pons_status open_other(void *context, replica *one, pons_error *err)
{
    return one->number > 0 ? open_one(context, one, err) : PONS_OK;
}

static pons_status open_programs(opening *o, pons_error *err)
{
    replicas *r = o->replicas;
    tuning *t = r->experiment->tuning;

    if (t == NULL)
        return replicas_run(r, open_one, o, err);
    tuning_begin(t);
    if (replicas_run(r, open_first, o, err) != PONS_OK || tuning_share(t, err) != PONS_OK)
        return err->status;
    return replicas_run(r, open_other, o, err);
}

/* ---- memory ---------------------------------------------------------------------------------- */

double replica_bytes(const replica *one)
{
    const program *const programs[] = { one->training, one->evaluation, one->loss };
    program_facts facts;
    double arena = 0, parameters = 0, rest = 0;

    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        if (programs[i] == NULL)
            continue;
        program_describe(programs[i], &facts);
        arena = (double)facts.arena > arena ? (double)facts.arena : arena;
        parameters = (double)facts.parameters;
        rest += (double)(facts.packed + facts.inputs + facts.grad_accum);
        if (programs[i] == one->training && one->loader != NULL)
            rest -= (double)facts.external_inputs;
    }
    return arena + parameters + rest;
}

/* Pages are allocated when touched: without a check the kernel would kill the process in a step. */
static pons_status check_memory(const replicas *r, pons_error *err)
{
    const experiment *e = r->experiment;
    double needed = 0, room = memory_limit_bytes();
    int processes = e->group != NULL ? e->processes->place.local_size : 1;
    int replicas = processes * r->count;

    for (int i = 0; i < r->count; i++)
        needed += r->item[i].device->facts.host_memory ? replica_bytes(&r->item[i]) : 0;
    if (room <= 0 || needed * processes <= room)
        return PONS_OK;
    return pons_fail(err, PONS_DEVICE, "out of memory: %d replica%s on this node need%s %.3g GB, "
                     "expected at most the %.3g GB that there are", replicas,
                     replicas == 1 ? "" : "s", replicas == 1 ? "s" : "", needed * processes / 1e9,
                     room / 1e9);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The communicator of replicas that train on GPUs of their own. */
static pons_status open_joint(const experiment *e, unsigned programs, replicas *r, pons_error *err)
{
    double timeout_s = e->sections.distribute.timeout_s;

    if (e->comm == NULL || e->group != NULL || !(programs & REPLICAS_TRAINING))
        return PONS_OK;
    return gpu_comm_new(r->count, e->comm, timeout_s < JOIN_S ? timeout_s : JOIN_S, &r->cards,
                        err);
}

static pons_status open_in(replica_threads *shared, const experiment *e, unsigned programs,
                           replicas *r, pons_error *err)
{
    opening o = { r, programs };

    *r = (replicas){ .experiment = e, .count = e->device_count, .replica_threads = shared,
                     .borrowed = shared != NULL };
    r->item = calloc((size_t)r->count, sizeof *r->item);
    if (r->item == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d replicas", r->count);
    for (int i = 0; i < r->count; i++)
        r->item[i] = (replica){ .number = e->first + i, .index = i, .device = &e->devices[i] };
    if (local_comm_new(r->count, &r->comm, err) != PONS_OK
        || open_joint(e, programs, r, err) != PONS_OK
        || (!r->borrowed && replica_threads_open(r->count, wake_others, r, &r->replica_threads,
                                                 err) != PONS_OK))
        return err->status;
    if (open_programs(&o, err) != PONS_OK || check_memory(r, err) != PONS_OK
        || r->cards == NULL)
        return err->status;
    /* Joining comes last: others would wait for a failed replica until JOIN_S is over. */
    return replicas_run(r, join_one, r->cards, err);
}

pons_status replicas_open(const experiment *e, unsigned programs, replicas *r, pons_error *err)
{
    return open_in(NULL, e, programs, r, err);
}

pons_status replicas_open_beside(const replicas *first, const experiment *e, unsigned programs,
                                 replicas *r, pons_error *err)
{
    return open_in(first->replica_threads, e, programs, r, err);
}

/* With an automatic number of threads each replica gets its share, at least one. */
static int share_threads(const loader_settings *s, int replicas)
{
    int threads = s->threads < 0 ? loader_threads_chosen() / replicas : s->threads;

    return s->threads < 0 && threads < 1 ? 1 : threads;
}

pons_status replicas_open_loaders(replicas *r, cache *held, const case_window *window,
                                  int64_t step, pons_error *err)
{
    const experiment *e = r->experiment;
    const pipeline *augment = e->augment != NULL && e->augment->count > 0 ? e->augment : NULL;
    bool holds = experiment_device_extracts(e);

    if (holds && device_cases_load(r, held, window->total, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < r->count; i++) {
        loader_settings s;

        loader_settings_fill(&e->sections, &s);
        s.micro_batches = e->micro_batches;
        s.first = r->item[i].number * e->accumulate;
        s.count = e->accumulate;
        s.step = step;
        s.window = *window;
        s.threads = share_threads(&s, r->count);
        s.layout = holds ? &r->layout : NULL;
        memcpy(s.extent, e->patch, sizeof s.extent);
        if (loader_open(held, window->total, e->data->training, augment, &s, &r->item[i].loader,
                        err) != PONS_OK || input_copy_seek(&r->item[i], step, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

void replicas_close(replicas *r)
{
    pons_error unread = PONS_ERROR_INIT;

    if (r->cards != NULL && r->replica_threads != NULL)
        replicas_run(r, leave_one, r->cards, &unread);
    if (!r->borrowed)
        replica_threads_close(r->replica_threads);
    for (int i = 0; i < r->count && r->item != NULL; i++) {
        replica *one = &r->item[i];

        if (one->loader != NULL)
            loader_close(one->loader);
        if (one->validation != NULL)
            loader_close(one->validation);
        program_free(one->loss);
        program_free(one->evaluation);
        program_free(one->training);
        device_cases_drop(one);
        comm_trace_free(one->trace);
        if (one->storage != NULL)
            storage_free(one->storage);
    }
    device_case_layout_clear(&r->layout);
    local_comm_free(r->comm);
    gpu_comm_free(r->cards);
    free(r->item);
    *r = (replicas){ .count = 0 };
}

void replicas_copy_first(replicas *r)
{
    for (int i = 1; i < r->count; i++)
        storage_copy(r->item[i].storage, r->item[0].storage);
}
