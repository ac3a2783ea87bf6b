/*
 * resume.c - compare an experiment with the checkpoint that it is to go on from (R31).
 */
#include "experiment/resume.h"

#include <string.h>

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

pons_status resume_check_prediction(const char *checkpoint, const char *path, const experiment *e,
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

pons_status resume_compare(const saved_state *s, const experiment *e, pons_error *err)
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

void resume_keep(const saved_state *s, const experiment *e)
{
    const case_record before = cases_of(s);

    keep_threads(s, e);
    keep_pretrained(s, e);
    case_record_warn(&before, &e->cases, e->log);
}
