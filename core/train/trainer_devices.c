/*
 * trainer_devices.c - [log] device_every: what the sensors of all replicas' devices say, while a
 * step is computed. What cannot be read is said once, and ends no training.
 */
#include "train/trainer_internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cluster/group/group.h"
#include "plugin/plugin_status.h"

bool trainer_sensors_due(const trainer *t)
{
    int64_t every = t->experiment->sections.log.device_every;

    return every > 0 && !t->sensors_unavailable && (t->state.step + 1) % every == 0;
}

void trainer_read_sensors(trainer *t, const replica *r)
{
    const device *d = r->device;
    device_reading *out = &t->devices[r->index];

    *out = (device_reading){ .time = seconds_of_calendar(), .step = t->state.step + 1,
                             .replica = r->number, .error = PONS_ERROR_INIT,
                             .state = { .engine_active = NAN, .tensor_active = NAN,
                                        .pcie_sent = NAN, .pcie_received = NAN } };
    if (d->operations->profiling.sensors == NULL)
        pons_fail(&out->error, PONS_DEVICE, "device '%s' has no sensors",
                  d->plugin->descriptor->name);
    else
        plugin_status(d->operations->profiling.sensors(d->handle, &out->state, &out->error),
                      "the device", "profiling.sensors", &out->error);
}

/* The first one that failed, or NULL. */
static const pons_error *find_failure(int count, const device_reading *reading)
{
    for (int i = 0; i < count; i++)
        if (reading[i].error.status != PONS_OK)
            return &reading[i].error;
    return NULL;
}

static pons_status report_readings(trainer *t, int count, const device_reading *reading,
                                   pons_error *err)
{
    const trainer_observer *o = &t->settings->observer;
    const pons_error *failure = find_failure(count, reading);

    t->sensors_unavailable = failure != NULL;
    if (!trainer_is_writer(t))
        return PONS_OK;
    if (failure == NULL)
        return o->devices(o->context, count, reading, err);
    log_warning(t->experiment->log, "%s: devices.csv ends here", failure->text);
    return PONS_OK;
}

pons_status trainer_report_sensors(trainer *t, pons_error *err)
{
    group *g = t->experiment->group;
    size_t mine = (size_t)t->replicas.count * sizeof *t->devices;
    device_reading *all;

    if (g == NULL)
        return report_readings(t, t->replicas.count, t->devices, err);
    all = malloc((size_t)group_size(g) * mine);
    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", group_size(g));
    if (group_all_gather(g, t->devices, mine, all, err) == PONS_OK)
        report_readings(t, group_size(g) * t->replicas.count, all, err);
    free(all);
    return err->status;
}
