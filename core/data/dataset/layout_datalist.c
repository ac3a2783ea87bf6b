/*
 * layout_datalist.c - MONAI's datalist, a JSON file.
 *
 *   "training":   [ { "image": "a.nii.gz", "label": "l.nii.gz", "fold": 0 } ]
 *   "validation": as "training"; held out unless the INI file has a rule of its own
 *   "testing":    used by pons predict alone; entries need no "label", and may be a path
 *   "labels":     { "0": "background", "1": "spleen" }, which may be missing
 *
 * "image" may be a list of files, one per channel. Entries with "fold" form folds, of which 'fold'
 * of the INI file is held out; entries without it are for training. All other keys are ignored.
 */
#include "data/dataset/layout.h"

#include <string.h>

#include "base/file/json.h"
#include "base/text/text.h"
#include "data/dataset/class_list.h"

/* ---- recognition ----------------------------------------------------------------------------- */

static bool has_fold(const json_t *list)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item) {
        if (json_object_get(item, "fold") != NULL)
            return true;
    }
    return false;
}

/*
 * A file with 'training' is a datalist if it has folds or a list 'testing'. Any other is the
 * Decathlon's if it has "modality" or "labels", else a datalist.
 */
bool layout_datalist_is(const char *path)
{
    pons_error ignored = PONS_ERROR_INIT;
    json_t *root;
    bool found;

    if (!text_ends_with(path, ".json") || layout_json_parse(path, &root, &ignored) != PONS_OK)
        return false;
    const json_t *training = json_object_get(root, "training");
    found = json_is_array(training)
            && (has_fold(training) || json_object_get(root, "testing") != NULL
                || (json_object_get(root, "modality") == NULL
                    && json_object_get(root, "labels") == NULL));
    json_decref(root);
    return found;
}

/* ---- labels ---------------------------------------------------------------------------------- */

static pons_status read_labels(const layout_list *l, json_t *root, pons_error *err)
{
    const layout_json r = { .memory = l->out->memory, .path = l->path, .root = root,
                            .out = l->out };
    json_t *object = json_object_get(root, "labels");
    layout_numbered *list;
    int count;

    if (object == NULL) /* dataset_open fails unless the INI file has 'labels' */
        return PONS_OK;
    if (layout_json_numbered(&r, "labels", object, &list, &count, err) != PONS_OK)
        return err->status;
    data_class *classes = arena_alloc(r.memory, (size_t)count * sizeof *classes);
    for (int i = 0; i < count; i++)
        classes[i] = (data_class){ list[i].name, 1, &list[i].number };
    l->out->classes = classes;
    l->out->class_count = count;
    return class_list_check(arena_format(r.memory, "labels of %s", l->path), false, classes, count,
                            PONS_DATA, err);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Note that 'field' of an entry is not as expected. */
static bool entry_problem(const layout_list *l, const char *field, const char *expected)
{
    layout_problem(l->out, NULL, l->path, "'%s' '%s' is missing or wrong, expected %s", l->path,
                   field, expected);
    return false;
}

static bool read_images(layout_list *l, const char *field, const json_t *value, data_case *c)
{
    bool list = json_is_array(value);
    size_t count = list ? json_array_size(value) : 1;
    const char **image = arena_alloc(l->out->memory, (count + 1) * sizeof *image);

    for (size_t i = 0; i < count; i++) {
        const json_t *one = list ? json_array_get(value, i) : value;
        const char *name = list ? arena_format(l->out->memory, "%s[%zu]", field, i) : field;
        if (json_string_length(one) == 0)
            return entry_problem(l, name, "a path, or a list with a path for each channel");
        image[i] = layout_list_file(l, arena_format(l->out->memory, "'%s'", name),
                                    json_string_value(one), c);
    }
    c->image = image;
    c->image_count = (int)count;
    return count > 0 || entry_problem(l, field, "a path, or a list with a path for each channel");
}

static bool read_fold(const layout_list *l, const char *field, const json_t *value, int *fold)
{
    uint64_t number = 0;

    *fold = -1;
    if (value == NULL)
        return true;
    if (!json_whole(value, &number) || number > INT32_MAX)
        return entry_problem(l, field, "a whole number from 0");
    *fold = (int)number;
    return true;
}

/* Add a case without label: "a.nii.gz", or an object with "image". */
static void read_test(layout_list *l, const char *place, const json_t *item)
{
    arena *memory = l->out->memory;
    list_entry e = { .place = arena_format(memory, "'%s'", place), .found.fold = -1 };
    bool object = json_is_object(item);

    if (read_images(l, object ? arena_format(memory, "%s.image", place) : place,
                    object ? json_object_get(item, "image") : item, &e.found.info))
        layout_list_add(l, &e);
}

static void read_entry(layout_list *l, const char *place, const json_t *item, bool held_out)
{
    arena *memory = l->out->memory;
    list_entry e = { .place = arena_format(memory, "'%s'", place), .found.held_out = held_out };
    data_case *c = &e.found.info;
    const json_t *label = json_object_get(item, "label");
    const char *field = arena_format(memory, "%s.label", place);

    if (!json_is_object(item)) {
        entry_problem(l, place, "an object with 'image' and 'label'");
        return;
    }
    if (!read_images(l, arena_format(memory, "%s.image", place), json_object_get(item, "image"), c)
        || !read_fold(l, arena_format(memory, "%s.fold", place), json_object_get(item, "fold"),
                      &e.found.fold))
        return;
    if (json_string_length(label) > 0)
        c->label = layout_list_file(l, arena_format(memory, "'%s'", field),
                                    json_string_value(label), c);
    else if (label != NULL || !l->unlabelled)
        c->incomplete = !entry_problem(l, field, "a path");
    layout_list_add(l, &e);
}

static pons_status read_tests(layout_list *l, const json_t *root, pons_error *err)
{
    const json_t *list = json_object_get(root, "testing"), *item;
    size_t i;

    layout_list_init(l, l->path, json_array_size(list), l->out);
    if (json_array_size(list) == 0)
        return pons_fail(err, PONS_DATA, "'%s': 'testing' is %s, expected a list of cases", l->path,
                         list == NULL ? "missing" : json_is_array(list) ? "empty" : "no list");
    json_array_foreach(list, i, item)
        read_test(l, arena_format(l->out->memory, "testing[%zu]", i), item);
    return layout_list_finish(l, err);
}

static pons_status read_lists(layout_list *l, const json_t *root, pons_error *err)
{
    static const char *const field[] = { "training", "validation" };
    const json_t *list[2], *item;
    size_t room = 0, i;

    for (int n = 0; n < 2; n++) {
        list[n] = json_object_get(root, field[n]);
        if (!json_is_array(list[n]) && (n == 0 || list[n] != NULL))
            return pons_fail(err, PONS_DATA, "'%s': '%s' is %s, expected a list of cases", l->path,
                             field[n], list[n] == NULL ? "missing" : "no list");
        room += json_array_size(list[n]);
    }
    layout_list_init(l, l->path, room, l->out);
    for (int n = 0; n < 2; n++)
        json_array_foreach(list[n], i, item)
            read_entry(l, arena_format(l->out->memory, "%s[%zu]", field[n], i), item, n == 1);
    l->out->unused_count = (int)json_array_size(json_object_get(root, "testing"));
    l->out->lists_tests = l->out->unused_count > 0;
    return layout_list_finish(l, err);
}

pons_status layout_datalist_read(const dataset_settings *settings, layout_result *out,
                                 pons_error *err)
{
    layout_list l = { .path = out->origin, .out = out, .tests = settings->tests,
                      .unlabelled = settings->tests || settings->labels_optional };
    json_t *root;

    if (layout_json_parse(l.path, &root, err) != PONS_OK)
        return err->status;
    pons_status status = read_labels(&l, root, err);
    if (status == PONS_OK)
        status = l.tests ? read_tests(&l, root, err) : read_lists(&l, root, err);
    json_decref(root);
    return status;
}
