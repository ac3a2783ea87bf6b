/*
 * plugin_check_sink.c - check a sink in a scratch folder.
 *
 * The sink takes records of both kinds, and a picture and a network if it has these operations. A
 * flush writes to disk. A second opening continues behind the kept records.
 */
#include <errno.h>
#include <fts.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <pons/sink.h>

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

/* Give a network of a parameter and a convolution. */
static pons_status write_network(const pons_sink_operations *o, void *sink, pons_error *err)
{
    static const int input[] = { 0 };
    static const pons_network_node node[] = {
        { "4x4x4/a/weight", "parameter", { 5, { 8, 1, 3, 3, 3 } }, 0, NULL },
        { "4x4x4/a/convolution", "convolution", { 5, { 1, 4, 4, 4, 8 } }, 1, input }
    };

    return o->network == NULL ? PONS_OK
         : plugin_status(o->network(sink, &(pons_network){ 2, node }, err), "the sink", "network",
                         err);
}

/* Give a picture of one grey pixel. */
static pons_status write_picture(const pons_sink_operations *o, void *sink, int64_t step,
                                 pons_error *err)
{
    static const unsigned char png[] = {
        0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
        0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00,
        0x00, 0x90, 0x77, 0x53, 0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78,
        0xda, 0x63, 0x68, 0x68, 0x68, 0x00, 0x00, 0x03, 0x04, 0x01, 0x81, 0x75, 0x2e, 0x01,
        0xbc, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82
    };
    const pons_picture picture = { "case_1", step, 1, 1, png, sizeof png };

    return o->picture == NULL ? PONS_OK
         : plugin_status(o->picture(sink, &picture, err), "the sink", "picture", err);
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
    if (write_network(o, sink, err) == PONS_OK
        && write_records(o, sink, first, last, err) == PONS_OK
        && write_picture(o, sink, last, err) == PONS_OK
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
