/*
 * tensorboard - event files in the run folder: events.out.tfevents.TIME.HOST.PROCESS.pons.
 *
 * A record is one event, and each of its numbers a scalar 'KIND/NAME'. A picture is an image
 * 'case/NAME'. A resumed run begins a file of its own, after that of the earlier start in the order
 * of names. Records after 'keep' are cut from earlier files, and the file begins with a start
 * event, by which a TensorBoard that has read them forgets them. The values of resolved.ini are
 * hyperparameters.
 *
 * Pictures come from another thread, which shares the file, whose stream has a lock, and 'failure'.
 *
 * A file that cannot be written ends the output with one warning and not the run.
 */
#include <pons/sink.h>

#include "base/clock.h"
#include "sinks/run_parameters.h"
#include "sinks/tensorboard/event.h"
#include "sinks/tensorboard/event_files.h"
#include "sinks/tensorboard/graph_def.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct tensorboard_options {
    int64_t images;
} tensorboard_options;

static const pons_option options[] = {
    PONS_INTEGER(tensorboard_options, images, "4", 0, 64,
                 "Validation cases whose pictures the page Images has, the first ones of the "
                 "list; 0: none."),
    PONS_OPTIONS_END
};

typedef struct tensorboard {
    char *folder, *path;
    FILE *file;
    message event, summary;
    bool described;  /* the hyperparameters are written                                           */
    bool graph;      /* an earlier file has the graph                                             */
    double flushed;  /* the time at which readers last saw the file grow                          */
    atomic_int failure; /* errno of the first failed write, of either thread; 0: none             */
    bool warned;
} tensorboard;

/* ---- hyperparameters ------------------------------------------------------------------------- */

/* Numbers of tensorboard/plugins/hparams: plugin_data.proto, and of google.protobuf.Value. */
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum { VALUE_TAG = 1, VALUE_TENSOR = 8, VALUE_METADATA = 9, SUMMARY_VALUE = 1 };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE = 2, TYPE_FLOAT = 1 };
enum { HPARAMS_START_INFO = 3, START_PARAMETERS = 1, START_TIME = 5 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2, VALUE_NUMBER = 2, VALUE_STRING = 3, VALUE_FLAG = 4 };

/* An entry of map<string, google.protobuf.Value>: a number, yes or no, or text. */
static void put_parameter(void *context, const char *name, const char *text)
{
    message entry = { 0 }, value = { 0 };
    char *rest;
    double number = strtod(text, &rest);

    if (rest != text && *rest == '\0' && isfinite(number))
        message_put_double(&value, VALUE_NUMBER, number);
    else if (strcmp(text, "yes") == 0 || strcmp(text, "no") == 0)
        message_put_integer(&value, VALUE_FLAG, text[0] == 'y');
    else
        message_put_text(&value, VALUE_STRING, text);
    message_put_text(&entry, ENTRY_KEY, name);
    message_put(&entry, ENTRY_VALUE, &value);
    message_put(context, START_PARAMETERS, &entry);
    message_free(&value);
    message_free(&entry);
}

/* A summary value that has no number but metadata of plugin 'hparams'. */
static void put_start_info(message *summary, const message *parameters)
{
    message data = { 0 }, plugin = { 0 }, metadata = { 0 }, tensor = { 0 }, value = { 0 };

    message_put(&data, HPARAMS_START_INFO, parameters);
    message_put_text(&plugin, PLUGIN_NAME, "hparams");
    message_put(&plugin, PLUGIN_CONTENT, &data);
    message_put(&metadata, METADATA_PLUGIN, &plugin);
    message_put_integer(&tensor, TENSOR_TYPE, TYPE_FLOAT);
    message_put_bytes(&tensor, TENSOR_SHAPE, NULL, 0);
    message_put_text(&value, VALUE_TAG, "_hparams_/session_start_info");
    message_put(&value, VALUE_TENSOR, &tensor);
    message_put(&value, VALUE_METADATA, &metadata);
    message_put(summary, SUMMARY_VALUE, &value);
    message_free(&data);
    message_free(&plugin);
    message_free(&metadata);
    message_free(&tensor);
    message_free(&value);
}

/* ---- the sink -------------------------------------------------------------------------------- */

static void note_failure(tensorboard *t)
{
    int none = 0;

    atomic_compare_exchange_strong(&t->failure, &none, errno != 0 ? errno : EIO);
}

static void put_event(tensorboard *t, const message *event)
{
    if (t->failure == 0 && !event_write(t->file, event))
        note_failure(t);
}

/* Show the events to readers of the file, at most once a second. */
static void show_events(tensorboard *t)
{
    double time = seconds_of_calendar();

    if (time - t->flushed < 1 && time >= t->flushed)
        return;
    t->flushed = time;
    if (fflush(t->file) != 0)
        note_failure(t);
}

static void put_parameters(tensorboard *t)
{
    message parameters = { 0 };

    t->described = true;
    run_parameters_read(t->folder, put_parameter, &parameters);
    message_put_double(&parameters, START_TIME, seconds_of_calendar());
    t->summary.size = 0;
    put_start_info(&t->summary, &parameters);
    event_begin(&t->event, seconds_of_calendar(), 0);
    event_put_summary(&t->event, &t->summary);
    put_event(t, &t->event);
    message_free(&parameters);
}

static void begin_file(tensorboard *t, pons_sink_kept keep)
{
    event_begin(&t->event, seconds_of_calendar(), 0);
    event_put_version(&t->event);
    put_event(t, &t->event);
    if (keep.step < 0)
        return;
    event_begin(&t->event, seconds_of_calendar(), keep.step + 1);
    event_put_start(&t->event);
    put_event(t, &t->event);
}

static void tensorboard_close(void *sink)
{
    tensorboard *t = sink;

    if (t->file != NULL)
        fclose(t->file);
    message_free(&t->event);
    message_free(&t->summary);
    free(t->folder);
    free(t->path);
    free(t);
}

static pons_status open_file(tensorboard *t, pons_sink_kept keep, pons_error *err)
{
    event_files earlier = { .time = (long long)seconds_of_calendar() };
    char host[64] = "";

    if (event_files_cut(t->folder, keep, &earlier, err) != PONS_OK)
        return err->status;
    t->graph = earlier.graph;
    gethostname(host, sizeof host - 1);
    if (asprintf(&t->path, "%s/" EVENT_FILE_START "%010lld.%s.%d" EVENT_FILE_END, t->folder,
                 earlier.time, host, (int)getpid()) < 0) {
        t->path = NULL;
        return pons_fail(err, PONS_DEVICE, "out of memory for event files");
    }
    return pons_sink_file(t->path, "a", &t->file, err);
}

static pons_status tensorboard_open(const void *config, const char *folder, pons_sink_kept keep,
                                    void **sink, pons_error *err)
{
    tensorboard *t = calloc(1, sizeof *t);

    (void)config;
    if (t == NULL || (t->folder = strdup(folder)) == NULL) {
        free(t);
        return pons_fail(err, PONS_DEVICE, "out of memory for event files");
    }
    if (open_file(t, keep, err) != PONS_OK) {
        tensorboard_close(t);
        return err->status;
    }
    begin_file(t, keep);
    *sink = t;
    return PONS_OK;
}

static pons_status tensorboard_write(void *sink, const pons_record *record, pons_error *err)
{
    tensorboard *t = sink;

    (void)err;
    if (!t->described)
        put_parameters(t);
    t->summary.size = 0;
    for (int i = 0; i < record->count; i++) {
        char tag[256];
        snprintf(tag, sizeof tag, "%s/%s", record->kind, record->metric[i].name);
        if (isfinite(record->metric[i].value))
            summary_put_scalar(&t->summary, tag, (float)record->metric[i].value);
    }
    event_begin(&t->event, seconds_of_calendar(), record->step);
    event_put_summary(&t->event, &t->summary);
    put_event(t, &t->event);
    show_events(t);
    return PONS_OK;
}

static pons_status tensorboard_flush(void *sink, pons_error *err)
{
    tensorboard *t = sink;

    (void)err;
    if (fflush(t->file) != 0 || fsync(fileno(t->file)) != 0)
        note_failure(t);
    return PONS_OK;
}

static int tensorboard_picture_count(const void *config)
{
    return (int)((const tensorboard_options *)config)->images;
}

static pons_status tensorboard_picture(void *sink, const pons_picture *picture, pons_error *err)
{
    static const char columns[] = "Columns: image, label, prediction and error (orange: missed, "
                                  "blue: not there, yellow: another class); of a synthesis image, "
                                  "modality, made image and their difference. Rows: three planes.";
    tensorboard *t = sink;
    message event = { 0 }, summary = { 0 };
    char tag[512];

    (void)err;
    snprintf(tag, sizeof tag, "case/%s", picture->name);
    summary_put_image(&summary, tag, columns, picture);
    event_begin(&event, seconds_of_calendar(), picture->step);
    event_put_summary(&event, &summary);
    put_event(t, &event);
    message_free(&event);
    message_free(&summary);
    return PONS_OK;
}

static pons_status tensorboard_network(void *sink, const pons_network *network, pons_error *err)
{
    tensorboard *t = sink;
    message graph = { 0 };

    (void)err;
    if (t->graph)
        return PONS_OK;
    graph_def_put(&graph, network);
    event_begin(&t->event, seconds_of_calendar(), 0);
    event_put_graph(&t->event, &graph);
    put_event(t, &t->event);
    message_free(&graph);
    return PONS_OK;
}

static bool tensorboard_warning(void *sink, char *text, size_t size)
{
    tensorboard *t = sink;

    if (t->failure == 0 || t->warned)
        return false;
    t->warned = true;
    snprintf(text, size, "cannot write '%s': %s; it gets no more numbers of this run", t->path,
             strerror(t->failure));
    return true;
}

static const pons_sink_operations operations = {
    .open = tensorboard_open, .write = tensorboard_write, .flush = tensorboard_flush,
    .close = tensorboard_close, .warning = tensorboard_warning,
    .picture_count = tensorboard_picture_count, .picture = tensorboard_picture,
    .network = tensorboard_network
};

PONS_SINK(tensorboard, "1.0", "event files for TensorBoard in the run folder", options, operations);
