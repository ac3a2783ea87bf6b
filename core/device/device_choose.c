/*
 * device_choose.c - resolve [distribute] devices to devices of this machine. device_list.c parses
 * the text, cuda_visible_devices.c the variable CUDA_VISIBLE_DEVICES.
 */
#include "device/device_choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pons/device.h>

#include "device/cuda_visible_devices.h"
#include "plugin/plugin_load.h"

static const char gpu[] = "cuda";

bool device_is_auto(const char *text)
{
    return text == NULL || text[0] == '\0' || strcmp(text, "auto") == 0;
}

int device_count(const char *name)
{
    pons_error ignored = PONS_ERROR_INIT;
    const pons_device_operations *o;
    const plugin *p;

    if (plugin_load(PONS_KIND_DEVICE, name, sizeof *o, NULL, &p, &ignored) != PONS_OK)
        return 0;
    o = p->operations;
    return o->count == NULL ? 0 : o->count();
}

pons_status device_find(const char *name, bool *built, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    const plugin *p;

    plugin_load(PONS_KIND_DEVICE, name, sizeof(pons_device_operations), NULL, &p, &problem);
    if (problem.status == PONS_DEVICE)
        return pons_fail(err, PONS_DEVICE, "%s", problem.text);
    *built = problem.status == PONS_OK;
    return PONS_OK;
}

/* Read CUDA_VISIBLE_DEVICES and count the GPUs that the driver finds. */
static pons_status find_gpus(cuda_visible_devices *v, int *count, pons_error *err)
{
    bool built = false;

    *count = 0;
    if (cuda_visible_devices_parse(getenv("CUDA_VISIBLE_DEVICES"), -1, v, err) != PONS_OK
        || (v->count != 0 && device_find(gpu, &built, err) != PONS_OK))
        return err->status;
    if (built)
        *count = device_count(gpu);
    if (*count > DEVICES_MAX)
        *count = DEVICES_MAX;
    return PONS_OK;
}

/*
 * Refuse a variable with more GPUs than the driver finds. The driver silently drops unknown items,
 * so the run would use other devices than requested.
 */
static pons_status check_found(const cuda_visible_devices *v, int count, const char *where,
                               pons_error *err)
{
    bool built;

    if (v->count <= count || device_find(gpu, &built, err) != PONS_OK || !built)
        return err->status;
    return pons_fail(err, PONS_DEVICE, "%s: CUDA_VISIBLE_DEVICES = '%s' lists %d GPU%s, the "
                     "driver finds %d\nhint: --set distribute.devices=cpu "
                     "computes on the processor", where, v->text, v->count,
                     v->count == 1 ? "" : "s", count);
}

/*
 * Check that every number of the list exists. If there is no GPU, opening the first one says why.
 */
static pons_status check_numbers(const device_list *list, cuda_visible_devices *v, int count,
                                 const char *where, pons_error *err)
{
    if (!v->given && count > 0)
        v->count = count;
    return cuda_visible_devices_check(v, list, where, err);
}

/* Replace "cuda" by the first 'count' GPUs, numbered. */
static void list_gpus(int count, device_list *out)
{
    *out = (device_list){ .count = count };
    for (int i = 0; i < count; i++) {
        snprintf(out->item[i].name, sizeof out->item[i].name, "%s", gpu);
        out->item[i].index = i;
        out->item[i].numbered = true;
    }
}

static bool is_unnumbered(const device_list *list)
{
    return list->count == 1 && !list->item[0].numbered;
}

/* Resolve a list of GPUs, or "cuda". 'open': the text is "auto". */
static pons_status choose_gpus(device_list *list, bool open, device_use use, const char *where,
                               pons_error *err)
{
    cuda_visible_devices v;
    int count;

    if (find_gpus(&v, &count, err) != PONS_OK
        || (!open && check_numbers(list, &v, count, where, err) != PONS_OK))
        return err->status;
    if ((open || count > 0) && check_found(&v, count, where, err) != PONS_OK)
        return err->status;
    if (count == 0 && open)
        return device_list_parse("cpu", where, list, err);
    if (count > 0 && is_unnumbered(list) && use != DEVICE_USE_RANK)
        list_gpus(use == DEVICE_USE_ONE ? 1 : count, list);
    return PONS_OK;
}

pons_status device_choose(const char *text, device_use use, const char *where, device_list *out,
                          pons_error *err)
{
    bool open = device_is_auto(text);
    device_list list;

    if (device_list_parse(open ? gpu : text, where, &list, err) != PONS_OK
        || (strcmp(list.item[0].name, gpu) == 0
            && choose_gpus(&list, open, use, where, err) != PONS_OK))
        return err->status;
    *out = list;
    return PONS_OK;
}

void device_list_print(const device_list *list, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s", list->item[0].name);

    for (int i = 0; i < list->count && list->item[0].numbered && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%c%d", i == 0 ? ':' : ',',
                                 list->item[i].index);
}
