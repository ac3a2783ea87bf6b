/*
 * device_choose.h - choose the devices that [distribute] devices names on this machine.
 */
#ifndef CORE_DEVICE_DEVICE_CHOOSE_H
#define CORE_DEVICE_DEVICE_CHOOSE_H

#include "device/device_list.h"

typedef enum device_use {
    DEVICE_USE_ALL, /* one process takes all devices                                              */
    DEVICE_USE_ONE, /* one process takes one device, unless the text numbers several              */
    DEVICE_USE_RANK /* one of several processes: "cuda" stays, and each rank takes its own        */
} device_use;

/*
 * Parse 'text' (device_list.h) and resolve it. "auto", "" and NULL are every GPU in
 * CUDA_VISIBLE_DEVICES, or the CPU where this machine or this build has no GPU. "cuda" is every
 * GPU.
 *
 * PONS_DEVICE: "cuda" finds no GPU, the variable lists more GPUs than the driver finds, or the text
 * numbers a missing one. PONS_CONFIG: the text is no list. 'where' begins messages.
 */
pons_status device_choose(const char *text, device_use use, const char *where, device_list *out,
                          pons_error *err);

/* Whether 'text' is "auto", "" or NULL. */
bool device_is_auto(const char *text);
/* Write the list as its text: "cuda:0,1", "cpu". */
void device_list_print(const device_list *list, char *out, size_t size);
/* Whether plugin 'name' can be loaded. PONS_DEVICE if memory or descriptors lack to try it. */
pons_status device_find(const char *name, bool *built, pons_error *err);
/* The number of devices that plugin 'name' finds, including unusable ones; 0 without the plugin. */
int device_count(const char *name);

#endif
