/*
 * agreement.c - lists of facts for group_agree.
 */
#include <config.h>

#include "experiment/agreement.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash/hash128.h"
#include "experiment/processes.h"
#include "experiment/provenance.h"
#include "graph/ir/shape.h"

enum { SHOWN_MAX = 200 }; /* of a value; behind it comes its hash */

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
    fingerprint p = fingerprint_of(data, size);

    return arena_format(f->memory, "%016" PRIx64 "%016" PRIx64, p.word[0], p.word[1]);
}

static void add(fact_list *f, const char *name, const char *value, pons_error *err)
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

/* Sections and keys ('*': all) that each process may choose: places, and what is rank 0's alone. */
static const struct { const char *section, *key; } own[] = {
    { "log", "*" }, { "device", "workspace_limit" }, { "device", "cache_dir" },
    { "experiment", "output" },
    { "data", "source" }, { "data", "image" }, { "data", "label" }, { "data", "cache" },
    { "data", "cache_limit" }, { "data", "cache_dir" }, { "data", "loader_threads" },
    { "distribute", "devices" }, { "train", "pretrained" }, { "train", "keep" }
};

static bool is_own(const char *section, const char *key)
{
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (config_is_part(section, own[i].section)
            && (own[i].key[0] == '*' || strcmp(own[i].key, key) == 0))
            return true;
    return false;
}

static void add_options(fact_list *f, const experiment *e, pons_error *err)
{
    for (int i = 0; i < config_count(e->config); i++) {
        const char *section, *key, *value;

        config_item(e->config, i, &section, &key, &value);
        if (!is_own(section, key))
            add(f, arena_format(f->memory, "[%s] %s", section, key), value, err);
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
            add(f, arena_format(f->memory, "%s", p.fact[i].name),
                arena_format(f->memory, "%s", p.fact[i].value), err);
    provenance_clear(&p);
}

/* Their ids in order: the stream of cases follows from these. */
static void add_cases(fact_list *f, const experiment *e, const char *name, int count,
                      const int *rank, pons_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (to == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for the start of a run");
        return;
    }
    for (int i = 0; i < count; i++)
        fprintf(to, "%s%c", e->data->cases[rank[i]].id, 0);
    fclose(to);
    add(f, name, arena_format(f->memory, "%d, hash %s", count, hash_of(f, text, size)), err);
    free(text);
}

pons_status agreement_on_experiment(group *g, const experiment *e, pons_error *err)
{
    const dataset *d = e->data;
    fact_list f;

    if (g == NULL || open_list(&f, err) != PONS_OK)
        return err->status;
    add(&f, "the version of pons", PACKAGE_VERSION, err);
    add_options(&f, e, err);
    add(&f, "precision", precision_name(e->precision), err);
    if (e->purpose == EXPERIMENT_TRAIN)
        add_provenance(&f, e, err);
    else
        add(&f, "plugin of the model", e->model.plugin->sha256, err);
    if (d != NULL) {
        add_cases(&f, e, "the list of training cases", d->training_count, d->training, err);
        add_cases(&f, e, "the list of validation cases", d->validation_count, d->validation, err);
    }
    return close_list(&f, g, err);
}

/* ---- the cases ------------------------------------------------------------------------------- */

pons_status agreement_on_names(group *g, int count, const char *const *name, pons_error *err)
{
    fact_list f;

    if (open_list(&f, err) != PONS_OK)
        return err->status;
    add(&f, "the number of cases", arena_format(f.memory, "%d", count), err);
    for (int i = 0; i < count; i++)
        add(&f, arena_format(f.memory, "case %d", i + 1), name[i], err);
    return close_list(&f, g, err);
}

pons_status agreement_on_contents(group *g, int count, const char *const *name,
                                  const fingerprint *content, pons_error *err)
{
    int item, rank;

    if (group_compare(g, count, content, &item, &rank, err) != PONS_OK || item < 0)
        return err->status;
    pons_fail(err, PONS_DATA, "the processes differ in case '%s': its files on rank %d do not hold "
              "what they hold on rank 0\nhint: each rank may have its own folder, but with copies "
              "of the same files", name[item], rank);
    group_leave(g, err);
    return err->status;
}

pons_status agreement_on_cases(group *g, const dataset *d, const cache *held, int count,
                               const int *rank, pons_error *err)
{
    fingerprint *content;
    const char **name;

    if (g == NULL)
        return PONS_OK;
    content = malloc((size_t)count * sizeof *content + 1);
    name = malloc((size_t)count * sizeof *name + 1);
    if (content == NULL || name == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for a list of %d cases", count);
    for (int i = 0; err->status == PONS_OK && i < count; i++) {
        content[i] = cache_source(held, rank[i]);
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

            add(&f, arena_format(f.memory, "tensor '%s'", t.name),
                arena_format(f.memory, "%s", shape_text(t.shape, shape, sizeof shape)), err);
        }
    }
    for (int i = 0; i < e->op_count; i++)
        add(&f, arena_format(f.memory, "op '%s'", e->op[i]->descriptor->name), e->op[i]->sha256,
            err);
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
            add(&f, arena_format(f.memory, "part %d of the weights, states and slots", i),
                hash_of(&f, p.memory, p.size), err);
    }
    return close_list(&f, g, err);
}
