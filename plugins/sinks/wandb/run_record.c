/*
 * run_record.c - encode and decode the records of a run.
 */
#include "sinks/wandb/run_record.h"

#include <stdio.h>
#include <string.h>

/* Numbers of fields. */
enum { RECORD_NUMBER = 1, RECORD_HISTORY = 2, RECORD_SUMMARY = 3, RECORD_CONFIG = 5,
       RECORD_FILES = 6, RECORD_RUN = 17, RECORD_EXIT = 18, RECORD_HEADER = 21 };
enum { HEADER_VERSION = 1, VERSION_PRODUCER = 1 };
enum { RUN_ID = 1, RUN_ENTITY = 2, RUN_PROJECT = 3, RUN_CONFIG = 4, RUN_NAME = 8, RUN_HOST = 13,
       RUN_START = 17 };
enum { TIMESTAMP_SECONDS = 1, TIMESTAMP_NANOSECONDS = 2 };
enum { FILE_PATH = 1, FILE_TYPE = 3, TYPE_WANDB = 1 };
enum { ITEMS = 1, CONFIG_KEY = 1, ITEM_KEY = 2, ITEM_JSON = 16 };
enum { HISTORY_STEP = 2, STEP_NUMBER = 1 };
enum { EXIT_CODE = 1, EXIT_RUNTIME = 2 };

static const char producer[] = "pons";

/* ---- items ----------------------------------------------------------------------------------- */

static void put_pair(message *items, int key_field, const char *key, const char *json)
{
    message item = { 0 };

    message_put_text(&item, key_field, key);
    message_put_text(&item, ITEM_JSON, json);
    message_put(items, ITEMS, &item);
    message_free(&item);
}

void items_put(message *items, const char *key, const char *json)
{
    put_pair(items, ITEM_KEY, key, json);
}

void settings_put(message *settings, const char *key, const char *json)
{
    put_pair(settings, CONFIG_KEY, key, json);
}

/* ---- records --------------------------------------------------------------------------------- */

static void make_record(message *record, int64_t number, int field, message *content)
{
    record->size = 0;
    message_put_integer(record, RECORD_NUMBER, (uint64_t)number);
    message_put(record, field, content);
    message_free(content);
}

void record_make_header(message *record, int64_t number)
{
    message version = { 0 }, header = { 0 };

    message_put_text(&version, VERSION_PRODUCER, producer);
    message_put(&header, HEADER_VERSION, &version);
    message_free(&version);
    make_record(record, number, RECORD_HEADER, &header);
}

static void put_time(message *m, int field, struct timespec time)
{
    message timestamp = { 0 };

    message_put_integer(&timestamp, TIMESTAMP_SECONDS, (uint64_t)time.tv_sec);
    message_put_integer(&timestamp, TIMESTAMP_NANOSECONDS, (uint64_t)time.tv_nsec);
    message_put(m, field, &timestamp);
    message_free(&timestamp);
}

/* Readers take the last of two fields with one number. */
static void put_names(message *m, const run_facts *run)
{
    message_put_text(m, RUN_ENTITY, run->entity != NULL ? run->entity : "");
    message_put_text(m, RUN_PROJECT, run->project);
    message_put_text(m, RUN_NAME, run->name);
}

void record_make_run(message *record, int64_t number, const run_facts *run,
                     const message *settings)
{
    message m = { 0 };

    message_put_text(&m, RUN_ID, run->id);
    message_put(&m, RUN_CONFIG, settings);
    put_names(&m, run);
    message_put_text(&m, RUN_HOST, run->host);
    put_time(&m, RUN_START, run->start);
    make_record(record, number, RECORD_RUN, &m);
}

void record_make_file(message *record, int64_t number, const char *path)
{
    message m = { 0 }, item = { 0 };

    message_put_text(&item, FILE_PATH, path);
    message_put_integer(&item, FILE_TYPE, TYPE_WANDB);
    message_put(&m, ITEMS, &item);
    message_free(&item);
    make_record(record, number, RECORD_FILES, &m);
}

static message copy_of(const message *items)
{
    message copy = { .failed = items->failed };

    message_append(&copy, items->data, items->size);
    return copy;
}

void record_make_settings(message *record, int64_t number, const message *settings)
{
    message m = copy_of(settings);

    make_record(record, number, RECORD_CONFIG, &m);
}

void record_make_row(message *record, int64_t number, int64_t step, const message *items)
{
    message m = copy_of(items), numbered = { 0 };

    message_put_integer(&numbered, STEP_NUMBER, (uint64_t)step);
    message_put(&m, HISTORY_STEP, &numbered);
    message_free(&numbered);
    make_record(record, number, RECORD_HISTORY, &m);
}

void record_make_summary(message *record, int64_t number, const message *items, double runtime)
{
    message m = copy_of(items), item = { 0 };
    char json[32];

    snprintf(json, sizeof json, "%.0f", runtime);
    message_put_text(&item, ITEM_KEY, "_wandb");
    message_put_text(&item, ITEM_KEY, "runtime");
    message_put_text(&item, ITEM_JSON, json);
    message_put(&m, ITEMS, &item);
    message_free(&item);
    make_record(record, number, RECORD_SUMMARY, &m);
}

void record_make_exit(message *record, int64_t number, int code, double runtime)
{
    message m = { 0 };

    message_put_integer(&m, EXIT_CODE, (uint64_t)code);
    message_put_integer(&m, EXIT_RUNTIME, (uint64_t)runtime);
    make_record(record, number, RECORD_EXIT, &m);
}

/* ---- reading --------------------------------------------------------------------------------- */

static message_view view_of(const message *m)
{
    return (message_view){ m->data, m->data + m->size };
}

bool record_is_own_header(const message *record)
{
    message_field f;

    return message_find(view_of(record), RECORD_HEADER, &f)
           && message_find(f.bytes, HEADER_VERSION, &f)
           && message_find(f.bytes, VERSION_PRODUCER, &f)
           && (size_t)(f.bytes.end - f.bytes.at) == sizeof producer - 1
           && memcmp(f.bytes.at, producer, sizeof producer - 1) == 0;
}

/* Whether the last field of this number is that text; an absent one is "". */
static bool has_text(message_view v, int number, const char *text)
{
    message_field f;
    message_view found = { v.at, v.at };

    while (message_read(&v, &f))
        if (f.number == number)
            found = f.bytes;
    return (size_t)(found.end - found.at) == strlen(text)
           && memcmp(found.at, text, strlen(text)) == 0;
}

bool record_is_run(const message *record, const run_facts *run)
{
    message_field f;

    if (!message_find(view_of(record), RECORD_RUN, &f))
        return false;
    return run == NULL
           || (has_text(f.bytes, RUN_ENTITY, run->entity != NULL ? run->entity : "")
               && has_text(f.bytes, RUN_PROJECT, run->project)
               && has_text(f.bytes, RUN_NAME, run->name));
}

void record_rename_run(message *record, const run_facts *run)
{
    message m = { 0 };
    message_field number, f;

    if (!message_find(view_of(record), RECORD_NUMBER, &number)
        || !message_find(view_of(record), RECORD_RUN, &f))
        return;
    message_append(&m, f.bytes.at, (size_t)(f.bytes.end - f.bytes.at));
    put_names(&m, run);
    make_record(record, (int64_t)number.value, RECORD_RUN, &m);
}

bool record_is_renewed(const message *record)
{
    message_field f;

    return message_find(view_of(record), RECORD_CONFIG, &f)
           || message_find(view_of(record), RECORD_SUMMARY, &f)
           || message_find(view_of(record), RECORD_EXIT, &f);
}

bool record_read_row(const message *record, int64_t *step, message_view *history)
{
    message_field f, number;

    if (!message_find(view_of(record), RECORD_HISTORY, &f))
        return false;
    *history = f.bytes;
    *step = message_find(f.bytes, HISTORY_STEP, &number)
            && message_find(number.bytes, STEP_NUMBER, &number) ? (int64_t)number.value : 0;
    return true;
}

static void copy_text(message_view item, int field, char *text, size_t room)
{
    message_field f;

    text[0] = '\0';
    if (message_find(item, field, &f))
        snprintf(text, room, "%.*s", (int)(f.bytes.end - f.bytes.at), (const char *)f.bytes.at);
}

bool row_read_item(message_view *history, char *key, size_t key_room, char *json,
                   size_t json_room)
{
    message_field f;

    while (message_read(history, &f)) {
        if (f.number != ITEMS)
            continue;
        copy_text(f.bytes, ITEM_KEY, key, key_room);
        copy_text(f.bytes, ITEM_JSON, json, json_room);
        return true;
    }
    return false;
}
