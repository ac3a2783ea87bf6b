/*
 * run_record.h - the records of a run of Weights & Biases (wandb/proto/wandb_internal.proto).
 *
 * Each function makes a Record, or the items of one. Items are pairs of a key and a value in JSON.
 * A row of the history has an item for each number of one step.
 */
#ifndef PLUGINS_SINKS_WANDB_RUN_RECORD_H
#define PLUGINS_SINKS_WANDB_RUN_RECORD_H

#include <time.h>

#include "sinks/protobuf.h"

/* Facts of a run. */
typedef struct run_facts {
    const char *id, *project, *name, *host;
    const char *entity; /* NULL: the entity of the key that delivers the run                      */
    struct timespec start;
} run_facts;

/* Append an item to those of a row or summary, or of a configuration. */
void items_put(message *items, const char *key, const char *json);
void settings_put(message *settings, const char *key, const char *json);

/* Make record number 'number' of a file. */
void record_make_header(message *record, int64_t number);
void record_make_run(message *record, int64_t number, const run_facts *run,
                     const message *settings);
/* A file that is delivered too; 'path' is that in the folder 'files'. */
void record_make_file(message *record, int64_t number, const char *path);
void record_make_settings(message *record, int64_t number, const message *settings);
void record_make_row(message *record, int64_t number, int64_t step, const message *items);
/* The last values, and how many seconds the run has taken. */
void record_make_summary(message *record, int64_t number, const message *items, double runtime);
void record_make_exit(message *record, int64_t number, int code, double runtime);

/* Whether it is the header of a file that record_make_header made. */
bool record_is_own_header(const message *record);
/* Whether it is a run, and one of this entity, project and name unless 'run' is NULL. */
bool record_is_run(const message *record, const run_facts *run);
/* Replace entity, project and name of the record of a run. */
void record_rename_run(message *record, const run_facts *run);
/* Whether a resumed run makes it anew: settings, a summary or an exit. */
bool record_is_renewed(const message *record);
/* Find the step of a row, and its items. False: the record is no row. */
bool record_read_row(const message *record, int64_t *step, message_view *history);
/* The next item of a row, both texts cut to fit 'key' and 'json'. False: there is none. */
bool row_read_item(message_view *history, char *key, size_t key_room, char *json,
                   size_t json_room);

#endif
