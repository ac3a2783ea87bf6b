/*
 * plugin_check_sink.c - check a sink in a scratch folder.
 *
 * The sink takes records of both kinds. A flush writes to disk. A second opening continues behind
 * the kept records.
 */
#include <errno.h>
#include <fts.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <pons/sink.h>

#include "base/file/file.h"
#include "cli/plugin/plugin_check.h"
#include "plugin/plugin_status.h"

enum { STEPS = 20, KEPT = 12 };

static pons_status write_records(const pons_sink_operations *o, void *sink, int first, int last,
                                 pons_error *err)
{
    for (int step = first; step <= last && err->status == PONS_OK; step++) {
        const pons_metric numbers[] = { { "loss", 1.0 / step }, { "lr", 1e-3 },
                                        { "seconds", NAN } };
        const pons_metric scores[] = { { "dice.mean", 0.5 }, { "dice.one", NAN } };
        const pons_record taken = { "step", step, 1 + step / 5, 3, numbers };
        const pons_record validated = { "validation", step, step / 5, 2, scores };
        if (plugin_status(o->write(sink, &taken, err), "the sink", "write", err) == PONS_OK
            && step % 5 == 0)
            plugin_status(o->write(sink, &validated, err), "the sink", "write", err);
    }
    return err->status;
}

/* Call 'visit' with each file and folder, those of a folder before it. The sum of its answers. */
static int64_t visit_folder(char *folder, int64_t (*visit)(const FTSENT *entry))
{
    FTS *list = fts_open((char *[]){ folder, NULL }, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    FTSENT *entry;
    int64_t sum = 0;

    while (list != NULL && (entry = fts_read(list)) != NULL)
        sum += visit(entry);
    if (list != NULL)
        fts_close(list);
    return sum;
}

static int64_t size_of(const FTSENT *entry)
{
    return entry->fts_info == FTS_F ? entry->fts_statp->st_size : 0;
}

static int64_t remove_entry(const FTSENT *entry)
{
    return entry->fts_info == FTS_D ? 0 : remove(entry->fts_accpath);
}

/* Open as in a run, write the records first .. last, flush, close. */
static pons_status check_writing(const pons_sink_operations *o, const void *options,
                                 char *folder, pons_sink_kept keep, int first, int last,
                                 pons_error *err)
{
    int64_t before = visit_folder(folder, size_of);
    void *sink = NULL;

    if (plugin_status(o->open(options, folder, keep, &sink, err), "the sink", "open", err)
        != PONS_OK)
        return err->status;
    if (write_records(o, sink, first, last, err) == PONS_OK
        && plugin_status(o->flush(sink, err), "the sink", "flush", err) == PONS_OK
        && keep.step < 0 && visit_folder(folder, size_of) <= before)
        pons_fail(err, PONS_PLUGIN, "nothing is in the folder after %d records and 'flush'",
                  last - first + 1);
    o->close(sink);
    return err->status;
}

static pons_status check_missing(const pons_sink_operations *o, pons_error *err)
{
    const struct { const char *name; bool there; } needed[] = {
        { "open", o->open != NULL }, { "write", o->write != NULL }, { "flush", o->flush != NULL },
        { "close", o->close != NULL }
    };

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].there)
            return pons_fail(err, PONS_PLUGIN, "operation '%s' is missing", needed[i].name);
    return PONS_OK;
}

pons_status plugin_check_sink(const plugin *p, const invocation *call, pons_error *err)
{
    const pons_sink_operations *o = p->operations;
    const pons_sink_kept none = { -1, -1 }, kept = { KEPT, KEPT / 5 * 5 };
    char folder[] = "/tmp/pons-sink-XXXXXX";
    config *values;
    void *options;

    if (check_missing(o, err) != PONS_OK
        || plugin_check_options(p, call, &options, &values, err) != PONS_OK)
        return err->status;
    if (mkdtemp(folder) == NULL) {
        pons_fail(err, PONS_FAILURE, "cannot make a folder in /tmp: %s", strerror(errno));
    } else {
        if (check_writing(o, options, folder, none, 1, STEPS, err) == PONS_OK)
            check_writing(o, options, folder, kept, KEPT + 1, STEPS, err);
        visit_folder(folder, remove_entry);
    }
    config_close(values);
    free(options);
    return err->status;
}
