/*
 * weights_file.c - find the state dictionary of a PyTorch file, and show it as a safetensors file.
 */
#include "checkpoint/weights/weights_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/hash/name_index.h"

#define WRAPPED "module."
#define COMPILED "_orig_mod."

enum {
    HEAD_SIZE = 512, KEYS_SIZE = 200, NAME_SIZE = 512, GATHERED_SIZE = 512,
    GATHERED_MAX = 4 /* bytes of all copies, as a multiple of the file's size */
};

/* Names under which programs save a state dictionary, in the order of their look-up. */
static const char *const customary[] = {
    "network_weights", "state_dict", "model_state_dict", "model_state", "model", "network",
    "net", "weights", "params"
};

/* ---- the state dictionary -------------------------------------------------------------------- */

static bool is_weight(const torch_value *v)
{
    return v->kind == TORCH_TENSOR && v->tensor->rank > 0;
}

static bool has_weights(const torch_value *v)
{
    for (int i = 0; v->kind == TORCH_DICTIONARY && i < torch_value_count(v); i++)
        if (is_weight(torch_value_item(v, i)) && torch_value_text(torch_value_key(v, i)) != NULL)
            return true;
    return false;
}

/* The state dictionary in v, or in what it holds under a customary name; NULL: there is none. */
static const torch_value *find_state(const torch_value *v, int depth)
{
    for (size_t i = 0; depth < 3 && i < sizeof customary / sizeof customary[0]; i++) {
        const torch_value *inner = torch_value_find(v, customary[i]), *found;
        if (inner != NULL && (found = find_state(inner, depth + 1)) != NULL)
            return found;
    }
    return has_weights(v) ? v : NULL;
}

static pons_status refuse_absent(const torch_value *root, const char *where, pons_error *err)
{
    char keys[KEYS_SIZE] = "";
    size_t used = 0;

    for (int i = 0; i < torch_value_count(root) && used < sizeof keys; i++) {
        const torch_value *key = torch_value_key(root, i);
        const char *text = torch_value_text(key);
        if (text != NULL)
            used += (size_t)snprintf(keys + used, sizeof keys - used, "%s'%.40s'",
                                     used > 0 ? ", " : "", text);
    }
    return pons_fail(err, PONS_DATA, "'%s': it has no state dictionary of tensors; it is %s%s%s",
                     where, torch_kind_name(root->kind), keys[0] != '\0' ? " of " : "", keys);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Whether all names of tensors begin with 'module.'. */
static bool are_wrapped(const torch_value *state)
{
    for (int i = 0; i < torch_value_count(state); i++) {
        const char *name = torch_value_text(torch_value_key(state, i));
        if (name != NULL && torch_value_item(state, i)->kind == TORCH_TENSOR
            && strncmp(name, WRAPPED, strlen(WRAPPED)) != 0)
            return false;
    }
    return true;
}

/* The name without the marks of wrappers. */
static const char *clean_name(arena *a, const char *name, bool wrapped)
{
    char *copy = arena_string(a, name), *to = copy;

    for (const char *from = name; *from != '\0'; ) {
        if ((to == copy || to[-1] == '.') && strncmp(from, COMPILED, strlen(COMPILED)) == 0)
            from += strlen(COMPILED);
        else
            *to++ = *from++;
    }
    *to = '\0';
    return wrapped && strncmp(copy, WRAPPED, strlen(WRAPPED)) == 0 ? copy + strlen(WRAPPED) : copy;
}

/* ---- nnU-Net ------------------------------------------------------------------------------- */

static bool is_nnunet(const weights_file *w)
{
    return torch_value_find(torch_file_root(w->torch), "network_weights") != NULL;
}

static bool has_volumes(const torch_value *state)
{
    for (int i = 0; i < torch_value_count(state); i++) {
        const torch_value *v = torch_value_item(state, i);
        if (v->kind == TORCH_TENSOR && v->tensor->rank == 5)
            return true;
    }
    return false;
}

void weights_plan_order(const int plan[3], bool flat, int order[3])
{
    int count = flat;

    order[0] = 0;
    for (int d = 0; d < 3; d++)
        if (!flat || plan[d] != 0)
            order[count++] = plan[d];
}

/*
 * The order of kernels by the plans in a checkpoint. Plan axis 'backward[2 - d]' is axis d of a
 * file. PONS_DATA: the plans hold no permutation.
 */
static pons_status read_order(weights_file *w, const torch_value *state, const char *where,
                              pons_error *err)
{
    const torch_value *plans = torch_value_find(torch_value_find(torch_file_root(w->torch),
                                                                 "init_args"), "plans");
    const torch_value *backward = torch_value_find(plans, "transpose_backward");
    int seen = 0, plan[3];

    if (plans == NULL || !is_nnunet(w))
        return PONS_OK;
    for (int d = 0; d < 3 && torch_value_count(backward) == 3; d++) {
        int64_t axis;
        if (!torch_value_integer(torch_value_item(backward, 2 - d), &axis) || axis < 0 || axis > 2)
            break;
        seen |= 1 << axis;
        plan[d] = (int)axis;
    }
    if (seen != 7)
        return pons_fail(err, PONS_DATA, "'%s': 'transpose_backward' of its plans is no "
                         "permutation of 0, 1 and 2", where);
    weights_plan_order(plan, !has_volumes(state), w->order);
    w->ordered = true;
    return PONS_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* The tensors while they are collected. */
typedef struct collection {
    weights_file *file;
    const char *where;
    name_index gathered;    /* numbers of items in another order than C's, by gathered_name       */
    size_t gathered_size;   /* bytes of their copies                                              */
    safetensor *item;
    int count;
} collection;

/* A name that two tensors have if they are the same elements in the same order. */
static const char *gathered_name(arena *a, const torch_tensor *t)
{
    char name[GATHERED_SIZE];
    int used = snprintf(name, sizeof name, "%p %p %" PRId64, (const void *)t->storage,
                        (const void *)t->type, t->offset);

    for (int i = 0; i < t->rank; i++)
        used += snprintf(name + used, sizeof name - (size_t)used, " %" PRId64 ":%" PRId64,
                         t->extent[i], t->stride[i]);
    return arena_string(a, name);
}

/* Memory for the elements of a tensor that is not contiguous; its size counts. */
static void *gathered_buffer(collection *c, const safetensor *item, pons_error *err)
{
    size_t most = GATHERED_MAX * torch_file_size(c->file->torch);

    if (item->size > most - c->gathered_size) {
        pons_fail(err, PONS_DATA, "'%s': its views of other tensors have more than %d times the "
                  "bytes of the file, expected the tensors of a state dictionary", c->where,
                  GATHERED_MAX);
        return NULL;
    }
    c->gathered_size += item->size;
    return arena_alloc(c->file->memory, item->size + 1);
}

/* The data of an item. Two names of one tensor share it. */
static pons_status fill_data(collection *c, const torch_tensor *t, safetensor *out, pons_error *err)
{
    const weights_file *w = c->file;
    void *buffer = NULL;

    if (!torch_tensor_is_contiguous(t) || t->count == 0) {
        int same = name_index_add(&c->gathered, "", gathered_name(w->memory, t), c->count);
        if (same < 0)
            return pons_fail(err, PONS_DEVICE, "'%s': out of memory", c->where);
        out->data = c->item[same].data;
        if (same < c->count || (buffer = gathered_buffer(c, out, err)) == NULL)
            return err->status;
    }
    if (torch_file_elements(w->torch, t, buffer, &out->data, err) == PONS_OK)
        torch_file_release(w->torch, t->storage->bytes, t->storage->size);
    return err->status;
}

static pons_status fill_item(collection *c, const torch_tensor *t, safetensor *out, pons_error *err)
{
    if (t->type->type == 0)
        return pons_fail(err, PONS_DATA, "'%s': tensor '%.200s' has type %s, which is not "
                         "supported", c->where, out->name, t->type->name);
    out->type = t->type->type;
    out->rank = t->rank;
    memcpy(out->extent, t->extent, sizeof out->extent);
    out->count = t->count;
    out->size = (size_t)t->count * t->type->size;
    return t->overlaps ? PONS_OK : fill_data(c, t, out, err);
}

static pons_status refuse_name(const torch_value *key, const char *where, pons_error *err)
{
    return pons_fail(err, PONS_DATA, "'%s': the name '%.40s...' of a tensor has %zu bytes, "
                     "expected at most %d", where, key->text.bytes, key->text.size, NAME_SIZE - 1);
}

static pons_status collect_tensors(collection *c, const torch_value *state, pons_error *err)
{
    bool wrapped = are_wrapped(state);

    for (int i = 0; i < torch_value_count(state); i++) {
        const torch_value *v = torch_value_item(state, i), *key = torch_value_key(state, i);
        const char *name = torch_value_text(key);
        if (name == NULL || v->kind != TORCH_TENSOR)
            continue;
        if (key->text.size >= NAME_SIZE)
            return refuse_name(key, c->where, err);
        c->item[c->count].name = clean_name(c->file->memory, name, wrapped);
        if (fill_item(c, v->tensor, &c->item[c->count], err) != PONS_OK)
            return err->status;
        c->count++;
    }
    return PONS_OK;
}

static pons_status collect(weights_file *w, const torch_value *state, const char *where,
                           pons_error *err)
{
    const size_t room = (size_t)torch_value_count(state) + 1;
    collection c = { .file = w, .where = where,
                     .item = arena_alloc(w->memory, room * sizeof *c.item) };

    if (collect_tensors(&c, state, err) == PONS_OK)
        safetensors_of_items(c.count, c.item, where, &w->tensors, err);
    name_index_clear(&c.gathered);
    return err->status;
}

pons_status weights_file_of_torch(torch_file *torch, const torch_value *weights, const char *where,
                                  weights_file *out, pons_error *err)
{
    weights_file w = { .torch = torch, .memory = arena_new() };
    const torch_value *state = weights;

    if (state == NULL)
        state = find_state(torch_file_root(torch), 0);
    if (w.memory == NULL)
        pons_fail(err, PONS_DEVICE, "'%s': out of memory", where);
    else if (state == NULL)
        refuse_absent(torch_file_root(torch), where, err);
    else if (read_order(&w, state, where, err) == PONS_OK)
        collect(&w, state, where, err);
    if (err->status != PONS_OK)
        weights_file_close(&w);
    else
        *out = w;
    return err->status;
}

/* Whether the file has the first bytes of a PyTorch file. NumPy's archives are refused by name. */
static bool is_torch(const char *path)
{
    FILE *f = file_open_reader(path);
    char head[HEAD_SIZE];
    size_t size = f != NULL ? fread(head, 1, sizeof head, f) : 0;

    if (f != NULL)
        fclose(f);
    return torch_file_is(head, size) && memmem(head, size, ".npy", 4) == NULL;
}

pons_status weights_file_open(const char *path, weights_file *out, pons_error *err)
{
    torch_file *torch = NULL;

    *out = (weights_file){ .tensors = NULL };
    if (!is_torch(path))
        return safetensors_open(path, &out->tensors, err);
    if (torch_file_open(path, &torch, err) != PONS_OK)
        return err->status;
    return weights_file_of_torch(torch, NULL, path, out, err);
}

void weights_file_close(weights_file *w)
{
    safetensors_close(w->tensors);
    torch_file_close(w->torch);
    arena_free(w->memory);
    *w = (weights_file){ .tensors = NULL };
}

pons_status weights_file_read(storage *s, unsigned groups, const char *path,
                              const tensor_format *format, pons_error *err)
{
    tensor_format ordered = *format;
    weights_file file;

    if (weights_file_open(path, &file, err) != PONS_OK)
        return err->status;
    if (file.ordered)
        ordered.order = file.order;
    tensor_names_read(s, groups, file.tensors, path, &ordered, err);
    weights_file_close(&file);
    return err->status;
}

void weights_file_release(const weights_file *w, const safetensor *t)
{
    if (w->torch != NULL)
        torch_file_release(w->torch, t->data, t->size);
}
