/*
 * last_values.h - the last value of each key of a run, in JSON: its summary.
 */
#ifndef PLUGINS_SINKS_WANDB_LAST_VALUES_H
#define PLUGINS_SINKS_WANDB_LAST_VALUES_H

#include "sinks/protobuf.h"

enum { KEY_ROOM = 256, JSON_ROOM = 32 };

typedef struct last_value {
    char *key;
    char json[JSON_ROOM];
} last_value;

/* Zeros are an empty table. */
typedef struct last_values {
    last_value *value;
    int count, room;
    int next;    /* where the next key is if keys come in the same order again                    */
    bool failed; /* out of memory                                                                 */
} last_values;

void last_values_set(last_values *v, const char *key, const char *json);
/* Append all as items of a summary. */
void last_values_put(const last_values *v, message *items);
void last_values_free(last_values *v);

#endif
