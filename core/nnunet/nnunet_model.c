/*
 * nnunet_model.c - find the folds of a folder, and read a checkpoint's facts and weights.
 */
#include "nnunet/nnunet_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file/file.h"
#include "base/file/folder_list.h"
#include "base/text/text.h"
#include "checkpoint/weights/weights_file.h"
#include "checkpoint/weights/weights_path.h"
#include "nnunet/nnunet_plan.h"

struct nnunet_model {
    arena *memory;
    const char *weights;
    weights_file file;
    nnunet_plan plan;
};

/* ---- folders --------------------------------------------------------------------------------- */

bool nnunet_is_model(const char *path)
{
    return folder_holds(path, "plans.json") && folder_holds(path, "dataset.json");
}

bool nnunet_is_fold(const char *path)
{
    return folder_holds(path, "../plans.json") && folder_holds(path, "../dataset.json")
        && weights_of_fold(path) != NULL;
}

/* The number of "fold_3"; -1: another name. */
static int fold_number(const char *name)
{
    const char *digits = name + 5;

    if (strncmp(name, "fold_", 5) != 0 || strlen(digits) > 4 || *digits == '\0'
        || strspn(digits, "0123456789") != strlen(digits))
        return -1;
    return atoi(digits);
}

static int compare_folds(const void *a, const void *b)
{
    return fold_number(a) - fold_number(b);
}

/* Add a fold if it has a checkpoint. */
static void add_fold(const char *folder, const char *name, nnunet_folds *out)
{
    char *path = NULL;

    if (out->count < NNUNET_FOLDS_MAX && strlen(name) < sizeof out->name[0]
        && asprintf(&path, "%s/%s", folder, name) >= 0 && nnunet_is_fold(path))
        strcpy(out->name[out->count++], name);
    free(path);
}

pons_status nnunet_folds_find(const char *path, nnunet_folds *out, pons_error *err)
{
    arena *memory = arena_new();
    folder_entry *entry;
    int count = 0;

    out->count = 0;
    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (folder_list(memory, path, &entry, &count, err) == PONS_OK)
        for (int i = 0; i < count; i++)
            if (fold_number(entry[i].name) >= 0)
                add_fold(path, entry[i].name, out);
    arena_free(memory);
    qsort(out->name, (size_t)out->count, sizeof out->name[0], compare_folds);
    if (out->count == 0 && err->status == PONS_OK)
        add_fold(path, "fold_all", out);
    if (out->count == 0)
        pons_fail(err, PONS_CONFIG, "'%s' has no fold_K/checkpoint_final.pth", path);
    return err->status;
}

/* Whether an entry of a folder is a fold with a checkpoint, whatever lies beside it. */
static bool is_trained_fold(const folder_entry *entry)
{
    return entry->folder && strncmp(entry->name, "fold_", 5) == 0
        && weights_of_fold(entry->path) != NULL;
}

/* Name the models in a folder "DatasetNNN_NAME" of nnUNet_results. */
static pons_status refuse_models(const char *path, pons_error *err)
{
    arena *memory = arena_new();
    const char *names = "";
    folder_entry *entry;
    int count = 0, models = 0;

    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (folder_list(memory, path, &entry, &count, err) == PONS_OK)
        for (int i = 0; i < count; i++)
            if (entry[i].folder && nnunet_is_model(entry[i].path))
                names = arena_format(memory, "%s%s%s", names, models++ > 0 ? ", " : "",
                                     entry[i].name);
    if (models > 0)
        pons_fail(err, PONS_CONFIG, "'%s' holds %d model folder%s of nnU-Net, expected the path of "
                  "one: %s", path, models, text_plural(models), names);
    arena_free(memory);
    return err->status;
}

pons_status nnunet_refuse_part(const char *path, pons_error *err)
{
    bool fold = weights_of_fold(path) != NULL;
    bool plans = folder_holds(path, fold ? "../plans.json" : "plans.json");

    if (!folder_is_there(path) || nnunet_is_model(path) || nnunet_is_fold(path))
        return PONS_OK;
    if (fold || plans || folder_has(path, is_trained_fold))
        return pons_fail(err, PONS_CONFIG, "'%s%s' has no %s, expected one beside the folds of "
                         "nnU-Net", path, fold ? "/.." : "",
                         plans ? "dataset.json" : "plans.json");
    if (folder_holds(path, "../plans.json") && folder_holds(path, "../dataset.json"))
        return pons_fail(err, PONS_CONFIG, "'%s' holds no checkpoint_final.pth", path);
    return refuse_models(path, err);
}

/* ---- facts ----------------------------------------------------------------------------------- */

/* Plan axes of a tuple; a checkpoint without it mirrors along none. */
static pons_status read_mirror(const nnunet_model *m, const torch_value *axes, nnunet_facts *facts,
                               pons_error *err)
{
    int count = torch_value_count(axes);

    for (int i = 0; i < count; i++) {
        int64_t axis = -1;
        if (count > 3 || !torch_value_integer(torch_value_item(axes, i), &axis) || axis < 0
            || axis > 2)
            return pons_fail(err, PONS_CONFIG, "'%s': inference_allowed_mirroring_axes: expected "
                             "axes from 0 to 2", m->weights);
        facts->mirror[facts->mirror_count++] = (int)axis;
    }
    return PONS_OK;
}

/* Check that 'network_weights' holds named tensors only, and find statistics among them. */
static pons_status read_tensors(const nnunet_model *m, const torch_value *tensors,
                                nnunet_facts *facts, pons_error *err)
{
    if (tensors == NULL || tensors->kind != TORCH_DICTIONARY)
        return pons_fail(err, PONS_DATA, "'%s' has no 'network_weights', expected a checkpoint of "
                         "nnU-Net", m->weights);
    for (int i = 0; i < torch_value_count(tensors); i++) {
        const char *name = torch_value_text(torch_value_key(tensors, i));
        const torch_value *v = torch_value_item(tensors, i);
        if (name == NULL)
            return pons_fail(err, PONS_DATA, "'%s': a key of 'network_weights' is no text",
                             m->weights);
        if (v->kind != TORCH_TENSOR)
            return pons_fail(err, PONS_DATA, "'%s': '%.200s' is %s, expected a tensor of numbers",
                             m->weights, name, torch_kind_name(v->kind));
        facts->batch_norm = facts->batch_norm || text_ends_with(name, ".running_mean");
    }
    return PONS_OK;
}

static pons_status read_facts(const nnunet_model *m, const torch_value *root,
                              const torch_value **tensors, nnunet_facts *facts, pons_error *err)
{
    const torch_value *arguments = torch_value_find(root, "init_args");

    *tensors = torch_value_find(root, "network_weights");
    facts->configuration = torch_value_text(torch_value_find(arguments, "configuration"));
    if (read_tensors(m, *tensors, facts, err) != PONS_OK)
        return err->status;
    if (facts->configuration == NULL)
        return pons_fail(err, PONS_DATA, "'%s' has no 'init_args.configuration', expected a "
                         "checkpoint of nnU-Net", m->weights);
    return read_mirror(m, torch_value_find(root, "inference_allowed_mirroring_axes"), facts, err);
}

static pons_status open_files(nnunet_model *m, const char *fold, pons_error *err)
{
    nnunet_facts facts = { .mirror_count = 0 };
    const char *folder = arena_format(m->memory, "%s/..", fold), *name = weights_of_fold(fold);
    const torch_value *tensors = NULL;
    torch_file *torch = NULL;

    if (name == NULL)
        return pons_fail(err, PONS_CONFIG, "'%s' holds no checkpoint_final.pth", fold);
    m->weights = arena_format(m->memory, "%s/%s", fold, name);
    if (torch_file_open(m->weights, &torch, err) != PONS_OK)
        return err->status;
    if (read_facts(m, torch_file_root(torch), &tensors, &facts, err) == PONS_OK
        && nnunet_plan_read(&m->plan, m->memory, folder, &facts, err) == PONS_OK)
        return weights_file_of_torch(torch, tensors, m->weights, &m->file, err);
    torch_file_close(torch);
    return err->status;
}

pons_status nnunet_model_open(const char *fold, nnunet_model **out, pons_error *err)
{
    nnunet_model *m = calloc(1, sizeof *m);

    if (m == NULL || (m->memory = arena_new()) == NULL) {
        free(m);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    if (open_files(m, fold, err) != PONS_OK) {
        nnunet_model_close(m);
        return err->status;
    }
    *out = m;
    return PONS_OK;
}

void nnunet_model_close(nnunet_model *m)
{
    if (m == NULL)
        return;
    weights_file_close(&m->file);
    arena_free(m->memory);
    free(m);
}

pons_status nnunet_model_config(const nnunet_model *m, int set_count, const char *const *set,
                                config **out, pons_error *err)
{
    return config_open_lines(m->plan.where, m->plan.line_count, m->plan.line, set_count, set, out,
                             err);
}

int nnunet_model_channels(const nnunet_model *m)
{
    return m->plan.channels;
}

const char *nnunet_model_previous(const nnunet_model *m, int *count, const int **id)
{
    *count = m->plan.previous != NULL ? m->plan.id_count : 0;
    *id = m->plan.id;
    return m->plan.previous;
}

/* ---- weights --------------------------------------------------------------------------------- */

pons_status nnunet_model_read(const nnunet_model *m, storage *s, bool wide, logger *l,
                              pons_error *err)
{
    int order[3];
    byte_progress progress = { .log = l, .verb = "reading", .path = m->weights };
    tensor_format format = { .flat = m->plan.axes == 2, .wide = wide, .order = order,
                             .progress = &progress };

    weights_plan_order(m->plan.order, m->plan.axes == 2, order);
    return tensor_names_read(s, WEIGHTS_MODEL, m->file.tensors, m->weights, &format, err);
}
