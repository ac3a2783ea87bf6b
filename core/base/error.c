/*
 * error.c - pons_fail. The first failure wins, and its message is one complete line.
 */
#include <stdarg.h>

#include <pons/plugin.h>

#include "base/text/quote.h"

pons_status pons_option_fail(pons_error *err, const char *key, const char *format, ...)
{
    char text[sizeof err->text];
    va_list list;

    va_start(list, format);
    quote_format(text, sizeof text, format, list);
    va_end(list);
    return pons_fail(err, PONS_CONFIG, "%s: %s", key, text);
}

pons_status pons_fail(pons_error *err, pons_status status, const char *format, ...)
{
    if (err == NULL)
        return status;
    if (err->status == PONS_OK) {
        va_list list;
        va_start(list, format);
        quote_format(err->text, sizeof err->text, format, list);
        va_end(list);
        err->status = status;
    }
    return err->status;
}
