/*
 * metrics.c - write records to metrics.jsonl, a JSON object per line, and to each sink. Sinks are
 * called in the C locale, so that a host program's decimal comma is in no file.
 */
#include "report/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/file/json.h"
#include "base/integer.h"
#include "base/text/text.h"
#include "plugin/plugin_load.h"
#include "plugin/plugin_status.h"
#include "report/csv_header.h"
#include "report/metrics_resume.h"

typedef struct opened_sink {
    const pons_sink_operations *operations;
    const char *name;
    void *handle;
    int pictures;             /* that the sink takes of the validation below, and has taken       */
    int taken;
    int64_t validation;
} opened_sink;

struct metrics {
    logger *log;
    FILE *file;
    char *path;
    int sink_count;
    opened_sink *sink;
};

static pons_status fail_write(const metrics *m, pons_error *err)
{
    return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot write '%s': %s", m->path,
                     strerror(errno));
}

static pons_status open_file(metrics *m, pons_sink_kept keep, logger *l, pons_error *err)
{
    bool replaced = true;

    while (replaced) { /* at most twice, since a rewritten file has nothing to remove */
        if (m->file != NULL)
            fclose(m->file);
        m->file = NULL;
        if (file_open_stream(m->path, "a+", &m->file, err) != PONS_OK)
            return err->status;
        if (metrics_resume(m->file, m->path, keep, l, &replaced, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

/* The core checks the table of sink 'csv', since a sink cannot warn. */
static pons_status check_table(const char *folder, const char *sink, logger *l, pons_error *err)
{
    char *path = NULL;

    if (strcmp(sink, "csv") != 0)
        return PONS_OK;
    if (asprintf(&path, "%s/metrics.csv", folder) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for metrics.csv");
    csv_header_check(path, "kind,step,epoch,name,value\n", l, err);
    free(path);
    return err->status;
}

/* ---- pictures and the network ---------------------------------------------------------------- */

static int picture_count(const loaded_plugin *sink)
{
    const pons_sink_operations *o = sink->plugin->operations;

    return o->picture_count != NULL && o->picture != NULL ? o->picture_count(sink->options) : 0;
}

int metrics_picture_count(const experiment *e)
{
    int most = 0;

    for (int i = 0; i < e->sections.log.sinks.count; i++)
        most = max_int(most, picture_count(&e->sink[i]));
    return most;
}

/* Give a sink a picture, up to picture_count for each validation. A failure is its last one. */
static void give_picture(metrics *m, opened_sink *s, const pons_picture *picture)
{
    pons_error problem = PONS_ERROR_INIT;

    if (s->validation != picture->step)
        s->taken = 0;
    s->validation = picture->step;
    if (s->taken++ >= s->pictures
        || plugin_status(s->operations->picture(s->handle, picture, &problem), s->name, "picture",
                         &problem) == PONS_OK)
        return;
    log_warning(m->log, "sink '%s': %s; it gets no more pictures of this run", s->name,
                problem.text);
    s->pictures = 0;
}

void metrics_picture(metrics *m, const pons_picture *picture)
{
    locale_t before = text_locale_begin();

    for (int i = 0; i < m->sink_count; i++)
        give_picture(m, &m->sink[i], picture);
    text_locale_end(before);
}

bool metrics_takes_network(const metrics *m)
{
    for (int i = 0; i < m->sink_count; i++)
        if (m->sink[i].operations->network != NULL)
            return true;
    return false;
}

void metrics_network(metrics *m, const pons_network *network)
{
    locale_t before = text_locale_begin();

    for (int i = 0; i < m->sink_count; i++) {
        const opened_sink *s = &m->sink[i];
        pons_error problem = PONS_ERROR_INIT;
        if (s->operations->network != NULL
            && plugin_status(s->operations->network(s->handle, network, &problem), s->name,
                             "network", &problem) != PONS_OK)
            log_warning(m->log, "sink '%s': %s", s->name, problem.text);
    }
    text_locale_end(before);
}

/* ---- open ------------------------------------------------------------------------------------ */

static pons_status open_each_sink(metrics *m, const char *folder, pons_sink_kept keep,
                                  const experiment *e, pons_error *err)
{
    int count = e->sections.log.sinks.count;

    m->sink = calloc((size_t)count + 1, sizeof *m->sink);
    if (m->sink == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the sinks");
    for (; m->sink_count < count; m->sink_count++) {
        opened_sink *s = &m->sink[m->sink_count];
        const loaded_plugin *chosen = &e->sink[m->sink_count];
        s->operations = chosen->plugin->operations;
        s->name = chosen->plugin->descriptor->name;
        s->pictures = picture_count(chosen);
        if (keep.step >= 0 && check_table(folder, s->name, e->log, err) != PONS_OK)
            return err->status;
        if (plugin_status(s->operations->open(chosen->options, folder, keep, &s->handle, err),
                          s->name, "open", err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

static pons_status open_sinks(metrics *m, const char *folder, pons_sink_kept keep,
                              const experiment *e, pons_error *err)
{
    locale_t before = text_locale_begin();

    open_each_sink(m, folder, keep, e, err);
    text_locale_end(before);
    return err->status;
}

pons_status metrics_open(const char *folder, pons_sink_kept keep, const experiment *e,
                         metrics **out, pons_error *err)
{
    metrics *m = calloc(1, sizeof *m);

    if (m == NULL || asprintf(&m->path, "%s/metrics.jsonl", folder) < 0) {
        free(m);
        return pons_fail(err, PONS_DEVICE, "out of memory for metrics.jsonl");
    }
    m->log = e->log;
    if (open_file(m, keep, e->log, err) != PONS_OK
        || open_sinks(m, folder, keep, e, err) != PONS_OK) {
        metrics_close(m);
        return err->status;
    }
    *out = m;
    return PONS_OK;
}

/* Write the values; adjacent names with the same part before a point share an object. */
static void put_metrics(FILE *file, const pons_record *record)
{
    char group[64] = "";

    for (int i = 0; i < record->count; i++) {
        const char *name = record->metric[i].name, *point = strchr(name, '.');
        size_t size = point != NULL ? (size_t)(point - name) : 0;
        bool same = size > 0 && strlen(group) == size && strncmp(group, name, size) == 0;
        if (group[0] != '\0' && !same) {
            fputc('}', file);
            group[0] = '\0';
        }
        fputc(',', file);
        if (size > 0 && !same) {
            snprintf(group, sizeof group, "%.*s", (int)size, name);
            json_put_text(file, group);
            fputs(":{", file);
        }
        json_put_text(file, size > 0 ? point + 1 : name);
        fputc(':', file);
        json_put_number(file, record->metric[i].value);
    }
    if (group[0] != '\0')
        fputc('}', file);
}

static void pass_warning(const metrics *m, const opened_sink *s)
{
    char text[512] = "";

    if (s->operations->warning != NULL && s->operations->warning(s->handle, text, sizeof text))
        log_warning(m->log, "sink '%s': %s", s->name, text);
}

static pons_status write_sinks(const metrics *m, const pons_record *record, pons_error *err)
{
    locale_t before = text_locale_begin();

    for (int i = 0; i < m->sink_count && err->status == PONS_OK; i++) {
        const opened_sink *s = &m->sink[i];
        if (plugin_status(s->operations->write(s->handle, record, err), s->name, "write", err)
            == PONS_OK)
            pass_warning(m, s);
    }
    text_locale_end(before);
    return err->status;
}

pons_status metrics_write(metrics *m, const pons_record *record, pons_error *err)
{
    fprintf(m->file, "{\"kind\":\"%s\",\"step\":%" PRId64 ",\"epoch\":%" PRId64, record->kind,
            record->step, record->epoch);
    put_metrics(m->file, record);
    fputs("}\n", m->file);
    if (fflush(m->file) != 0 || ferror(m->file))
        return fail_write(m, err);
    return write_sinks(m, record, err);
}

static pons_status flush_sinks(const metrics *m, pons_error *err)
{
    locale_t before = text_locale_begin();

    for (int i = 0; i < m->sink_count && err->status == PONS_OK; i++) {
        const opened_sink *s = &m->sink[i];
        plugin_status(s->operations->flush(s->handle, err), s->name, "flush", err);
    }
    text_locale_end(before);
    return err->status;
}

pons_status metrics_sync(metrics *m, pons_error *err)
{
    if (fflush(m->file) != 0 || ferror(m->file) || fsync(fileno(m->file)) != 0)
        return fail_write(m, err);
    return flush_sinks(m, err);
}

void metrics_end(metrics *m, pons_status status)
{
    locale_t before = text_locale_begin();

    for (int i = 0; m != NULL && i < m->sink_count; i++) {
        const opened_sink *s = &m->sink[i];
        if (s->operations->end != NULL)
            s->operations->end(s->handle, status);
        pass_warning(m, s);
    }
    text_locale_end(before);
}

void metrics_close(metrics *m)
{
    locale_t before;

    if (m == NULL)
        return;
    before = text_locale_begin();
    for (int i = 0; i < m->sink_count; i++)
        m->sink[i].operations->close(m->sink[i].handle);
    text_locale_end(before);
    if (m->file != NULL)
        fclose(m->file);
    free(m->sink);
    free(m->path);
    free(m);
}
