/*
 * device_choose.h - the devices that [distribute] devices names on this machine.
 */
#ifndef CORE_DEVICE_DEVICE_CHOOSE_H
#define CORE_DEVICE_DEVICE_CHOOSE_H

#include "device/device_list.h"

typedef enum device_use {
    DEVICE_USE_ALL, /* one process takes all devices                                              */
    DEVICE_USE_ONE, /* one process takes a single device, unless the text numbers several         */
    DEVICE_USE_RANK /* one of several processes: "cuda" stays, each rank takes its own            */
} device_use;

/*
 * Take 'text' apart (device_list.h). "auto", "" and NULL are every GPU that CUDA_VISIBLE_DEVICES
 * leaves, or the processor where this machine or this build has none; "cuda" is every GPU.
 * PONS_DEVICE where "cuda" finds none, where the variable lists more than the driver finds, and
 * where text numbers one that is not there; PONS_CONFIG for what is no list. 'where' begins
 * messages.
 */
pons_status device_choose(const char *text, device_use use, const char *where, device_list *out,
                          pons_error *err);

bool device_is_auto(const char *text);
/* "cuda:0,1", "cpu": the list as its text. */
void device_list_print(const device_list *list, char *out, size_t size);
/* Whether plugin 'name' can be loaded; PONS_DEVICE where a shortage keeps it from being tried. */
pons_status device_find(const char *name, bool *built, pons_error *err);
/* The number of devices that plugin 'name' finds, unusable ones included; 0 without the plugin. */
int device_count(const char *name);

#endif
