/*
 * provenance.c - collect the provenance of a run, and compare it with a checkpoint's.
 */
#include <config.h>

#include "experiment/provenance.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text_stream.h"

/* ---- the list -------------------------------------------------------------------------------- */

/* Write zero-terminated texts: name, value, name, value, ... Returns the number of pairs. */
static int put_plugin(FILE *to, const char *role, const plugin *p)
{
    if (p == NULL)
        return 0;
    fprintf(to, "plugin %s%c%s %s sha256 %s%c", role, 0, p->descriptor->name,
            p->descriptor->version, p->sha256, 0);
    return 1;
}

static int put_op(FILE *to, const plugin *p)
{
    char role[PONS_NAME_SIZE + 8];

    snprintf(role, sizeof role, "op.%s", p->descriptor->name);
    return put_plugin(to, role, p);
}

static int put_steps(FILE *to, const char *section, const pipeline *chain)
{
    for (int i = 0; chain != NULL && i < chain->count; i++) {
        const pipeline_step *s = &chain->step[i];
        fprintf(to, "plugin %s.%s%c%s %s sha256 %s%c", section, s->name, 0, s->plugin, s->version,
                s->sha256, 0);
    }
    return chain != NULL ? chain->count : 0;
}

static int put_system(FILE *to, const experiment *e)
{
    const pons_device_facts *facts = &e->device.facts;
    char libc[64] = "";

    confstr(_CS_GNU_LIBC_VERSION, libc, sizeof libc);
    fprintf(to, "pons%c" PACKAGE_VERSION "%c", 0, 0);
    fprintf(to, "libraries%c%s%s%s%c", 0, facts->library, facts->library[0] != '\0' ? ", " : "",
            libc, 0);
    fprintf(to, "processor features%c%s%c", 0, facts->features, 0);
    fprintf(to, "kernel threads%c%d%c", 0, facts->threads, 0);
    return 4;
}

static int put_all(FILE *to, const experiment *e)
{
    int count = put_system(to, e);

    count += put_plugin(to, "device", e->device.plugin);
    count += put_plugin(to, "model", e->model.plugin);
    count += put_plugin(to, "loss", e->loss.plugin);
    count += put_plugin(to, "optimizer", e->optimizer.plugin);
    count += put_plugin(to, "schedule", e->schedule.plugin);
    for (int i = 0; i < e->op_count; i++)
        count += put_op(to, e->op[i]);
    return count + put_steps(to, "preprocess", e->preprocess)
           + put_steps(to, "augment", e->augment);
}

pons_status provenance_make(const experiment *e, provenance *out, pons_error *err)
{
    provenance p = { .count = 0 };
    text_stream s;

    if (text_stream_open(&s))
        p.count = put_all(s.to, e);
    if (text_stream_close(&s))
        p.fact = calloc((size_t)p.count, sizeof *p.fact);
    p.text = s.text;
    if (p.fact == NULL) {
        free(p.text);
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint");
    }
    const char *at = p.text;
    for (int i = 0; i < p.count; i++) {
        p.fact[i].name = at;
        at += strlen(at) + 1;
        p.fact[i].value = at;
        at += strlen(at) + 1;
    }
    *out = p;
    return PONS_OK;
}

void provenance_clear(provenance *p)
{
    free(p->fact);
    free(p->text);
    *p = (provenance){ .count = 0 };
}

/* ---- compare --------------------------------------------------------------------------------- */

/* The first digits of hashes suffice to distinguish two plugins. */
static void put_difference(FILE *to, const char *name, const char *before, const char *now)
{
    const char *hash = strstr(before, " sha256 "), *other = strstr(now, " sha256 ");

    fprintf(to, "%s was '%.*s', is '%.*s'", name,
            hash != NULL ? (int)(hash - before) + 20 : 200, before,
            other != NULL ? (int)(other - now) + 20 : 200, now);
}

static const char *saved_value(const json_t *facts, const char *name)
{
    const char *value = json_string_value(json_object_get(facts, name));

    return value != NULL ? value : "none";
}

static void put_differences(FILE *to, const json_t *facts, const provenance *now)
{
    const char *between = "";

    for (int i = 0; i < now->count; i++) {
        const char *before = saved_value(facts, now->fact[i].name);
        if (strcmp(before, now->fact[i].value) == 0)
            continue;
        fputs(between, to);
        put_difference(to, now->fact[i].name, before, now->fact[i].value);
        between = "; ";
    }
}

static pons_status report_differences(const experiment *e, const char *differences, logger *l,
                                      pons_error *err)
{
    if (e->sections.experiment.deterministic)
        return pons_fail(err, PONS_CONFIG, "the run to be continued was made in another "
                         "environment, so deterministic = yes cannot be kept: %.1000s",
                         differences);
    log_warning(l, "the run goes on in another environment than it began in; results may differ: "
                "%.1000s", differences);
    return PONS_OK;
}

pons_status provenance_compare(const char *checkpoint, const experiment *e, logger *l,
                               pons_error *err)
{
    json_t *manifest = NULL;
    provenance now = { .count = 0 };
    text_stream s;

    if (!text_stream_open(&s))
        return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint");
    if (provenance_make(e, &now, err) == PONS_OK
        && checkpoint_manifest(checkpoint, &manifest, err) == PONS_OK)
        put_differences(s.to, json_object_get(manifest, CHECKPOINT_FACTS), &now);
    if (!text_stream_close(&s) && err->status == PONS_OK)
        pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint");
    if (err->status == PONS_OK && s.size > 0)
        report_differences(e, s.text, l, err);
    json_decref(manifest);
    provenance_clear(&now);
    free(s.text);
    return err->status;
}
