/*
 * cuda_visible_devices.c - the devices that CUDA_VISIBLE_DEVICES lists, parsed from its text.
 */
#include "device/cuda_visible_devices.h"

#include <stdio.h>
#include <string.h>

#include "base/text/text.h"

static pons_status refuse_item(const char *text, const char *item, int size, const char *why,
                               pons_error *err)
{
    return pons_fail(err, PONS_CONFIG, "CUDA_VISIBLE_DEVICES = '%s' in the environment: '%.*s' %s",
                     text, size, item, why);
}

/* Whether 'item' is the begin of a UUID, as nvidia-smi -L prints it. */
static bool is_uuid(const char *item)
{
    return (strncmp(item, "GPU-", 4) == 0 || strncmp(item, "MIG-", 4) == 0) && item[4] != '\0'
           && strspn(item + 4, "0123456789abcdefABCDEF-/GPU") == strlen(item + 4);
}

static bool lists_none(const char *text)
{
    return text[strspn(text, " ")] == '\0' || strcmp(text, "NoDevFiles") == 0;
}

/* Add one item without its blanks. *last: the item is -1, which ends the list. */
static pons_status add_item(cuda_visible_devices *v, const char *item, size_t size, int physical,
                            bool *last, pons_error *err)
{
    char *own = v->item[v->count];
    int64_t number = 0;
    bool counted;

    if (v->count == DEVICES_MAX)
        return refuse_item(v->text, item, (int)size, "is one device more than 64", err);
    if (size == 0 || size >= sizeof v->item[0])
        return refuse_item(v->text, item, (int)size, "is no device", err);
    memcpy(own, item, size);
    own[size] = '\0';
    counted = text_integer(own, &number);
    if (!counted && !is_uuid(own))
        return refuse_item(v->text, item, (int)size,
                           "is neither a number nor the beginning of a UUID", err);
    *last = counted && number == -1;
    if (*last)
        return PONS_OK;
    if (counted && (number < 0 || (physical >= 0 && number >= physical)))
        return pons_fail(err, PONS_CONFIG, "CUDA_VISIBLE_DEVICES = '%s' in the environment: there "
                         "is no device %s, this machine has %d", v->text, own, physical);
    if (counted) /* 01 and 1 are one device */
        snprintf(own, sizeof v->item[0], "%lld", (long long)number);
    for (int i = 0; i < v->count; i++)
        if (strcmp(v->item[i], own) == 0)
            return refuse_item(v->text, item, (int)size, "is there twice", err);
    v->count++;
    return PONS_OK;
}

pons_status cuda_visible_devices_parse(const char *text, int physical, cuda_visible_devices *out,
                                       pons_error *err)
{
    cuda_visible_devices v = { .given = text != NULL, .text = text, .count = physical };
    bool last = false;

    if (text != NULL) {
        v.count = 0;
        last = lists_none(text);
    }
    for (const char *at = text; at != NULL && !last; ) {
        size_t blanks = strspn(at, " "), size = strcspn(at + blanks, ","), used = size;
        while (used > 0 && at[blanks + used - 1] == ' ')
            used--;
        if (add_item(&v, at + blanks, used, physical, &last, err) != PONS_OK)
            return err->status;
        at += blanks + size;
        at = *at == ',' ? at + 1 : NULL;
    }
    *out = v;
    return PONS_OK;
}

pons_status cuda_visible_devices_check(const cuda_visible_devices *v, const device_list *list,
                                       const char *where, pons_error *err)
{
    for (int i = 0; i < list->count && v->count >= 0; i++) {
        const device_item *d = &list->item[i];
        if (d->index < v->count)
            continue;
        if (v->given)
            return pons_fail(err, PONS_DEVICE, "%s: [distribute] devices: there is no %s:%d, "
                             "CUDA_VISIBLE_DEVICES = '%s' leaves %d device%s\nhint: devices are "
                             "counted from 0 among those that it lists", where, d->name, d->index,
                             v->text, v->count, text_plural(v->count));
        return pons_fail(err, PONS_DEVICE, "%s: [distribute] devices: there is no %s:%d, this "
                         "machine has %d device%s\nhint: --set distribute.devices=auto takes what "
                         "is there", where, d->name, d->index, v->count, text_plural(v->count));
    }
    return PONS_OK;
}

pons_status cuda_visible_devices_rank(const cuda_visible_devices *v, int local_rank, int local_size,
                                      int *index, pons_error *err)
{
    if (v->count >= 0 && v->count < local_size && !(v->given && v->count == 1))
        return pons_fail(err, PONS_DEVICE, "%d processes on this node, but %s%s%s %d device%s",
                         local_size, v->given ? "CUDA_VISIBLE_DEVICES = '" : "this machine has",
                         v->given ? v->text : "", v->given ? "' leaves" : "", v->count,
                         text_plural(v->count));
    *index = v->given && v->count == 1 ? 0 : local_rank;
    return PONS_OK;
}

/* The separator before item i of 'count': "a", "a and b", "a, b and c". */
static const char *separator(int i, int count)
{
    return i == 0 ? "" : i + 1 == count ? " and " : ", ";
}

void cuda_visible_devices_print(const cuda_visible_devices *v, const device_list *list, char *out,
                                size_t size)
{
    FILE *f;

    if (size == 0)
        return;
    out[0] = '\0';
    f = v->given ? fmemopen(out, size, "w") : NULL;
    if (f == NULL)
        return;
    for (int i = 0; i < list->count; i++)
        fprintf(f, "%s%s:%d", separator(i, list->count), list->item[i].name, list->item[i].index);
    fprintf(f, list->count == 1 ? " is the device " : " are the devices ");
    for (int i = 0; i < list->count; i++)
        fprintf(f, "%s%s", separator(i, list->count),
                list->item[i].index < v->count ? v->item[list->item[i].index] : "?");
    fprintf(f, " of CUDA_VISIBLE_DEVICES = %s", v->text);
    fclose(f);
    out[size - 1] = '\0';
}

pons_status cuda_visible_devices_entry(const cuda_visible_devices *v, const device_list *list,
                                       int local_rank, int local_size, device_item *out,
                                       pons_error *err)
{
    *out = list->item[list->count > 1 ? local_rank % list->count : 0];
    if (list->count > 1 || out->numbered)
        return PONS_OK;
    return cuda_visible_devices_rank(v, local_rank, local_size, &out->index, err);
}
