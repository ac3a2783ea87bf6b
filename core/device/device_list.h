/*
 * device_list.h - parse [distribute] devices: "cpu", "cpu:0,cpu:1", "cuda:0,2".
 */
#ifndef CORE_DEVICE_DEVICE_LIST_H
#define CORE_DEVICE_DEVICE_LIST_H

#include <pons/plugin.h>

enum { DEVICES_MAX = 64, DEVICE_LIST_TEXT = 512 /* bytes that hold a list as text */ };

/* A device: the plugin's name and the number after the colon; without a colon 0, not numbered. */
typedef struct device_item {
    char name[32];
    int index;
    bool numbered;
} device_item;

typedef struct device_list {
    int count;
    device_item item[DEVICES_MAX];
} device_list;

/*
 * Parse a list. An item without a name has the name of the previous item. All devices of a list
 * have one name, and a device may occur twice. PONS_CONFIG if 'text' is no such list; 'where'
 * begins the message.
 */
pons_status device_list_parse(const char *text, const char *where, device_list *out,
                              pons_error *err);

#endif
