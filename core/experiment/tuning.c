/*
 * tuning.c - the table of timed choices, its file, and its transfer to other processes as text.
 */
#include "experiment/tuning.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <pons/device.h>

#include "base/clock.h"
#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/file/json.h"
#include "base/hash/json_digest.h"
#include "base/text/text_stream.h"
#include "cluster/group/group.h"

enum { TEXT_MAX = 16 << 20 };

typedef struct choice {
    char key[PONS_AUTOTUNE_ENTRY_SIZE], value[PONS_AUTOTUNE_ENTRY_SIZE];
    double seconds;          /* NaN: unknown                                                      */
    bool timed;              /* timed in this process; else read                                  */
    bool used;
    bool failed;             /* not written: it could not be timed                                */
} choice;

struct tuning {
    pons_autotune_cache table;       /* the interface for devices                                 */
    const experiment *experiment;
    int count, room;
    choice **item;           /* entries do not move, since devices keep pointers to their values  */
    double begin;            /* start of timing                                                   */
    bool foreign;            /* the entries read are of another GPU or library and were not taken */
};

/* ---- the table ------------------------------------------------------------------------------- */

static choice *find_choice(const tuning *t, const char *key)
{
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->item[i]->key, key) == 0)
            return t->item[i];
    return NULL;
}

static const char *find_value(void *context, const char *key)
{
    tuning *t = context;
    choice *c = find_choice(t, key);

    if (c != NULL && t->table.keep != NULL)
        c->used = true;
    return c != NULL ? c->value : NULL;
}

static choice *add_choice(tuning *t, const char *key)
{
    int room = t->count < t->room ? t->room : t->room > 0 ? 2 * t->room : 64;
    choice **item = t->count < t->room ? t->item : realloc(t->item, (size_t)room * sizeof *item);

    if (item == NULL)
        return NULL;
    t->item = item;
    t->room = room;
    item[t->count] = calloc(1, sizeof **item);
    if (item[t->count] == NULL)
        return NULL;
    strcpy(item[t->count]->key, key);
    return item[t->count++];
}

static bool fits_entry(const char *text)
{
    return strlen(text) < PONS_AUTOTUNE_ENTRY_SIZE;
}

static pons_status set_choice(tuning *t, const char *key, const char *value, double seconds,
                              bool timed, pons_error *err)
{
    choice *c = find_choice(t, key);

    if (c == NULL)
        c = add_choice(t, key);
    if (c == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the choices of kernels");
    strcpy(c->value, value);
    c->seconds = seconds;
    c->timed = timed;
    c->used = timed;
    return PONS_OK;
}

/* Record a choice. It also tells waiting processes that this one is alive. */
static pons_status add_timed_choice(void *context, const char *key, const char *value,
                                    double seconds, pons_error *err)
{
    tuning *t = context;

    if (t->experiment->group != NULL)
        group_note(t->experiment->group, 0, "start");
    if (!fits_entry(key) || !fits_entry(value))
        return pons_fail(err, PONS_PLUGIN, "the device: a choice by timing has %zu and %zu bytes, "
                         "expected fewer than %d", strlen(key), strlen(value),
                         PONS_AUTOTUNE_ENTRY_SIZE);
    return set_choice(t, key, value, seconds, true, err);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* The reason why kernels cannot be timed; NULL: they can. */
static const char *find_obstacle(const experiment *e)
{
    if (e->sections.experiment.deterministic)
        return "with deterministic = yes kernels are not chosen by timing";
    for (int i = 0; i < e->device_count; i++)
        if (e->devices[i].operations->autotune == NULL)
            return "the device has no kernels to choose from by timing";
    return NULL;
}

/*
 * Give the table to a device, unless it differs from the first device, on which kernels are timed.
 */
static void give_table(tuning *t, const device *d)
{
    const pons_device_facts *first = &t->experiment->device.facts;
    bool other = strcmp(d->facts.name, first->name) != 0;

    if (!other && strcmp(d->facts.library, first->library) == 0)
        d->operations->autotune(d->handle, &t->table);
    else
        log_warning(t->experiment->log, "kernels are timed with '%s', but a replica has '%s' and "
                    "does not use the choices", other ? first->name : first->library,
                    other ? d->facts.name : d->facts.library);
}

pons_status tuning_open(const experiment *e, tuning **out, pons_error *err)
{
    const char *obstacle;
    tuning *t;

    if (!e->sections.device.autotune)
        return PONS_OK;
    obstacle = find_obstacle(e);
    if (obstacle != NULL) {
        /* A prediction with a run's file did not ask for it, so it is not warned. */
        if (e->first == 0 && e->purpose == EXPERIMENT_TRAIN)
            log_warning(e->log, "[device] autotune = yes changes nothing: %s", obstacle);
        return PONS_OK;
    }
    t = calloc(1, sizeof *t);
    if (t == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the choices of kernels");
    t->experiment = e;
    t->table = (pons_autotune_cache){ .context = t, .find = find_value };
    for (int i = 0; i < e->device_count; i++)
        give_table(t, &e->devices[i]);
    *out = t;
    return PONS_OK;
}

void tuning_close(tuning *t)
{
    if (t == NULL)
        return;
    for (int i = 0; i < t->count; i++)
        free(t->item[i]);
    free(t->item);
    free(t);
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char *card_of(const tuning *t) { return t->experiment->device.facts.name; }

static const char *library_of(const tuning *t) { return t->experiment->device.facts.library; }

static void put_choices(FILE *to, const tuning *t)
{
    const char *between = "\n";

    fputs("{\"format\":\"" TUNING_FORMAT "\",\n\"card\":", to);
    json_put_text(to, card_of(t));
    fputs(",\n\"library\":", to);
    json_put_text(to, library_of(t));
    fputs(",\n\"choices\":{", to);
    for (int i = 0; i < t->count; i++) {
        if (t->item[i]->failed)
            continue;
        fputs(between, to);
        between = ",\n";
        json_put_text(to, t->item[i]->key);
        fputs(":{\"choice\":", to);
        json_put_text(to, t->item[i]->value);
        fputs(",\"seconds\":", to);
        json_put_number(to, t->item[i]->seconds);
        fputc('}', to);
    }
    fputs("\n}", to);
}

/* The table as malloc'ed text; *size excludes the terminating 0. */
static pons_status write_text(const tuning *t, char **text, size_t *size, pons_error *err)
{
    text_stream s;

    if (text_stream_open(&s)) {
        put_choices(s.to, t);
        if (text_stream_flush(&s))
            json_digest_put(s.to, s.text, s.size);
    }
    if (!text_stream_close(&s))
        return pons_fail(err, PONS_DEVICE, "out of memory for the choices of kernels");
    *text = s.text;
    *size = s.size;
    return PONS_OK;
}

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static pons_status read_choices(tuning *t, const char *where, json_t *choices,
                                pons_error *err)
{
    const char *key;
    json_t *c;

    json_object_foreach(choices, key, c) {
        const char *value = text_of(c, "choice");
        const json_t *seconds = json_object_get(c, "seconds");

        if (value == NULL || !fits_entry(value) || !fits_entry(key))
            return pons_fail(err, PONS_DATA, "'%s': entry '%.80s' is no choice of a kernel", where,
                             key);
        if (set_choice(t, key, value, json_is_number(seconds) ? json_number_value(seconds) : NAN,
                       false, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

/* True if the text is of another GPU or library, whose timings do not apply here. */
static bool check_foreign(tuning *t, const char *where, const char *card, const char *library)
{
    bool other = strcmp(card, card_of(t)) != 0;

    t->foreign = other || strcmp(library, library_of(t)) != 0;
    if (t->foreign)
        log_warning(t->experiment->log, "the kernels of %s were timed with '%s', not with '%s': "
                    "the choices are not used", where, other ? card : library,
                    other ? card_of(t) : library_of(t));
    return t->foreign;
}

static pons_status read_text(tuning *t, const char *where, const char *text, size_t size,
                             pons_error *err)
{
    json_t *d = NULL;
    const char *format, *card, *library;
    json_t *choices;

    if (json_digest_check(where, text, size, err) != PONS_OK
        || json_parse(text, size, where, PONS_DATA, &d, err) != PONS_OK)
        return err->status;
    format = text_of(d, "format");
    card = text_of(d, "card");
    library = text_of(d, "library");
    choices = json_object_get(d, "choices");
    if (format == NULL || strcmp(format, TUNING_FORMAT) != 0)
        pons_fail(err, PONS_DATA, "'%s' has format '%.80s', expected '" TUNING_FORMAT "'", where,
                  format != NULL ? format : "");
    else if (card == NULL || library == NULL || !json_is_object(choices))
        pons_fail(err, PONS_DATA, "'%s' has no card, library and choices", where);
    else if (!check_foreign(t, where, card, library))
        read_choices(t, where, choices, err);
    json_decref(d);
    return err->status;
}

/* ---- file ------------------------------------------------------------------------------------ */

static char *path_in(const char *folder, pons_error *err)
{
    char *path = NULL;

    if (asprintf(&path, "%s/" TUNING_FILE, folder) >= 0)
        return path;
    pons_fail(err, PONS_DEVICE, "out of memory for the choices of kernels");
    return NULL;
}

pons_status tuning_read(tuning *t, const char *folder, pons_error *err)
{
    char *path, *text = NULL;
    size_t size;

    if (t == NULL || t->experiment->first > 0 || folder == NULL)
        return PONS_OK;
    path = path_in(folder, err);
    if (path != NULL && (access(path, F_OK) == 0 || errno != ENOENT)
        && file_read(path, TEXT_MAX, &text, &size, PONS_DATA, err) == PONS_OK)
        read_text(t, path, text, size, err);
    free(text);
    free(path);
    return err->status;
}

pons_status tuning_write(const tuning *t, const char *folder, pons_error *err)
{
    char *path, *text = NULL;
    size_t size;
    safe_file f;

    if (t == NULL)
        return PONS_OK;
    path = path_in(folder, err);
    if (path != NULL && write_text(t, &text, &size, err) == PONS_OK
        && safe_file_open(&f, path, err) == PONS_OK) {
        if (safe_file_write(&f, text, size, err) == PONS_OK)
            safe_file_commit(&f, err);
        else
            safe_file_discard(&f);
    }
    free(text);
    free(path);
    return err->status;
}

/* Mark entries that could not be timed, as on a busy GPU; true: there are others to add. */
static bool has_choices_to_add(tuning *t)
{
    bool any = false;

    for (int i = 0; i < t->count; i++) {
        t->item[i]->failed = t->item[i]->timed && t->item[i]->value[0] == '\0';
        any = any || (t->item[i]->timed && !t->item[i]->failed);
    }
    return any;
}

/*
 * Add choices to a run's file. A training in this folder holds the lock and writes its complete
 * table itself. Another prediction may have added choices, so the file is read again under the
 * lock. A run that begins anew renames the folder of an earlier run while it holds the lock.
 */
static pons_status add_to_file(tuning *t, const char *folder, pons_error *err)
{
    int lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (lock < 0)
        return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot open '%s': %s", folder,
                         strerror(errno));
    if (!file_lock(lock, LOCK_EX))
        pons_fail(err, PONS_FAILURE, "another process is training in '%s', or about to go on from "
                  "it", folder);
    else if (!file_is_at(lock, folder))
        pons_fail(err, PONS_FAILURE, "'%s' is another run's by now", folder);
    else if (tuning_read(t, folder, err) == PONS_OK && !t->foreign && has_choices_to_add(t))
        tuning_write(t, folder, err);
    close(lock);
    return err->status;
}

void tuning_add(tuning *t, const char *folder)
{
    pons_error why = PONS_ERROR_INIT;

    if (t == NULL || t->experiment->first > 0 || !has_choices_to_add(t))
        return;
    if (folder == NULL)
        pons_fail(&why, PONS_FAILURE, "weights without a run");
    else if (!t->foreign)
        add_to_file(t, folder, &why);
    if (t->foreign)
        pons_fail(&why, PONS_FAILURE, "'%s' has those of another GPU or library", folder);
    if (why.status != PONS_OK)
        log_warning(t->experiment->log, "autotune: the new choices are not kept: %s", why.text);
}

/* ---- timing in a run ------------------------------------------------------------------------- */

void tuning_begin(tuning *t)
{
    t->begin = seconds_now();
    t->table.keep = t->experiment->first == 0 ? add_timed_choice : NULL;
}

static void log_summary(const tuning *t)
{
    int timed = 0, failed = 0, taken = 0;

    for (int i = 0; i < t->count; i++) {
        timed += t->item[i]->timed;
        failed += t->item[i]->timed && t->item[i]->value[0] == '\0';
        taken += t->item[i]->used && !t->item[i]->timed;
    }
    log_line(t->experiment->log, "autotune: %d kind%s of kernels timed in %.1f s, %d taken from "
             "the run's " TUNING_FILE, timed, timed == 1 ? "" : "s", seconds_now() - t->begin,
             taken);
    if (failed > 0)
        log_warning(t->experiment->log, "autotune: %d of them could not be timed: they are the "
                    "library's first", failed);
}

static pons_status receive_choices(tuning *t, pons_error *err)
{
    group *g = t->experiment->group;
    uint64_t size = 0;
    char *text;

    if (group_broadcast(g, &size, sizeof size, 0, err) != PONS_OK)
        return err->status;
    text = malloc(size + 1);
    if (text == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the choices of kernels");
    if (group_broadcast(g, text, size, 0, err) == PONS_OK)
        read_text(t, "rank 0", text, size, err);
    free(text);
    return err->status;
}

static pons_status send_choices(const tuning *t, pons_error *err)
{
    group *g = t->experiment->group;
    char *text = NULL;
    size_t used;
    uint64_t size;

    if (write_text(t, &text, &used, err) == PONS_OK) {
        size = used;
        if (group_broadcast(g, &size, sizeof size, 0, err) == PONS_OK)
            group_broadcast(g, text, used, 0, err);
    }
    free(text);
    return err->status;
}

pons_status tuning_share(tuning *t, pons_error *err)
{
    bool first = t->experiment->first == 0;

    t->table.keep = NULL;
    if (first)
        log_summary(t);
    if (t->experiment->group == NULL)
        return PONS_OK;
    return first ? send_choices(t, err) : receive_choices(t, err);
}
