/*
 * mlflow - send the numbers of a run to a server of MLflow.
 *
 * 'write' appends a line to mlflow.jsonl, which is the queue, and never waits for the server. A
 * thread sends what the server has not got, in batches; after a failure it waits 1, 2, 4 ... 60 s.
 * Memory is bounded by one batch. The rest at the end stays in the folder for 'pons report RUN
 * --send'. Steps that a resumed run repeats are sent once: their numbers are equal.
 */
#include "base/clock.h"
#include "sinks/mlflow/delivery.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

typedef struct sink {
    const mlflow *config;
    delivery *delivery;  /* the thread's, while it runs                                           */
    FILE *file;
    char *path;
    pons_sink_kept sent; /* the last records that the server has                                  */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* The members below are read and written under the lock. */
    const char *end;     /* the status of the run, once it ends                                   */
    bool waiting;        /* there are lines that the thread has not seen                          */
    bool warned;         /* a failure was passed on                                               */
    char failure[512];
} sink;

/* ---- the thread ------------------------------------------------------------------------------ */

/* Note the first failure. The thread then tries again without new lines. */
static void note_failure(sink *s, const char *text, const char *what_next)
{
    pthread_mutex_lock(&s->lock);
    if (s->failure[0] == '\0')
        snprintf(s->failure, sizeof s->failure, "%.380s; %s", text, what_next);
    s->waiting = true;
    pthread_mutex_unlock(&s->lock);
}

static void flush_lines(sink *s)
{
    if (fflush(s->file) != 0)
        note_failure(s, s->path, strerror(errno));
}

/* Wait for lines or the end of the run, and in any case for 'seconds' unless the run ends. */
static const char *wait_for_lines(sink *s, double seconds)
{
    const struct timespec until = clock_timespec(seconds_now() + seconds);
    const char *end;

    pthread_mutex_lock(&s->lock);
    while (s->end == NULL
           && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
        continue;
    while (s->end == NULL && !s->waiting)
        pthread_cond_wait(&s->changed, &s->lock);
    s->waiting = false;
    end = s->end;
    pthread_mutex_unlock(&s->lock);
    return end;
}

static void *run_thread(void *context)
{
    sink *s = context;
    static const char again[] = "it is tried again, and 'pons report RUN --send' sends what is "
                                "left at the end";
    outcome result = DELIVERED;
    double pause = s->config->interval_s;

    for (const char *end = NULL; end == NULL && result != REFUSED; ) {
        end = wait_for_lines(s, pause);
        if (end != NULL)
            delivery_set_status(s->delivery, end);
        flush_lines(s);
        result = delivery_run(s->delivery);
        if (result == LATER && end == NULL) {
            note_failure(s, delivery_failure(s->delivery), again);
            pause = pause < 1 ? 1 : pause < 30 ? 2 * pause : 60;
        } else {
            pause = s->config->interval_s;
        }
    }
    if (result != DELIVERED)
        note_failure(s, delivery_failure(s->delivery), "'pons report RUN --send' sends the rest");
    return NULL;
}

/* The thread blocks all signals, which are those of the run. */
static void start_thread(sink *s)
{
    sigset_t all, old;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    s->started = pthread_create(&s->thread, NULL, run_thread, s) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!s->started)
        note_failure(s, "cannot start a thread", "'pons report RUN --send' sends the numbers");
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* The step and the kind of a line. */
static bool read_line(const char *line, bool *validation, int64_t *step)
{
    const char *at = strstr(line, "\"step\":");

    *validation = strncmp(line, "[{\"key\":\"validation/", 20) == 0;
    return at != NULL && sscanf(at, "\"step\":%lld", (long long *)step) == 1;
}

/*
 * Find the last records that the server has, and the end of the last line that it has or that is
 * kept. Lines behind that are removed: their records come once more.
 */
static int64_t find_end(sink *s, pons_sink_kept keep)
{
    int64_t sent = delivery_sent(s->delivery), size = sent, at = 0;
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    rewind(s->file);
    while ((length = getline(&line, &room, s->file)) > 0 && line[length - 1] == '\n') {
        bool validation;
        int64_t step;
        at += length;
        if (!read_line(line, &validation, &step))
            continue;
        if (at <= sent)
            *(validation ? &s->sent.validation : &s->sent.step) = step;
        if (at > size && step <= (validation ? keep.validation : keep.step))
            size = at;
    }
    free(line);
    return size < at ? size : at;
}

static pons_status fail_open(const sink *s, pons_error *err)
{
    return pons_fail(err, PONS_FAILURE, "cannot open '%s': %s", s->path, strerror(errno));
}

/* The lock of the file is that of its sender. */
static pons_status open_queue(sink *s, const char *folder, pons_sink_kept keep, pons_error *err)
{
    if (asprintf(&s->path, "%s/mlflow.jsonl", folder) < 0) {
        s->path = NULL;
        return pons_fail(err, PONS_DEVICE, "out of memory for mlflow");
    }
    if (pons_sink_file(s->path, "a+", &s->file, err) != PONS_OK)
        return err->status;
    if (flock(fileno(s->file), LOCK_EX | LOCK_NB) != 0)
        return pons_fail(err, PONS_FAILURE, "another process sends '%s'", s->path);
    if (delivery_open(s->config, folder, keep.step < 0, &s->delivery, err) != PONS_OK)
        return err->status;
    if (ftruncate(fileno(s->file), keep.step < 0 ? 0 : find_end(s, keep)) != 0
        || fseek(s->file, 0, SEEK_END) != 0)
        return fail_open(s, err);
    return PONS_OK;
}

static void mlflow_close(void *context)
{
    sink *s = context;

    if (s->started) {
        pthread_mutex_lock(&s->lock);
        if (s->end == NULL)
            s->end = "FAILED";
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
        delivery_limit(s->delivery, s->config->end_s);
        pthread_join(s->thread, NULL);
    }
    if (s->delivery != NULL)
        delivery_close(s->delivery);
    if (s->file != NULL)
        fclose(s->file);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->path);
    free(s);
}

static pons_status mlflow_open(const void *config, const char *folder, pons_sink_kept keep,
                               void **out, pons_error *err)
{
    sink *s = calloc(1, sizeof *s);
    pthread_condattr_t clock;

    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for mlflow");
    s->config = config;
    s->sent = (pons_sink_kept){ -1, -1 };
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (open_queue(s, folder, keep, err) != PONS_OK) {
        mlflow_close(s);
        return err->status;
    }
    delivery_set_status(s->delivery, "RUNNING");
    *out = s;
    return PONS_OK;
}

/* MLflow takes letters, digits, and "_-. :/" in names. */
static void put_name(FILE *file, const char *kind, const char *name)
{
    fprintf(file, "%s/", kind);
    for (const char *at = name; *at != '\0' && at - name < 230; at++) {
        bool word = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z')
                    || (*at >= '0' && *at <= '9') || strchr("_-. :/", *at) != NULL;
        fputc(word ? *at : '_', file);
    }
}

static void put_line(FILE *file, const pons_record *record)
{
    struct timespec t;
    const char *comma = "";

    clock_gettime(CLOCK_REALTIME, &t);
    fputc('[', file);
    for (int i = 0; i < record->count; i++) {
        if (!isfinite(record->metric[i].value))
            continue;
        fprintf(file, "%s{\"key\":\"", comma);
        put_name(file, record->kind, record->metric[i].name);
        fprintf(file, "\",\"value\":%.9g,\"timestamp\":%lld,\"step\":%lld}",
                record->metric[i].value, (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000,
                (long long)record->step);
        comma = ",";
    }
    fputs("]\n", file);
}

/* Whether the server has the record from before the run was resumed. */
static bool is_sent(const sink *s, const pons_record *record)
{
    bool validation = strcmp(record->kind, "validation") == 0;

    return record->step <= (validation ? s->sent.validation : s->sent.step);
}

static pons_status mlflow_write(void *context, const pons_record *record, pons_error *err)
{
    sink *s = context;

    (void)err;
    if (is_sent(s, record))
        return PONS_OK;
    flockfile(s->file);
    put_line(s->file, record);
    funlockfile(s->file);
    pthread_mutex_lock(&s->lock);
    if (!s->waiting)
        pthread_cond_signal(&s->changed);
    s->waiting = true;
    pthread_mutex_unlock(&s->lock);
    if (!s->started)
        start_thread(s);
    return PONS_OK;
}

static pons_status mlflow_flush(void *context, pons_error *err)
{
    sink *s = context;

    (void)err;
    flush_lines(s);
    fsync(fileno(s->file));
    return PONS_OK;
}

static bool mlflow_warning(void *context, char *text, size_t size)
{
    sink *s = context;
    bool found;

    pthread_mutex_lock(&s->lock);
    found = s->failure[0] != '\0' && !s->warned;
    if (found) {
        snprintf(text, size, "%s", s->failure);
        s->warned = true;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* Send the rest, for at most end_s seconds. */
static void mlflow_end(void *context, pons_status status)
{
    sink *s = context;

    if (!s->started)
        return;
    pthread_mutex_lock(&s->lock);
    s->end = status == PONS_OK ? "FINISHED" : status == PONS_INTERRUPTED ? "KILLED" : "FAILED";
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    delivery_limit(s->delivery, s->config->end_s);
    pthread_join(s->thread, NULL);
    s->started = false;
    delivery_set_status(s->delivery, s->end); /* for '--send', where the thread ended early       */
}

/* ---- later ----------------------------------------------------------------------------------- */

static pons_status mlflow_send(const void *config, const char *folder, pons_error *err)
{
    sink s = { .config = config };

    if (asprintf(&s.path, "%s/mlflow.jsonl", folder) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for mlflow");
    s.file = fopen(s.path, "r+e");
    if (s.file == NULL)
        fail_open(&s, err);
    else if (flock(fileno(s.file), LOCK_EX | LOCK_NB) != 0)
        pons_fail(err, PONS_FAILURE, "another process sends '%s'", s.path);
    else if (delivery_open(config, folder, false, &s.delivery, err) == PONS_OK
             && delivery_run(s.delivery) != DELIVERED)
        pons_fail(err, PONS_COMMUNICATION, "%s", delivery_failure(s.delivery));
    if (s.delivery != NULL)
        delivery_close(s.delivery);
    if (s.file != NULL)
        fclose(s.file);
    free(s.path);
    return err->status;
}

static pons_status mlflow_check(const void *config, pons_error *err)
{
    const char *uri = ((const mlflow *)config)->uri;

    if (uri != NULL && strncmp(uri, "http://", 7) != 0 && strncmp(uri, "https://", 8) != 0)
        return pons_option_fail(err, "uri", "found '%s', expected http://... or https://...", uri);
    return PONS_OK;
}

static const pons_option options[] = {
    PONS_TEXT(mlflow, uri, "", "Address of the server; not given: MLFLOW_TRACKING_URI of the "
                               "environment, or http://127.0.0.1:5000."),
    PONS_TEXT(mlflow, experiment, "pons", "Experiment of the server; it is created if absent."),
    PONS_TEXT(mlflow, run, "", "Name of the run; not given: that of its folder."),
    PONS_REAL(mlflow, interval_s, "2", 0, 3600, "Seconds between batches."),
    PONS_REAL(mlflow, timeout_s, "10", 0.1, 3600, "Longest time of a request, in seconds."),
    PONS_REAL(mlflow, end_s, "10", 0, 3600,
              "Longest wait for the server at the end of a run, in seconds."),
    PONS_OPTIONS_END
};

static const pons_sink_operations operations = {
    .check = mlflow_check, .open = mlflow_open, .write = mlflow_write, .flush = mlflow_flush,
    .close = mlflow_close, .warning = mlflow_warning, .end = mlflow_end, .send = mlflow_send
};

PONS_SINK(mlflow, "1.0", "runs on a server of MLflow", options, operations);
