/*
 * train_folds.c - turn the command line of a cross-validation into those of its folds.
 */
#include "cli/train_folds.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "checkpoint/run_folds.h"
#include "config/sections.h"
#include "data/dataset/split.h"

enum { FOLDS_DEFAULT = 5 };

/* Open the file that the command line names. */
static pons_status read_sections(const invocation *call, config **c, sections *s, pons_error *err)
{
    memset(s, 0, sizeof *s);
    if (invocation_config(call, call->argument[0], c, err) != PONS_OK)
        return err->status;
    if (sections_fill(*c, s, err) == PONS_OK
        && (s->experiment.name == NULL || s->experiment.name[0] == '\0'))
        sections_require("experiment", "name", err);
    return config_location_add(*c, NULL, NULL, err);
}

/* The number of folds that the file names, else the usual one. */
static pons_status read_count(const invocation *call, int *out, pons_error *err)
{
    config *c = NULL;
    int fold, count;
    sections s;

    if (read_sections(call, &c, &s, err) == PONS_OK)
        *out = run_folds_read_rule(s.data.validation, NULL, &fold, &count) && count > 0
               ? count : FOLDS_DEFAULT;
    if (c != NULL)
        config_close(c);
    return err->status;
}

pons_status train_folds_find(const invocation *call, const train_flags *f, fold_range *out,
                             pons_error *err)
{
    fold_range r = { 0, (int)f->folds, (int)f->folds };

    *out = (fold_range){ 0 };
    if (f->folds == OPTION_AUTO && f->fold == OPTION_AUTO)
        return PONS_OK;
    if (f->folds == OPTION_AUTO && read_count(call, &r.count, err) != PONS_OK)
        return err->status;
    if (f->fold >= r.count)
        return pons_fail(err, PONS_USAGE, "--fold %lld of %d folds: expected 0 to %d",
                         (long long)f->fold, r.count, r.count - 1);
    if (f->fold != OPTION_AUTO)
        r = (fold_range){ (int)f->fold, (int)f->fold + 1, r.count };
    if (f->resume != NULL && f->resume[0] != '\0')
        return pons_fail(err, PONS_USAGE, "--resume names one checkpoint, expected no --folds or "
                         "--fold beside it\nhint: the same command goes on where each fold "
                         "stopped");
    *out = r;
    return PONS_OK;
}

void train_fold_tell(const fold_range *range, int fold, logger *l)
{
    if (range->end - range->first > 1)
        log_line(l, "fold %d of folds 0 to %d", fold, range->count - 1);
}

/* Refuse a folder that holds a run without folds. */
static pons_status check_folder(const char *path, pons_error *err)
{
    char *checkpoints = NULL;

    if (asprintf(&checkpoints, "%s/checkpoints", path) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for a run's paths");
    if (folder_is_there(checkpoints))
        pons_fail(err, PONS_CONFIG, "'%s' holds a run without folds, expected none\nhint: --set "
                  "experiment.name=NAME keeps both", path);
    free(checkpoints);
    return err->status;
}

static bool has_folder(const data_options *d)
{
    bool found = false;

    for (int i = 0; i < d->cache_tier_count; i++)
        found = found || cache_mode_in_folder(d->cache_tier[i].mode);
    return found;
}

/* Whether the folds of the command are those that nnU-Net draws. */
static bool draws_as_nnunet(const sections *s, int count)
{
    return s->data.validation != NULL && strcmp(s->data.validation, "nnunet") == 0
           && count == NNUNET_FOLDS;
}

/* The --set of a fold's held-out cases, for free; NULL: out of memory. */
static char *rule_of_fold(const sections *s, int count, int fold)
{
    char *text = NULL;
    int size = draws_as_nnunet(s, count)
                   ? asprintf(&text, "data.fold=%d", fold)
                   : asprintf(&text, "data.validation=fold:%d/%d", fold, count);

    return size < 0 ? NULL : text;
}

/* Tell once that the folds of --folds are not those that the file names. */
static void warn_of_others(config *c, const sections *s, const invocation *call,
                           const fold_range *all, int fold)
{
    static const struct { const char *rule, *remedy; } others[] = {
        { "own", "[data] fold takes one of the dataset's own folds without --folds" },
        { "nnunet", "--folds 5 takes the folds that nnU-Net draws" }
    };

    if (fold != all->first || !config_given(c, "data", "validation")
        || draws_as_nnunet(s, all->count))
        return;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(s->data.validation, others[i].rule) == 0)
            log_warning(call->log, "the folds divide all cases anew, and [data] validation = %s is "
                        "not used; %s", others[i].rule, others[i].remedy);
}

/* Write the values of the fold. Its cache in files is that of the folder above, common to all. */
static pons_status write_values(config *c, const sections *s, const invocation *call, int count,
                                int fold, fold_call *out, pons_error *err)
{
    const experiment_options *e = &s->experiment;
    const char *debug = call->debug ? "-debug" : "";
    char *path = NULL;
    bool cached = has_folder(&s->data) && !config_given(c, "data", "cache_dir");

    if (asprintf(&path, "%s/%s%s", e->output, e->name, debug) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for a run's paths");
    if (asprintf(&out->text[0], "experiment.output=%s", path) < 0
        || asprintf(&out->text[1], "experiment.name=fold_%d", fold) < 0
        || (out->text[2] = rule_of_fold(s, count, fold)) == NULL
        || (cached && asprintf(&out->text[3], "data.cache_dir=%s/.cache", e->output) < 0)
        || asprintf(&out->number, "%d", fold) < 0)
        pons_fail(err, PONS_DEVICE, "out of memory for a run's paths");
    else
        check_folder(path, err);
    free(path);
    return err->status;
}

static pons_status copy_call(const invocation *call, bool several, fold_call *out, pons_error *err)
{
    invocation *own = &out->call;

    own->set = calloc((size_t)call->set_count + 5, sizeof *own->set);
    own->word = calloc((size_t)call->word_count + 3, sizeof *own->word);
    if (own->set == NULL || own->word == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int i = 0; i < call->set_count; i++)
        own->set[i] = call->set[i];
    for (int i = 0; i < call->word_count; i++)
        own->word[i] = call->word[i];
    for (int i = 0; i < 4 && out->text[i] != NULL; i++)
        own->set[own->set_count++] = out->text[i];
    if (several) {
        own->word[own->word_count++] = "--fold";
        own->word[own->word_count++] = out->number;
    }
    return PONS_OK;
}

pons_status train_fold_open(const invocation *call, const fold_range *range, int fold,
                            fold_call *out, pons_error *err)
{
    bool several = range->end - range->first > 1;
    config *c = NULL;
    sections s;

    *out = (fold_call){ .call = *call };
    out->call.set = NULL;
    out->call.word = NULL;
    if (read_sections(call, &c, &s, err) == PONS_OK)
        warn_of_others(c, &s, call, range, fold);
    if (err->status == PONS_OK
        && write_values(c, &s, call, range->count, fold, out, err) == PONS_OK)
        copy_call(call, several, out, err);
    if (c != NULL)
        config_close(c);
    return err->status;
}

void train_fold_close(fold_call *f)
{
    free(f->call.set);
    free(f->call.word);
    for (int i = 0; i < 4; i++)
        free(f->text[i]);
    free(f->number);
}
