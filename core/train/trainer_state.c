/*
 * trainer_state.c - saving and reading it, and what of an experiment may change between two starts
 * of one run (R31).
 */
#include <config.h>

#include "train/trainer_state.h"

#include <stdlib.h>
#include <string.h>

#define STATE_FILE "trainer.safetensors"
#define DEBUG_KEY "debug" /* metadata that only runs with --debug have */
#define REQUIRED INT64_MIN

/* The numbers by name, and what stands for one that an older checkpoint lacks. */
static const struct { const char *name; size_t offset; int64_t otherwise; } numbers[] = {
    { "step", offsetof(trainer_state, step), REQUIRED },
    { "applied", offsetof(trainer_state, applied), REQUIRED },
    { "validated", offsetof(trainer_state, validated), REQUIRED },
    { "best_step", offsetof(trainer_state, best_step), REQUIRED },
    { "stale", offsetof(trainer_state, stale), REQUIRED },
    { "finished", offsetof(trainer_state, finished), REQUIRED },
    { "total", offsetof(trainer_state, total), REQUIRED },
    { "scale", offsetof(trainer_state, scale), 16 },
    { "sound", offsetof(trainer_state, sound), 0 },
};
enum { NUMBER_COUNT = sizeof numbers / sizeof numbers[0] };
static const char *const choice_names[3] = { "micro_batches", "threads", "channels" };

/* ---- read ------------------------------------------------------------------------------------ */

static pons_status read_number(const safetensors *file, const char *path, const char *name,
                               int64_t *out, pons_error *err)
{
    const safetensor *t = safetensors_find(file, name);

    if (t == NULL || t->type != SAFETENSORS_I64 || t->count != 1)
        return pons_fail(err, PONS_DATA, "'%s' has no number '%s'", path, name);
    memcpy(out, t->data, sizeof *out);
    return PONS_OK;
}

static pons_status read_all(saved_state *s, const char *path, pons_error *err)
{
    const safetensor *best = safetensors_find(s->file, "best");
    const char *text = safetensors_metadata(s->file, "precision");
    int64_t choice[3];

    for (int i = 0; i < NUMBER_COUNT; i++) {
        int64_t *to = (int64_t *)((char *)&s->state + numbers[i].offset);
        *to = numbers[i].otherwise;
        if ((*to == REQUIRED || safetensors_find(s->file, numbers[i].name) != NULL)
            && read_number(s->file, path, numbers[i].name, to, err) != PONS_OK)
            return err->status;
    }
    for (int i = 0; i < 3; i++) {
        if (read_number(s->file, path, choice_names[i], &choice[i], err) != PONS_OK)
            return err->status;
    }
    if (best == NULL || best->type != SAFETENSORS_F64 || best->count != 1)
        return pons_fail(err, PONS_DATA, "'%s' has no number 'best'", path);
    memcpy(&s->state.best, best->data, sizeof s->state.best);
    s->micro_batches = (int)choice[0];
    s->threads = (int)choice[1];
    s->channels = (int)choice[2];
    s->precision = text != NULL ? precision_named(text) : PRECISION_AUTO;
    s->debug = safetensors_metadata(s->file, DEBUG_KEY) != NULL;
    return PONS_OK;
}

pons_status saved_state_read(const char *checkpoint, saved_state *out, pons_error *err)
{
    saved_state s = { .file = NULL };
    char *path = NULL;

    if (asprintf(&path, "%s/" STATE_FILE, checkpoint) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (safetensors_open(path, &s.file, err) == PONS_OK && read_all(&s, path, err) == PONS_OK)
        *out = s;
    else
        safetensors_close(s.file);
    free(path);
    return err->status;
}

void saved_state_clear(saved_state *s)
{
    safetensors_close(s->file);
    *s = (saved_state){ .file = NULL };
}

/* ---- compare --------------------------------------------------------------------------------- */

/* Sections and keys ('*': all) that may differ when a run goes on. */
static const struct { const char *section, *key; } changeable[] = {
    { "log", "*" }, { "device", "*" }, { "predict", "*" },
    { "distribute", "mode" }, { "distribute", "devices" }, { "distribute", "backend" },
    { "distribute", "threads" }, { "distribute", "bucket" }, { "distribute", "timeout_s" },
    { "experiment", "name" }, { "experiment", "output" },
    { "data", "source" }, { "data", "image" }, { "data", "label" }, { "data", "cache" },
    { "data", "cache_limit" }, { "data", "cache_dir" }, { "data", "smart_share" },
    { "data", "smart_replace" }, { "data", "loader_threads" },
    { "train", "epochs" }, { "train", "steps" }, { "train", "keep" },
    { "train", "validate_every" }, { "train", "validate_steps" }, { "train", "checkpoint_every" },
    { "train", "early_stop" }, { "train", "grace_s" }, { "train", "pretrained" },
    { "train", "accumulate" }, { "train", "micro_batches" }, /* M is compared instead */
    { "train", "nonfinite" }, /* steps that were skipped stay so */
    { "train", "recompute" },
};

static bool may_change(const char *section, const char *key)
{
    for (size_t i = 0; i < sizeof changeable / sizeof changeable[0]; i++) {
        if (config_is_part(section, changeable[i].section)
            && (changeable[i].key[0] == '*' || strcmp(changeable[i].key, key) == 0))
            return true;
    }
    return false;
}

/* An option with another value than the checkpoint's. */
typedef struct difference {
    char name[256];
    const char *value, *before;
} difference;

/* Whether --set has a say in the section, or in the one that lists its steps. */
static bool is_set(const char *section, int set_count, const char *const *set)
{
    size_t size = strcspn(section, ".");

    for (int i = 0; i < set_count; i++)
        if (strncmp(set[i], section, size) == 0 && set[i][size] == '.')
            return true;
    return false;
}

/* The first one, in sections that 'set' leaves alone; false: there is none. */
static bool find_difference(const saved_state *s, const experiment *e, int set_count,
                            const char *const *set, difference *out)
{
    for (int i = 0; i < config_count(e->config); i++) {
        const char *section, *key;
        config_item(e->config, i, &section, &key, &out->value);
        if (may_change(section, key) || is_set(section, set_count, set))
            continue;
        snprintf(out->name, sizeof out->name, "[%s] %s", section, key);
        out->before = safetensors_metadata(s->file, out->name);
        if (out->before == NULL)
            out->before = "";
        if (!config_same(e->config, section, key, out->before, out->value))
            return true;
    }
    return false;
}

static pons_status compare_options(const saved_state *s, const experiment *e, pons_error *err)
{
    difference d;

    if (!find_difference(s, e, 0, NULL, &d))
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "%s is '%s' but the run to be continued has '%s'", d.name,
                     d.value, d.before);
}

pons_status saved_state_check(const char *checkpoint, const char *path, const experiment *e,
                              int set_count, const char *const *set, pons_error *err)
{
    saved_state s;
    difference d;

    if (saved_state_read(checkpoint, &s, err) != PONS_OK)
        return err->status;
    if (find_difference(&s, e, set_count, set, &d))
        pons_fail(err, PONS_DATA, "'%s': %s is '%s' but '%s' was made with '%s'\nhint: it is "
                  "another run's file", path, d.name, d.value, checkpoint, d.before);
    saved_state_clear(&s);
    return err->status;
}

static case_record cases_of(const saved_state *s)
{
    case_record r;

    for (int role = 0; role < CASE_ROLE_COUNT; role++)
        r.text[role] = safetensors_metadata(s->file, case_role_names[role]);
    return r;
}

/* The number by the key that is in use; none where no value of it has these replicas share. */
static pons_status compare_micro_batches(const saved_state *s, const experiment *e,
                                         pons_error *err)
{
    bool whole = e->sections.train.micro_batches > 0;
    char hint[64] = "";

    if (s->micro_batches == e->micro_batches)
        return PONS_OK;
    if (s->micro_batches % e->replicas == 0)
        snprintf(hint, sizeof hint, "\nhint: --set train.%s=%d",
                 whole ? "micro_batches" : "accumulate",
                 whole ? s->micro_batches : s->micro_batches / e->replicas);
    return pons_fail(err, PONS_CONFIG, "a step has %d micro-batch%s but the run to be continued "
                     "has %d%s", e->micro_batches, e->micro_batches > 1 ? "es" : "",
                     s->micro_batches, hint);
}

static pons_status compare_debug(const saved_state *s, const experiment *e, pons_error *err)
{
    static const char *const names[] = { "without --debug", "with --debug" };

    if (s->debug == e->debug)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "this run is %s but the run to be continued is %s",
                     names[e->debug], names[s->debug]);
}

pons_status saved_state_compare(const saved_state *s, const experiment *e, pons_error *err)
{
    const case_record before = cases_of(s);

    if (compare_debug(s, e, err) != PONS_OK || compare_micro_batches(s, e, err) != PONS_OK
        || compare_options(s, e, err) != PONS_OK)
        return err->status;
    return case_record_compare(&before, &e->cases, err);
}

static void keep_threads(const saved_state *s, const experiment *e)
{
    int64_t threads = e->sections.distribute.threads;

    if (threads > 0 && threads != s->threads)
        log_warning(e->log, "[distribute] threads = %lld is not taken: the run goes on with %d, as "
                    "it began, since its bits depend on them", (long long)threads, s->threads);
}

/* The value of the run's first start is recorded again, also where the file has none by now. */
static void keep_pretrained(const saved_state *s, const experiment *e)
{
    const char *given = e->sections.train.pretrained;
    const char *before = safetensors_metadata(s->file, "[train] pretrained");

    if (given == NULL)
        given = "";
    if (before == NULL)
        before = "";
    if (strcmp(before, given) == 0)
        return;
    if (given[0] != '\0')
        log_warning(e->log, "[train] pretrained = '%s' is not taken: the run goes on with the "
                    "weights of its checkpoint", given);
    config_resolve(e->config, "train", "pretrained", before, "the checkpoint's");
}

void saved_state_keep(const saved_state *s, const experiment *e)
{
    const case_record before = cases_of(s);

    keep_threads(s, e);
    keep_pretrained(s, e);
    case_record_warn(&before, &e->cases, e->log);
}

/* ---- write ----------------------------------------------------------------------------------- */

/* Zero-terminated texts one behind the other: key, value, key, value, ... */
static int put_texts(FILE *to, const experiment *e)
{
    int pairs = 1;

    fprintf(to, "precision%c%s%c", 0, precision_name(e->precision), 0);
    if (e->debug)
        pairs += fprintf(to, DEBUG_KEY "%cyes%c", 0, 0) > 0;
    for (int role = 0; role < CASE_ROLE_COUNT; role++, pairs++)
        fprintf(to, "%s%c%s%c", case_role_names[role], 0, e->cases.text[role], 0);
    for (int i = 0; i < config_count(e->config); i++, pairs++) {
        const char *section, *key, *value;
        config_item(e->config, i, &section, &key, &value);
        fprintf(to, "[%s] %s%c%s%c", section, key, 0, value, 0);
    }
    return pairs;
}

static pons_status make_metadata(state_content *c, const experiment *e, pons_error *err)
{
    size_t size = 0;
    FILE *to = open_memstream(&c->text, &size);
    const char *at;

    if (to == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint");
    c->content.metadata_count = put_texts(to, e);
    if (fclose(to) != 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint");
    c->pair = calloc((size_t)c->content.metadata_count, sizeof *c->pair);
    if (c->pair == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint");
    at = c->text;
    for (int i = 0; i < 2 * c->content.metadata_count; i++) {
        c->pair[i / 2][i % 2] = at;
        at += strlen(at) + 1;
    }
    c->content.metadata = (const char *const (*)[2])c->pair;
    return PONS_OK;
}

pons_status state_content_make(state_content *out, const trainer_state *state, const experiment *e,
                               pons_error *err)
{
    state_content *c = out;
    int n = 0;

    *c = (state_content){ .state = *state };
    c->choices[0] = e->micro_batches;
    c->choices[1] = e->device.facts.threads;
    c->choices[2] = e->task.channels;
    for (int i = 0; i < NUMBER_COUNT; i++)
        c->item[n++] = (safetensor){ .name = numbers[i].name, .type = SAFETENSORS_I64,
                                     .data = (char *)&c->state + numbers[i].offset };
    for (int i = 0; i < 3; i++)
        c->item[n++] = (safetensor){ .name = choice_names[i], .type = SAFETENSORS_I64,
                                     .data = &c->choices[i] };
    c->item[n++] = (safetensor){ .name = "best", .type = SAFETENSORS_F64, .data = &c->state.best };
    c->content.count = n;
    c->content.item = c->item;
    if (make_metadata(c, e, err) != PONS_OK)
        state_content_clear(c);
    return err->status;
}

void state_content_clear(state_content *c)
{
    free(c->text);
    free(c->pair);
    c->text = NULL;
    c->pair = NULL;
}
