/*
 * last_values.c - a table of keys in the order of their first values.
 */
#include "sinks/wandb/last_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sinks/wandb/run_record.h"

/* The place of a key, from that of the next one on; 'count' if the key is new. */
static int find_key(const last_values *v, const char *key)
{
    for (int i = 0; i < v->count; i++) {
        int place = (v->next + i) % v->count;
        if (strcmp(v->value[place].key, key) == 0)
            return place;
    }
    return v->count;
}

static bool add_key(last_values *v, const char *key)
{
    if (v->count == v->room) {
        int room = 2 * v->room + 16;
        last_value *larger = realloc(v->value, (size_t)room * sizeof *larger);
        if (larger == NULL)
            return false;
        v->value = larger;
        v->room = room;
    }
    v->value[v->count].key = strdup(key);
    if (v->value[v->count].key == NULL)
        return false;
    v->count++;
    return true;
}

void last_values_set(last_values *v, const char *key, const char *json)
{
    int place = find_key(v, key);

    if (place == v->count && !add_key(v, key)) {
        v->failed = true;
        return;
    }
    snprintf(v->value[place].json, JSON_ROOM, "%s", json);
    v->next = place + 1;
}

void last_values_put(const last_values *v, message *items)
{
    items->failed = items->failed || v->failed;
    for (int i = 0; i < v->count; i++)
        items_put(items, v->value[i].key, v->value[i].json);
}

void last_values_free(last_values *v)
{
    for (int i = 0; i < v->count; i++)
        free(v->value[i].key);
    free(v->value);
    *v = (last_values){ 0 };
}
