/*
 * error.c - the first failure wins, and is one complete line.
 */
#include <stdarg.h>

#include <pons/plugin.h>

#include "base/text/quote.h"

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
