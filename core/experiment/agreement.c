/*
 * agreement.c - collect facts of a run by name and compare them between processes (group_agree).
 */
#include <config.h>

#include "experiment/agreement.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash/hash128.h"
#include "base/text/text_stream.h"
#include "experiment/processes.h"
#include "experiment/provenance.h"
#include "graph/ir/shape.h"

enum { SHOWN_MAX = 200 }; /* characters of a value; a longer one is cut and followed by its hash */

typedef struct fact_list {
    arena *memory;
    int count, room;
    group_fact *fact;
} fact_list;

static pons_status open_list(fact_list *f, pons_error *err)
{
    *f = (fact_list){ .memory = arena_new() };
    return f->memory != NULL ? PONS_OK
                             : pons_fail(err, PONS_DEVICE, "out of memory for the start of a run");
}

static pons_status close_list(fact_list *f, group *g, pons_error *err)
{
    if (err->status == PONS_OK)
        group_agree(g, f->count, f->fact, err);
    free(f->fact);
    arena_free(f->memory);
    return err->status;
}

static const char *hash_of(fact_list *f, const void *data, size_t size)
{
    hash128 hash = hash128_of(data, size);

    return arena_format(f->memory, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
}

static void add_fact(fact_list *f, const char *name, const char *value, pons_error *err)
{
    size_t size = strlen(value);

    if (f->count == f->room) {
        int room = f->room > 0 ? 2 * f->room : 64;
        group_fact *more = realloc(f->fact, (size_t)room * sizeof *more);
        if (more == NULL) {
            pons_fail(err, PONS_DEVICE, "out of memory for the start of a run");
            return;
        }
        f->fact = more;
        f->room = room;
    }
    if (size > SHOWN_MAX)
        value = arena_format(f->memory, "%.*s... %s", SHOWN_MAX, value, hash_of(f, value, size));
    f->fact[f->count++] = (group_fact){ name, value };
}

/* ---- the experiment -------------------------------------------------------------------------- */

/*
 * Sections and keys ('*': all) that may differ: folders of a machine, and options of rank 0 alone.
 */
static const struct { const char *section, *key; } may_differ[] = {
    { "log", "*" }, { "device", "workspace_limit" }, { "device", "cache_dir" },
    { "experiment", "output" },
    { "data", "source" }, { "data", "image" }, { "data", "label" }, { "data", "cache" },
    { "data", "cache_limit" }, { "data", "cache_dir" }, { "data", "loader_threads" },
    { "distribute", "devices" }, { "train", "pretrained" }, { "train", "keep" }
};

static bool option_may_differ(const char *section, const char *key)
{
    for (size_t i = 0; i < sizeof may_differ / sizeof *may_differ; i++)
        if (config_is_part(section, may_differ[i].section)
            && (may_differ[i].key[0] == '*' || strcmp(may_differ[i].key, key) == 0))
            return true;
    return false;
}

static void add_options(fact_list *f, const experiment *e, pons_error *err)
{
    for (int i = 0; i < config_count(e->config); i++) {
        const char *section, *key, *value;

        config_item(e->config, i, &section, &key, &value);
        if (!option_may_differ(section, key))
            add_fact(f, arena_format(f->memory, "[%s] %s", section, key), value, err);
    }
}

static bool decides_bits(const char *name)
{
    return strcmp(name, "libraries") == 0 || strcmp(name, "processor features") == 0;
}

static void add_provenance(fact_list *f, const experiment *e, pons_error *err)
{
    provenance p = { .count = 0 };

    if (provenance_make(e, &p, err) != PONS_OK)
        return;
    for (int i = 0; i < p.count; i++)
        if (e->sections.experiment.deterministic || !decides_bits(p.fact[i].name))
            add_fact(f, arena_format(f->memory, "%s", p.fact[i].name),
                     arena_format(f->memory, "%s", p.fact[i].value), err);
    provenance_clear(&p);
}

/* Add the ids of cases in order, which determine the order of training cases. */
static void add_cases(fact_list *f, const experiment *e, const char *name, int count,
                      const int *rank, pons_error *err)
{
    text_stream s;

    if (text_stream_open(&s))
        for (int i = 0; i < count; i++)
            fprintf(s.to, "%s%c", e->data->cases[rank[i]].id, 0);
    if (!text_stream_close(&s)) {
        pons_fail(err, PONS_DEVICE, "out of memory for the start of a run");
        return;
    }
    add_fact(f, name, arena_format(f->memory, "%d, hash %s", count, hash_of(f, s.text, s.size)),
             err);
    free(s.text);
}

pons_status agreement_on_experiment(group *g, const experiment *e, pons_error *err)
{
    const dataset *d = e->data;
    fact_list f;

    if (g == NULL || open_list(&f, err) != PONS_OK)
        return err->status;
    add_fact(&f, "the version of pons", PACKAGE_VERSION, err);
    add_options(&f, e, err);
    add_fact(&f, "precision", precision_name(e->precision), err);
    if (e->purpose == EXPERIMENT_TRAIN)
        add_provenance(&f, e, err);
    else
        add_fact(&f, "plugin of the model", e->model.plugin->sha256, err);
    if (d != NULL) {
        add_cases(&f, e, "the list of training cases", d->training_count, d->training, err);
        add_cases(&f, e, "the list of validation cases", d->validation_count, d->validation, err);
        add_fact(&f, "the cases of an epoch",
                 arena_format(f.memory, "%d, %d of them replaced", e->epoch.count,
                              e->epoch.replaced), err);
    }
    return close_list(&f, g, err);
}

/* ---- the cases ------------------------------------------------------------------------------- */

pons_status agreement_on_names(group *g, int count, const char *const *name, pons_error *err)
{
    fact_list f;

    if (open_list(&f, err) != PONS_OK)
        return err->status;
    add_fact(&f, "the number of cases", arena_format(f.memory, "%d", count), err);
    for (int i = 0; i < count; i++)
        add_fact(&f, arena_format(f.memory, "case %d", i + 1), name[i], err);
    return close_list(&f, g, err);
}

pons_status agreement_on_contents(group *g, int count, const char *const *name,
                                  const hash128 *content, pons_error *err)
{
    int item, rank;

    if (group_compare_hashes(g, count, content, &item, &rank, err) != PONS_OK || item < 0)
        return err->status;
    pons_fail(err, PONS_DATA, "the processes differ in case '%s': its files on rank %d do not hold "
              "what they hold on rank 0\nhint: each rank may have its own folder, but with copies "
              "of the same files", name[item], rank);
    group_publish_interruption(g, err);
    return err->status;
}

pons_status agreement_on_cases(group *g, const dataset *d, const cache *cases, int count,
                               const int *rank, pons_error *err)
{
    hash128 *content;
    const char **name;

    if (g == NULL)
        return PONS_OK;
    content = malloc((size_t)count * sizeof *content + 1);
    name = malloc((size_t)count * sizeof *name + 1);
    if (content == NULL || name == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for a list of %d cases", count);
    for (int i = 0; err->status == PONS_OK && i < count; i++) {
        content[i] = cache_case_hash(cases, rank[i]);
        name[i] = d->cases[rank[i]].id;
    }
    if (err->status == PONS_OK)
        agreement_on_contents(g, count, name, content, err);
    free(content);
    free(name);
    return err->status;
}

/* ---- the network ----------------------------------------------------------------------------- */

pons_status agreement_on_network(group *g, const experiment *e, const storage *s, pons_error *err)
{
    fact_list f;

    if (g == NULL || open_list(&f, err) != PONS_OK)
        return err->status;
    for (int k = 0; k < STORAGE_GROUP_COUNT; k++) {
        for (int i = 0; i < storage_count(s, (storage_group)k); i++) {
            storage_tensor t = storage_item(s, (storage_group)k, i);
            char shape[160];

            add_fact(&f, arena_format(f.memory, "tensor '%s'", t.name),
                     arena_format(f.memory, "%s", shape_text(t.shape, shape, sizeof shape)), err);
        }
    }
    for (int i = 0; i < e->op_count; i++)
        add_fact(&f, arena_format(f.memory, "op '%s'", e->op[i]->descriptor->name),
                 e->op[i]->sha256, err);
    return close_list(&f, g, err);
}

pons_status agreement_on_weights(group *g, const storage *s, pons_error *err)
{
    fact_list f;

    if (g == NULL || open_list(&f, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < storage_piece_count(s); i++) {
        storage_piece p = storage_piece_at(s, i);

        if (p.size > 0)
            add_fact(&f, arena_format(f.memory, "part %d of the weights, states and slots", i),
                     hash_of(&f, p.memory, p.size), err);
    }
    return close_list(&f, g, err);
}
