/*
 * run_history.c - collect the records of metrics.jsonl by kind and name.
 */
#include "report/history/run_history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/json.h"
#include "base/integer.h"

/* The file as it is read: records of a kind have their names in the same order. */
typedef struct history_reader {
    arena *memory;
    run_history *history;
    const char *kind;
    int expected;             /* the series that follows the one found last                       */
    double step;
} history_reader;

static bool is_series(const history_series *s, const char *kind, const char *name)
{
    return strcmp(s->name, name) == 0 && strcmp(s->kind, kind) == 0;
}

const history_series *run_history_find(const run_history *h, const char *kind, const char *name)
{
    for (int i = 0; i < h->count; i++)
        if (is_series(&h->series[i], kind, name))
            return &h->series[i];
    return NULL;
}

static history_series *add_series(history_reader *r, const char *name)
{
    run_history *h = r->history;

    if (h->count == h->room) {
        size_t used = (size_t)h->room * sizeof *h->series;

        h->room = h->room > 0 ? 2 * h->room : 16;
        h->series = arena_grow(r->memory, h->series, used, (size_t)h->room * sizeof *h->series);
    }
    h->series[h->count] = (history_series){ .kind = r->kind,
                                            .name = arena_string(r->memory, name) };
    return &h->series[h->count++];
}

static history_series *series_of(history_reader *r, const char *name)
{
    run_history *h = r->history;
    history_series *found = NULL;

    if (r->expected < h->count && is_series(&h->series[r->expected], r->kind, name))
        found = &h->series[r->expected];
    for (int i = 0; i < h->count && found == NULL; i++)
        if (is_series(&h->series[i], r->kind, name))
            found = &h->series[i];
    if (found == NULL)
        found = add_series(r, name);
    r->expected = (int)(found - h->series) + 1;
    return found;
}

static void add_value(history_reader *r, const char *name, const json_t *value)
{
    history_series *s = series_of(r, name);

    if (s->count == s->room) {
        size_t used = (size_t)s->room * sizeof *s->step;

        s->room = s->room > 0 ? 2 * s->room : 64;
        s->step = arena_grow(r->memory, s->step, used, (size_t)s->room * sizeof *s->step);
        s->value = arena_grow(r->memory, s->value, used, (size_t)s->room * sizeof *s->value);
        s->record = arena_grow(r->memory, s->record, (size_t)s->count * sizeof *s->record,
                               (size_t)s->room * sizeof *s->record);
    }
    s->step[s->count] = r->step;
    s->record[s->count] = r->history->record_count - 1;
    s->value[s->count++] = json_is_number(value) ? json_number_value(value) : NAN;
}

static void add_group(history_reader *r, const char *group, json_t *values)
{
    const char *key;
    json_t *value;
    char name[512];

    json_object_foreach(values, key, value) {
        snprintf(name, sizeof name, "%s.%s", group, key);
        add_value(r, name, value);
    }
}

/* The kinds of a run are few, so records of a kind share one text. */
static const char *keep_kind(const history_reader *r, const char *kind)
{
    const run_history *h = r->history;

    for (int i = 0; i < h->count; i++)
        if (strcmp(h->series[i].kind, kind) == 0)
            return h->series[i].kind;
    return arena_string(r->memory, kind);
}

static void keep_record(history_reader *r, int64_t step, int64_t epoch)
{
    run_history *h = r->history;

    if (h->record_count == h->record_room) {
        size_t used = (size_t)h->record_room * sizeof *h->record;

        h->record_room = h->record_room > 0 ? 2 * h->record_room : 64;
        h->record = arena_grow(r->memory, h->record, used,
                               (size_t)h->record_room * sizeof *h->record);
    }
    h->record[h->record_count++] = (history_record){ r->kind, step, epoch };
}

static void add_record(history_reader *r, json_t *record)
{
    const char *kind = json_string_value(json_object_get(record, "kind")), *key;
    uint64_t step, epoch;
    json_t *value;

    if (kind == NULL || !json_whole(json_object_get(record, "step"), &step)
        || !json_whole(json_object_get(record, "epoch"), &epoch))
        return;
    r->kind = keep_kind(r, kind);
    r->step = (double)step;
    keep_record(r, (int64_t)step, (int64_t)epoch);
    r->history->steps = (int64_t)step;
    r->history->epochs = max_i64(r->history->epochs, (int64_t)epoch);
    json_object_foreach(record, key, value)
        if (json_is_object(value))
            add_group(r, key, value);
        else if (strcmp(key, "kind") != 0 && strcmp(key, "step") != 0 && strcmp(key, "epoch") != 0)
            add_value(r, key, value);
}

pons_status run_history_read(arena *memory, const char *path, run_history *out, pons_error *err)
{
    FILE *file = file_open_reader(path);
    history_reader r = { .memory = memory, .history = out };
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    *out = (run_history){ .count = 0 };
    if (file == NULL)
        return pons_fail(err, PONS_DATA, "cannot read '%s': %s", path, strerror(errno));
    while ((size = getline(&line, &room, file)) > 0) {
        pons_error ignored = PONS_ERROR_INIT;
        json_t *record = NULL;

        if (json_parse(line, (size_t)size, "", PONS_DATA, &record, &ignored) == PONS_OK)
            add_record(&r, record);
        json_decref(record);
    }
    if (ferror(file))
        pons_fail(err, PONS_DATA, "cannot read '%s': %s", path, strerror(errno));
    free(line);
    fclose(file);
    return err->status;
}

double history_series_sum(const history_series *s)
{
    double sum = 0;

    for (int i = 0; s != NULL && i < s->count; i++)
        if (isfinite(s->value[i]))
            sum += s->value[i];
    return sum;
}
