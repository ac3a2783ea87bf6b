/*
 * trainer_profile.c - pons train --profile: the time of the kernels of this process, by kind and
 * implementation, in the profile of the thread that trains.
 *
 * Watched programs run kernel by kernel, and wait for each one. The kernels and their order are
 * those of a run without a profile, and so are the bits.
 */
#include "train/trainer_internal.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/integer.h"
#include "graph/program/explain.h"

/* The times of a kernel of a program. */
typedef struct kernel_time {
    int64_t calls;
    double seconds, device_seconds;
} kernel_time;

typedef struct watched_program {
    program *program;
    profile_track *device;       /* of the events of a device with a clock of its own, or NULL    */
    bool queued;                 /* the device has memory of its own                              */
    int count;
    kernel_time *time;
} watched_program;

enum { PROGRAMS = 3 };

struct trainer_profile {
    profile *profile;
    int count;
    watched_program program[];   /* PROGRAMS for each replica                                     */
};

static void note_kernel(void *context, int kernel, double seconds, double host_seconds)
{
    const watched_program *w = context;
    kernel_time *t = &w->time[kernel];

    t->calls++;
    t->seconds += w->queued ? host_seconds : seconds;
    if (!w->queued)
        return;
    t->device_seconds += seconds;
    profile_add_device_seconds(seconds);
    if (w->device != NULL) {
        double end = seconds_now();

        profile_add_event(w->device, RANGE_KERNEL, program_kernel(w->program, kernel).name,
                          end - seconds, end);
    }
}

static pons_status watch(watched_program *w, program *p, const replica *r, profile_track *device,
                         pons_error *err)
{
    program_facts facts;

    if (p == NULL)
        return PONS_OK;
    program_describe(p, &facts);
    *w = (watched_program){ p, device, !r->device->facts.host_memory, facts.kernel_count,
                            calloc((size_t)facts.kernel_count + 1, sizeof *w->time) };
    if (w->time == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the times of %d kernels", w->count);
    program_watch(p, note_kernel, w);
    return PONS_OK;
}

/* Watch the programs of a replica. Called by its thread. */
static pons_status watch_replica(void *context, replica *r, pons_error *err)
{
    struct trainer_profile *p = context;
    watched_program *w = &p->program[PROGRAMS * r->index];
    bool host = r->device->facts.host_memory;
    char name[64];
    profile_track *device = NULL;

    if (p->count > PROGRAMS) {
        snprintf(name, sizeof name, "replica %d", r->number);
        profile_name_thread(name);
    }
    snprintf(name, sizeof name, "device of replica %d", r->number);
    if (!host)
        device = profile_add_track(p->profile, name);
    else
        profile_set_kernel_threads(max_int(r->device->facts.threads, 1));
    program *const programs[PROGRAMS] = { r->training, r->evaluation, r->loss };
    for (int i = 0; i < PROGRAMS && err->status == PONS_OK; i++)
        watch(&w[i], programs[i], r, device, err);
    return err->status;
}

pons_status trainer_open_profile(trainer *t, pons_error *err)
{
    profile *to = profile_of_thread();
    int count = PROGRAMS * t->replicas.count;

    if (to == NULL)
        return PONS_OK;
    t->profile = calloc(1, sizeof *t->profile + (size_t)count * sizeof *t->profile->program);
    if (t->profile == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a profile");
    t->profile->profile = to;
    t->profile->count = count;
    return replicas_run(&t->replicas, watch_replica, t->profile, err);
}

static void add_kernels(profile *to, const watched_program *w)
{
    for (int k = 0; w->time != NULL && k < w->count; k++) {
        kernel_facts facts = program_kernel(w->program, k);
        const kernel_time *t = &w->time[k];

        if (t->calls > 0)
            profile_add_kernels(to, facts.kind,
                                facts.implementation != NULL ? facts.implementation : "",
                                t->calls, t->seconds, t->device_seconds);
    }
}

void trainer_close_profile(trainer *t)
{
    struct trainer_profile *p = t->profile;

    for (int i = 0; p != NULL && i < p->count; i++) {
        if (p->program[i].program != NULL)
            program_watch(p->program[i].program, NULL, NULL);
        add_kernels(p->profile, &p->program[i]);
        free(p->program[i].time);
    }
    free(p);
    t->profile = NULL;
}
