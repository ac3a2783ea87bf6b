/*
 * export_folder.c - state dictionaries, and the files of an exported folder.
 */
#include "cli/exchange/export_folder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "checkpoint/tensor_names.h"
#include "checkpoint/torch/pickle_names.h"
#include "checkpoint/torch/torch_write.h"

/* ---- values ---------------------------------------------------------------------------------- */

void export_put(torch_value *dictionary, const char *key, torch_value *value, arena *memory)
{
    pickle_value_append(memory, dictionary,
                        pickle_value_bytes(memory, TORCH_TEXT, key, strlen(key)));
    pickle_value_append(memory, dictionary, value);
}

static torch_value *list_value(const json_t *json, arena *memory)
{
    torch_value *v = pickle_value_new(memory, TORCH_LIST);

    for (size_t i = 0; i < json_array_size(json); i++)
        pickle_value_append(memory, v, export_value(json_array_get(json, i), memory));
    return v;
}

static torch_value *object_value(const json_t *json, arena *memory)
{
    torch_value *v = pickle_value_new(memory, TORCH_DICTIONARY);
    const char *key;
    json_t *item;

    json_object_foreach((json_t *)(uintptr_t)json, key, item)
        export_put(v, key, export_value(item, memory), memory);
    return v;
}

torch_value *export_value(const json_t *json, arena *memory)
{
    static const torch_kind kinds[] = {
        [JSON_STRING] = TORCH_TEXT, [JSON_INTEGER] = TORCH_INTEGER, [JSON_REAL] = TORCH_REAL,
        [JSON_TRUE] = TORCH_FLAG, [JSON_FALSE] = TORCH_FLAG, [JSON_NULL] = TORCH_NONE
    };
    torch_value *v;

    if (json_is_object(json))
        return object_value(json, memory);
    if (json_is_array(json))
        return list_value(json, memory);
    if (json_is_string(json))
        return pickle_value_bytes(memory, TORCH_TEXT, json_string_value(json),
                                  json_string_length(json));
    v = pickle_value_new(memory, kinds[json_typeof(json)]);
    if (json_is_integer(json))
        v->integer = json_integer_value(json);
    else if (json_is_real(json))
        v->real = json_real_value(json);
    else
        v->flag = json_is_true(json);
    return v;
}

/* ---- state dictionaries ---------------------------------------------------------------------- */

torch_value *export_tensor(const safetensor *t, const void *data, arena *memory)
{
    torch_value *v = pickle_value_new(memory, TORCH_TENSOR);
    torch_tensor *to = v->tensor = arena_alloc(memory, sizeof *to);
    torch_storage *s = to->storage = arena_alloc(memory, sizeof *s);
    unsigned char *bytes;
    int64_t step = 1;

    s->type = torch_type_find(t->type == SAFETENSORS_I64 ? "LongStorage" : "FloatStorage");
    *to = (torch_tensor){ .type = s->type, .rank = t->rank, .count = 1, .storage = s };
    for (int i = t->rank - 1; i >= 0; i--) {
        to->extent[i] = t->extent[i];
        to->stride[i] = step;
        step *= t->extent[i];
    }
    to->count = s->count = step;
    s->size = (size_t)step * s->type->size;
    s->bytes = bytes = arena_alloc(memory, s->size + 1);
    memcpy(bytes, data, s->size);
    return v;
}

torch_value *export_state(const predictor *p, arena *memory, pons_error *err)
{
    const experiment *e = predictor_experiment(p);
    storage *s = predictor_replicas(p)->item[0].storage;
    tensor_format format = { .flat = e->task.flat, .wide = e->device.wide };
    torch_value *state = pickle_value_new(memory, TORCH_DICTIONARY);
    tensor_names_list list;

    if (storage_fetch(s, err) != PONS_OK
        || tensor_names_list_make(&list, s, WEIGHTS_MODEL, &format, err) != PONS_OK)
        return NULL;
    for (int i = 0; i < list.content.count; i++)
        export_put(state, list.item[i].name,
                   export_tensor(&list.item[i], list.content.data(list.content.context, i), memory),
                   memory);
    tensor_names_list_clear(&list);
    return state;
}

/* ---- files ----------------------------------------------------------------------------------- */

pons_status export_folder_check(const char *folder, pons_error *err)
{
    if (access(folder, F_OK) == 0)
        return pons_fail(err, PONS_USAGE, "'%s' exists; nothing is overwritten", folder);
    return PONS_OK;
}

static pons_status write_text(const char *path, const char *text, pons_error *err)
{
    safe_file f;

    if (safe_file_open(&f, path, err) != PONS_OK)
        return err->status;
    if (safe_file_write(&f, text, strlen(text), err) == PONS_OK)
        safe_file_commit(&f, err);
    else
        safe_file_discard(&f);
    return err->status;
}

static pons_status write_json(const char *path, const json_t *json, pons_error *err)
{
    char *text = json_dumps(json, JSON_INDENT(4)), *line;

    if (text == NULL || (line = realloc(text, strlen(text) + 2)) == NULL) {
        free(text);
        return pons_fail(err, PONS_DEVICE, "'%s': out of memory", path);
    }
    strcat(line, "\n");
    write_text(path, line, err);
    free(line);
    return err->status;
}

static pons_status write_file(const char *path, const export_file *file, logger *l,
                              pons_error *err)
{
    byte_progress progress = { .log = l, .verb = "writing", .path = path };

    if (folder_make_for(path, err) != PONS_OK)
        return err->status;
    if (file->json != NULL)
        return write_json(path, file->json, err);
    if (file->torch != NULL)
        return torch_file_write(path, file->torch, &progress, err);
    return write_text(path, file->text, err);
}

static char *path_of(const char *folder, const char *name, pons_error *err)
{
    char *path = NULL;

    if (asprintf(&path, "%s/%s", folder, name) >= 0)
        return path;
    pons_fail(err, PONS_DEVICE, "'%s': out of memory", folder);
    return NULL;
}

/* Remove a file, and the folders up to 'folder' that it leaves empty. */
static void remove_file(const char *folder, const char *name)
{
    pons_error ignored = PONS_ERROR_INIT;
    char *path = path_of(folder, name, &ignored), *end;

    if (path == NULL)
        return;
    unlink(path);
    for (end = strrchr(path, '/'); end >= path + strlen(folder); end = strrchr(path, '/')) {
        *end = '\0';
        rmdir(path);
    }
    free(path);
}

pons_status export_folder_write(const char *folder, int count, const export_file *file, logger *l,
                                pons_error *err)
{
    for (int i = 0; i < count && err->status == PONS_OK; i++) {
        char *path = path_of(folder, file[i].name, err);
        if (path != NULL)
            write_file(path, &file[i], l, err);
        free(path);
        for (int made = i; made >= 0 && err->status != PONS_OK; made--)
            remove_file(folder, file[made].name);
    }
    return err->status;
}

/* ---- refusals -------------------------------------------------------------------------------- */

pons_status export_refuse(const char *section, const char *key, const json_t *found,
                          const char *expected, pons_error *err)
{
    char *text = json_dumps(found, JSON_ENCODE_ANY | JSON_COMPACT);

    pons_fail(err, PONS_CONFIG, "[%s] %s: found %.200s, expected %s", section, key,
              text != NULL ? text : "none", expected);
    free(text);
    return err->status;
}

pons_status export_expect(const char *section, const json_t *options, const char *key,
                          const char *expected, const char *program, pons_error *err)
{
    const json_t *found = json_object_get(options, key);
    json_t *wanted = json_loads(expected, JSON_DECODE_ANY, NULL);
    char text[256];

    snprintf(text, sizeof text, "%s as %s has it", expected, program);
    if (!json_equal(found, wanted))
        export_refuse(section, key, found, text, err);
    json_decref(wanted);
    return err->status;
}
