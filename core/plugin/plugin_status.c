/*
 * plugin_status.c - a failure has a status and a message; an operation that gives only one of them
 * has failed, too.
 */
#include "plugin/plugin_status.h"

pons_status plugin_status(pons_status returned, const char *what, const char *operation,
                          pons_error *err)
{
    if (err->status == PONS_OK && returned != PONS_OK)
        return pons_fail(err, PONS_PLUGIN, "%s: '%s' returned %d and has not said why", what,
                         operation, (int)returned);
    return err->status;
}
