/*
 * train_view.c - the block of a training: numbers from records, drawn at most four times a second.
 *
 * A step hands over a few numbers. Lines are written only when a drawing is due, in order of
 * importance, because a low window shows the first ones alone. A thread looks for signals and for
 * a new size of the window between steps, which may take long.
 */
#include "report/live/train_view.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/system/memory_limit.h"
#include "base/terminal.h"
#include "base/text/text.h"
#include "base/thread/thread.h"
#include "base/thread/worker.h"
#include "base/whole.h"
#include "checkpoint/run_folds.h"
#include "report/live/value_series.h"

enum { NAME_COLUMNS = 16, BAR_MOST = 40, BAR_LEAST = 8, SPARK_MOST = 60 };

static const double LOOK_INTERVAL = 0.1; /* seconds between looks at window and signals           */
static const double FRESH = 0.1;      /* weight of a step in running means                        */

/* A row of the last validation: a class, or the mean. */
typedef struct class_row {
    char name[64];
    value_series values;
} class_row;

struct train_view {
    const experiment *experiment;
    signals *asked;                   /* for the end of the training; NULL: nothing asks          */
    logger *log;
    pthread_mutex_t lock;
    pthread_cond_t closed;
    worker *watcher;                  /* of the window; NULL: a new size shows at the next step   */
    bool closing;
    bool stopping;                    /* a signal had come when the watcher last looked           */
    int columns, rows;                /* of the window when it was drawn; 0: it was not           */
    trainer_progress place;
    int64_t epoch;
    double step_seconds, data_share;  /* running means                                            */
    double held;                      /* bytes of the devices' memory                             */
    value_series loss, validation_loss;
    double validation_seconds, validation_begin; /* of the last one; of that under way            */
    int validated;                    /* cases of the one under way                               */
    double last, cpu_seconds, wall_seconds; /* last: value that selects the best checkpoint       */
    int64_t last_step;                /* 0: no validation                                         */
    int row_count;
    class_row *row;                   /* [row_count]                                              */
    int reading_count;
    pons_device_sensors reading[DEVICES_MAX];
    int number[DEVICES_MAX];          /* replicas of the readings                                 */
};

/* ---- text ------------------------------------------------------------------------------------ */

typedef struct block_text {
    char text[LOG_BLOCK_SIZE];
    size_t used;
    int lines, room, columns;         /* room: of lines                                           */
    bool utf8;
} block_text;

__attribute__((format(printf, 2, 3)))
static void add(block_text *b, const char *format, ...)
{
    va_list list;
    int size;

    va_start(list, format);
    size = vsnprintf(b->text + b->used, sizeof b->text - b->used, format, list);
    va_end(list);
    b->used = min_size(b->used + (size_t)max_int(size, 0), sizeof b->text - 1);
}

/* Whether one more line has room; it is then begun. */
static bool begin_line(block_text *b)
{
    if (b->lines >= b->room)
        return false;
    if (b->lines++ > 0)
        add(b, "\n");
    return true;
}

static void add_time(block_text *b, double seconds)
{
    int64_t whole = whole_within(seconds, 0, INT32_MAX);

    if (whole >= 3600)
        add(b, "%lld:%02d:%02d", (long long)(whole / 3600), (int)(whole / 60 % 60),
            (int)(whole % 60));
    else
        add(b, "%d:%02d", (int)(whole / 60), (int)(whole % 60));
}

static void add_bar(block_text *b, double share)
{
    int columns = min_int(max_int(b->columns / 3, BAR_LEAST), BAR_MOST);
    int full = (int)whole_within(share * columns, 0, columns);

    add(b, "[");
    for (int i = 0; i < columns; i++)
        add(b, "%s", i >= full ? (b->utf8 ? "\xe2\x96\x91" : "-")
                               : (b->utf8 ? "\xe2\x96\x88" : "#"));
    add(b, "]");
}

/* The sparkline fills the rest of a line that has 'used' columns. */
static void add_series(block_text *b, const value_series *s, int used)
{
    int columns = min_int(b->columns - used - 1, SPARK_MOST);
    char text[3 * SPARK_MOST + 1];

    if (columns <= 0)
        return;
    value_series_draw(s, columns, b->utf8, text, sizeof text);
    add(b, " %s", text);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Steps between two validations; 0: there are none. */
static double validation_interval(const train_view *v)
{
    const experiment *e = v->experiment;
    const train_options *o = &e->sections.train;

    if (o->validate_steps > 0)
        return (double)o->validate_steps;
    return (double)o->validate_every * e->epoch.count / (double)(o->batch * e->micro_batches);
}

/* Seconds until the end, with those of validations once one has been timed. */
static double seconds_left(const train_view *v)
{
    double left = (double)(v->place.total - v->place.step), interval = validation_interval(v);
    double validations = interval > 0 ? ceil(left / interval - 1e-9) : 0;

    if (v->place.validating > 0)
        validations++;
    return left * v->step_seconds + validations * v->validation_seconds;
}

static void add_steps(block_text *b, const train_view *v)
{
    const trainer_progress *p = &v->place;
    double share = p->total > 0 ? (double)p->step / (double)p->total : 0;

    if (!begin_line(b))
        return;
    add(b, "step  ");
    add_bar(b, share);
    add(b, " %.0f %%, ", floor(100 * share));
    if (v->step_seconds > 0) {
        add_time(b, seconds_left(v));
        add(b, " left, ");
    }
    if (v->step_seconds > 0 || p->validating > 0)
        add(b, "%lld of %lld", (long long)p->step, (long long)p->total);
    else
        add(b, "step %lld of %lld running", (long long)p->step + 1, (long long)p->total);
}

static void add_stop(block_text *b, const train_view *v)
{
    if (signals_pending(v->asked) && begin_line(b))
        add(b, "stopping after this %s; Ctrl-C again to stop at once",
            v->place.validating > 0 ? "case" : "step");
}

/* The fold of a cross-validation: steps and time left are those of its run alone. */
static void add_fold(block_text *b, const experiment *e)
{
    const data_options *d = &e->sections.data;
    int fold, count;
    char chosen[24];

    snprintf(chosen, sizeof chosen, "%lld", (long long)d->fold);
    if (run_folds_read_rule(d->validation, d->fold == FOLD_FIRST ? NULL : chosen, &fold, &count))
        add(b, ", fold %d of folds 0 to %d", fold, count - 1);
}

static void add_epoch(block_text *b, const train_view *v)
{
    const experiment *e = v->experiment;
    double cases = (double)(e->sections.train.batch * e->micro_batches) / e->epoch.count;
    double done = (double)v->place.step * cases;
    double all = fmax(ceil((double)v->place.total * cases - 1e-9), (double)v->epoch);

    if (e->sections.train.epochs > 0)
        all = fmin(all, (double)e->sections.train.epochs);
    if (!begin_line(b))
        return;
    add(b, "epoch ");
    add_bar(b, fmin(done - (double)(v->epoch - 1), 1));
    add(b, " %lld of %.0f", (long long)v->epoch, all);
    add_fold(b, e);
}

static void add_speed(block_text *b, const train_view *v)
{
    const experiment *e = v->experiment;

    if (v->step_seconds <= 0 || !begin_line(b))
        return;
    add(b, "%.3g samples/s, %.0f %% waiting for data, %.3f s a step",
        (double)(e->sections.train.batch * e->micro_batches) / v->step_seconds,
        100 * v->data_share, v->step_seconds);
}

static void add_reading(block_text *b, int number, const pons_device_sensors *s)
{
    char used[32], total[32];

    add(b, ", device %d %.0f %% busy with %s of %s", number, 100 * s->utilisation,
        text_amount(s->memory_used, "B", used), text_amount(s->memory_total, "B", total));
}

/* Devices of a run differ little: the line has room for the first ones. */
static void add_memory(block_text *b, train_view *v)
{
    double cpu = seconds_of_process(), wall = seconds_now();
    char memory[32];

    if (!begin_line(b))
        return;
    add(b, "memory %s", text_amount(memory_peak_bytes(), "B", memory));
    if (v->wall_seconds > 0 && wall > v->wall_seconds)
        add(b, ", %.1f processors busy", (cpu - v->cpu_seconds) / (wall - v->wall_seconds));
    v->cpu_seconds = cpu;
    v->wall_seconds = wall;
    if (v->held > 0)
        add(b, ", %s on devices", text_amount(v->held, "B", memory));
    for (int i = 0; i < v->reading_count; i++)
        add_reading(b, v->number[i], &v->reading[i]);
}

static void add_value(block_text *b, const char *name, const value_series *s)
{
    add(b, "%-*.*s ", NAME_COLUMNS, NAME_COLUMNS, name);
    if (isfinite(s->last))
        add(b, "%-7.4g", s->last);
    else
        add(b, "%-7s", "-");
    add_series(b, s, NAME_COLUMNS + 1 + 7);
}

static void add_loss(block_text *b, const train_view *v)
{
    if (v->loss.stride > 0 && begin_line(b))
        add_value(b, "loss", &v->loss);
    if (v->validation_loss.stride > 0 && begin_line(b))
        add_value(b, "validation loss", &v->validation_loss);
}

/* Values come first, because a narrow window leaves the last parts out. */
static void add_validation(block_text *b, const train_view *v)
{
    if (v->place.validating > 0 && begin_line(b)) {
        add(b, "validating: %d of %d case%s, ", v->validated, v->place.validating,
            text_plural(v->place.validating));
        add_time(b, seconds_now() - v->validation_begin);
        add(b, " so far");
    }
    if (v->last_step <= 0 || !begin_line(b))
        return;
    add(b, "%s ", v->experiment->sections.train.best);
    if (isfinite(v->last))
        add(b, "%.4f", v->last);
    else
        add(b, "-");
    if (v->place.best_step > 0)
        add(b, ", best %.4f", v->place.best);
    add(b, ", validated after step %lld", (long long)v->last_step);
    if (v->place.best_step > 0)
        add(b, ", best after step %lld", (long long)v->place.best_step);
}

static void add_rows(block_text *b, const train_view *v)
{
    int room = b->room - b->lines, shown = min_int(v->row_count, room);

    if (shown < v->row_count)
        shown = max_int(room - 1, 0);
    for (int i = 0; i < shown && begin_line(b); i++)
        add_value(b, v->row[i].name, &v->row[i].values);
    if (shown < v->row_count && begin_line(b))
        add(b, "... %d more", v->row_count - shown);
}

static void draw_at_once(train_view *v)
{
    FILE *terminal = v->log->terminal;
    block_text b = { .text = "", .utf8 = terminal_has_utf8() };

    if (terminal == NULL)
        return;
    v->columns = terminal_columns(terminal);
    v->rows = terminal_rows(terminal);
    b.columns = v->columns - 1;
    b.room = min_int(LOG_BLOCK_LINES, max_int(v->rows / 2 + 2, 1));
    add_steps(&b, v);
    add_stop(&b, v);
    add_epoch(&b, v);
    add_speed(&b, v);
    add_loss(&b, v);
    add_validation(&b, v);
    add_memory(&b, v);
    add_rows(&b, v);
    log_block(v->log, b.text);
}

static void draw(train_view *v)
{
    if (log_live_due(v->log))
        draw_at_once(v);
}

/* ---- the window ------------------------------------------------------------------------------ */

/* Locked. A block that was not drawn yet has nothing to fit. */
static bool is_resized(const train_view *v)
{
    FILE *terminal = v->log->terminal;

    return v->columns > 0 && terminal != NULL
        && (terminal_columns(terminal) != v->columns || terminal_rows(terminal) != v->rows);
}

/* Locked. Whether a signal has come since the last look. */
static bool is_interrupted(train_view *v)
{
    bool before = v->stopping;

    v->stopping = signals_pending(v->asked);
    return v->stopping && !before;
}

static pons_status watch_window(void *context, pons_error *err)
{
    train_view *v = context;

    pthread_mutex_lock(&v->lock);
    while (!v->closing) {
        const struct timespec next = clock_timespec(seconds_now() + LOOK_INTERVAL);

        pthread_cond_timedwait(&v->closed, &v->lock, &next);
        if (!v->closing && is_interrupted(v))
            draw_at_once(v);
        else if (!v->closing && is_resized(v))
            draw(v);
    }
    pthread_mutex_unlock(&v->lock);
    return PONS_OK;
}

static void open_watcher(train_view *v)
{
    pons_error ignored = PONS_ERROR_INIT;

    if (worker_open(WORKER_LOW, "the thread that watches the window", &v->watcher, &ignored)
        == PONS_OK)
        worker_start(v->watcher, watch_window, v, &ignored);
}

static void close_watcher(train_view *v)
{
    pthread_mutex_lock(&v->lock);
    v->closing = true;
    pthread_cond_broadcast(&v->closed);
    pthread_mutex_unlock(&v->lock);
    worker_close(v->watcher);
}

/* ---- numbers --------------------------------------------------------------------------------- */

train_view *train_view_open(const experiment *e, signals *asked, logger *l)
{
    train_view *v;

    if (l->terminal == NULL || !l->live || l->level < LOG_NORMAL)
        return NULL;
    v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    v->experiment = e;
    v->asked = asked;
    v->log = l;
    v->epoch = 1;
    pthread_mutex_init(&v->lock, NULL);
    thread_condition(&v->closed);
    open_watcher(v);
    return v;
}

void train_view_progress(train_view *v, const trainer_progress *p)
{
    if (v == NULL)
        return;
    pthread_mutex_lock(&v->lock);
    if (p->validating > 0 && v->place.validating == 0) {
        v->validation_begin = seconds_now();
        v->validated = 0;
    }
    v->place = *p;
    if (v->columns == 0)
        draw_at_once(v);
    else if (p->validating > 0)
        draw(v);
    pthread_mutex_unlock(&v->lock);
}

void train_view_case(train_view *v)
{
    if (v == NULL)
        return;
    pthread_mutex_lock(&v->lock);
    v->validated++;
    pthread_mutex_unlock(&v->lock);
}

static double metric_of(const pons_record *record, const char *name, double otherwise)
{
    for (int i = 0; i < record->count; i++)
        if (strcmp(record->metric[i].name, name) == 0)
            return record->metric[i].value;
    return otherwise;
}

static double running_mean(double mean, double value)
{
    return mean > 0 ? (1 - FRESH) * mean + FRESH * value : value;
}

static void take_step(train_view *v, const pons_record *record)
{
    static const char prefix[] = "device_memory.";
    double seconds = metric_of(record, "seconds", 0);

    v->step_seconds = running_mean(v->step_seconds, seconds);
    if (seconds > 0)
        v->data_share = running_mean(v->data_share,
                                     metric_of(record, "data_seconds", 0) / seconds);
    v->held = 0;
    for (int i = 0; i < record->count; i++)
        if (strncmp(record->metric[i].name, prefix, sizeof prefix - 1) == 0)
            v->held += record->metric[i].value;
    value_series_add(&v->loss, metric_of(record, "loss", NAN));
}

static class_row *row_named(train_view *v, const char *name)
{
    class_row *more;

    for (int i = 0; i < v->row_count; i++)
        if (strcmp(v->row[i].name, name) == 0)
            return &v->row[i];
    more = realloc(v->row, (size_t)(v->row_count + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    v->row = more;
    more[v->row_count] = (class_row){ .name = "" };
    snprintf(more[v->row_count].name, sizeof more->name, "%s", name);
    return &more[v->row_count++];
}

/* The values of one metric: Dice where the record has it, else the one that selects the best. */
static void take_rows(train_view *v, const pons_record *record)
{
    const char *metric = "dice.";

    if (isinf(metric_of(record, "dice.mean", INFINITY)))
        metric = v->experiment->sections.train.best;
    for (int i = 0; i < record->count; i++) {
        const pons_metric *m = &record->metric[i];
        class_row *row = strncmp(m->name, metric, strcspn(metric, ".") + 1) == 0
                         ? row_named(v, m->name) : NULL;

        if (row != NULL)
            value_series_add(&row->values, m->value);
    }
}

void train_view_record(train_view *v, const pons_record *record)
{
    if (v == NULL)
        return;
    pthread_mutex_lock(&v->lock);
    v->epoch = max_i64(record->epoch, 1);
    if (strcmp(record->kind, "step") == 0) {
        take_step(v, record);
    } else {
        v->last = metric_of(record, v->experiment->sections.train.best, NAN);
        v->last_step = record->step;
        v->validation_seconds = metric_of(record, "seconds", 0);
        if (!isinf(metric_of(record, "loss", INFINITY)))
            value_series_add(&v->validation_loss, metric_of(record, "loss", NAN));
        take_rows(v, record);
    }
    draw(v);
    pthread_mutex_unlock(&v->lock);
}

void train_view_devices(train_view *v, int count, const device_reading *reading)
{
    if (v == NULL)
        return;
    pthread_mutex_lock(&v->lock);
    v->reading_count = min_int(count, DEVICES_MAX);
    for (int i = 0; i < v->reading_count; i++) {
        v->reading[i] = reading[i].state;
        v->number[i] = reading[i].replica;
    }
    pthread_mutex_unlock(&v->lock);
}

void train_view_close(train_view *v)
{
    if (v == NULL)
        return;
    close_watcher(v);
    log_block(v->log, "");
    pthread_cond_destroy(&v->closed);
    pthread_mutex_destroy(&v->lock);
    free(v->row);
    free(v);
}
