/*
 * plugin_options.c - the options of a plugin: filled by its table, then checked by the plugin as a
 * whole. The check is the first operation of every kind.
 */
#include "plugin/plugin_options.h"

#include <string.h>

#include <pons/pons.h>

#include "plugin/plugin_status.h"

#define CHECK_IS_FIRST(kind) \
    _Static_assert(offsetof(pons_##kind##_operations, check) == 0, "check comes first")

CHECK_IS_FIRST(model);
CHECK_IS_FIRST(loss);
CHECK_IS_FIRST(optimizer);
CHECK_IS_FIRST(op);
CHECK_IS_FIRST(transform);
CHECK_IS_FIRST(schedule);
CHECK_IS_FIRST(device);
CHECK_IS_FIRST(comm);
CHECK_IS_FIRST(sink);

pons_status plugin_options_check(const plugin *p, const void *options, pons_error *err)
{
    const pons_plugin *d = p->descriptor;
    pons_status (*check)(const void *config, pons_error *err);
    char what[32];

    memcpy(&check, d->operations, sizeof check);
    if (check == NULL)
        return PONS_OK;
    snprintf(what, sizeof what, "the %s", plugin_kind_name((pons_kind)d->kind));
    return plugin_status(check(options, err), what, "check", err);
}

pons_status plugin_options_fill(config *c, const char *section, const plugin *p, void *options,
                                pons_error *err)
{
    pons_error found = PONS_ERROR_INIT;

    if (config_fill(c, section, p->descriptor->options, options, err) != PONS_OK
        || plugin_options_check(p, options, &found) == PONS_OK)
        return err->status;
    /* A key that nothing knows may be the one that is missed. */
    if (found.status == PONS_CONFIG && config_refuse_keys(c, section, err) != PONS_OK)
        return err->status;
    pons_fail(err, found.status, "%s", found.text);
    return config_location_add(c, section, NULL, err);
}
