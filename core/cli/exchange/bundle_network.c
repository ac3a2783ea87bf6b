/*
 * bundle_network.c - arguments of a MONAI class as options of [model]. Options have the names of
 * the arguments, so only their values change their form.
 */
#include "cli/exchange/bundle_network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/json.h"
#include "checkpoint/weights/weights_path.h"
#include "cli/exchange/monai_classes.h"
#include "config/config.h"
#include "plugin/plugin_load.h"

enum { CONFIG_MAX = 16 << 20, ID_DEPTH_MAX = 16, SET_MAX = 64, TEXT_SIZE = 4096 };

/* Arguments that the INI file or the command decides, or that change no number. */
static const char *const passed_over[] = {
    "spatial_dims", "dimensions", "in_channels", "out_channels", "img_size", "use_checkpoint",
    "inplace"
};

/* Values that an option which a plugin lacks would have. */
static const struct { const char *name, *value; } implied[] = {
    { "negative_slope", "0.01" }, { "affine", "no" }
};

typedef struct reader {
    arena *memory;
    const char *path;         /* of the JSON file                                                 */
    const json_t *root;
    const pons_option *options; /* of the plugin                                                  */
    bool exact;               /* words keep their case                                            */
    bundle_network *out;
    char text[TEXT_SIZE];     /* of the argument that is read                                     */
    size_t used;
} reader;

/* ---- values ---------------------------------------------------------------------------------- */

/* The value of '@id' and of '@id::part'; NULL: there is none. */
static const json_t *find_id(const json_t *root, const char *id)
{
    const json_t *at = root;

    while (at != NULL && *id != '\0') {
        size_t size = strcspn(id, ":#");
        char part[128];
        if (size >= sizeof part)
            return NULL;
        memcpy(part, id, size);
        part[size] = '\0';
        at = json_is_array(at) ? json_array_get(at, (size_t)strtoul(part, NULL, 10))
                               : json_object_get(at, part);
        id += size + strspn(id + size, ":#");
    }
    return at;
}

/* Follow '@id' to its value. */
static pons_status resolve(const reader *r, const char *name, const json_t **value,
                           pons_error *err)
{
    const json_t *v = *value;

    for (int depth = 0; json_is_string(v) && json_string_value(v)[0] == '@'; depth++) {
        const char *id = json_string_value(v);
        v = depth < ID_DEPTH_MAX ? find_id(r->root, id + 1) : NULL;
        if (v == NULL)
            return pons_fail(err, PONS_CONFIG, "'%s': argument '%.40s' of the network is '%.100s', "
                             "which the file does not have", r->path, name, id);
    }
    if (json_is_string(v) && json_string_value(v)[0] == '$')
        return pons_fail(err, PONS_CONFIG, "'%s': argument '%.40s' of the network is the "
                         "expression '%.100s', expected a value", r->path, name,
                         json_string_value(v));
    *value = v;
    return PONS_OK;
}

/* A number, word or truth value as it stands in an INI file; NULL: it is none. */
static const char *scalar_text(const reader *r, const json_t *v)
{
    if (json_is_boolean(v))
        return json_is_true(v) ? "yes" : "no";
    if (json_is_integer(v))
        return arena_format(r->memory, "%lld", (long long)json_integer_value(v));
    if (json_is_real(v))
        return arena_format(r->memory, "%.9g", json_real_value(v));
    if (!json_is_string(v))
        return NULL;
    char *word = arena_string(r->memory, json_string_value(v));
    for (char *c = word; !r->exact && *c != '\0'; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    return word;
}

static pons_status put(reader *r, const char *name, const char *part, pons_error *err)
{
    size_t size = strlen(part);

    if (size >= sizeof r->text - r->used)
        return pons_fail(err, PONS_CONFIG, "'%s': argument '%.40s' of the network has more than %d "
                         "characters", r->path, name, TEXT_SIZE - 1);
    memcpy(r->text + r->used, part, size + 1);
    r->used += size;
    return PONS_OK;
}

/*
 * Append a scalar, or a list: blanks between items, commas between numbers of one item. The depth
 * is bounded because '@id' may name a list that holds it, and the text because names may double it.
 */
static pons_status put_value(reader *r, const char *name, const json_t *v, int depth,
                             pons_error *err)
{
    const char *text = scalar_text(r, v);
    const json_t *e;
    size_t i;

    if (text != NULL)
        return put(r, name, text, err);
    if (!json_is_array(v))
        return pons_fail(err, PONS_CONFIG, "'%s': argument '%.40s' of the network is no number, "
                         "word or list", r->path, name);
    if (depth == ID_DEPTH_MAX)
        return pons_fail(err, PONS_CONFIG, "'%s': argument '%.40s' of the network has lists within "
                         "lists, more than %d deep", r->path, name, ID_DEPTH_MAX);
    json_array_foreach(v, i, e) {
        if (resolve(r, name, &e, err) != PONS_OK
            || (i > 0 && put(r, name, depth == 0 ? " " : ",", err) != PONS_OK)
            || put_value(r, name, e, depth + 1, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static bool is_implied(const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof implied / sizeof implied[0]; i++)
        if (strcmp(implied[i].name, name) == 0 && strcmp(implied[i].value, value) == 0)
            return true;
    return false;
}

static pons_status add_option(reader *r, const char *name, const char *value, pons_error *err)
{
    if (option_find(r->options, name) != NULL && r->out->set_count < SET_MAX)
        r->out->set[r->out->set_count++] = arena_format(r->memory, "model.%s=%s", name, value);
    else if (!is_implied(name, value))
        return pons_fail(err, PONS_CONFIG, "'%s': argument '%.40s' = %.100s of class '%.100s' is "
                         "no option of the model plugin", r->path, name, value, r->out->described);
    return PONS_OK;
}

static bool is_passed_over(const char *name, const json_t *v)
{
    for (size_t i = 0; i < sizeof passed_over / sizeof passed_over[0]; i++)
        if (strcmp(passed_over[i], name) == 0)
            return true;
    return name[0] == '_' || json_is_null(v);
}

/* A layer with arguments of its own, as ["GROUP", {"num_groups": 8}]. */
static bool is_layer(const json_t *v)
{
    return json_array_size(v) == 2 && json_is_string(json_array_get(v, 0))
           && json_is_object(json_array_get(v, 1));
}

static pons_status add_argument(reader *r, const char *name, const json_t *v, pons_error *err)
{
    const pons_option *o = option_find(r->options, name);

    if (is_passed_over(name, v))
        return PONS_OK;
    r->exact = o != NULL && o->type == PONS_OPTION_TEXT;
    r->used = 0;
    r->text[0] = '\0';
    if (resolve(r, name, &v, err) != PONS_OK || put_value(r, name, v, 0, err) != PONS_OK)
        return err->status;
    return add_option(r, name, r->text, err);
}

static pons_status add_arguments(reader *r, const json_t *network, pons_error *err)
{
    const char *name, *inner;
    json_t *v, *argument;

    json_object_foreach((json_t *)(uintptr_t)network, name, v) {
        if (!is_layer(v)) {
            if (add_argument(r, name, v, err) != PONS_OK)
                return err->status;
            continue;
        }
        if (add_argument(r, name, json_array_get(v, 0), err) != PONS_OK)
            return err->status;
        json_object_foreach(json_array_get(v, 1), inner, argument) {
            if (add_argument(r, inner, argument, err) != PONS_OK)
                return err->status;
        }
    }
    return PONS_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The argument in_channels; 0: it is no number. */
static int channels_of(const reader *r, const json_t *network)
{
    pons_error ignored = PONS_ERROR_INIT;
    const json_t *v = json_object_get(network, "in_channels");
    json_int_t count = v != NULL && resolve(r, "in_channels", &v, &ignored) == PONS_OK
                       ? json_integer_value(v) : 0;

    return count > 0 && count <= BUNDLE_CHANNELS_MAX ? (int)count : 0;
}

static pons_status read_network(reader *r, pons_error *err)
{
    static const char *const entries[] = { "network_def", "network", "net" };
    const json_t *network = NULL;
    const char *target, *name;
    const plugin *p;

    for (size_t i = 0; network == NULL && i < sizeof entries / sizeof entries[0]; i++) {
        network = json_object_get(r->root, entries[i]);
        if (json_string_value(json_object_get(network, "_target_")) == NULL)
            network = NULL;
    }
    if (network == NULL)
        return PONS_OK;
    target = json_string_value(json_object_get(network, "_target_"));
    r->out->described = arena_string(r->memory, target);
    r->out->channels = channels_of(r, network);
    name = monai_class_plugin(target);
    if (name == NULL)
        return PONS_OK;
    if (plugin_load(PONS_KIND_MODEL, name, 0, NULL, &p, err) != PONS_OK)
        return err->status;
    r->options = p->descriptor->options;
    r->out->set[r->out->set_count++] = arena_format(r->memory, "model.plugin=%s", name);
    return add_arguments(r, network, err);
}

bool bundle_network_is_there(const char *folder)
{
    return folder_holds(folder, WEIGHTS_OF_BUNDLE);
}

pons_status bundle_network_read(const char *folder, arena *a, bundle_network *out,
                                pons_error *err)
{
    reader r = { .memory = a, .out = out };
    json_t *root = NULL;
    char *text = NULL;
    size_t size;

    *out = (bundle_network){ .set = arena_alloc(a, SET_MAX * sizeof *out->set) };
    r.path = arena_format(a, "%s/configs/inference.json", folder);
    if (access(r.path, F_OK) != 0)
        return PONS_OK;
    if (file_read(r.path, CONFIG_MAX, &text, &size, PONS_DATA, err) == PONS_OK
        && json_parse(text, size, r.path, PONS_DATA, &root, err) == PONS_OK) {
        r.root = root;
        read_network(&r, err);
    }
    json_decref(root);
    free(text);
    return err->status;
}
