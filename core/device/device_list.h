/*
 * device_list.h - [distribute] devices taken apart: "cpu", "cpu:0,cpu:1", "cuda:0,2".
 */
#ifndef CORE_DEVICE_DEVICE_LIST_H
#define CORE_DEVICE_DEVICE_LIST_H

#include <pons/plugin.h>

enum { DEVICES_MAX = 64, DEVICE_LIST_TEXT = 512 /* bytes that hold a list as text */ };

/* One device: the plugin's name and the number behind the colon; 0, not numbered, without. */
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
 * A number alone belongs to the name before it. All devices of a list have one name, and a device
 * may occur twice. PONS_CONFIG with 'where' in front when the text is none of that.
 */
pons_status device_list_parse(const char *text, const char *where, device_list *out,
                              pons_error *err);

#endif
