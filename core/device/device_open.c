/*
 * device_open.c - load a device plugin, open it and read its facts.
 */
#include "device/device_open.h"

#include <stddef.h>
#include <string.h>

#include "plugin/plugin_load.h"
#include "plugin/plugin_status.h"

/* ---- operations ------------------------------------------------------------------------------ */

/*
 * The group of an operation. ALWAYS is required; OWN_MEMORY is required unless memory is the
 * host's; of another group a device has all operations or none.
 */
typedef enum group { ALWAYS = 0, OWN_MEMORY, STREAM, CAPTURE, TIMER, RANGE } group;

#define OPERATION(name, group) { #name, offsetof(pons_device_operations, name), group }

static const struct { const char *name; size_t at; group group; } operations[] = {
    OPERATION(open, ALWAYS), OPERATION(close, ALWAYS), OPERATION(facts, ALWAYS),
    OPERATION(attach, ALWAYS), OPERATION(prepare, ALWAYS), OPERATION(memory.allocate, ALWAYS),
    OPERATION(memory.release, ALWAYS),
    OPERATION(memory.allocate_host, OWN_MEMORY), OPERATION(memory.release_host, OWN_MEMORY),
    OPERATION(memory.copy, OWN_MEMORY), OPERATION(streams.event_record, OWN_MEMORY),
    OPERATION(streams.stream_wait_event, OWN_MEMORY),
    OPERATION(streams.event_synchronize, OWN_MEMORY),
    OPERATION(streams.comm_stream, STREAM), OPERATION(streams.stream_wait_stream, STREAM),
    OPERATION(capture.begin, CAPTURE), OPERATION(capture.end, CAPTURE),
    OPERATION(capture.launch, CAPTURE), OPERATION(capture.destroy, CAPTURE),
    OPERATION(profiling.timer_start, TIMER), OPERATION(profiling.timer_stop, TIMER),
    OPERATION(profiling.range_begin, RANGE), OPERATION(profiling.range_end, RANGE),
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static bool has_operation(const pons_device_operations *o, int i)
{
    void (*function)(void);

    memcpy(&function, (const char *)o + operations[i].at, sizeof function);
    return function != NULL;
}

static bool is_required(const pons_device_operations *o, group g, bool host_memory)
{
    bool needed = g == ALWAYS || (g == OWN_MEMORY && !host_memory);

    for (int i = 0; i < OPERATIONS && g > OWN_MEMORY; i++)
        needed = needed || (operations[i].group == g && has_operation(o, i));
    return needed;
}

static pons_status check_operations(const pons_device_operations *o, bool host_memory,
                                    pons_error *err)
{
    for (int i = 0; i < OPERATIONS; i++)
        if (!has_operation(o, i) && is_required(o, operations[i].group, host_memory))
            return pons_fail(err, PONS_PLUGIN, "the device: operation '%s' is missing",
                             operations[i].name);
    return PONS_OK;
}

/* ---- devices --------------------------------------------------------------------------------- */

pons_status device_open_plugin(const plugin *p, const pons_device_settings *settings, device *out,
                               pons_error *err)
{
    device d = { .plugin = p, .operations = p->operations };

    if (check_operations(d.operations, true, err) != PONS_OK
        || plugin_status(d.operations->open(settings, &d.handle, err), "the device", "open", err)
           != PONS_OK)
        return err->status;
    d.operations->facts(d.handle, &d.facts);
    if (!d.facts.host_memory)
        plugin_end_trials();
    if (check_operations(d.operations, d.facts.host_memory, err) != PONS_OK) {
        device_close(&d);
        return err->status;
    }
    *out = d;
    return PONS_OK;
}

pons_status device_open(const char *name, const pons_device_settings *settings, const char *where,
                        device *out, pons_error *err)
{
    const plugin *p;
    pons_status status = plugin_load(PONS_KIND_DEVICE, name, sizeof(pons_device_operations), where,
                                     &p, err);

    return status == PONS_OK ? device_open_plugin(p, settings, out, err) : status;
}

pons_status device_attach(const device *d, pons_error *err)
{
    return plugin_status(d->operations->attach(d->handle, err), "the device", "attach", err);
}

void device_compile(const device *d)
{
    if (d->operations->compile != NULL)
        d->operations->compile(d->handle);
}

void device_close(device *d)
{
    if (d->operations != NULL)
        d->operations->close(d->handle);
    *d = (device){ .operations = NULL };
}
