/*
 * curves_table.c - lay the series of runs beside each other.
 *
 * Records of a kind that lack a name have no value in its series, so a series is read on only where
 * its next value is one of the record.
 */
#include "report/history/curves_table.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/file/csv_text.h"
#include "base/file/file.h"
#include "base/text/text.h"
#include "report/history/run_history.h"

/* The columns of all runs, in the order in which names appear. */
typedef struct curves_table {
    arena *memory;
    FILE *to;
    bool several;             /* it has a column for the run                                      */
    int count, room;
    const char **name;
} curves_table;

static int find_column(const curves_table *t, const char *name)
{
    int n = 0;

    while (n < t->count && strcmp(t->name[n], name) != 0)
        n++;
    return n;
}

static void add_columns(curves_table *t, const run_history *h)
{
    for (int i = 0; i < h->count; i++) {
        const char *name = h->series[i].name;

        if (find_column(t, name) < t->count)
            continue;
        if (t->count == t->room) {
            size_t used = (size_t)t->room * sizeof *t->name;

            t->room = 2 * t->room + 16;
            t->name = arena_grow(t->memory, t->name, used, (size_t)t->room * sizeof *t->name);
        }
        t->name[t->count++] = name;
    }
}

static void put_header(const curves_table *t)
{
    fputs(t->several ? "run,kind,step,epoch" : "kind,step,epoch", t->to);
    for (int n = 0; n < t->count; n++) {
        fputc(',', t->to);
        csv_put_text(t->to, t->name[n]);
    }
    fputc('\n', t->to);
}

/* The place of each series in the table, and its next value. */
typedef struct series_reader {
    int column, next;
} series_reader;

/* Take the values of record 'number' into 'cell', by columns; NULL where it has none. */
static void take_values(const run_history *h, int number, series_reader *r, const double **cell)
{
    for (int i = 0; i < h->count; i++) {
        const history_series *s = &h->series[i];

        while (r[i].next < s->count && s->record[r[i].next] <= number)
            cell[r[i].column] = &s->value[r[i].next++];
    }
}

static void put_run(const curves_table *t, const char *run, const run_history *h)
{
    series_reader *reader = arena_alloc(t->memory, (size_t)h->count * sizeof *reader + 1);
    const double **cell = arena_alloc(t->memory, (size_t)t->count * sizeof *cell + 1);

    for (int i = 0; i < h->count; i++)
        reader[i] = (series_reader){ find_column(t, h->series[i].name), 0 };
    for (int n = 0; n < h->record_count; n++) {
        const history_record *r = &h->record[n];

        memset(cell, 0, (size_t)t->count * sizeof *cell);
        take_values(h, n, reader, cell);
        if (t->several) {
            csv_put_text(t->to, run);
            fputc(',', t->to);
        }
        csv_put_text(t->to, r->kind);
        fprintf(t->to, ",%" PRId64 ",%" PRId64, r->step, r->epoch);
        for (int c = 0; c < t->count; c++) {
            fputc(',', t->to);
            if (cell[c] != NULL)
                csv_put_number(t->to, *cell[c]);
        }
        fputc('\n', t->to);
    }
}

static pons_status read_runs(curves_table *t, int count, const char *const *run, run_history *out,
                             pons_error *err)
{
    for (int r = 0; r < count; r++) {
        if (run_history_read(t->memory, arena_format(t->memory, "%s/metrics.jsonl", run[r]),
                             &out[r], err) != PONS_OK)
            return err->status;
        add_columns(t, &out[r]);
    }
    return PONS_OK;
}

static pons_status write_table(curves_table *t, int count, const char *const *run,
                               const char *path, pons_error *err)
{
    run_history *history = arena_alloc(t->memory, (size_t)count * sizeof *history);
    safe_file f;

    if (read_runs(t, count, run, history, err) != PONS_OK
        || safe_file_open(&f, path, err) != PONS_OK)
        return err->status;
    t->to = f.file;
    put_header(t);
    for (int r = 0; r < count; r++)
        put_run(t, run[r], &history[r]);
    return safe_file_commit(&f, err);
}

pons_status curves_table_write(int count, const char *const *run, const char *path,
                               pons_error *err)
{
    curves_table t = { .memory = arena_new(), .several = count > 1 };
    locale_t before;

    if (t.memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a table");
    before = text_locale_begin();
    write_table(&t, count, run, path, err);
    text_locale_end(before);
    arena_free(t.memory);
    return err->status;
}
