/*
 * nnunet_plan_labels.c - labels or regions of dataset.json.
 *
 * Regions exist if a label lists several ids. Then every label but the background and 'ignore' is
 * a region with an output of its own; else the outputs are the ids from 0 on.
 */
#include "nnunet/nnunet_plan.h"

#include <string.h>

#include "config/list.h"
#include "data/dataset/class_list.h"

static const char *const dataset_keys[] = {
    "channel_names", "modality", "labels", "regions_class_order", "numTraining", "file_ending",
    "dataset", "overwrite_image_reader_writer", "name", "description", "reference", "licence",
    "license", "release", "tensorImageSize", "numTest", "training", "test", "dataset_name",
    "dataset_description", "dataset_reference", "dataset_release", "converted_by", "citation",
    NULL
};

static bool has_regions(const json_t *labels)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)labels, name, value)
        if (json_array_size(value) > 1)
            return true;
    return false;
}

/* The ids of a label, "1,2,3"; NULL: the value is none. */
static const char *ids_of(const nnunet_plan *p, const json_t *value)
{
    const char *list = "";
    size_t count = json_is_array(value) ? json_array_size(value) : 1;

    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_is_array(value) ? json_array_get(value, i) : value;
        if (!json_is_integer(id) || json_integer_value(id) < 0)
            return NULL;
        list = arena_format(p->memory, "%s%s%lld", list, i > 0 ? "," : "",
                            (long long)json_integer_value(id));
    }
    return count > 0 ? list : NULL;
}

/* The single id of a label; -1: none. */
static int64_t id_of(const json_t *value)
{
    const json_t *id = json_is_array(value) ? json_array_get(value, 0) : value;

    return json_is_integer(id) ? json_integer_value(id) : -1;
}

/* Refuse a name that no entry of 'labels' or 'regions' can have, since ':' ends the name there. */
static void check_names(const nnunet_json *labels)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)labels->object, name, value)
        if (name[0] == '\0' || strchr(name, ':') != NULL)
            pons_fail(labels->err, PONS_CONFIG, "'%s': labels: found the name '%.200s', expected "
                      "one without ':'", labels->where, name);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static void add_id(nnunet_plan *p, const nnunet_json *labels, const char *name, int64_t id)
{
    int at = 0;

    while (at < p->id_count && p->id[at] < id)
        at++;
    if (id == 0 || (at < p->id_count && p->id[at] == id))
        return;
    if (id > 65535 || p->id_count == CLASS_COUNT_MAX) {
        nnunet_json_refuse(labels, name, "at most 256 ids from 0 to 65535");
        return;
    }
    memmove(&p->id[at + 1], &p->id[at], (size_t)(p->id_count - at) * sizeof *p->id);
    p->id[at] = (int)id;
    p->id_count++;
}

/* Collect the ids of all labels but the background and 'ignore'. */
static void take_ids(nnunet_plan *p, const nnunet_json *labels)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)labels->object, name, value) {
        if (strcmp(name, "ignore") == 0 || labels->err->status != PONS_OK)
            continue;
        for (size_t i = 0; i < (json_is_array(value) ? json_array_size(value) : 1); i++)
            add_id(p, labels, name, json_integer_value(json_is_array(value)
                                                       ? json_array_get(value, i) : value));
    }
}

/* ---- labels and regions ---------------------------------------------------------------------- */

/* Ids from 0 on, each once, in their order. */
static void put_labels(nnunet_plan *p, const nnunet_json *labels)
{
    const char *item[CLASS_COUNT_MAX + 1] = { NULL }, *name, *ignored = NULL;
    int last = (int)json_object_size(labels->object) - 1, count = 0;
    json_t *value;

    last -= nnunet_json_has(labels, "ignore");
    if (last >= CLASS_COUNT_MAX) {
        pons_fail(labels->err, PONS_CONFIG, "'%s': labels: found %d, expected at most %d",
                  labels->where, last + 1, CLASS_COUNT_MAX);
        return;
    }
    json_object_foreach((json_t *)labels->object, name, value) {
        int64_t id = id_of(value);
        if (strcmp(name, "ignore") == 0) {
            ignored = arena_format(p->memory, "ignore:%lld", (long long)id);
            continue;
        }
        if (id < 0 || id > last || item[id] != NULL) {
            nnunet_json_refuse(labels, name, arena_format(p->memory, "an id from 0 to %d that no "
                                                          "other label has", last));
            return;
        }
        item[id] = arena_format(p->memory, "%s:%lld", name, (long long)id);
        count++;
    }
    if (ignored != NULL)
        item[count++] = ignored;
    nnunet_plan_put(p, "data", "labels", "%s", list_join(p->memory, count, item));
}

/* Whether a label, other than the background and 'ignore', has the id. */
static bool is_region_id(const nnunet_json *labels, double id)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)labels->object, name, value) {
        size_t count = json_is_array(value) ? json_array_size(value) : 1;
        if (strcmp(name, "ignore") == 0 || strcmp(name, "background") == 0)
            continue;
        for (size_t i = 0; i < count; i++)
            if (json_number_value(json_is_array(value) ? json_array_get(value, i) : value) == id)
                return true;
    }
    return false;
}

static void put_regions(nnunet_plan *p, const nnunet_json *dataset, const nnunet_json *labels)
{
    const char *item[CLASS_COUNT_MAX], *name, *list = "";
    double id[CLASS_COUNT_MAX] = { 0 };
    int count = 0;
    json_t *value;

    json_object_foreach((json_t *)labels->object, name, value) {
        const char *ids = ids_of(p, value);
        if (strcmp(name, "ignore") == 0 || strcmp(name, "background") == 0)
            continue;
        if (ids == NULL || count == CLASS_COUNT_MAX) {
            nnunet_json_refuse(labels, name, "an id or a list of ids, in at most 256 labels");
            return;
        }
        item[count++] = arena_format(p->memory, "%s:%s", name, ids);
    }
    nnunet_json_numbers(dataset, "regions_class_order", count, id);
    for (int i = 0; i < count; i++) {
        if (!(id[i] >= 0 && id[i] <= 65535 && id[i] == (int)id[i]))
            nnunet_json_refuse(dataset, "regions_class_order", "an id from 0 to 65535 for each "
                               "region");
        else if (!is_region_id(labels, id[i]) && dataset->err->status == PONS_OK)
            pons_fail(dataset->err, PONS_CONFIG, "'%s': regions_class_order[%d]: found %d, which "
                      "no region of labels has", dataset->where, i, (int)id[i]);
        list = nnunet_plan_join(p, list, arena_format(p->memory, "%d", (int)id[i]));
    }
    nnunet_plan_put(p, "data", "regions", "%s", list_join(p->memory, count, item));
    nnunet_plan_put(p, "predict", "region_ids", "%s", list);
}

void nnunet_labels_put(nnunet_plan *p, const nnunet_json *dataset)
{
    const char *key = nnunet_json_has(dataset, "channel_names") ? "channel_names" : "modality";
    nnunet_json channels = nnunet_json_object(dataset, nnunet_json_has(dataset, key)
                                                       ? key : "channel_names");
    nnunet_json labels = nnunet_json_object(dataset, "labels");

    nnunet_json_refuse_unknown(dataset, dataset_keys);
    nnunet_json_text(dataset, "file_ending");
    if (dataset->err->status != PONS_OK)
        return;
    p->channels = (int)json_object_size(channels.object);
    for (int i = 0; i < p->channels; i++)
        nnunet_json_text(&channels, arena_format(p->memory, "%d", i));
    check_names(&labels);
    if (id_of(nnunet_json_member(&labels, "background")) != 0)
        nnunet_json_refuse(&labels, "background", "0");
    if (dataset->err->status != PONS_OK)
        return;
    if (has_regions(labels.object))
        put_regions(p, dataset, &labels);
    else
        put_labels(p, &labels);
    if (dataset->err->status == PONS_OK)
        take_ids(p, &labels);
}
