/*
 * wandb - the folder of an offline run of Weights & Biases, which 'wandb sync' delivers.
 *
 * The records of one step are one row of the history, because wandb moves a second row of a step to
 * the next one. The last row therefore stays open: the file has it once the next step begins, at a
 * flush and at the end, and it is written again if a validation of the same step follows. The file
 * always ends with a whole record, unless the disk is full.
 *
 * A resumed run goes on in its file, behind the last row that is kept. 'wandb sync' sends the whole
 * file again, and the rows of the run are replaced. A file that cannot be written ends the output
 * with one warning and not the run.
 */
#include <pons/sink.h>

#include "base/clock.h"
#include "sinks/run_parameters.h"
#include "sinks/wandb/last_values.h"
#include "sinks/wandb/offline_folder.h"
#include "sinks/wandb/rename_run.h"
#include "sinks/wandb/run_record.h"
#include "sinks/wandb/transaction_log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char metadata_name[] = "wandb-metadata.json";

typedef struct wandb {
    const char *project, *entity, *name;
} wandb;

typedef struct sink {
    const wandb *config;
    char *run;
    offline_folder folder;
    FILE *file;
    bool described;       /* the run, or the settings of its resumption, are written              */
    double seconds;       /* that earlier starts took                                             */
    double begin;         /* of this start                                                        */
    pthread_mutex_t lock; /* of all below, since a flush comes from another thread                */
    message ready;        /* whole records that the file does not have                            */
    int64_t at, end;      /* the place of 'ready' in the file; its size                           */
    int64_t number;       /* of the last record of 'ready'                                        */
    message row, record;  /* items of the open row; a record under construction                   */
    int64_t step;         /* of the open row; -1: there is none                                   */
    int64_t shown;        /* the number of the last record in the file, if it has the open row    */
    last_values last;
    double written;       /* the time at which readers last saw the file grow                     */
    int failure;          /* errno of the first failed write; 0: none                             */
    bool warned;
} sink;

static double run_seconds(const sink *s)
{
    return s->seconds + seconds_now() - s->begin;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void note_failure(sink *s, int failure)
{
    if (s->failure == 0)
        s->failure = failure;
}

/* Write 'ready' at its place, and remove what the file has behind it. */
static void write_ready(sink *s)
{
    int64_t at = s->at;

    if (s->ready.failed || s->last.failed)
        note_failure(s, ENOMEM);
    for (size_t done = 0; s->failure == 0 && done < s->ready.size; ) {
        ssize_t size = pwrite(fileno(s->file), s->ready.data + done, s->ready.size - done, at);
        if (size > 0) {
            done += (size_t)size;
            at += size;
        } else if (size == 0 || errno != EINTR) {
            note_failure(s, size == 0 ? ENOSPC : errno);
        }
    }
    if (s->failure == 0 && at < s->end && ftruncate(fileno(s->file), at) != 0)
        note_failure(s, errno);
    s->end = at;
    s->ready.size = 0;
    s->written = seconds_now();
}

static void append_record(sink *s)
{
    transaction_log_append(&s->ready, s->at + (int64_t)s->ready.size, &s->record);
}

static void append_row(sink *s)
{
    record_make_row(&s->record, ++s->number, s->step, &s->row);
    append_record(s);
}

/* Write the rows that have ended. The file has nothing of the open one. */
static void write_finished(sink *s)
{
    write_ready(s);
    s->at = s->end;
}

/* Write also the open row and a summary, and an exit record unless 'code' is negative. */
static void write_open(sink *s, int code)
{
    int64_t number = s->number;
    size_t finished = s->ready.size;
    message items = { 0 };

    if (s->step >= 0)
        append_row(s);
    last_values_put(&s->last, &items);
    record_make_summary(&s->record, ++s->number, &items, run_seconds(s));
    append_record(s);
    message_free(&items);
    if (code >= 0) {
        record_make_exit(&s->record, ++s->number, code, run_seconds(s));
        append_record(s);
    }
    write_ready(s);
    s->at += (int64_t)finished;
    s->shown = s->number;
    s->number = number;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void put_item(sink *s, const char *key, const char *json)
{
    s->shown = 0;
    items_put(&s->row, key, json);
    last_values_set(&s->last, key, json);
}

static void put_number(sink *s, const char *key, const char *format, double value)
{
    char json[JSON_ROOM];

    snprintf(json, sizeof json, format, value);
    put_item(s, key, json);
}

/* End the open row. It stays in the file if nothing was added since it was written. */
static void end_row(sink *s)
{
    if (s->shown > 0) {
        s->at = s->end;
        s->number = s->shown;
    } else if (s->step >= 0) {
        append_row(s);
    }
    s->step = -1;
    s->shown = 0;
    s->row.size = 0;
}

static void begin_row(sink *s, int64_t step)
{
    end_row(s);
    s->step = step;
    put_number(s, "_step", "%.0f", (double)step);
    put_number(s, "_timestamp", "%.6f", seconds_of_calendar());
    put_number(s, "_runtime", "%.6f", run_seconds(s));
}

/* ---- resumed runs ---------------------------------------------------------------------------- */

/* Open a row of the file again, so that a validation of its step can be added. */
static void take_row(sink *s, int64_t step, message_view history, pons_sink_kept keep)
{
    char key[KEY_ROOM], json[JSON_ROOM];

    s->step = step;
    s->row.size = 0;
    while (row_read_item(&history, key, sizeof key, json, sizeof json)) {
        if (step > keep.validation && strncmp(key, "validation/", 11) == 0)
            continue;
        if (strcmp(key, "_runtime") == 0)
            s->seconds = strtod(json, NULL);
        put_item(s, key, json);
    }
}

/*
 * Find the last row that is kept, and the end of what stays in front of it. Damage ends what is
 * read.
 */
static void find_last_row(sink *s, pons_sink_kept keep)
{
    int64_t at, number = 0, count = 0, step;
    message_view history;

    if (!transaction_log_open(s->file))
        return;
    at = ftell(s->file);
    while (transaction_log_read(s->file, &s->record)) {
        bool row = record_read_row(&s->record, &step, &history);
        if (row && step > keep.step)
            break;
        if (row) {
            take_row(s, step, history, keep);
            s->at = at;
            s->number = number;
            s->end = ftell(s->file);
        }
        count++;
        if (!record_is_renewed(&s->record)) {
            at = ftell(s->file);
            number = count;
        }
    }
}

/*
 * Cut the file behind the last row that is kept; without one it begins anew. pwrite does not
 * heed its place with O_APPEND.
 */
static pons_status cut_file(sink *s, pons_sink_kept keep, pons_error *err)
{
    int file = fileno(s->file), flags = fcntl(file, F_GETFL);

    find_last_row(s, keep);
    if (ferror(s->file) || s->record.failed)
        return pons_fail(err, s->record.failed ? PONS_DEVICE : PONS_FAILURE, "cannot read '%s': %s",
                         s->folder.log, strerror(s->record.failed ? ENOMEM : EIO));
    if (ftruncate(file, s->end) != 0 || fcntl(file, F_SETFL, flags & ~O_APPEND) != 0)
        return pons_fail(err, PONS_FAILURE, "cannot cut '%s': %s", s->folder.log,
                         strerror(errno));
    if (s->end > 0)
        return PONS_OK;
    transaction_log_begin(&s->ready);
    record_make_header(&s->record, ++s->number);
    append_record(s);
    return PONS_OK;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* A setting that is a number, yes or no, or text. */
static void put_setting(void *context, const char *name, const char *text)
{
    bool flag = strcmp(text, "yes") == 0 || strcmp(text, "no") == 0;
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    char *json = NULL;

    if (json_is_number(value) && text_is_utf8(name)) {
        settings_put(context, name, text);
    } else {
        json_decref(value);
        value = flag ? json_boolean(text[0] == 'y') : json_string(text);
        json = json_dumps(value, JSON_ENCODE_ANY);
        if (json != NULL && text_is_utf8(name)) /* NULL: no UTF-8 */
            settings_put(context, name, json);
    }
    free(json);
    json_decref(value);
}

static run_facts facts_of(const sink *s)
{
    const wandb *c = s->config;
    const char *name = c->name != NULL ? c->name : run_default_name(s->run);

    return (run_facts){ .id = s->folder.id, .entity = c->entity, .project = c->project,
                        .name = text_is_utf8(name) ? name : s->folder.id };
}

/* Write the facts of the system; a failure shows as the absence of the file. */
static void write_metadata(const sink *s, const run_facts *facts)
{
    pons_error err = PONS_ERROR_INIT;
    struct utsname system;
    char *path = NULL, start[32];
    struct tm utc;
    FILE *file = NULL;
    json_t *all;

    uname(&system);
    strftime(start, sizeof start, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&facts->start.tv_sec, &utc));
    all = json_pack("{s:s++, s:s, s:s, s:s}", "os", system.sysname, "-", system.release, "host",
                    facts->host, "program", "pons", "startedAt", start);
    if (asprintf(&path, "%s/files/%s", s->folder.path, metadata_name) < 0)
        path = NULL;
    if (path != NULL && pons_sink_file(path, "w", &file, &err) == PONS_OK) {
        json_dumpf(all, file, JSON_INDENT(2));
        fclose(file);
    }
    json_decref(all);
    free(path);
}

static void append_run(sink *s, const message *settings)
{
    run_facts facts = facts_of(s);
    char host[64] = "";

    gethostname(host, sizeof host - 1);
    facts.host = host;
    clock_gettime(CLOCK_REALTIME, &facts.start);
    record_make_run(&s->record, ++s->number, &facts, settings);
    append_record(s);
    write_metadata(s, &facts);
    record_make_file(&s->record, ++s->number, metadata_name);
    append_record(s);
}

/* Append the run with its settings, or the settings of one that is resumed. */
static void describe_run(sink *s)
{
    message settings = { 0 };

    run_parameters_read(s->run, put_setting, &settings);
    if (s->end > 0) {
        record_make_settings(&s->record, ++s->number, &settings);
        append_record(s);
    } else {
        append_run(s, &settings);
    }
    s->described = true;
    message_free(&settings);
}

/* ---- the sink -------------------------------------------------------------------------------- */

static void wandb_close(void *context)
{
    sink *s = context;

    if (s->file != NULL && s->end == 0)
        offline_folder_remove(&s->folder);
    if (s->file != NULL)
        fclose(s->file);
    pthread_mutex_destroy(&s->lock);
    offline_folder_close(&s->folder);
    message_free(&s->ready);
    message_free(&s->row);
    message_free(&s->record);
    last_values_free(&s->last);
    free(s->run);
    free(s);
}

static pons_status open_file(sink *s, pons_sink_kept keep, pons_error *err)
{
    run_facts facts;

    if (offline_folder_open(&s->folder, s->run, err) != PONS_OK)
        return err->status;
    facts = facts_of(s);
    if (rename_run(s->folder.log, &facts, err) != PONS_OK
        || pons_sink_file(s->folder.log, "a+", &s->file, err) != PONS_OK
        || cut_file(s, keep, err) != PONS_OK)
        return err->status;
    offline_folder_forget_delivery(&s->folder);
    return PONS_OK;
}

static pons_status wandb_open(const void *config, const char *folder, pons_sink_kept keep,
                              void **out, pons_error *err)
{
    sink *s = calloc(1, sizeof *s);

    if (s == NULL || (s->run = strdup(folder)) == NULL) {
        free(s);
        return pons_fail(err, PONS_DEVICE, "out of memory for wandb");
    }
    s->config = config;
    s->step = -1;
    s->begin = seconds_now();
    pthread_mutex_init(&s->lock, NULL);
    if (open_file(s, keep, err) != PONS_OK) {
        wandb_close(s);
        return err->status;
    }
    *out = s;
    return PONS_OK;
}

static void put_record(sink *s, const pons_record *record)
{
    char key[KEY_ROOM];
    bool again = !s->described || (s->shown > 0 && record->step == s->step);

    if (!s->described)
        describe_run(s);
    if (record->step != s->step)
        begin_row(s, record->step);
    for (int i = 0; i < record->count; i++) {
        snprintf(key, sizeof key, "%s/%s", record->kind, record->metric[i].name);
        if (isfinite(record->metric[i].value) && text_is_utf8(key))
            put_number(s, key, "%.9g", record->metric[i].value);
    }
    if (again)
        write_open(s, -1);
    else if (seconds_now() - s->written >= 1)
        write_finished(s);
}

static pons_status wandb_write(void *context, const pons_record *record, pons_error *err)
{
    sink *s = context;

    (void)err;
    pthread_mutex_lock(&s->lock);
    if (s->failure == 0)
        put_record(s, record);
    pthread_mutex_unlock(&s->lock);
    return PONS_OK;
}

/* The training does not wait for the disk, so the lock is free meanwhile. */
static void sync_file(sink *s)
{
    int failure = fsync(fileno(s->file)) == 0 ? 0 : errno;

    pthread_mutex_lock(&s->lock);
    note_failure(s, failure);
    pthread_mutex_unlock(&s->lock);
}

static pons_status wandb_flush(void *context, pons_error *err)
{
    sink *s = context;

    (void)err;
    pthread_mutex_lock(&s->lock);
    if (s->described && s->failure == 0)
        write_open(s, -1);
    pthread_mutex_unlock(&s->lock);
    sync_file(s);
    return PONS_OK;
}

/*
 * The codes are those of wandb: 255 is an interrupted program. A delivery while the run trained
 * lacks its end, so 'wandb sync' is to take the file again.
 */
static void wandb_end(void *context, pons_status status)
{
    sink *s = context;

    pthread_mutex_lock(&s->lock);
    if ((s->described || s->step >= 0) && s->failure == 0)
        write_open(s, status == PONS_OK ? 0 : status == PONS_INTERRUPTED ? 255 : 1);
    if (s->end > 0)
        offline_folder_forget_delivery(&s->folder);
    pthread_mutex_unlock(&s->lock);
}

static bool wandb_warning(void *context, char *text, size_t size)
{
    sink *s = context;
    bool found;

    pthread_mutex_lock(&s->lock);
    found = s->failure != 0 && !s->warned;
    s->warned = s->warned || found;
    if (found)
        snprintf(text, size, "cannot write '%s': %s; it gets no more numbers of this run",
                 s->folder.log, strerror(s->failure));
    pthread_mutex_unlock(&s->lock);
    return found;
}

static pons_status check_text(const char *key, const char *text, pons_error *err)
{
    if (text == NULL || text_is_utf8(text))
        return PONS_OK;
    return pons_option_fail(err, key, "found '%s', expected UTF-8", text);
}

static pons_status wandb_check(const void *config, pons_error *err)
{
    const wandb *c = config;

    if (c->project == NULL || c->project[0] == '\0' || strlen(c->project) > 128
        || strpbrk(c->project, "/\\#?%:") != NULL)
        return pons_option_fail(err, "project", "found '%s', expected 1 to 128 bytes without any "
                                "of / \\ # ? %% :", c->project != NULL ? c->project : "");
    if (check_text("project", c->project, err) != PONS_OK
        || check_text("entity", c->entity, err) != PONS_OK)
        return err->status;
    return check_text("name", c->name, err);
}

static const pons_option options[] = {
    PONS_TEXT(wandb, project, "pons", "Project that 'wandb sync' delivers the run to."),
    PONS_TEXT(wandb, entity, "", "User or team that has the project; not given: that of the key "
                                 "which delivers it."),
    PONS_TEXT(wandb, name, "", "Name of the run; not given: that of its folder."),
    PONS_OPTIONS_END
};

static const pons_sink_operations operations = {
    .check = wandb_check, .open = wandb_open, .write = wandb_write, .flush = wandb_flush,
    .close = wandb_close, .warning = wandb_warning, .end = wandb_end
};

PONS_SINK(wandb, "1.0", "offline runs of Weights & Biases in the run folder", options, operations);
