/*
 * device_list.c - parse a list of devices.
 */
#include "device/device_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static pons_status refuse_list(const char *where, const char *text, const char *why,
                               pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "%s: [distribute] devices = '%s': %s, expected for "
                     "example cpu, cpu:0,cpu:1 or cuda:0,2", where, text, why);
}

/* The number from 'text' to 'end'; -1 if there is anything but digits. */
static int number_of(const char *text, const char *end)
{
    char *stop;
    long n;

    if (text == end || !isdigit((unsigned char)*text))
        return -1;
    errno = 0;
    n = strtol(text, &stop, 10);
    return stop == end && errno == 0 && n <= 65535 ? (int)n : -1;
}

/* Parse one item; 'before' is the previous one, or NULL. Returns the fault, or NULL. */
static const char *parse_item(const char *text, const char *end, const device_item *before,
                              device_item *out)
{
    const char *colon = memchr(text, ':', (size_t)(end - text));
    size_t size = (size_t)((colon != NULL ? colon : end) - text);

    *out = (device_item){ .index = 0 };
    if (text == end)
        return "an item is empty";
    if (number_of(text, end) >= 0) {
        if (before == NULL)
            return "the first item has no name";
        *out = *before;
        out->index = number_of(text, end);
        out->numbered = true;
        return NULL;
    }
    if (size == 0 || size >= sizeof out->name)
        return "an item has no name of a device";
    memcpy(out->name, text, size);
    if (colon != NULL && (out->index = number_of(colon + 1, end)) < 0)
        return colon + 1 == end ? "no number follows a colon"
             : "behind a colon comes a number from 0 to 65535, behind a comma the next one";
    out->numbered = colon != NULL;
    if (before != NULL && strcmp(before->name, out->name) != 0)
        return "devices of two kinds";
    return NULL;
}

pons_status device_list_parse(const char *text, const char *where, device_list *out,
                              pons_error *err)
{
    device_list list = { .count = 0 };

    for (const char *at = text, *end; ; at = end + 1) {
        const char *why;

        end = at + strcspn(at, ",");
        if (list.count == DEVICES_MAX)
            return refuse_list(where, text, "more than 64 devices", err);
        while (*at == ' ')
            at++;
        why = parse_item(at, end, list.count > 0 ? &list.item[list.count - 1] : NULL,
                         &list.item[list.count]);
        if (why != NULL)
            return refuse_list(where, text, why, err);
        list.count++;
        if (*end == '\0')
            break;
    }
    *out = list;
    return PONS_OK;
}
