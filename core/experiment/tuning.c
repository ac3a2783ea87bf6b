/*
 * tuning.c - the table of choices, its file, and its way to other processes, which is the file's
 * text.
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
#include "cluster/group/group.h"

enum { TEXT_MAX = 16 << 20 };

typedef struct choice {
    char key[PONS_AUTOTUNE_ENTRY_SIZE], value[PONS_AUTOTUNE_ENTRY_SIZE];
    double seconds;          /* NaN: not known                                                    */
    bool timed;              /* here; else as it was read                                         */
    bool used;
    bool unkept;             /* no choice for the run                                             */
} choice;

struct tuning {
    pons_autotune_cache table;       /* as devices see it                                         */
    const experiment *experiment;
    int count, room;
    choice **item;           /* each at its place until the end: devices read its value           */
    double begin;            /* when timing began                                                 */
    bool foreign;            /* what was read is of another card or library, and not here         */
};

/* ---- the table ------------------------------------------------------------------------------- */

static choice *find_choice(const tuning *t, const char *key)
{
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->item[i]->key, key) == 0)
            return t->item[i];
    return NULL;
}

static const char *find(void *context, const char *key)
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

static bool fits(const char *text)
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

/* Others wait for this process meanwhile: each choice is a sign that it goes on. */
static pons_status keep(void *context, const char *key, const char *value, double seconds,
                        pons_error *err)
{
    tuning *t = context;

    if (t->experiment->group != NULL)
        group_note(t->experiment->group, 0, "start");
    if (!fits(key) || !fits(value))
        return pons_fail(err, PONS_PLUGIN, "the device: a choice by timing has %zu and %zu bytes, "
                         "expected fewer than %d", strlen(key), strlen(value),
                         PONS_AUTOTUNE_ENTRY_SIZE);
    return set_choice(t, key, value, seconds, true, err);
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Why kernels are not timed though that is asked for; NULL: they are. */
static const char *find_obstacle(const experiment *e)
{
    if (e->sections.experiment.deterministic)
        return "with deterministic = yes no time decides between kernels";
    for (int i = 0; i < e->device_count; i++)
        if (e->devices[i].operations->autotune == NULL)
            return "the device has no kernels to choose from by timing";
    return NULL;
}

/* What was timed on the first device means nothing to one that is another. */
static void tune(tuning *t, const device *d)
{
    const pons_device_facts *first = &t->experiment->device.facts;
    bool other = strcmp(d->facts.name, first->name) != 0;

    if (!other && strcmp(d->facts.library, first->library) == 0)
        d->operations->autotune(d->handle, &t->table);
    else
        log_warning(t->experiment->log, "kernels are timed with '%s', a replica has '%s': there "
                    "they are not taken", other ? first->name : first->library,
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
        /* What stands in the file of a run is how it was trained. */
        if (e->first == 0 && e->purpose == EXPERIMENT_TRAIN)
            log_warning(e->log, "[device] autotune = yes changes nothing: %s", obstacle);
        return PONS_OK;
    }
    t = calloc(1, sizeof *t);
    if (t == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the choices of kernels");
    t->experiment = e;
    t->table = (pons_autotune_cache){ .context = t, .find = find };
    for (int i = 0; i < e->device_count; i++)
        tune(t, &e->devices[i]);
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

/* ---- as text --------------------------------------------------------------------------------- */

static const char *card_of(const tuning *t) { return t->experiment->device.facts.name; }

static const char *library_of(const tuning *t) { return t->experiment->device.facts.library; }

static void put(FILE *to, const tuning *t)
{
    const char *between = "\n";

    fputs("{\"format\":\"" TUNING_FORMAT "\",\n\"card\":", to);
    json_put_text(to, card_of(t));
    fputs(",\n\"library\":", to);
    json_put_text(to, library_of(t));
    fputs(",\n\"choices\":{", to);
    for (int i = 0; i < t->count; i++) {
        if (t->item[i]->unkept)
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

/* malloc'ed; its size without the 0 at its end. */
static pons_status write_text(const tuning *t, char **text, size_t *size, pons_error *err)
{
    FILE *to = open_memstream(text, size);
    bool good = to != NULL;

    if (to != NULL) {
        put(to, t);
        good = fflush(to) == 0;
        if (good)
            seal_put(to, *text, *size);
        good = fclose(to) == 0 && good;
    }
    return good ? PONS_OK : pons_fail(err, PONS_DEVICE, "out of memory for the choices of kernels");
}

static const char *text_of(const json_value *object, const char *name)
{
    const json_value *v = json_member(object, name);

    return v != NULL && v->type == JSON_TEXT ? v->text : NULL;
}

static pons_status take_choices(tuning *t, const char *where, const json_value *choices,
                                pons_error *err)
{
    for (const json_value *c = choices->child; c != NULL; c = c->next) {
        const char *value = c->type == JSON_OBJECT ? text_of(c, "choice") : NULL;
        const json_value *seconds = value != NULL ? json_member(c, "seconds") : NULL;

        if (value == NULL || !fits(value) || !fits(c->key))
            return pons_fail(err, PONS_DATA, "'%s': entry '%.80s' is no choice of a kernel", where,
                             c->key);
        if (set_choice(t, c->key, value, seconds != NULL && seconds->type == JSON_NUMBER
                                         ? seconds->number : NAN, false, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

/* Of another card or library: it would choose otherwise. */
static bool is_foreign(tuning *t, const char *where, const char *card, const char *library)
{
    bool other = strcmp(card, card_of(t)) != 0;

    t->foreign = other || strcmp(library, library_of(t)) != 0;
    if (t->foreign)
        log_warning(t->experiment->log, "the kernels of %s were timed with '%s', here is '%s': "
                    "they are not taken", where, other ? card : library,
                    other ? card_of(t) : library_of(t));
    return t->foreign;
}

static pons_status take_text(tuning *t, const char *where, const char *text, size_t size,
                             pons_error *err)
{
    json_document d = { NULL, NULL };
    const char *format, *card, *library;
    const json_value *choices;

    if (seal_check(where, text, size, err) != PONS_OK
        || json_parse(text, size, where, PONS_DATA, &d, err) != PONS_OK)
        return err->status;
    format = text_of(d.root, "format");
    card = text_of(d.root, "card");
    library = text_of(d.root, "library");
    choices = json_member(d.root, "choices");
    if (format == NULL || strcmp(format, TUNING_FORMAT) != 0)
        pons_fail(err, PONS_DATA, "'%s' has format '%.80s', expected '" TUNING_FORMAT "'", where,
                  format != NULL ? format : "");
    else if (card == NULL || library == NULL || choices == NULL || choices->type != JSON_OBJECT)
        pons_fail(err, PONS_DATA, "'%s' has no card, library and choices", where);
    else if (!is_foreign(t, where, card, library))
        take_choices(t, where, choices, err);
    json_free(&d);
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
        take_text(t, path, text, size, err);
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

/* What could not be timed, as on a card that others fill, is left out. */
static bool has_choices_to_add(tuning *t)
{
    bool any = false;

    for (int i = 0; i < t->count; i++) {
        t->item[i]->unkept = t->item[i]->timed && t->item[i]->value[0] == '\0';
        any = any || (t->item[i]->timed && !t->item[i]->unkept);
    }
    return any;
}

/*
 * A training in the folder has read its choices, and writes them when they are complete. Another
 * prediction may have added some since this one has read them. A run that begins anew renames the
 * folder of an earlier one, which is locked until then.
 */
static pons_status add_to(tuning *t, const char *folder, pons_error *err)
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
        add_to(t, folder, &why);
    if (t->foreign)
        pons_fail(&why, PONS_FAILURE, "'%s' has those of another card or library", folder);
    if (why.status != PONS_OK)
        log_warning(t->experiment->log, "autotune: what was timed is not kept: %s", why.text);
}

/* ---- a run ----------------------------------------------------------------------------------- */

void tuning_begin(tuning *t)
{
    t->begin = seconds_now();
    t->table.keep = t->experiment->first == 0 ? keep : NULL;
}

static void tell(const tuning *t)
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

static pons_status receive(tuning *t, pons_error *err)
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
        take_text(t, "rank 0", text, size, err);
    free(text);
    return err->status;
}

static pons_status send(const tuning *t, pons_error *err)
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
        tell(t);
    if (t->experiment->group == NULL)
        return PONS_OK;
    return first ? send(t, err) : receive(t, err);
}
