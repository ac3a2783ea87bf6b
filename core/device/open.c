/*
 * open.c - find a device plugin, open it, ask what it is.
 */
#include "device/open.h"

#include "plugin/answer.h"
#include "plugin/plugin_load.h"

pons_status device_open(const char *name, const pons_device_settings *settings, const char *where,
                        device *out, pons_error *err)
{
    const plugin *p;
    device d = { .operations = NULL };
    pons_status status = plugin_load(PONS_KIND_DEVICE, name, sizeof *d.operations, where, &p, err);

    if (status != PONS_OK)
        return status;
    d.plugin = p;
    d.operations = p->operations;
    status = plugin_answer(d.operations->open(settings, &d.handle, err), "the device", "open", err);
    if (status != PONS_OK)
        return status;
    d.operations->facts(d.handle, &d.facts);
    *out = d;
    return PONS_OK;
}

pons_status device_attach(const device *d, pons_error *err)
{
    return d->operations->attach(d->handle, err);
}

void device_close(device *d)
{
    if (d->operations != NULL)
        d->operations->close(d->handle);
    *d = (device){ .operations = NULL };
}
