/*
 * nnunet_postprocess.c - read the rules of postprocessing.json, and apply them to written labels.
 */
#include "nnunet/nnunet_postprocess.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/folder_list.h"
#include "metric/connected_components.h"
#include "nnunet/nnunet_json.h"

#define CROSS_VALIDATION "crossval_results_folds_"

/* ---- file ------------------------------------------------------------------------------------ */

/* nnU-Net writes both files; the pickle names functions to be called, so it is not read. */
static bool has_rules(const char *folder)
{
    return folder_holds(folder, "postprocessing.json")
           || folder_holds(folder, "postprocessing.pkl");
}

/* The folder of rules: the model's own, that of 'folds', or the only one; NULL: there is none. */
static pons_status find_folder(arena *memory, const char *model, const char *folds,
                               const char **out, pons_error *err)
{
    const char *exact = arena_format(memory, "%s/" CROSS_VALIDATION "%s", model, folds);
    folder_entry *entry;
    int count, found = 0;

    *out = has_rules(model) ? model : has_rules(exact) ? exact : NULL;
    if (*out != NULL || folder_list(memory, model, &entry, &count, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count; i++) {
        const char *folder = arena_format(memory, "%s/%s", model, entry[i].name);
        if (strncmp(entry[i].name, CROSS_VALIDATION, strlen(CROSS_VALIDATION)) == 0
            && has_rules(folder) && found++ == 0)
            *out = folder;
    }
    if (found > 1)
        return pons_fail(err, PONS_CONFIG, "'%s' has %d folders " CROSS_VALIDATION "* with rules "
                         "of post-processing, and none is of the folds %s\nhint: "
                         "--no-postprocess leaves labels as they are", model, found, folds);
    return PONS_OK;
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* The numbers in a value, which may be a list of lists; -1: another value is among them. */
static int flatten(const json_t *value, int *out)
{
    int count = 0;

    if (!json_is_array(value)) {
        bool good = json_is_integer(value) && json_integer_value(value) >= 0
                    && json_integer_value(value) <= 65535;
        if (out != NULL && good)
            *out = (int)json_integer_value(value);
        return good ? 1 : -1;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        int more = flatten(json_array_get(value, i), out != NULL ? out + count : NULL);
        if (more < 0)
            return -1;
        count += more;
    }
    return count;
}

static void read_rule(const nnunet_json *arguments, struct nnunet_postprocess_rule *out)
{
    static const char *const keys[] = { "labels_or_regions", "background_label", NULL };
    const json_t *value = nnunet_json_member(arguments, keys[0]);
    int *id;

    nnunet_json_refuse_unknown(arguments, keys);
    if (nnunet_json_has(arguments, keys[1]))
        nnunet_json_integer(arguments, keys[1], 0, 0);
    if (arguments->err->status != PONS_OK)
        return;
    out->id_count = flatten(value, NULL);
    if (out->id_count < 1) {
        nnunet_json_refuse(arguments, keys[0], "an id or a list of ids");
        return;
    }
    out->id = id = arena_alloc(arguments->memory, (size_t)out->id_count * sizeof *id);
    flatten(value, id);
}

static void read_rules(nnunet_postprocess *out, const nnunet_json *root)
{
    static const char name[] = "remove_all_but_largest_component_from_segmentation";
    const json_t *functions = nnunet_json_member(root, "postprocessing_fns");
    const json_t *list = nnunet_json_member(root, "postprocessing_kwargs");
    size_t count = json_array_size(functions);

    if (root->err->status != PONS_OK)
        return;
    if (!json_is_array(list) || json_array_size(list) != count)
        nnunet_json_refuse(root, "postprocessing_kwargs", "arguments of each function");
    out->rule = arena_alloc(root->memory, (count + 1) * sizeof *out->rule);
    for (size_t i = 0; i < count && root->err->status == PONS_OK; i++) {
        const char *found = json_string_value(json_array_get(functions, i));
        nnunet_json arguments = *root;

        arguments.path = arena_format(root->memory, "postprocessing_kwargs.%zu", i);
        arguments.object = json_array_get(list, i);
        if (found == NULL || strcmp(found, name) != 0)
            nnunet_json_refuse(root, "postprocessing_fns", name);
        else if (!json_is_object(arguments.object))
            nnunet_json_refuse(root, "postprocessing_kwargs", "arguments of each function");
        else
            read_rule(&arguments, &out->rule[out->count++]);
    }
}

pons_status nnunet_postprocess_read(nnunet_postprocess *out, arena *memory, const char *model,
                                    const char *folds, pons_error *err)
{
    const char *folder;
    json_t *root = NULL;
    nnunet_json j;

    *out = (nnunet_postprocess){ .count = 0 };
    if (find_folder(memory, model, folds, &folder, err) != PONS_OK || folder == NULL)
        return err->status;
    if (!folder_holds(folder, "postprocessing.json"))
        return pons_fail(err, PONS_CONFIG, "'%s/postprocessing.pkl' has no postprocessing.json "
                         "beside it\nhint: --no-postprocess leaves labels as they are", folder);
    out->file = arena_format(memory, "%s/postprocessing.json", folder);
    if (nnunet_json_read(&j, memory, out->file, &root, err) == PONS_OK)
        read_rules(out, &j);
    json_decref(root);
    return err->status;
}

/* ---- apply ----------------------------------------------------------------------------------- */

static bool has_id(const struct nnunet_postprocess_rule *r, int32_t id)
{
    for (int i = 0; i < r->id_count; i++)
        if (r->id[i] == id)
            return true;
    return false;
}

/* Clear the voxels of components that are smaller than the largest. */
static pons_status clear_small(const int32_t *component, int32_t count, int64_t voxels,
                               int32_t *ids, pons_error *err)
{
    int64_t *size = calloc((size_t)count + 1, sizeof *size), largest = 0;

    if (size == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d components", (int)count);
    for (int64_t n = 0; n < voxels; n++)
        size[component[n]]++;
    for (int32_t c = 1; c <= count; c++)
        largest = size[c] > largest ? size[c] : largest;
    for (int64_t n = 0; n < voxels; n++)
        if (component[n] > 0 && size[component[n]] < largest)
            ids[n] = 0;
    free(size);
    return PONS_OK;
}

static pons_status apply_rule(const struct nnunet_postprocess_rule *r, pons_volume *ids,
                              uint8_t *mask, int32_t *component, pons_error *err)
{
    int64_t voxels = pons_volume_count(ids);
    int32_t *id = ids->voxels, count;

    for (int64_t n = 0; n < voxels; n++)
        mask[n] = has_id(r, id[n]);
    if (connected_components_label(mask, ids->extent, 1, component, &count, err) == PONS_OK)
        clear_small(component, count, voxels, id, err);
    return err->status;
}

pons_status nnunet_postprocess_apply(const nnunet_postprocess *p, pons_volume *ids,
                                     pons_error *err)
{
    size_t voxels = (size_t)pons_volume_count(ids);
    uint8_t *mask = malloc(voxels + 1);
    int32_t *component = malloc((voxels + 1) * sizeof *component);

    if (mask == NULL || component == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for the parts of %zu voxels", voxels);
    for (int i = 0; i < p->count && err->status == PONS_OK; i++)
        apply_rule(&p->rule[i], ids, mask, component, err);
    free(mask);
    free(component);
    return err->status;
}
