/*
 * layout_decathlon.c - the Medical Segmentation Decathlon's dataset.json.
 *
 *   "modality": { "0": "CT" }                       channels, by number
 *   "labels":   { "0": "background", "1": "spleen" } id to name
 *   "training": [ { "image": "./imagesTr/a.nii.gz", "label": "./labelsTr/a.nii.gz" } ]
 *   "validation": as "training"; held out unless the INI file has a rule of its own
 *   "test":     [ "./imagesTs/b.nii.gz" ]           for pons predict alone
 *
 * 'image' may be a list of files, one per channel. Paths are relative to the file's folder and
 * stay in it. All other keys are ignored ("tensorImageSize" and "numTraining" are wrong in
 * published datasets).
 */
#include "data/dataset/layout.h"

#include <stdlib.h>
#include <string.h>

#include "data/dataset/class_list.h"
#include "data/volume/volume_files.h"

/* ---- labels ---------------------------------------------------------------------------------- */

static pons_status read_labels(const layout_json *r, pons_error *err)
{
    json_t *object = json_object_get(r->root, "labels");
    layout_numbered *list;
    int count;

    if (object == NULL) /* dataset_open fails unless the INI file has 'labels' */
        return PONS_OK;
    if (layout_json_numbered(r, "labels", object, &list, &count, err) != PONS_OK)
        return err->status;
    data_class *classes = arena_alloc(r->memory, (size_t)count * sizeof *classes);
    for (int i = 0; i < count; i++) {
        int *id = arena_alloc(r->memory, sizeof *id);
        *id = list[i].number;
        classes[i] = (data_class){ list[i].name, 1, id };
    }
    r->out->classes = classes;
    r->out->class_count = count;
    return class_list_check(arena_format(r->memory, "labels of %s", r->path), false, classes,
                            count, PONS_DATA, err);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* True for a relative path that stays in the folder. */
static bool path_is_inside(const char *path)
{
    if (path[0] == '/' || path[0] == '\0')
        return false;
    for (const char *part = path; ; part++) {
        size_t size = strcspn(part, "/");
        if (size == 2 && memcmp(part, "..", 2) == 0)
            return false;
        part += size;
        if (*part == '\0')
            return true;
    }
}

static pons_status read_path(const layout_json *r, const char *field, const json_t *value,
                             const char **path, pons_error *err)
{
    const char *text = json_string_value(value);

    if (text == NULL)
        return layout_json_wrong_type(r, field, value, "a path", err);
    if (!path_is_inside(text))
        return pons_fail(err, PONS_DATA, "'%s': '%s' is '%s', expected a path inside the folder of "
                         "the dataset", r->path, field, text);
    while (strncmp(text, "./", 2) == 0)
        text += 2;
    *path = arena_format(r->memory, "%s%s", r->folder, text);
    return PONS_OK;
}

static pons_status read_images(const layout_json *r, const char *field, const json_t *value,
                               data_case *c, pons_error *err)
{
    bool list = json_is_array(value);
    int count = list ? (int)json_array_size(value) : 1;

    if (count == 0)
        return pons_fail(err, PONS_DATA, "'%s': '%s' is an empty list, expected a path for each "
                         "channel", r->path, field);
    if (count > 1 && r->out->channels != 0 && count != r->out->channels)
        return pons_fail(err, PONS_DATA, "'%s': '%s' has %d files, expected %d as in 'modality'",
                         r->path, field, count, r->out->channels);
    const char **image = arena_alloc(r->memory, (size_t)count * sizeof *image);
    for (int i = 0; i < count; i++) {
        const json_t *one = list ? json_array_get(value, (size_t)i) : value;
        const char *name = list ? arena_format(r->memory, "%s[%d]", field, i) : field;
        if (read_path(r, name, one, &image[i], err) != PONS_OK)
            return err->status;
    }
    c->image = image;
    c->image_count = count;
    return PONS_OK;
}

static bool is_hidden(const char *path)
{
    const char *slash = strrchr(path, '/');

    return (slash != NULL ? slash + 1 : path)[0] == '.';
}

/*
 * The image of an item and with it the case's id; *listed: it is one of the cases. A path alone is
 * a case for tests.
 */
static pons_status read_image_and_id(const layout_json *r, const char *field, const json_t *item,
                                     bool test, data_case *c, bool *listed, pons_error *err)
{
    bool object = json_is_object(item);

    *listed = false;
    if (!object && !(test && json_is_string(item)))
        return layout_json_wrong_type(r, field, item, test ? "a path" :
                                      "an object with 'image' and 'label'", err);
    if (read_images(r, object ? arena_format(r->memory, "%s.image", field) : field,
                    object ? json_object_get(item, "image") : item, c, err) != PONS_OK)
        return err->status;
    c->id = layout_image_stem(r->memory, c->image[0]);
    *listed = !is_hidden(c->image[0]);
    return *listed ? layout_check_id(c->id, c->image[0], err) : PONS_OK;
}

/* One entry of a list; what is wrong with it is noted, and the next one is read. */
static void read_item(const layout_json *r, const char *field, const json_t *item, bool held_out)
{
    pons_error cause = PONS_ERROR_INIT;
    data_case c = { .id = NULL };
    const json_t *label;
    bool listed;

    if (read_image_and_id(r, field, item, false, &c, &listed, &cause) != PONS_OK) {
        layout_problem(r->out, NULL, r->path, "%s", cause.text);
        return;
    }
    label = listed ? json_object_get(item, "label") : NULL;
    if (!listed || (label == NULL && held_out)) /* published lists hold images to be predicted */
        return;
    if (read_path(r, arena_format(r->memory, "%s.label", field), label, &c.label, &cause)
        != PONS_OK) {
        layout_problem(r->out, c.id, r->path, "%s", cause.text);
        c.incomplete = true;
    }
    r->out->cases[r->out->case_count++] = (layout_case){ c, held_out, -1 };
    r->out->holds_out = r->out->holds_out || held_out;
}

static void read_test(const layout_json *r, const char *field, const json_t *item)
{
    pons_error cause = PONS_ERROR_INIT;
    data_case c = { .id = NULL };
    bool listed;

    if (read_image_and_id(r, field, item, true, &c, &listed, &cause) != PONS_OK)
        layout_problem(r->out, NULL, r->path, "%s", cause.text);
    else if (listed)
        r->out->cases[r->out->case_count++] = (layout_case){ c, false, -1 };
}

static pons_status read_tests(const layout_json *r, pons_error *err)
{
    const json_t *list = json_object_get(r->root, "test"), *item;
    size_t i;

    if (json_array_size(list) == 0)
        return pons_fail(err, PONS_DATA, "'%s': 'test' is %s, expected a list of cases", r->path,
                         list == NULL ? "missing" : json_is_array(list) ? "empty" : "no list");
    r->out->cases = arena_alloc(r->memory, json_array_size(list) * sizeof *r->out->cases);
    json_array_foreach(list, i, item)
        read_test(r, arena_format(r->memory, "test[%zu]", i), item);
    return PONS_OK;
}

static pons_status read_case_lists(const layout_json *r, pons_error *err)
{
    const json_t *list[] = { json_object_get(r->root, "training"),
                             json_object_get(r->root, "validation") }, *item;
    static const char *const field[] = { "training", "validation" };
    size_t count = 0, i;

    for (int l = 0; l < 2; l++) {
        if (!json_is_array(list[l]) && (l == 0 || list[l] != NULL))
            return layout_json_wrong_type(r, field[l], list[l], "a list of cases", err);
        count += json_array_size(list[l]);
    }
    r->out->cases = arena_alloc(r->memory, (count + 1) * sizeof *r->out->cases);
    for (int l = 0; l < 2; l++)
        json_array_foreach(list[l], i, item)
            read_item(r, arena_format(r->memory, "%s[%zu]", field[l], i), item, l == 1);
    if (r->out->case_count == 0 && r->out->problem_count == 0)
        return pons_fail(err, PONS_DATA, "'%s': 'training' has no case", r->path);
    r->out->unused_count = (int)json_array_size(json_object_get(r->root, "test"));
    r->out->lists_tests = r->out->unused_count > 0;
    return PONS_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

static pons_status refuse_nnunet(const layout_json *r, pons_error *err)
{
    if (json_object_get(r->root, "channel_names") == NULL
        || json_object_get(r->root, "file_ending") == NULL)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "'%s' has the layout 'nnunet', expected 'decathlon'\n"
                     "hint: --set data.layout=nnunet", r->path);
}

pons_status layout_decathlon_read(const dataset_settings *settings, layout_result *out,
                                  pons_error *err)
{
    layout_json r;
    pons_status status;

    if (layout_json_open(settings, out, &r, err) != PONS_OK)
        return err->status;
    status = refuse_nnunet(&r, err);
    if (status == PONS_OK && json_object_get(r.root, "modality") != NULL)
        status = layout_json_channels(&r, "modality", err);
    if (status == PONS_OK)
        status = read_labels(&r, err);
    if (status == PONS_OK)
        status = settings->tests ? read_tests(&r, err) : read_case_lists(&r, err);
    if (status == PONS_OK && out->channels == 0 && out->case_count > 0)
        out->channels = out->cases[0].info.image_count;
    layout_json_close(&r);
    return status;
}
