/*
 * command_init.c - pons init: read a dataset, plan, and write an INI file that trains.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/progress.h"
#include "base/file/file.h"
#include "base/text/quote.h"
#include "base/text/shell_word.h"
#include "base/text/text.h"
#include "cli/init/init_plan.h"
#include "config/list.h"
#include "config/sections.h"
#include "data/dataset/layout.h"
#include "experiment/data_settings.h"

typedef struct init_flags {
    const char *output;
    int like;
    int64_t memory;
    bool force;
} init_flags;

static const pons_option flags[] = {
    PONS_TEXT(init_flags, output, NULL, "The INI file to write."),
    PONS_CHOICE(init_flags, like, "nnunet", init_style_words,
                "The planner: nnU-Net's, those of its residual encoders, or the defaults of "
                "MONAI's tutorials."),
    PONS_SIZE(init_flags, memory, "", 1, 1e18,
              "Memory that training may take, as in 8GiB, which decides the patch and the batch; "
              "not given: nnU-Net's own, as far as 80 % of the device's memory allow."),
    PONS_FLAG(init_flags, force, "no", "Replace an INI file that exists."),
    PONS_OPTIONS_END
};

/* ---- the files ------------------------------------------------------------------------------- */

/* Refuse before hours of reading what could not be written after them. */
static pons_status check_output(const init_flags *f, pons_error *err)
{
    struct stat facts;

    if (stat(f->output, &facts) != 0)
        return PONS_OK;
    if (S_ISDIR(facts.st_mode))
        return pons_fail(err, PONS_USAGE, "-o '%s' is a folder, expected an INI file", f->output);
    if (!f->force)
        return pons_fail(err, PONS_USAGE, "'%s' exists\nhint: --force replaces it", f->output);
    return PONS_OK;
}

/*
 * The name of the file without '.ini', as a folder of a run: '_' stands for a dot in front and for
 * each character of ASCII that is no letter, digit or one of "-_.".
 */
static const char *run_name(arena *memory, const char *output)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-_.";
    const char *slash = strrchr(output, '/'), *base = slash != NULL ? slash + 1 : output;
    int size = (int)strlen(base) - (text_ends_with(base, ".ini") ? 4 : 0);
    char *name = arena_format(memory, "%.*s", size, base);

    for (char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < 128 && (strchr(allowed, *c) == NULL || (c == name && *c == '.')))
            *c = '_';
    return *name != '\0' ? name : "run";
}

/*
 * The dataset as the INI file names it: as typed where both are named from this folder, else the
 * absolute path.
 */
static pons_status name_source(arena *memory, const char *typed, const char *output,
                               const char **out, pons_error *err)
{
    char *path = realpath(typed, NULL);

    if (path == NULL)
        return pons_fail(err, PONS_DATA, "cannot find the dataset '%s'", typed);
    *out = list_single(memory, arena_string(memory, strchr(output, '/') == NULL ? typed : path));
    free(path);
    return PONS_OK;
}

/* The value of a key by --set; NULL: the call gives none. */
static const char *set_value(const init_plan *x, const char *section, const char *key)
{
    return config_set_value(x->memory, x->call->set_count, x->call->set, section, key);
}

/* Find the absolute paths of the patterns, for an INI file in another folder. */
static pons_status resolve_patterns(init_plan *x, pons_error *err)
{
    const invocation *call = x->call;
    config *c = NULL;
    sections s;

    if (config_open(NULL, call->set_count, call->set, &c, err) == PONS_OK
        && sections_fill(c, &s, err) == PONS_OK) {
        x->image = list_join(x->memory, s.data.image.count, s.data.image.item);
        if (x->label != NULL && s.data.label != NULL)
            x->label = list_single(x->memory, arena_string(x->memory, s.data.label));
    }
    config_close(c);
    return err->status;
}

/*
 * Take data.image and data.label of --set in place of DATASET. The INI file names files by the rule
 * of name_source, so its paths follow the values of --set in 'named', which becomes x->call.
 */
static pons_status name_patterns(init_plan *x, invocation *named, const char *output,
                                 pons_error *err)
{
    const invocation *call = x->call;
    const char **set = arena_alloc(x->memory, ((size_t)call->set_count + 2) * sizeof *set);
    int count = call->set_count;

    x->label = set_value(x, "data", "label");
    if (strchr(output, '/') == NULL)
        return PONS_OK;
    if (resolve_patterns(x, err) != PONS_OK)
        return err->status;
    memcpy(set, call->set, (size_t)count * sizeof *set);
    set[count++] = arena_format(x->memory, "data.image=%s", x->image);
    if (x->label != NULL)
        set[count++] = arena_format(x->memory, "data.label=%s", x->label);
    named->set = set;
    named->set_count = count;
    x->call = named;
    return PONS_OK;
}

/* Take the dataset from the argument, or from patterns of files, for which 'named' is x->call. */
static pons_status name_dataset(init_plan *x, invocation *named, const char *output,
                                pons_error *err)
{
    const invocation *call = x->call;

    x->image = set_value(x, "data", "image");
    if (x->image != NULL && call->argument_count > 0)
        return pons_fail(err, PONS_USAGE, "'%s' and --set data.image are both given, expected one "
                         "of them", call->argument[0]);
    if (x->image != NULL)
        return name_patterns(x, named, output, err);
    if (call->argument_count == 0)
        return pons_fail(err, PONS_USAGE, "init needs DATASET, or --set data.image='FOLDER/*/ct"
                         ".nii.gz' --set data.label='FOLDER/*/seg.nii.gz'");
    return name_source(x->memory, call->argument[0], output, &x->source, err);
}

/* ---- the dataset ----------------------------------------------------------------------------- */

/* The values of [data] that the INI file will have, as far as they find cases. */
static pons_status open_config(const init_plan *x, config **out, pons_error *err)
{
    ini_text text = { .memory = x->memory };

    init_plan_ini_files(x, &text);
    if (x->validation != NULL)
        ini_text_put(&text, "data", "validation", NULL, "%s", x->validation);
    for (int i = 0; i < x->call->set_count; i++)
        ini_text_set(&text, x->call->set[i]);
    return ini_text_open(&text, out, err);
}

static pons_status check_labels(const dataset *d, pons_error *err)
{
    if (d->case_count == 0)
        return pons_fail(err, PONS_DATA, "'%s' has no cases", d->origin);
    for (int i = 0; i < d->case_count; i++)
        if (d->cases[i].label == NULL)
            return pons_fail(err, PONS_DATA, "case '%s' has no label, which a plan needs",
                             d->cases[i].id);
    return PONS_OK;
}

static pons_status open_split(const init_plan *x, dataset **out, pons_error *err)
{
    dataset_settings settings;
    config *c = NULL;
    sections s;

    if (open_config(x, &c, err) == PONS_OK && sections_fill(c, &s, err) == PONS_OK) {
        dataset_settings_fill(c, &s, &settings);
        if (dataset_open(&settings, out, err) != PONS_OK)
            dataset_blame(c, &s, err);
        else
            check_labels(*out, err);
    }
    config_close(c);
    return err->status;
}

/* The planned split is that of the dataset, or depends on the number of cases. */
static pons_status open_dataset(init_plan *x, dataset **out, pons_error *err)
{
    dataset *all = NULL;

    x->validation = NULL;
    if (open_split(x, &all, err) == PONS_OK) {
        bool has_folds = all->own_split || all->spare_splits != NULL;

        x->validation = has_folds ? "own" : all->own_rule != NULL ? "nnunet"
                        : all->case_count >= 5 ? "fold:0/5"
                        : all->case_count > 1 ? "last:1" : "none";
        open_split(x, out, err);
    }
    dataset_close(all);
    return err->status;
}

static pons_status check_statistics(const dataset_statistics *s, pons_error *err)
{
    for (int i = 0; i < s->case_count; i++)
        if (s->cases[i].foreground > 0)
            return PONS_OK;
    return pons_fail(err, PONS_DATA, "no case has foreground, which a plan needs");
}

/* Name the command that lists all problems: a plan ends at the first file with an error. */
static void add_check_hint(const invocation *call, pons_error *err)
{
    const char *source = call->argument_count > 0 ? call->argument[0] : "";
    size_t used = strlen(err->text);
    char word[4096];

    if (err->status == PONS_DATA && strstr(err->text, "\nhint: ") == NULL
        && access(source, F_OK) == 0 && (folder_is_there(source) || layout_lists_cases(source)))
        snprintf(err->text + used, sizeof err->text - used,
                 "\nhint: pons data check %s lists all problems",
                 shell_word_bare(word, sizeof word, source));
}

/* ---- the command ----------------------------------------------------------------------------- */

static void put_header(const init_plan *x, ini_text *t)
{
    const network_plan *n = &x->network;
    char need[32], have[32];

    ini_text_comment(t, NULL, "Planned by 'pons init --like %s' from %d cases.",
                     init_style_words[x->style], x->statistics->case_count);
    ini_text_comment(t, NULL, "Forecast of the training's memory: %s of %s (%s).",
                     text_amount(x->forecast, "B", need),
                     isfinite(x->limit) ? text_amount(x->limit, "B", have) : "unlimited memory",
                     x->limit_reason);
    if (!x->reference && x->style != INIT_MONAI)
        ini_text_comment(t, NULL, "nnU-Net's own patch or batch differs, since memory decided.");
    if (n->first != 0)
        ini_text_comment(t, NULL, "Cases are single slices, so the network is 2D.");
}

/* The length of the training, as in "250000 steps; --set train.steps=N trains fewer". */
static const char *length_text(arena *memory, const ini_text *t)
{
    for (const ini_line *l = t->line; l < t->line + t->count; l++)
        if (l->key != NULL && strcmp(l->section, "train") == 0 && l->value[0] != '\0'
            && (strcmp(l->key, "epochs") == 0 || strcmp(l->key, "steps") == 0))
            return arena_format(memory, "%s %s; --set train.%s=N trains fewer", l->value, l->key,
                                l->key);
    return "";
}

static pons_status write_plan(init_plan *x, const char *path, pons_error *err)
{
    ini_text text = { .memory = x->memory };

    put_header(x, &text);
    init_plan_ini(x, &x->network, &text);
    x->length = length_text(x->memory, &text);
    if (folder_make_for(path, err) != PONS_OK)
        return err->status;
    return ini_text_write(&text, path, err);
}

static void print_plan(const init_plan *x, const char *path)
{
    char word[4096];

    if (x->call->log->level == LOG_QUIET)
        return;
    init_plan_print_dataset(x);
    init_plan_print(x);
    quote_print(stdout, "\nwrote %s\nhint: pons train %.4000s\n      %s\n", path,
                shell_word_bare(word, sizeof word, path), x->length);
}

/* The configuration takes the plan's values as it takes those of --set, and blames them on it. */
static void unblame_plan(const init_plan *x, pons_error *err)
{
    static const char mark[] = "--set: ";
    char section[64], key[64];

    if (sscanf(err->text, "--set: [%63[^]]] %63[a-z_0-9]", section, key) == 2
        && set_value(x, section, key) == NULL)
        memmove(err->text, err->text + strlen(mark), strlen(err->text + strlen(mark)) + 1);
}

static pons_status plan(init_plan *x, const char *path, pons_error *err)
{
    dataset_statistics *statistics = NULL;
    dataset *d = NULL;

    if (open_dataset(x, &d, err) == PONS_OK) {
        x->data = d;
        init_plan_try(x, err);
    }
    if (err->status == PONS_OK
        && dataset_statistics_make(d, x->call->log, &statistics, err) != PONS_OK)
        add_check_hint(x->call, err);
    case_progress_end(x->call->log);
    if (err->status == PONS_OK && check_statistics(statistics, err) == PONS_OK) {
        x->statistics = statistics;
        if (init_plan_make(x, err) == PONS_OK && write_plan(x, path, err) == PONS_OK)
            print_plan(x, path);
    }
    unblame_plan(x, err);
    dataset_statistics_free(statistics);
    dataset_close(d);
    return err->status;
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const init_flags *f = given;
    invocation named = *call;
    init_plan x = { .memory = arena_new(), .call = call, .style = (init_style)f->like,
                    .memory_size = f->memory };

    if (x.memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    x.rule = plan_rule_find(x.style == INIT_MONAI ? "nnunet" : init_style_words[x.style]);
    x.name = run_name(x.memory, f->output);
    if (check_output(f, err) == PONS_OK && name_dataset(&x, &named, f->output, err) == PONS_OK)
        plan(&x, f->output, err);
    arena_free(x.memory);
    return err->status;
}

const command command_init = {
    "init", "plan an INI file from a dataset", "[DATASET] -o FILE.ini", flags, sizeof(init_flags),
    "o=output", 0, 1, run
};
