/*
 * plugin_check_comm.c - check a comm plugin in a group of one process.
 *
 * Sums, broadcasts and gathers change nothing and end in the order of their start. An abort ends
 * all work.
 */
#include "cli/plugin/plugin_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pons/comm.h>

#include "base/integer.h"
#include "plugin/plugin_status.h"

enum { COUNT = 5000, PATIENCE_S = 5, VALUES = 64 };

/* The values of a group of one. */
typedef struct table {
    int count;
    struct {
        char key[64];
        void *value;
        size_t size;
    } row[VALUES];
} table;

static int find(const table *t, const char *key)
{
    int i = 0;

    while (i < t->count && strcmp(t->row[i].key, key) != 0)
        i++;
    return i;
}

static pons_status table_set(void *context, const char *key, const void *value, size_t size,
                             pons_error *err)
{
    table *t = context;
    int i = find(t, key);
    void *copy;

    if (i == VALUES || strlen(key) >= sizeof t->row[i].key || size > PONS_COMM_VALUE_MAX)
        return pons_fail(err, PONS_PLUGIN, "value '%.60s' with %zu bytes: expected at most %d "
                         "values of at most %d bytes", key, size, VALUES, PONS_COMM_VALUE_MAX);
    copy = malloc(size + 1);
    if (copy == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (size > 0)
        memcpy(copy, value, size);
    if (i < t->count)
        free(t->row[i].value);
    t->count += i == t->count;
    strcpy(t->row[i].key, key);
    t->row[i].value = copy;
    t->row[i].size = size;
    return PONS_OK;
}

static pons_status table_get(void *context, const char *key, void *value, size_t room,
                             size_t *size, pons_error *err)
{
    const table *t = context;
    int i = find(t, key);

    if (i == t->count)
        return pons_fail(err, PONS_COMMUNICATION, "nobody has set '%s'", key);
    *size = t->row[i].size;
    if (*size > 0 && room > 0)
        memcpy(value, t->row[i].value, min_size(*size, room));
    return PONS_OK;
}

static void table_clear(table *t)
{
    for (int i = 0; i < t->count; i++)
        free(t->row[i].value);
}

/* ---- one process ----------------------------------------------------------------------------- */

typedef struct trial {
    const pons_comm_operations *operations;
    void *comm;
    double number[3][COUNT];  /* results of a sum, a broadcast and a gather                       */
    double mine[COUNT];       /* this rank's part of the gather                                   */
} trial;

static pons_status wait_for(const trial *t, void *pending, const char *what, pons_error *err)
{
    switch (t->operations->poll(t->comm, pending, PATIENCE_S, err)) {
    case PONS_COMM_DONE:
        return PONS_OK;
    case PONS_COMM_FAILED:
        return err->status != PONS_OK ? err->status
               : pons_fail(err, PONS_PLUGIN, "%s failed and 'poll' has not said why", what);
    default:
        return pons_fail(err, PONS_PLUGIN, "%s has not ended after %d s", what, PATIENCE_S);
    }
}

static double cell(int buffer, int i)
{
    return buffer * 1000 + i + 0.25;
}

static pons_status check_numbers(const double *number, int buffer, const char *what,
                                 pons_error *err)
{
    for (int i = 0; i < COUNT; i++)
        if (number[i] != cell(buffer, i))
            return pons_fail(err, PONS_PLUGIN,
                             "%s of one process: element %d is %.9g, expected %.9g", what, i,
                             number[i], cell(buffer, i));
    return PONS_OK;
}

enum { KINDS = 4 };
static const char *const kind_names[KINDS] = { "all_reduce", "broadcast", "all_gather", "barrier" };

static pons_status start_one(trial *t, int kind, void **pending, pons_error *err)
{
    const pons_comm_operations *o = t->operations;

    switch (kind) {
    case 0:
        return o->all_reduce(t->comm, t->number[0], COUNT, PONS_F64, pending, err);
    case 1:
        return o->broadcast(t->comm, t->number[1], sizeof t->number[1], 0, pending, err);
    case 2:
        return o->all_gather(t->comm, t->mine, sizeof t->mine, t->number[2], pending, err);
    default:
        return o->barrier(t->comm, pending, err);
    }
}

/* Start all operations, then check each result. */
static pons_status check_results(trial *t, pons_error *err)
{
    void *pending[KINDS];
    int started = 0;

    for (int b = 0; b < 3; b++)
        for (int i = 0; i < COUNT; i++)
            t->number[b][i] = b < 2 ? cell(b, i) : NAN;
    for (int i = 0; i < COUNT; i++)
        t->mine[i] = cell(2, i);
    while (started < KINDS && plugin_status(start_one(t, started, &pending[started], err),
                                            "the comm plugin", kind_names[started], err) == PONS_OK)
        started++;
    for (int k = 0; k < started; k++)
        if (wait_for(t, pending[k], kind_names[k], err) == PONS_OK && k < 3)
            check_numbers(t->number[k], k, kind_names[k], err);
    return err->status;
}

/* Check that all operations fail within a second of an abort. */
static pons_status check_abort(trial *t, pons_error *err)
{
    pons_error failure = PONS_ERROR_INIT;
    void *pending;

    t->operations->abort(t->comm);
    if (t->operations->all_reduce(t->comm, t->number[0], COUNT, PONS_F64, &pending, &failure)
        != PONS_OK)
        return PONS_OK;
    switch (t->operations->poll(t->comm, pending, 1, &failure)) {
    case PONS_COMM_FAILED:
        return PONS_OK;
    case PONS_COMM_DONE:
        return pons_fail(err, PONS_PLUGIN, "a sum that was started after 'abort' has not failed");
    default:
        return pons_fail(err, PONS_PLUGIN, "a sum that was started after 'abort' has not ended "
                         "after 1 s");
    }
}

static pons_status check_missing(const pons_comm_operations *o, pons_error *err)
{
    const struct { const char *name; bool there; } needed[] = {
        { "open", o->open != NULL }, { "close", o->close != NULL },
        { "all_reduce", o->all_reduce != NULL }, { "broadcast", o->broadcast != NULL },
        { "all_gather", o->all_gather != NULL }, { "barrier", o->barrier != NULL },
        { "poll", o->poll != NULL }, { "abort", o->abort != NULL }
    };

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].there)
            return pons_fail(err, PONS_PLUGIN, "operation '%s' is missing", needed[i].name);
    if ((o->group_begin == NULL) != (o->group_end == NULL))
        return pons_fail(err, PONS_PLUGIN,
                         "only one of 'group_begin' and 'group_end' is there");
    return PONS_OK;
}

static pons_status check_process(const pons_comm_operations *o, pons_error *err)
{
    const pons_comm_rank_info place = { .size = 1, .local_size = 1, .address = "127.0.0.1",
                                        .timeout_s = PATIENCE_S };
    table values = { .count = 0 };
    const pons_comm_store store = { &values, table_set, table_get };
    trial *t = calloc(1, sizeof *t);

    if (t == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    t->operations = o;
    if ((o->available == NULL
         || plugin_status(o->available(err), "the comm plugin", "available", err) == PONS_OK)
        && plugin_status(o->open(&place, &store, &t->comm, err), "the comm plugin", "open", err)
           == PONS_OK) {
        if (check_results(t, err) == PONS_OK)
            check_abort(t, err);
        o->close(t->comm);
    }
    table_clear(&values);
    free(t);
    return err->status;
}

pons_status plugin_check_comm(const plugin *p, const invocation *call, pons_error *err)
{
    if (check_missing(p->operations, err) != PONS_OK)
        return err->status;
    return check_process(p->operations, err);
}
