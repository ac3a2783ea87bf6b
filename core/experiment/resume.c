/*
 * resume.c - compare an experiment with the checkpoint from which it resumes (R31).
 */
#include "experiment/resume.h"

#include <string.h>

#include "base/text/text.h"
#include "experiment/data_settings.h"

/* A section and one of its keys; '*': all. */
typedef struct option_place { const char *section, *key; } option_place;

/* The options that may differ when a run resumes. */
static const option_place changeable[] = {
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
    { "train", "pretrained_skip" },
    { "train", "accumulate" }, { "train", "micro_batches" }, /* M is compared instead */
    { "train", "nonfinite" }, /* skipped steps stay skipped */
    { "train", "recompute" },
    { NULL, NULL }
};

/*
 * The options that may also differ in a run of its own that begins with another run's checkpoint.
 * No tensor of the network and no state of the optimizer depends on them.
 */
static const option_place steering[] = {
    { "loss", "*" }, { "schedule", "*" }, { "augment", "*" }, { "optimizer", "lr" },
    { "train", "clip_norm" }, { "train", "mixup" }, { "train", "cutmix" },
    { NULL, NULL }
};

static bool is_among(const option_place *list, const char *section, const char *key)
{
    for (; list->section != NULL; list++) {
        if (config_is_part(section, list->section)
            && (list->key[0] == '*' || strcmp(list->key, key) == 0))
            return true;
    }
    return false;
}

/* An option whose value differs from the checkpoint's. */
typedef struct difference {
    int next;                  /* index of the option that follows it in the configuration        */
    const char *section, *key, *value;
    const char *before;        /* the checkpoint's value                                          */
    bool absent;               /* the checkpoint has none; 'before' is the default                */
    char name[256];            /* "[section] key"                                                 */
} difference;

/* True if a --set names the section, or the section that lists its steps. */
static bool is_overridden(const char *section, int set_count, const char *const *set)
{
    size_t size = strcspn(section, ".");

    for (int i = 0; i < set_count; i++)
        if (strncmp(set[i], section, size) == 0 && set[i][size] == '.')
            return true;
    return false;
}

/* An older checkpoint has the default where the dataset's own split was used. */
static bool is_own_split(const experiment *e, const difference *d)
{
    return strcmp(d->section, "data") == 0 && strcmp(d->key, "validation") == 0
           && strcmp(d->value, "own") == 0
           && strcmp(d->before, config_default(e->config, d->section, d->key)) == 0;
}

/*
 * Find the difference at d->next or behind it, without options that may always change; false:
 * none. An option that the checkpoint lacks is younger than it, and had its default then.
 */
static bool find_difference(const saved_state *s, const experiment *e, difference *d)
{
    while (d->next < config_count(e->config)) {
        config_item(e->config, d->next++, &d->section, &d->key, &d->value);
        if (is_among(changeable, d->section, d->key))
            continue;
        snprintf(d->name, sizeof d->name, "[%s] %s", d->section, d->key);
        d->before = safetensors_metadata(s->file, d->name);
        d->absent = d->before == NULL;
        if (d->absent)
            d->before = config_default(e->config, d->section, d->key);
        if (!config_same(e->config, d->section, d->key, d->before, d->value)
            && !is_own_split(e, d))
            return true;
    }
    return false;
}

/* The place of the value, as an error names it; a default has no line. */
static const char *location_of(const experiment *e, const difference *d)
{
    bool is_default = !config_given(e->config, d->section, d->key)
                      && strcmp(d->value, config_default(e->config, d->section, d->key)) == 0;

    return is_default ? "default" : config_location(e->config, d->section, d->key);
}

static pons_status compare_options(const saved_state *s, const experiment *e, bool own,
                                   pons_error *err)
{
    difference d = { .next = 0 };

    while (find_difference(s, e, &d))
        if (own || !is_among(steering, d.section, d.key))
            return pons_fail(err, PONS_CONFIG, "%s: %s is '%s' but the run to be continued has "
                             "'%s'", location_of(e, &d), d.name, d.value, d.before);
    return PONS_OK;
}

pons_status resume_check_prediction(const char *checkpoint, const char *path, const experiment *e,
                              int set_count, const char *const *set, pons_error *err)
{
    saved_state s;
    difference d = { .next = 0 };

    if (saved_state_read(checkpoint, &s, err) != PONS_OK)
        return err->status;
    while (err->status == PONS_OK && find_difference(&s, e, &d))
        if (!is_overridden(d.section, set_count, set))
            pons_fail(err, PONS_DATA, "'%s': %s is '%s' but '%s' was made with '%s'\nhint: it "
                      "is another run's file", path, d.name, d.value, checkpoint, d.before);
    saved_state_clear(&s);
    return err->status;
}

static case_list cases_of(const saved_state *s)
{
    case_list r;

    for (int role = 0; role < CASE_ROLE_COUNT; role++)
        r.text[role] = safetensors_metadata(s->file, case_role_names[role]);
    return r;
}

/* The hint names the option in use, unless no value of it gives the checkpoint's M. */
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

static void read_share(const saved_state *s, const char *name, double *share)
{
    const char *text = safetensors_metadata(s->file, name);
    double value;

    if (text != NULL && text_real(text, &value))
        *share = value;
}

/* The cases of an epoch are compared, not the options: where all cases fit, a cache may change. */
static pons_status compare_epoch(const saved_state *s, const experiment *e, pons_error *err)
{
    const char *cache = safetensors_metadata(s->file, "[data] cache");
    data_options before = e->sections.data;
    case_window w;

    before.cache = cache != NULL && strcmp(cache, "smart") == 0 ? CACHE_SMART : CACHE_MEMORY;
    read_share(s, "[data] smart_share", &before.smart_share);
    read_share(s, "[data] smart_replace", &before.smart_replace);
    w = data_case_window(&before, e->epoch.total, e->micro_batches);
    if (memcmp(&w, &e->epoch, sizeof w) == 0)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "an epoch has %d of %d cases, and %d are replaced, but the "
                     "run to be continued has %d, and %d\nhint: set cache, smart_share and "
                     "smart_replace in [data] as they were", e->epoch.count, e->epoch.total,
                     e->epoch.replaced, w.count, w.replaced);
}

pons_status resume_check(const saved_state *s, const experiment *e, bool own, pons_error *err)
{
    const case_list before = cases_of(s);

    if (compare_debug(s, e, err) != PONS_OK || compare_micro_batches(s, e, err) != PONS_OK
        || compare_options(s, e, own, err) != PONS_OK
        || case_list_compare(&before, &e->cases, err) != PONS_OK)
        return err->status;
    return compare_epoch(s, e, err);
}

static void restore_threads(const saved_state *s, const experiment *e)
{
    int64_t threads = e->sections.distribute.threads;

    if (threads > 0 && threads != s->threads)
        log_warning(e->log, "[distribute] threads = %lld is not taken: the run goes on with %d, as "
                    "it began, since its bits depend on them", (long long)threads, s->threads);
}

/* Restore the value of the run's first start, also if the file has none. */
static void restore_pretrained(const saved_state *s, const experiment *e)
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

static const char *text_or_none(const char *value)
{
    return value[0] != '\0' ? value : "none";
}

/* List the options that steer this run otherwise than the run before. */
static void tell_differences(const saved_state *s, const experiment *e)
{
    difference d = { .next = 0 };

    while (find_difference(s, e, &d))
        log_line(e->log, "differs from the run before: %s = %s (before: %s)", d.name,
                 text_or_none(d.value), d.absent ? "none" : text_or_none(d.before));
}

void resume_restore(const saved_state *s, const experiment *e)
{
    const case_list before = cases_of(s);

    restore_threads(s, e);
    restore_pretrained(s, e);
    tell_differences(s, e);
    case_list_warn(&before, &e->cases, e->log);
}
